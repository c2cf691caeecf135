# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm.stream import Stream


def as_stream(stream: Stream) -> Stream:
    """The stream itself. Raises TypeError for None and for what is no Stream."""
    if stream is None:
        raise TypeError("stream argument cannot be None. Give a Stream, such as DEFAULT_STREAM.")
    if not isinstance(stream, Stream):
        raise TypeError(f"Argument 'stream' has incorrect type (expected Stream, got {type(stream).__name__})")
    return stream


__all__ = ["as_stream"]
