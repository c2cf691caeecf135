# SPDX-License-Identifier: MIT
"""hipmm.GrowingBuffer: device memory that grows without a copy."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

from . import _hipmm
from ._arrays import _CPU, _CUDA, _EXTENSION, _ROCM, _host_reads, prepare_view
from ._hipmm import Resource, Span, Stream
from ._reservation import _bytes


class GrowingBuffer(Span):
    """Device memory with an owner, and with an address that never changes: at first `nbytes` bytes, whose contents are undefined,
    and at most `maximum` bytes, a number or a text such as "4GiB". Memory comes with resize(), in granules. It is from the nearest
    resource at or below `resource` (None: the current one) that serves spans: a pool with mapped memory. PyTorch and CuPy see one
    array of `nbytes` bytes (DLPack, __cuda_array_interface__). `stream` (None: the default stream) is the last that uses the
    memory when it is given back. Raises hipmm.MemoryError, and NotSupportedError for other resources."""

    def __new__(
        cls, maximum: int | str, nbytes: SupportsIndex = 0, stream: Any = None, resource: Resource | None = None
    ) -> GrowingBuffer:
        self = super().__new__(cls, _bytes(maximum), stream, resource)
        self._nbytes = self._committed = 0
        self.resize(nbytes)
        return self

    _nbytes: int
    _committed: int

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._nbytes

    @property
    def capacity(self) -> int:
        """The bytes that there is memory for."""
        return min(self._committed, self.maximum)

    def __len__(self) -> int:
        return self._nbytes

    def __repr__(self) -> str:
        return f"<hipmm.GrowingBuffer of {self.nbytes} of {self.maximum} bytes at {self.ptr:#x} on device {self.device}>"

    def resize(self, nbytes: SupportsIndex) -> None:
        """Changes the size. What is there stays where it is; new bytes are undefined. Arrays that were made of it before keep the
        size that they had. To fewer bytes it keeps the memory. Raises hipmm.MemoryError, and ValueError beyond the maximum; it
        is then as it was."""
        size = operator.index(nbytes)
        if not 0 <= size <= self.maximum:
            raise ValueError(f"{size} bytes: {self!r} has 0 to {self.maximum}")
        wanted = self._whole(size)
        if wanted > self._committed:
            self._commit(self._committed, wanted - self._committed)
            self._committed = wanted
        self._nbytes = size

    def shrink_to_fit(self) -> None:
        """Gives the memory behind the last byte back, after a wait for the stream. Raises BufferError while an array of DLPack
        lives, and StateError while a graph is captured."""
        wanted = self._whole(self._nbytes)
        if self._views:
            raise BufferError(f"the memory of {self!r} is in use by {self._views} arrays (DLPack); let go of them before")
        self._committed = wanted  # what a call that fails has left is passed over, or committed again
        self._decommit(wanted, self._whole(self.maximum) - wanted)

    def _whole(self, size: int) -> int:
        return -(-size // self.granule) * self.granule

    # ---- As an array of bytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.ptr if self._nbytes else 0, False),
            "shape": (self._nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        runtime = _hipmm.runtime()
        if runtime == "software":
            return (_CPU, 0) if not self._nbytes or _host_reads(self.ptr) else (_EXTENSION, self.device)
        return (_CUDA if runtime == "nvidia" else _ROCM), self.device

    def __dlpack__(self, *, copy: bool | None = None, **wanted: Any) -> Any:
        if copy:
            raise BufferError("a GrowingBuffer is exported without a copy; hipmm.Buffer.copy_of() makes one")
        versioned = prepare_view(self, **wanted)
        device = self.__dlpack_device__()
        if device[0] == _CPU:
            Stream(self.stream, device=self.device).synchronize()
        return self._export(self._nbytes, *device, versioned)
