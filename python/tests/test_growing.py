# SPDX-License-Identifier: MIT
"""hipmm.GrowingBuffer: addresses, arrays of others, sleep, and bad input."""

import ctypes
import gc

import numpy
import pytest

import hipmm

MIB = 1 << 20
GRAPH = {
    "runtime": {"type": "software", "memory": "64MiB"},
    "stack": [{"type": "pool", "growth": "mapped", "maximum_size": "16MiB"}, "device"],
}


def live():
    return hipmm.query("devices/0/pool/live_bytes")


@pytest.mark.graph(GRAPH)
def test_grows_at_one_address():
    buffer = hipmm.GrowingBuffer("1GiB")
    first = buffer.ptr
    assert (buffer.nbytes, buffer.capacity, buffer.maximum, live()) == (0, 0, 1 << 30, 0)
    for size in (1, 5 * MIB, 12 * MIB):
        buffer.resize(size)
        ctypes.memset(buffer.ptr + size - 1, size % 251, 1)
        assert (buffer.ptr, buffer.nbytes, len(buffer)) == (first, size, size)
        assert buffer.capacity - size < buffer.granule and live() == buffer.capacity
    assert [ctypes.string_at(first + size - 1, 1)[0] for size in (1, 5 * MIB)] == [1, 5 * MIB % 251]
    with pytest.raises(hipmm.MemoryError, match="maximum_size 16 MiB"):
        buffer.resize(17 * MIB)
    assert buffer.nbytes == 12 * MIB
    buffer.resize(1)
    assert live() == 12 * MIB
    buffer.shrink_to_fit()
    assert live() == buffer.granule
    del buffer
    gc.collect()
    assert live() == 0


@pytest.mark.graph(GRAPH)
def test_others_see_one_array_that_they_keep():
    buffer = hipmm.GrowingBuffer(1 << 40, 3 * MIB)
    interface = buffer.__cuda_array_interface__
    assert (interface["data"], interface["shape"], interface["typestr"]) == ((buffer.ptr, False), (3 * MIB,), "|u1")
    array = numpy.from_dlpack(buffer)
    array[:] = 7
    buffer.resize(6 * MIB)
    grown = numpy.from_dlpack(buffer)
    assert array.ctypes.data == grown.ctypes.data == buffer.ptr
    grown[3 * MIB :] = 8
    assert (array == 7).all() and grown.sum() == 3 * MIB * 15
    assert hipmm.Buffer.copy_of(buffer).read(3 * MIB - 1, 2) == b"\x07\x08"
    buffer.resize(MIB)
    with pytest.raises(BufferError, match="in use by 2 arrays"):
        buffer.shrink_to_fit()
    with pytest.raises(BufferError, match="cannot sleep"):
        hipmm.sleep()
    del array, grown
    gc.collect()
    buffer.shrink_to_fit()
    hipmm.sleep()
    with pytest.raises(hipmm.StateError, match="is suspended; resume it first"):
        buffer.resize(4 * MIB)
    hipmm.wake()
    assert hipmm.Buffer.copy_of(buffer).read() == b"\x07" * MIB
    kept = numpy.from_dlpack(buffer)
    del buffer
    gc.collect()
    assert kept[0] == 7 and live() > 0
    del kept
    gc.collect()
    assert live() == 0


@pytest.mark.graph(GRAPH)
def test_outlives_the_library():
    buffer = hipmm.GrowingBuffer("64MiB", 100)
    hipmm.finalize()
    buffer.resize(3 * MIB)
    ctypes.memset(buffer.ptr, 1, 3 * MIB)
    del buffer
    gc.collect()


@pytest.mark.graph(GRAPH)
def test_refuses_what_makes_no_sense():
    buffer = hipmm.GrowingBuffer("8MiB", 1, stream=hipmm.Stream())
    for size in (-1, 8 * MIB + 1):
        with pytest.raises(ValueError, match="has 0 to 8388608"):
            buffer.resize(size)
    for maximum, error in ((0, hipmm.ArgumentError), (-1, ValueError), ("8 apples", ValueError), (None, TypeError)):
        with pytest.raises(error):
            hipmm.GrowingBuffer(maximum)
    with pytest.raises(hipmm.NotSupportedError, match="use a pool"):
        hipmm.GrowingBuffer("8MiB", resource=hipmm.resource("device"))
    with pytest.raises(BufferError, match=r"copy_of\(\) makes one"):
        buffer.__dlpack__(copy=True)
    with pytest.raises(hipmm.MemoryError):
        hipmm.GrowingBuffer("64MiB", 32 * MIB)
    assert live() == buffer.granule
