# SPDX-License-Identifier: MIT
"""CuPy's device memory from hipmm.

    import hipmm.cupy
    hipmm.cupy.use()

A block is allocated for CuPy's current stream, from the resource that is current on the device, and freed on the same
stream, as in CuPy's own pool. A program that uses the block on another stream must make the first stream wait for that work
before the array is deleted.

A program that works on one stream can do without Python in the allocation path:

    address = hipmm._hipmm.function
    cupy.cuda.set_allocator(cupy.cuda.memory.CFunctionAllocator(
        stream.ptr, address("hipmm_cupy_malloc"), address("hipmm_cupy_free"), stream).malloc)
"""

from __future__ import annotations

import ctypes
from typing import Any

import cupy

import hipmm
from hipmm import _hipmm


class Allocator:
    """Uses one CFunctionAllocator per stream, and keeps the streams alive, so that their blocks are cheap to reuse."""

    def __init__(self) -> None:
        self._message = ctypes.CFUNCTYPE(ctypes.c_char_p)(_hipmm.function("hipmm_last_error_message"))
        self._functions = [_hipmm.function(name) for name in ("hipmm_cupy_malloc", "hipmm_cupy_free")]
        self._allocators: dict[tuple[int, int], Any] = {}

    def malloc(self, nbytes: int) -> Any:
        """For cupy.cuda.set_allocator(). Raises CuPy's OutOfMemoryError."""
        stream = cupy.cuda.get_current_stream()
        device = cupy.cuda.runtime.getDevice()
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

    def last_error(self) -> str:
        """Why the last allocation of this thread failed."""
        return str(self._message().decode(errors="replace"))


def use(graph: Any = None) -> Allocator:
    """Makes hipmm CuPy's allocator. `graph`: for hipmm.init(), unless hipmm is initialised already."""
    if graph is not None:
        hipmm.init(graph)
    allocator = Allocator()
    cupy.cuda.set_allocator(allocator.malloc)
    return allocator
