# SPDX-License-Identifier: MIT
"""Buffer: sizes, contents, arrays of NumPy, the protocols, pickles, threads."""

import copy
import ctypes
import gc
import pickle
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy
import pytest

import hipmm
from hipmm import Buffer


def live():
    return hipmm.query("devices/0/pool/live_count")


def test_a_new_life_remembers_nothing_of_the_last():
    """Dead objects are used again."""

    class Kind(Buffer):
        pass

    stream = hipmm.Stream()
    for _ in range(3):
        buffers = [Buffer(100 + i, stream) for i in range(100)] + [Kind(50)]
        buffers[0]._owner = stream
        views = [memoryview(buffer) for buffer in buffers]
        assert [len(view) for view in views] == [*range(100, 200), 50]
        del buffers, views
        fresh = [Buffer(10) for _ in range(100)]
        assert all((buffer._stream_object, buffer._owner, buffer.stream) == (None, None, 0) for buffer in fresh)
        assert len({buffer.ptr for buffer in fresh}) == 100 == live()
        for buffer in fresh:
            buffer.resize(20)
        del fresh, buffer
        assert live() == 0


def test_is_made_and_dropped():
    buffer = Buffer(1000)
    assert (buffer.nbytes, len(buffer), buffer.device, buffer.stream) == (1000, 1000, 0, 0)
    assert buffer.capacity >= 1000 and buffer.ptr % 256 == 0 and live() == 1
    assert buffer.resource == hipmm.resource()
    del buffer
    assert live() == 0
    empty = hipmm.allocate(0)
    assert (empty.ptr, empty.nbytes, empty.read(), bytes(empty)) == (0, 0, b"", b"")
    assert repr(empty) == "<hipmm.Buffer of 0 bytes on device 0>"
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


def test_fill_where_no_device_reaches():
    for kind in ("host", "pinned", "async_pinned", "managed"):
        buffer = Buffer(1000, hipmm.Stream(), hipmm.create(kind))
        buffer.fill(7)
        buffer.fill(8, 10, 5)
        assert buffer.read() == b"\7" * 10 + b"\10" * 5 + b"\7" * 985, kind
        buffer.fill(1, 1000)


