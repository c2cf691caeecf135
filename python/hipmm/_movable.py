# SPDX-License-Identifier: MIT
"""hipmm.movable(): buffers that are moved out of device memory while they are not pinned."""

from __future__ import annotations

import contextlib

from . import _hipmm
from ._errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._hipmm import Buffer, Resource


class PinnedArray:
    """The memory of a pinned buffer, as an array of bytes that PyTorch, CuPy, Numba and hipmm.Buffer.copy_of() read. It and what was
    made of it end with the `with` block."""

    def __init__(self, ptr: int, nbytes: int, stream: int) -> None:
        self._ptr: int | None = ptr
        self.nbytes = nbytes
        self.stream = stream

    @property
    def ptr(self) -> int:
        if self._ptr is None:
            raise StateError("this array's buffer is not pinned any more; pin it again, and use the new array")
        return self._ptr

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.ptr, False),
            "strides": None,
            "version": 3,
            "stream": self.stream or 1,
        }

    def write(self, source: Buffer) -> None:
        """Copies a Buffer into the memory, from its start on, as work of the pin's stream."""
        if source.nbytes > self.nbytes:
            raise ValueError(f"{source.nbytes} bytes are more than the {self.nbytes} of this array")
        own, other = _hipmm.Stream(self.stream), _hipmm.Stream(source.stream)
        own.wait(other)
        source._read_device(self.ptr, source.nbytes, own)
        other.wait(own)

    def __len__(self) -> int:
        return self.nbytes


class MovableBuffer:
    """A buffer from hipmm.movable(). Its memory is freed with the object."""

    def __init__(self, nbytes: int, resource: Resource | None) -> None:
        self._movable = _hipmm.create_movable(resource, nbytes)
        self.nbytes = nbytes

    @contextlib.contextmanager
    def pinned(self, stream: Any = None) -> Iterator[PinnedArray]:
        """Brings the buffer into device memory, and keeps it there for the block, in which `stream` gets all work on it. Blocks may be
        nested. Raises MemoryError or LimitError, and leaves the buffer where it was, if there is no memory."""
        handle = _hipmm.stream_handle(stream)
        array = PinnedArray(_hipmm.pin_movable(self._movable, stream), self.nbytes, handle)
        try:
            yield array
        finally:
            array._ptr = None
            _hipmm.unpin_movable(self._movable, stream)

    def __len__(self) -> int:
        return self.nbytes
