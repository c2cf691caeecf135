# SPDX-License-Identifier: MIT
import itertools

from hipmm.rmm.pylibrmm.memory_resource._base import size_of
from hipmm.rmm.pylibrmm.stream import CudaStreamFlags, Stream


class CudaStreamPool:
    """A fixed number of streams, returned in turn. Thread-safe."""

    def __init__(self, pool_size: int = 16, flags: CudaStreamFlags = CudaStreamFlags.SYNC_DEFAULT) -> None:
        count = size_of(pool_size, "pool_size")
        if count == 0:
            raise RuntimeError("Stream pool size must be greater than zero")
        self._streams = [Stream(flags=flags) for _ in range(count)]
        self._turn = itertools.count()

    def get_stream(self, stream_id: int | None = None) -> Stream:
        """The next stream, or the stream of this number modulo the size."""
        number = next(self._turn) if stream_id is None else size_of(stream_id, "stream_id")
        return self._streams[number % len(self._streams)]

    def get_pool_size(self) -> int:
        """The number of streams."""
        return len(self._streams)


__all__ = ["CudaStreamPool"]