def test_ranges_are_checked():
    buffer = Buffer(8)
    for wrong in (
        lambda: buffer.read(9),
        lambda: buffer.read(0, 9),
        lambda: buffer.fill(0, 4, 5),
        lambda: buffer.write(b"", 9),
        lambda: buffer.write(b"123456789"),
        lambda: buffer.write(b"123", 6),
    ):
        with pytest.raises(IndexError, match="not within a Buffer of 8 bytes"):
            wrong()
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
    for none in ("O", "S0", [("a", "i4"), ("b", "O")]):
        with pytest.raises(ValueError, match="no elements of type"):
            buffer.to_numpy(none)
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
    for wrong, sentence in (
        (dict(strides=(4, 8)), "C order"),
        (dict(mask=source), "masked"),
        (dict(strides=(4,)), "differ in length"),
        (dict(strides=(4, 16, 4)), "differ in length"),
        (dict(shape=(-2, -4)), "negative length"),
        (dict(shape=(0, -4)), "negative length"),
        (dict(stream=0), "stream 0, which is none"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Buffer.copy_of(Foreign(**wrong))
    assert Buffer.copy_of(Foreign(shape=(0, 4), strides=(1, 1))).nbytes == 0


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


def test_copies_of_what_is_no_plain_memory():
    class Array:
        def __init__(self, **interface):
            self.__cuda_array_interface__ = interface

    memory = Buffer.copy_of(b"0123456789abcdef")
    right = {"shape": (2,), "typestr": "<i8", "data": (memory.ptr, False), "version": 3}
    assert Buffer.copy_of(Array(**{**right, "typestr": "<M8[ns]"})).read() == memory.read()
    for wrong in ({"typestr": 5}, {"typestr": "<i"}, {"typestr": ""}, {"data": None}, {"shape": None}, {"shape": 5}):
        with pytest.raises(TypeError, match="of Array is none"):
            Buffer.copy_of(Array(**{**right, **wrong}))
    with pytest.raises(TypeError, match="of Array is none: KeyError"):
        Buffer.copy_of(Array())
    for wrong in ({"typestr": "|O8"}, {"shape": (-1,)}, {"shape": (1 << 62, 1 << 62)}, {"strides": (1,)}, {"mask": memory}):
        with pytest.raises(ValueError):
            Buffer.copy_of(Array(**{**right, **wrong}))
    with pytest.raises(ValueError, match="objects of Python"):
        Buffer.copy_of(numpy.array([1, "a"], dtype=object))
    with pytest.raises(ValueError, match="objects of Python"):
        Buffer.copy_of(numpy.zeros(2, [("a", "i4"), ("b", "O")]))
    named = numpy.ones(2, [("O", "i4"), ("b", "f8")])
    assert Buffer.copy_of(named).read() == named.tobytes()
    assert Buffer.copy_of(numpy.empty((0, 3))).nbytes == 0
    for dates in (numpy.array([["2020", "2021"]], "M8[ns]"), numpy.array(5, "m8[s]")):
        numpy.testing.assert_array_equal(Buffer.copy_of(dates).to_numpy(dates.dtype, dates.shape), dates)


class _Named(Buffer):
    def __new__(cls, name):
        self = super().__new__(cls, 3)
        self.name = name
        return self

    def __init__(self, name):
        pass


def test_copies_of_a_subclass_have_its_attributes():
    named = _Named("weights")
    named.write(b"abc")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(named, protocol))
        assert (type(back), back.name, back.read()) == (_Named, "weights", b"abc")
    for back in (copy.copy(named), copy.deepcopy(named)):
        assert (type(back), back.name, back.read(), back.ptr != named.ptr) == (_Named, "weights", b"abc", True)


def test_objects_have_weak_references():
    freed = []
    for make in (lambda: Buffer(100), hipmm.Stream, hipmm.resource, lambda: hipmm.from_dlpack(numpy.arange(3))):
        made = make()
        before = weakref.WeakSet([made])
        weakref.finalize(made, freed.append, type(made))
        assert list(before) == [made] and weakref.ref(made)() is made
        del made
        assert not before
    assert freed == [Buffer, hipmm.Stream, hipmm.Resource, hipmm.View]
    for _ in range(3):  # an object that lives again has none of the references of its earlier life
        buffer = Buffer(100)
        reference = weakref.ref(buffer)
        del buffer
        assert reference() is None and weakref.getweakrefcount(Buffer(100)) == 0


def test_cycles_are_collected():
    class Named(Buffer):
        pass

    class Worker:
        def __init__(self, kind):
            self.buffer = kind(1 << 20, self)
            self.stream = hipmm.Stream(self)

        def __cuda_stream__(self):
            return 0, 0

    for _ in range(3):
        workers = [Worker(Buffer), Worker(Named)]
        first = workers[0].buffer
        first.resize(2 << 20, workers[1])
        moved = Buffer(1 << 20)
        moved.resize(2 << 20, workers[0])
        workers[0].moved = moved
        owner = Buffer(1 << 20)
        owner._owner = [owner]
        del workers, first, moved, owner
        gc.collect()
        assert hipmm.statistics().current_bytes == 0


def test_dlpack_in_without_a_copy():
    array = numpy.arange(24, dtype="f4").reshape(2, 3, 4)
    view = hipmm.from_dlpack(array)
    assert (view.ptr, view.nbytes, view.shape, view.typestr) == (array.ctypes.data, 96, (2, 3, 4), "<f4")
    assert "96 bytes" in repr(view) and view.__dlpack_device__() == (1, 0) and not view.read_only
    back = numpy.from_dlpack(view)
    address = array.ctypes.data
    del array, view
    back[1, 2, 3] = 7  # the memory lives as long as anybody has it
    assert back.ctypes.data == address and back.sum() == 276 - 23 + 7
    strided = hipmm.from_dlpack(numpy.arange(12, dtype="i8").reshape(3, 4)[:, ::2])
    assert strided.__cuda_array_interface__["strides"] == (32, 16) and strided.nbytes == 48
    numpy.testing.assert_array_equal(numpy.from_dlpack(strided), [[0, 2], [4, 6], [8, 10]])
    with pytest.raises(BufferError, match="in C order"):
        memoryview(strided)
    with pytest.raises(ValueError, match="contiguous in C order"):
        Buffer.copy_of(strided)


def test_dlpack_in_of_each_type():
    for kind in ("?", "u1", "i2", "u4", "f2", "f8", "c8"):
        array = numpy.zeros(3, kind)
        view = hipmm.from_dlpack(array)
        assert view.typestr == array.dtype.str and view.__cuda_array_interface__["typestr"] == array.dtype.str
    assert hipmm.from_dlpack(numpy.float64(3)[...]).shape == ()
    assert bytes(memoryview(hipmm.from_dlpack(numpy.empty((0, 3))))) == b""
    assert bytes(memoryview(hipmm.from_dlpack(numpy.frombuffer(b"abc", "u1").copy()))) == b"abc"


def test_a_view_of_the_host_is_an_array_of_its_shape_and_type():
    for kind in ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"):
        array = numpy.arange(24).astype(kind).reshape(2, 3, 4)
        view = hipmm.from_dlpack(array)
        for back in (numpy.asarray(view), numpy.array(view, copy=False), numpy.frombuffer(view, kind).reshape(2, 3, 4)):
            numpy.testing.assert_array_equal(back, array)
            assert back.dtype == array.dtype and numpy.shares_memory(back, array)
        memory = memoryview(view)
        assert (memory.shape, memory.itemsize, memory.nbytes) == (array.shape, array.itemsize, array.nbytes)
        assert memory.format == memoryview(array).format and bytes(view) == memory.tobytes() == array.tobytes()
        with pytest.raises(BufferError):
            ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.create_string_buffer(200), 0x58)  # Fortran
    assert numpy.asarray(hipmm.from_dlpack(numpy.float64(3)[...])) == 3
    assert numpy.asarray(hipmm.from_dlpack(numpy.empty((0, 3)))).shape == (0, 3)
    strided = numpy.arange(12, dtype="i8").reshape(3, 4)[:, ::2]
    numpy.testing.assert_array_equal(numpy.asarray(hipmm.from_dlpack(strided)), strided)
    assert numpy.asarray(hipmm.from_dlpack(strided), "f4").dtype == "f4"
    memory = (ctypes.c_uint8 * 8)(*range(8))
    halves = _Producer((1, 0), code=4, bits=16, lengths=(2, 2))  # bfloat16: no format has it
    halves.tensor.data, halves.__dlpack__ = ctypes.addressof(memory), lambda **_: _Producer.__dlpack__(halves)
    assert numpy.asarray(hipmm.from_dlpack(halves)).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_memory_that_the_host_cannot_reach_is_no_array_of_numpy():
    with pytest.raises(BufferError, match="not accessible to the host"):
        numpy.asarray(hipmm.from_dlpack(_Producer()))
    with pytest.raises(BufferError, match="needs a copy"):
        numpy.asarray(hipmm.from_dlpack(numpy.arange(12).reshape(3, 4)[:, ::2]), "f4", copy=False)


