# SPDX-License-Identifier: MIT
"""DeviceBuffer, and copies between raw addresses and host memory."""

import ctypes
from typing import Any, SupportsIndex

from hipmm import Buffer, _arrays
from hipmm.rmm import _runtime
from hipmm.rmm.pylibrmm.memory_resource._base import DeviceMemoryResource, rmm_errors, size_of
from hipmm.rmm.pylibrmm.memory_resource._devices import get_current_device_resource
from hipmm.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream
from hipmm.rmm.pylibrmm.utils import as_stream


def _bytes_of(name: str, memory: Any, writable: bool = False) -> memoryview:
    """Host memory of one dimension, of unsigned bytes, in order. Other memory is a ValueError, as in RMM."""
    if memory is None:
        raise TypeError(f"Argument '{name}' has incorrect type (expected bytes-like, got NoneType)")
    view = memoryview(memory)
    if view.format != "B":
        raise ValueError(f"Buffer dtype mismatch, expected 'unsigned char' but got '{view.format}'")
    if view.ndim != 1:
        raise ValueError(f"Buffer has wrong number of dimensions (expected 1, got {view.ndim})")
    if not view.c_contiguous:
        raise ValueError("the buffer is not C-contiguous")
    if writable and view.readonly:
        raise BufferError("Object is not writable.")
    return view


class DeviceBuffer(Buffer):
    """Device memory with an owner: `size` bytes of `mr` (None: the current resource), used and freed on `stream`. With `ptr`,
    a copy of the memory at that address, of the host or of a device."""

    __slots__ = ()

    def __new__(
        cls, *, ptr: int = 0, size: int = 0, stream: Stream = DEFAULT_STREAM, mr: DeviceMemoryResource | None = None
    ) -> "DeviceBuffer":
        stream = as_stream(stream)
        if mr is not None and not isinstance(mr, DeviceMemoryResource):
            raise TypeError(
                f"Argument 'mr' has incorrect type (expected DeviceMemoryResource, got {type(mr).__name__})"
            )
        resource = get_current_device_resource() if mr is None else mr
        size = size_of(size)
        with rmm_errors:
            self = Buffer.__new__(cls, size, stream, resource._resource)  # super() takes a while before Python 3.12
        self._owner = resource
        if ptr and size:
            self._write_device(size_of(ptr, "ptr"), size, 0, stream)
            if stream.is_default():
                stream.synchronize()
        return self

    # ---- Facts

    @property
    def mr(self) -> DeviceMemoryResource:
        """The resource, which lives as long as the memory."""
        resource: DeviceMemoryResource = self._owner
        return resource

    @property
    def stream(self) -> Stream:  # type: ignore[override]
        """The stream on which the memory will be freed."""
        stream: Stream = self._stream_object
        return stream

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.nbytes

    def capacity(self) -> int:  # type: ignore[override]
        """The size of the block in bytes."""
        return int(Buffer.capacity.__get__(self))

    def __sizeof__(self) -> int:
        return self.nbytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.ptr, False), "shape": (self.nbytes,), "strides": None, "typestr": "|u1", "version": 0}

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        data: Any = self.tobytes()
        if protocol >= 5:
            import pickle

            data = pickle.PickleBuffer(data)
        return to_device, (data,)

    def __reduce__(self) -> tuple[Any, ...]:
        return to_device, (self.copy_to_host(),)

    # ---- Copies

    def copy(self) -> "DeviceBuffer":  # type: ignore[override]
        """A DeviceBuffer with the same contents, of the same resource, on the same stream."""
        return DeviceBuffer(ptr=self.ptr, size=self.nbytes, stream=self.stream, mr=self.mr)

    def __copy__(self) -> "DeviceBuffer":
        return self.copy()

    @staticmethod
    def to_device(b: Any, stream: Stream = DEFAULT_STREAM) -> "DeviceBuffer":
        """A DeviceBuffer with a copy of bytes of the host."""
        return to_device(b, stream)

    @classmethod
    def copy_of(  # type: ignore[override]
        cls, source: Any, stream: Stream = DEFAULT_STREAM, resource: DeviceMemoryResource | None = None
    ) -> "DeviceBuffer":
        """A DeviceBuffer with a copy of what hipmm.Buffer.copy_of() takes, such as an array of any type."""

        def make(size: int, queue: Any, mr: Any) -> "DeviceBuffer":
            return cls(size=size, stream=queue, mr=mr)

        buffer: DeviceBuffer = _arrays.copy_of(make, source, as_stream(stream), resource)
        return buffer

    def tobytes(self, stream: Stream = DEFAULT_STREAM) -> bytes:
        """The contents. Waits."""
        return bytes(self.read(0, None, None, as_stream(stream)))

    def copy_to_host(self, ary: Any = None, stream: Stream = DEFAULT_STREAM) -> Any:
        """Copies the contents to `ary`, bytes of the host, or to a new array of NumPy, and returns it. Waits."""
        stream = as_stream(stream)
        if ary is None:
            return self.to_numpy("u1", None, stream)
        view = _bytes_of("ary", ary, writable=True)
        if view.nbytes < self.nbytes:
            raise ValueError(f"Argument `ary` is too small. Need space for {self.nbytes} bytes.")
        self.read(0, None, view, stream)
        return ary

    def copy_from_host(self, ary: Any, stream: Stream = DEFAULT_STREAM) -> None:
        """Copies bytes of the host to the front. Waits."""
        stream = as_stream(stream)
        view = _bytes_of("ary", ary)
        if view.nbytes > self.nbytes:
            raise ValueError(f"Argument `ary` is too large. Need space for {view.nbytes} bytes.")
        self.write(view, 0, stream)

    def copy_from_device(self, cuda_ary: Any, stream: Stream = DEFAULT_STREAM) -> None:
        """Copies an array of one dimension with __cuda_array_interface__ to the front. Does not wait."""
        stream = as_stream(stream)
        if getattr(cuda_ary, "__cuda_array_interface__", None) is None:
            raise ValueError("Expected object to support `__cuda_array_interface__` protocol")
        interface = _arrays.Interface(cuda_ary)
        if len(interface.shape) > 1:
            raise ValueError(f"Only 1-D contiguous arrays are supported, got {len(interface.shape)}-D array")
        if not interface.is_c_order():
            raise ValueError("Only 1-D contiguous arrays are supported, got a non-contiguous array")
        if interface.nbytes > self.nbytes:
            raise ValueError(f"Argument `cuda_ary` is too large. Need space for {interface.nbytes} bytes.")
        _arrays.write_interface(self, cuda_ary, interface, stream)

    # ---- Size and place

    def resize(self, new_size: SupportsIndex, stream: Stream = DEFAULT_STREAM) -> None:
        """Changes the size; the contents stay."""
        with rmm_errors:
            super().resize(size_of(new_size, "new_size"), as_stream(stream))

    def reserve(self, new_capacity: SupportsIndex, stream: Stream = DEFAULT_STREAM) -> None:
        """Grows the capacity to at least `new_capacity`."""
        with rmm_errors:
            super().reserve(size_of(new_capacity, "new_capacity"), as_stream(stream))

    def prefetch(self, device: int | None = None, stream: Stream | None = None) -> None:
        """Moves managed memory to a device (None: the current one; -1: the host). No effect on other memory."""
        from hipmm.rmm._cuda.gpu import CUDARuntimeError, getDevice

        target = getDevice() if device is None else int(device)
        queue = self.stream if stream is None else as_stream(stream)
        if not self.nbytes or not _runtime.has("hipMemPrefetchAsync"):
            return
        try:
            _runtime.call(
                "hipMemPrefetchAsync",
                ctypes.c_void_p(self.ptr),
                ctypes.c_size_t(self.nbytes),
                target,
                ctypes.c_void_p(queue.handle),
            )
        except CUDARuntimeError as error:
            if int(error.status) not in (1, 801):  # invalid value, not supported: the memory is not managed
                raise


