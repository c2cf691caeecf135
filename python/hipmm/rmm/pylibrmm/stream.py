# SPDX-License-Identifier: MIT
"""Streams as RMM has them."""

from enum import IntEnum
from typing import Any

import hipmm
from hipmm.rmm import _runtime


class CudaStreamFlags(IntEnum):
    """SYNC_DEFAULT: ordered with the default stream; NON_BLOCKING: independent of it."""

    SYNC_DEFAULT = 0
    NON_BLOCKING = 1


class Stream(hipmm.Stream):
    """A new stream (obj None), or a view of a stream: an object with __cuda_stream__, or one of Numba's or CuPy's."""

    def __new__(cls, obj: Any = None, flags: Any = None) -> "Stream":
        if obj is None:
            _runtime.ensure()
            return super().__new__(cls, non_blocking=bool(CudaStreamFlags(flags or 0)))
        if flags is not None:
            raise ValueError("flags may only be specified when obj is None: a stream has those of its creation")
        if isinstance(obj, (int, str, bytes)):
            raise TypeError(f"Cannot create stream from {type(obj)}")
        return super().__new__(cls, obj)

    @classmethod
    def _from_handle(cls, handle: int) -> "Stream":
        return super().__new__(cls, handle)

    def synchronize(self) -> None:
        """Waits until the stream's work has completed."""
        _runtime.ensure()
        super().synchronize()

    def is_default(self) -> bool:  # type: ignore[override]
        """Whether it is the default stream."""
        return self.handle in (0, 1)

    def __repr__(self) -> str:
        return f"<rmm Stream {self.handle:#x}>"


DEFAULT_STREAM = Stream._from_handle(0)
LEGACY_DEFAULT_STREAM = Stream._from_handle(1)
PER_THREAD_DEFAULT_STREAM = Stream._from_handle(2)