@pytest.mark.graph({"runtime": {"type": "software", "host_access": False}, "stack": ["device"]})
def test_a_buffer_that_the_host_cannot_reach_is_no_array_of_numpy():
    for convert in (numpy.asarray, numpy.array):
        with pytest.raises(BufferError, match="not accessible to the host; copy it"):
            convert(Buffer(16))


def test_dlpack_in_keeps_what_is_read_only():
    array = numpy.arange(5)
    array.flags.writeable = False
    view = hipmm.from_dlpack(array)
    assert view.read_only and view.__cuda_array_interface__["data"] == (array.ctypes.data, True)
    assert memoryview(view).readonly and not numpy.from_dlpack(view).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        view.__dlpack__()


def test_dlpack_in_of_a_buffer_holds_its_memory():
    buffer = Buffer.copy_of(b"hello")
    view = hipmm.from_dlpack(buffer)
    assert (view.ptr, view.shape, view.typestr) == (buffer.ptr, (5,), "|u1") and Buffer.copy_of(view).read() == b"hello"
    with pytest.raises(BufferError, match="in use by a view"):
        buffer.resize(100)
    again = hipmm.from_dlpack(view)
    del view
    with pytest.raises(BufferError):
        buffer.resize(100)
    del again
    buffer.resize(100)