def to_device(b: Any, stream: Stream = DEFAULT_STREAM) -> DeviceBuffer:
    """A DeviceBuffer with a copy of bytes of the host."""
    stream = as_stream(stream)
    view = _bytes_of("b", b)
    buffer = DeviceBuffer(size=view.nbytes, stream=stream)
    if view.nbytes:
        buffer.write(view, 0, stream)
    return buffer


# ---- Raw addresses


def copy_ptr_to_host(db: int, hb: Any, stream: Stream = DEFAULT_STREAM) -> None:
    """Copies device memory at the address `db` to bytes of the host. Waits."""
    stream = as_stream(stream)
    view = _bytes_of("hb", hb, writable=True)
    if view.nbytes:
        target = (ctypes.c_char * view.nbytes).from_buffer(view)
        _runtime.copy(ctypes.addressof(target), size_of(db, "db"), view.nbytes, stream.handle)
        stream.synchronize()


def copy_host_to_ptr(hb: Any, db: int, stream: Stream = DEFAULT_STREAM) -> None:
    """Copies bytes of the host to device memory at the address `db`. Waits."""
    stream = as_stream(stream)
    view = _bytes_of("hb", hb)
    if view.nbytes:
        copy = (ctypes.c_char * view.nbytes).from_buffer_copy(view)
        _runtime.copy(size_of(db, "db"), ctypes.addressof(copy), view.nbytes, stream.handle)
        stream.synchronize()


def copy_device_to_ptr(d_src: int, d_dst: int, count: int, stream: Stream = DEFAULT_STREAM) -> None:
    """Copies `count` bytes between addresses of device memory. Does not wait."""
    _runtime.copy(size_of(d_dst, "d_dst"), size_of(d_src, "d_src"), size_of(count, "count"), as_stream(stream).handle)
