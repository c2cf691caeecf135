# SPDX-License-Identifier: MIT
"""Buffer: sizes, contents, arrays of NumPy, the protocols, pickles, threads."""

import ctypes
import pickle
import threading

import numpy
import pytest

import hipmm
from hipmm import Buffer


def live():
    return hipmm.query("devices/0/pool/live_count")


def test_is_made_and_dropped():
    buffer = Buffer(1000)
    assert (buffer.nbytes, len(buffer), buffer.device, buffer.stream) == (1000, 1000, 0, 0)
    assert buffer.capacity >= 1000 and buffer.ptr % 256 == 0 and live() == 1
    assert buffer.resource == hipmm.resource()
    del buffer
    assert live() == 0
    empty = hipmm.allocate(0)
    assert (empty.ptr, empty.nbytes, empty.read(), bytes(empty)) == (0, 0, b"", b"")
    assert Buffer(nbytes=3, stream=None, resource=hipmm.resource("pool")).resource == hipmm.resource("pool")


@pytest.mark.parametrize("size", [-1, 1 << 64, 1 << 200])
def test_refuses_impossible_sizes(size):
    with pytest.raises(ValueError, match="nbytes is"):
        Buffer(size)


@pytest.mark.parametrize("size", [1.5, "1", None, b"1"])
def test_refuses_what_is_no_size(size):
    with pytest.raises(TypeError, match="nbytes must be an int"):
        Buffer(size)


def test_out_of_memory_is_pythons():
    with pytest.raises(MemoryError) as caught:
        Buffer(1 << 60)
    assert isinstance(caught.value, hipmm.MemoryError) and caught.value.status == -30
    with pytest.raises(MemoryError):
        Buffer(sys_max := (1 << 63) - 1)
    assert live() == 0 and sys_max


def test_changes_its_size():
    buffer = Buffer.copy_of(b"abc")
    buffer.resize(100000)
    assert (buffer.nbytes, buffer.read(0, 3)) == (100000, b"abc")
    buffer.reserve(200000)
    assert buffer.capacity >= 200000 and buffer.nbytes == 100000
    buffer.resize(3)
    buffer.shrink_to_fit()
    assert (buffer.capacity, buffer.read()) == (3, b"abc")
    with pytest.raises(MemoryError):
        buffer.resize(1 << 60)
    assert buffer.read() == b"abc"
    with pytest.raises(ValueError):
        buffer.resize(-5)


def test_contents():
    buffer = Buffer(8)
    buffer.fill(7)
    buffer.write(b"xyz", 2)
    assert buffer.read() == b"\7\7xyz\7\7\7" == bytes(buffer)
    assert buffer.read(3, 2) == b"yz"
    target = bytearray(4)
    assert buffer.read(2, 3, target) is target and target == b"xyz\0"
    buffer.fill(0, 1, 2)
    copy = buffer.copy()
    assert copy.read() == buffer.read() and copy.ptr != buffer.ptr


def test_ranges_are_checked():
    buffer = Buffer(8)
    for wrong in (
        lambda: buffer.read(9),
        lambda: buffer.read(0, 9),
        lambda: buffer.fill(0, 4, 5),
        lambda: buffer.write(b"", 9),
    ):
        with pytest.raises(IndexError, match="not within a Buffer of 8 bytes"):
            wrong()
    with pytest.raises(ValueError, match="do not fit"):
        buffer.write(b"123456789")
    with pytest.raises(ValueError, match="do not fit"):
        buffer.read(into=bytearray(7))
    with pytest.raises((TypeError, BufferError)):
        buffer.read(into=b"12345678")
    with pytest.raises(TypeError):
        buffer.write("text")
    with pytest.raises(OverflowError):
        buffer.fill(256)


def test_numpy():
    values = numpy.arange(12, dtype="f4").reshape(3, 4)
    buffer = Buffer.copy_of(values)
    numpy.testing.assert_array_equal(buffer.to_numpy("f4", (3, 4)), values)
    numpy.testing.assert_array_equal(buffer.to_numpy(numpy.float32), values.ravel())
    assert buffer.to_numpy().shape == (48,)
    with pytest.raises(ValueError, match="whole number"):
        buffer.to_numpy("V5")
    with pytest.raises(ValueError, match="needs"):
        buffer.to_numpy("f8", 100)
    with pytest.raises((ValueError, BufferError)):
        Buffer.copy_of(values[:, ::2])
    with pytest.raises(TypeError, match="no memory"):
        Buffer.copy_of(17)


def test_is_a_buffer_for_the_host():
    buffer = Buffer(16)
    view = memoryview(buffer)
    view[:4] = b"abcd"
    assert buffer.read(0, 4) == b"abcd" and view.nbytes == 16 and not view.readonly
    numpy.frombuffer(buffer, "u4")[1] = 0x01020304
    assert buffer.read(4, 4) == b"\4\3\2\1"
    with pytest.raises(BufferError, match="in use by a view"):
        buffer.resize(1000)
    buffer.fill(0)
    view.release()
    buffer.resize(1000)
    assert memoryview(Buffer(0)).nbytes == 0