class _Producer:
    """A tensor of three bytes on a device, whose deleter counts; with DLPack's structs as ctypes has them."""

    class Tensor(ctypes.Structure):
        _fields_ = [
            *(("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32)),
            *(("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
            *(("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)),
            *(("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))),
        ]

    def __init__(self, device=(2, 0), code=1, bits=8, lengths=(3,), ndim=None, lanes=1, data=0x1000):
        self.deleted, self.asked, self.shape = 0, [], lengths and (ctypes.c_int64 * len(lengths))(*lengths)
        ndim = len(lengths) if ndim is None else ndim
        self.delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: setattr(self, "deleted", self.deleted + 1))
        self.device = device
        self.tensor = self.Tensor(data, device, ndim, code, bits, lanes, self.shape, None, 0, None, self.delete)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_dlpack_in_of_elements_with_lanes_and_of_parts_of_bytes():
    memory, producers = (ctypes.c_uint8 * 64)(*range(64)), []

    def view(lengths, strides=None, **kind):
        producer = _Producer((1, 0), lengths=lengths, data=ctypes.addressof(memory), **kind)
        producers.append(producer)
        if strides:
            producer.steps = (ctypes.c_int64 * len(strides))(*strides)
            producer.tensor.strides = ctypes.addressof(producer.steps)
        return hipmm.from_dlpack(producer)

    for lanes in (1, 4):
        spaced = view((2,), (2,), bits=32, lanes=lanes).__cuda_array_interface__
        assert spaced["strides"] == (8 * lanes,) and spaced["typestr"] == ("<u4" if lanes == 1 else "|V16")
    for packed, nbytes in ((view((5,), bits=4), 3), (view((2, 2), bits=4), 2), (view((3,), bits=4, lanes=3), 5)):
        assert packed.nbytes == nbytes and bytes(memoryview(packed)) == bytes(memory)[:nbytes]
        assert Buffer.copy_of(packed).read() == bytes(memory)[:nbytes]
        assert not hasattr(packed, "__cuda_array_interface__")


def test_dlpack_in_calls_the_deleter_once_and_asks_for_the_stream():
    producer = _Producer()
    view = hipmm.from_dlpack(producer)
    assert (view.ptr, view.stream, producer.asked) == (0x1000, 0, [1])
    with pytest.raises(BufferError, match="protocol"):
        memoryview(view)
    capsule = view.__dlpack__(stream=-1)
    del view
    assert producer.deleted == 0
    del capsule  # nobody has consumed it
    assert producer.deleted == 1
    stream = hipmm.Stream()
    views = [hipmm.from_dlpack(producer, stream), hipmm.from_dlpack(_Producer((10, 0)))]
    assert producer.asked[1:] == [stream.handle] == [views[0].stream]
    try:
        raise KeyError("kept")
    except KeyError:
        del views[0]
    assert producer.deleted == 2
    rocm = _Producer((10, 0))
    hipmm.from_dlpack(rocm)
    assert rocm.asked == [0] and rocm.deleted == 1
    assert hipmm.from_dlpack(_Producer(code=4, bits=16)).typestr == "|V2"
    with pytest.raises(BufferError, match="4 bits"):
        hipmm.from_dlpack(_Producer(bits=4)).typestr


def test_dlpack_in_refuses_what_is_none():
    for wrong in (b"bytes", 3, None):
        with pytest.raises(TypeError, match="__dlpack__"):
            hipmm.from_dlpack(wrong)
    used = numpy.arange(3).__dlpack__()
    producer = SimpleNamespace(__dlpack__=lambda **_: used, __dlpack_device__=lambda: (1, 0))
    view = hipmm.from_dlpack(producer)
    for _ in range(2):
        with pytest.raises(TypeError, match="a used one"):
            hipmm.from_dlpack(producer)
    assert view.nbytes == 24
    for device in (None, "ab", 1):
        with pytest.raises(TypeError, match="not a device's type and number"):
            hipmm.from_dlpack(SimpleNamespace(**{**vars(producer), "__dlpack_device__": lambda: device}))
    with pytest.raises(TypeError, match="from_dlpack"):
        hipmm.View(numpy.arange(3).__dlpack__(), stream=0)


@pytest.mark.parametrize(
    "wrong",
    [
        dict(lengths=(-1,)),
        dict(lengths=(1 << 32, 1 << 32)),
        dict(lengths=(1 << 62,), bits=32),
        dict(ndim=-1),
        dict(ndim=1 << 20),
        dict(lengths=None, ndim=1),
        dict(bits=0),
        dict(lanes=0),
        dict(data=None),
        dict(device=(4, 0)),
    ],
)
def test_dlpack_in_refuses_what_no_memory_has(wrong):
    producer = _Producer(**wrong)
    with pytest.raises(BufferError, match="DLPack tensor .* (length|dimension|bits|address)"):
        hipmm.from_dlpack(producer)
    assert producer.deleted == 0
    assert hipmm.from_dlpack(_Producer(lengths=(0, 1 << 62, 8))).nbytes == 0


def test_dlpack_makes_a_copy():
    kept = Buffer(1)
    before = live()
    buffer = Buffer.copy_of(b"abcdef", hipmm.Stream())
    own = numpy.from_dlpack(buffer, copy=True)
    buffer.write(b"xyz")
    assert bytes(own) == b"abcdef" and own.ctypes.data != buffer.ptr and own.flags.writeable
    buffer.resize(1000)  # nothing holds it
    assert live() == before + 2
    del buffer, own
    assert live() == before
    assert Buffer(4).__dlpack__(copy=True, max_version=(1, 0)) and numpy.from_dlpack(Buffer(0), copy=True).size == 0
    assert live() == before and kept


def test_dlpack_refuses_what_it_cannot_do():
    buffer = Buffer(4)
    with pytest.raises(BufferError):
        buffer.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="without a copy"):
        hipmm.from_dlpack(buffer).__dlpack__(copy=True)
    with pytest.raises(TypeError):
        buffer.__dlpack__(1)
    assert "dltensor_versioned" in repr(buffer.__dlpack__(max_version=(1, 0)))
    assert "dltensor" in repr(buffer.__dlpack__())
    buffer.resize(8)  # the capsules were dropped unused


@pytest.mark.graph(None)
def test_unpickling_initialises(tmp_path, run):
    import hipmm.rmm

    file = tmp_path / "pickle"
    hipmm.init({"runtime": "software", "stack": ["device"]})
    file.write_bytes(pickle.dumps([Buffer.copy_of(b"abc"), hipmm.rmm.DeviceBuffer.to_device(b"def")]))
    run("""
import pickle, sys
first, second = pickle.load(open(sys.argv[1], "rb"))
assert (first.read(), second.tobytes()) == (b"abc", b"def")
import hipmm
hipmm.finalize()
assert not hipmm.is_initialized()
""", str(file))


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


def test_reading_and_writing_lose_no_object():
    buffer, target, stream = Buffer(4000), bytearray(1000), hipmm.Stream()
    calls = [
        lambda: buffer.read(1000, 1000, target, stream),
        lambda: buffer.read(1000, 1000),
        lambda: buffer.write(target, 1000, stream),
        lambda: buffer.fill(7, 1000, 1000, stream),
        lambda: buffer.resize(4000, hipmm.Stream()),
    ]
    for call in calls:
        for _ in range(10):
            call()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(500):
            call()
        gc.collect()
        assert sys.getallocatedblocks() < before + 100
