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


def test_order_between_streams(run):
    """With the stepped scheduler work of two streams runs in any order that nothing forbids. Without the wait the copy is
    made too early in some round of some seed."""
    program = """
import hipmm
hipmm.init({"runtime": "software", "stack": ["pool", "device"]})
early = 0
for value in range(1, 21):
    first, second = hipmm.Stream(non_blocking=True), hipmm.Stream(non_blocking=True)
    buffer = hipmm.Buffer(1000, first)
    buffer.fill(value, stream=first)
    WAIT
    early += buffer.copy(second).read() != bytes([value]) * 1000
    first.synchronize()
print(early)
"""

    def copied_early(wait):
        runs = [
            run(program.replace("WAIT", wait), env={"HIPMM_SOFTWARE": f"scheduler=stepped,seed={seed}"})
            for seed in range(1, 4)
        ]
        return sum(int(ended.stdout) for ended in runs)

    assert copied_early("second.wait(first)") == 0
    assert copied_early("pass") > 0
