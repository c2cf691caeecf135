# SPDX-License-Identifier: MIT
"""Streams of hipmm, and of everybody else as arguments."""

import gc

import pytest

import hipmm
from hipmm import Buffer, Stream

STEPPED = {"runtime": "software", "stack": ["pool", "device"]}


def test_own_streams():
    stream = Stream()
    assert stream.handle > 2 and stream.device == 0 and not stream.is_default
    assert stream.__cuda_stream__() == (0, stream.handle)
    stream.synchronize()
    assert stream.query() is True
    other = Stream(non_blocking=True)
    other.wait(stream)
    other.wait(None)
    assert stream != other and stream == Stream(stream) and len({stream, other, Stream(stream)}) == 2
    assert Stream(0).is_default and Stream(1).is_default
    assert "hipmm.Stream" in repr(stream) and repr(Stream(0)) == "<hipmm.Stream default>"
    with pytest.raises(hipmm.Error):
        Stream(device=9)


def test_streams_of_others():
    own = Stream()

    class Protocol:
        def __cuda_stream__(self):
            return (0, own.handle)

    class Property:
        __cuda_stream__ = (0, own.handle)

    class Torch:
        cuda_stream = own.handle

    class CuPy:
        ptr = own.handle

        def synchronize(self):
            pass

    class Numba:
        def __int__(self):
            return own.handle

        def synchronize(self):
            pass

    for stream in (own, own.handle, Protocol(), Property(), Torch(), CuPy(), Numba()):
        assert Buffer(1, stream).stream == own.handle, stream
        assert Stream(stream) == own


def test_what_is_no_stream():
    class Later:
        def __cuda_stream__(self):
            return (1, 2)

    class Wrong:
        def __cuda_stream__(self):
            return 5

    class Memory:
        ptr = Stream().handle

    for stream in ("s", 1.5, object(), Wrong(), [1], Memory(), Buffer(1)):
        with pytest.raises(TypeError):
            Buffer(1, stream)
    with pytest.raises(NotImplementedError, match="version: '1'"):
        Buffer(1, Later())
    with pytest.raises(hipmm.ArgumentError):
        Buffer(1, Stream(device=0)).write(b"1", 0, 0xDEAD0)


@pytest.mark.graph({"runtime": "software", "stack": ["pool", "device"]})
def test_a_buffer_keeps_its_stream():
    buffer = Buffer(100, Stream())
    gc.collect()
    buffer.fill(3)
    assert buffer.read() == b"\3" * 100
    second = Stream()
    buffer.resize(100000, second)
    assert buffer.stream == second.handle
    del second
    buffer.fill(4)
    assert buffer.read(99999) == b"\4"


TWO_STREAMS = """
import hipmm, sys, types
hipmm.init({"runtime": "software", "stack": ["pool", "device"]})
right = 0
for _ in range(20):
    first, second = hipmm.Stream(non_blocking=True), hipmm.Stream(non_blocking=True)
    buffer = hipmm.Buffer(1000, second)
    buffer.fill(0)
    buffer.synchronize()
"""


def test_order_between_streams(run):
    """With the stepped scheduler nothing runs until somebody waits, and then in any order that the streams allow. The Buffer is of
    the second stream, so that nothing but wait() orders the fill on the first one."""
    program = TWO_STREAMS + """
    buffer.fill(5, stream=first)
    if sys.argv[1] == "wait":
        second.wait(first)
    right += buffer.copy(second).read() == bytes([5]) * 1000
    first.synchronize()
print(right)
"""
    counts = [int(run(program, way, env={"HIPMM_SOFTWARE": "scheduler=stepped,seed=3"}).stdout) for way in ("wait", "no")]
    assert counts[0] == 20 > counts[1]


def test_order_with_arrays(run):
    """As above: a copy on the first stream of what was filled on the second one, which only the array's stream orders."""
    program = TWO_STREAMS + """
    buffer.fill(5)
    interface = {**buffer.__cuda_array_interface__, **({} if sys.argv[1] == "stream" else {"stream": None})}
    array = types.SimpleNamespace(__cuda_array_interface__=interface)
    right += hipmm.Buffer.copy_of(array, first).read() == bytes([5]) * 1000
    second.synchronize()
print(right)
"""
    environment = {"HIPMM_SOFTWARE": "scheduler=stepped,seed=3"}
    counts = [int(run(program, way, env=environment).stdout) for way in ("stream", "no")]
    assert counts[0] == 20 > counts[1]
