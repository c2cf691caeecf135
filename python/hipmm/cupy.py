# SPDX-License-Identifier: MIT
"""CuPy's device memory from hipmm.

    import hipmm.cupy
    hipmm.cupy.use()

A block is allocated for CuPy's current stream, from the resource that is current on the device, and freed on the same
stream, as in CuPy's own pool. cupy.get_default_memory_pool() answers for hipmm's memory on the current device, whichever
library has it.
A program that uses the block on another stream must make the first stream wait for that work before the array is deleted.

A program that works on one stream can do without Python in the allocation path:

    address = hipmm._hipmm.function
    cupy.cuda.set_allocator(cupy.cuda.memory.CFunctionAllocator(
        stream.ptr, address("hipmm_cupy_malloc"), address("hipmm_cupy_free"), stream).malloc)
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from typing import Any

import cupy

import hipmm
from hipmm import _hipmm
from hipmm._blocks import Block, block_holders


class Allocator:
    """Uses one CFunctionAllocator per stream, and keeps the streams alive, so that their blocks are cheap to reuse. Has the
    functions of a cupy.cuda.MemoryPool; each is about the current device. Thread-safe."""

    def __init__(self) -> None:
        self._message = ctypes.CFUNCTYPE(ctypes.c_char_p)(_hipmm.function("hipmm_last_error_message"))
        self._functions = [_hipmm.function(name) for name in ("hipmm_cupy_malloc", "hipmm_cupy_free")]
        self._run_bytes: Any = None
        if _hipmm.is_under_run():
            address = _hipmm.function("hipmm_run_cupy_bytes")
            self._run_bytes = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int)(address)
        self._allocators: dict[tuple[int, int], Any] = {}
        self._before: Any = None  # the pool that this one replaced
        self._limits: dict[int, int] = {}

    def malloc(self, nbytes: int) -> Any:
        """For cupy.cuda.set_allocator(). Raises CuPy's OutOfMemoryError."""
        device = cupy.cuda.runtime.getDevice()
        memory = self._malloc(nbytes, device)
        limit = self._limit(device)
        if not limit or hipmm.held_bytes(device)[0] <= limit:
            return memory
        del memory
        self._trim(device)
        memory = self._malloc(nbytes, device)
        held = hipmm.held_bytes(device)[0]
        if held > limit:
            del memory
            self._trim(device)
            raise cupy.cuda.memory.OutOfMemoryError(nbytes, held, limit)
        return memory

    def _malloc(self, nbytes: int, device: int) -> Any:
        stream = cupy.cuda.get_current_stream()
        malloc = self._allocators.get((device, stream.ptr))
        is_new = malloc is None
        if malloc is None:
            malloc = cupy.cuda.memory.CFunctionAllocator(stream.ptr, *self._functions, (self, stream)).malloc
            self._allocators[device, stream.ptr] = malloc
        memory = malloc(nbytes)
        if nbytes and not memory.ptr:
            raise cupy.cuda.memory.OutOfMemoryError(nbytes, 0) from MemoryError(self.last_error())
        # CuPy's own streams live as long as a reference to them; the lifetime of other streams is unknown. The first
        # allocation has initialised hipmm.
        if is_new and isinstance(stream, cupy.cuda.Stream) and stream.ptr > 2:
            _hipmm.retain_stream(device, stream.ptr, True)
        return memory

    def used_bytes(self) -> int:
        """The bytes of all live blocks of the current resource's stack; under `hipmm run`, whose stack serves the program's other
        calls too, of CuPy's own."""
        if self._run_bytes:
            return int(self._run_bytes(self._device()))
        return sum(nbytes for _, nbytes, state, _, _ in self._blocks() if state == "live")

    def free_bytes(self) -> int:
        """What the device's stack holds beyond used_bytes()."""
        return max(0, self.total_bytes() - self.used_bytes())

    def total_bytes(self) -> int:
        """What the device's stack holds."""
        return hipmm.held_bytes(self._device())[0]

    def n_free_blocks(self) -> int:
        """The number of free blocks of the current resource's stack."""
        return sum(state != "live" for _, _, state, _, _ in self._blocks())

    def free_all_blocks(self, stream: Any = None) -> None:
        """Returns the stack's free memory to the device, of all streams."""
        self._trim(self._device())

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """From now on CuPy gets no block with which the stack would hold more than `size` bytes, or more than this fraction of the
        device's memory. 0 removes the limit."""
        if (size is None) == (fraction is None):
            raise ValueError("give either size or fraction")
        device = cupy.cuda.runtime.getDevice()
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"fraction is from 0 to 1, not {fraction}")
            _hipmm.start_if_needed()
            size = int(fraction * hipmm.device_memory(device)[1])
        if size is None or size < 0:
            raise ValueError(f"size is 0 or more, not {size}")
        self._limits[device] = size

    def get_limit(self) -> int:
        """The limit; 0 if there is none. At first that of the pool that this one replaced, from CUPY_GPU_MEMORY_LIMIT."""
        return self._limit(cupy.cuda.runtime.getDevice())

    def _limit(self, device: int) -> int:
        if device not in self._limits:
            self._limits[device] = int(self._before.get_limit()) if self._before else 0
        return self._limits[device]

    def _device(self) -> int:
        """The current device, for functions that need hipmm initialised."""
        _hipmm.start_if_needed()
        return int(cupy.cuda.runtime.getDevice())

    def _blocks(self) -> Iterator[Block]:
        return itertools.chain.from_iterable(block_holders(hipmm.resource(device=self._device())).values())

    def _trim(self, device: int) -> None:
        hipmm.resource(device=device).trim()

    def last_error(self) -> str:
        """Why the last allocation of this thread failed."""
        return str(self._message().decode(errors="replace"))


def use(graph: Any = None) -> Allocator:
    """Makes hipmm CuPy's allocator. `graph`: for hipmm.init(), unless hipmm is initialised already."""
    if graph is not None:
        hipmm.init(graph)
    allocator = Allocator()
    allocator._before = getattr(cupy, "_default_memory_pool", None)
    cupy.cuda.set_allocator(allocator.malloc)
    cupy._default_memory_pool = allocator  # what get_default_memory_pool() returns
    return allocator