def test_memory_of_a_device_is_no_buffer(monkeypatch):
    import hipmm._arrays

    monkeypatch.setattr(hipmm._arrays._hipmm, "runtime", lambda: "nvidia")
    with pytest.raises(BufferError, match="not accessible to the host"):
        memoryview(Buffer(16))
    assert memoryview(Buffer(16, None, hipmm.create("managed"))).nbytes == 16
    assert memoryview(Buffer(16, None, hipmm.create("pool", hipmm.create("pinned")))).nbytes == 16
    assert Buffer(1).__dlpack_device__() == (2, 0)
    assert Buffer(1, None, hipmm.create("managed")).__dlpack_device__() == (13, 0)
    assert Buffer(1, None, hipmm.create("pool", hipmm.create("pinned"))).__dlpack_device__() == (3, 0)


def test_a_software_device_like_a_gpu(run):
    program = """
import hipmm
hipmm.init({"runtime": "software", "stack": ["device"]})
buffer = hipmm.Buffer.copy_of(b"abc")
try:
    memoryview(buffer)
except BufferError as error:
    print("refused")
print(buffer.read(), buffer.__dlpack_device__())
print(bytes(memoryview(hipmm.Buffer.copy_of(b"pinned", None, hipmm.create("pinned")))))
"""
    ended = run(program, env={"HIPMM_SOFTWARE": "host_access=false"})
    assert ended.stdout == "refused\nb'abc' (12, 0)\nb'pinned'\n"


def test_array_interface():
    stream = hipmm.Stream()
    buffer = Buffer(10, stream)
    interface = buffer.__cuda_array_interface__
    assert interface == {
        "data": (buffer.ptr, False),
        "shape": (10,),
        "strides": None,
        "typestr": "|u1",
        "version": 3,
        "stream": stream.handle,
    }
    assert Buffer(1).__cuda_array_interface__["stream"] == 1

    class Foreign:
        def __init__(self, **changes):
            self.__cuda_array_interface__ = {
                **Buffer.__cuda_array_interface__.__get__(source),
                "shape": (2, 4),
                "typestr": "<i4",
                **changes,
            }

    source = Buffer.copy_of(numpy.arange(8, dtype="i4"))
    assert Buffer.copy_of(Foreign()).read() == source.read()
    assert Buffer.copy_of(Foreign(strides=(16, 4)), stream).read() == source.read()
    for wrong in (dict(strides=(4, 8)), dict(mask=source)):
        with pytest.raises(ValueError):
            Buffer.copy_of(Foreign(**wrong))


def test_dlpack_both_ways():
    buffer = Buffer.copy_of(b"abcdef")
    assert buffer.__dlpack_device__() == (1, 0)
    array = numpy.from_dlpack(buffer)
    assert bytes(array) == b"abcdef" and array.ctypes.data == buffer.ptr
    with pytest.raises(BufferError):
        buffer.resize(1000)
    expected = live()
    del buffer
    assert live() == expected and bytes(array) == b"abcdef"
    del array
    assert live() == expected - 1

    class OnlyDLPack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **named):
            return self.array.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    values = numpy.arange(6.0).reshape(2, 3)
    numpy.testing.assert_array_equal(Buffer.copy_of(OnlyDLPack(values)).to_numpy("f8", (2, 3)), values)
    assert Buffer.copy_of(OnlyDLPack(Buffer.copy_of(b"xyz"))).read() == b"xyz"
    with pytest.raises(ValueError, match="C order"):
        Buffer.copy_of(OnlyDLPack(values.T))


def test_dlpack_refuses_what_it_cannot_do():
    buffer = Buffer(4)
    for wrong in (dict(copy=True), dict(dl_device=(2, 0))):
        with pytest.raises(BufferError):
            buffer.__dlpack__(**wrong)
    with pytest.raises(TypeError):
        buffer.__dlpack__(1)
    del wrong
    assert "dltensor_versioned" in repr(buffer.__dlpack__(max_version=(1, 0)))
    assert "dltensor" in repr(buffer.__dlpack__())
    buffer.resize(8)  # the capsules were dropped unused


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    assert pickle.loads(pickle.dumps(Buffer.copy_of(b"abc"), protocol)).read() == b"abc"


def test_pickle_out_of_band():
    parts = []
    text = pickle.dumps(Buffer.copy_of(b"abc" * 1000), 5, buffer_callback=parts.append)
    assert len(parts) == 1 and len(text) < 1000
    assert pickle.loads(text, buffers=parts).read() == b"abc" * 1000


def test_threads_share_one_buffer():
    """Calls on one Buffer from many threads: each is served, or refused with BufferError; nothing is torn."""
    buffer, refused, wrong = Buffer(4096), [], []
    buffer.fill(1)

    def work(number):
        for i in range(200):
            try:
                if number % 2:
                    buffer.resize(4096 + (i % 3) * 100000)
                elif buffer.read(0, 4096) != b"\1" * 4096:
                    wrong.append(i)
            except BufferError:
                refused.append(i)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert buffer.read(0, 4096) == b"\1" * 4096


def test_subclasses():
    class Mine(Buffer):
        pass

    mine = Mine(10)
    mine.note = 1
    assert isinstance(mine.copy(), Mine) and isinstance(Mine.copy_of(b"ab"), Mine)
    del mine
    assert live() == 0


@pytest.mark.graph({"runtime": "software", "stack": ["device"]})
def test_host_memory_is_really_the_devices():
    buffer = Buffer.copy_of(b"hello")
    assert ctypes.string_at(buffer.ptr, 5) == b"hello"
