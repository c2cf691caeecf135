# SPDX-License-Identifier: MIT
"""What a Buffer has to do with arrays of others: NumPy, __cuda_array_interface__, DLPack, pickles. Called by the
extension, which imports this when it is first needed."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from . import _hipmm
from ._hipmm import Buffer, Resource, Stream, View

# Types of resources whose memory the host can read and write.
_OF_HOST = frozenset({"managed", "async_managed", "pinned", "async_pinned", "host", "system", "sam_headroom"})

# Devices of DLPack.
_CPU, _CUDA, _CUDA_HOST, _ROCM, _ROCM_HOST, _EXTENSION, _CUDA_MANAGED = 1, 2, 3, 10, 11, 12, 13


# ---- Where the memory is


def _source_types(resource: Resource) -> set[str]:
    """The types of the sources below a resource."""
    upstreams = resource.upstreams
    return {kind for upstream in upstreams for kind in _source_types(upstream)} if upstreams else {resource.type}


def _types(buffer: Buffer) -> set[str]:
    resource = buffer.resource
    if resource is None:
        return set()
    return _source_types(resource)


def _host_reads(address: int) -> bool:
    """Whether the host can read memory of the software device, which can be set up not to allow that."""
    import ctypes
    import os

    reader, writer = os.pipe()
    try:
        return bool(ctypes.CDLL(None).write(writer, ctypes.c_void_p(address), ctypes.c_size_t(1)) == 1)
    finally:
        os.close(reader)
        os.close(writer)


def _is_of_host(buffer: Buffer) -> bool:
    if _hipmm.runtime() == "software":
        return not buffer.nbytes or _host_reads(buffer.ptr)
    types = _types(buffer)
    return bool(types) and not types - _OF_HOST


def _check_awake(buffer: Buffer) -> None:
    """Raises StateError for memory that is not there, or has not got its content back: its resource sleeps, or wakes."""
    buffer.read(0, min(1, buffer.nbytes))


def check_host_access(buffer: Buffer) -> None:
    """Raises BufferError for memory that only devices reach, and StateError where there is none."""
    _check_awake(buffer)
    if not _is_of_host(buffer):
        raise BufferError(
            f"the memory of {buffer!r} is not accessible to the host; copy it with read() or to_numpy(), or use a "
            "resource of the type managed or pinned"
        )


# ---- NumPy and pickles


def to_numpy(buffer: Buffer, dtype: Any = "u1", shape: Any = None, stream: Any = None) -> Any:
    import numpy

    kind = numpy.dtype(dtype)
    if kind.hasobject or not kind.itemsize:
        raise ValueError(f"bytes of a Buffer are no elements of type {kind}: give a type of numbers, or of a fixed size")
    if shape is None:
        if buffer.nbytes % kind.itemsize:
            raise ValueError(f"{buffer.nbytes} bytes are no whole number of {kind} ({kind.itemsize} bytes each)")
        shape = (buffer.nbytes // kind.itemsize,)
    array = numpy.empty(shape, kind)
    if array.nbytes > buffer.nbytes:
        raise ValueError(
            f"an array of shape {array.shape} and type {kind} needs {array.nbytes} bytes; the Buffer has {buffer.nbytes}"
        )
    buffer.read(0, array.nbytes, array, stream)
    return array


def array(source: Buffer | View, dtype: Any = None, copy: bool | None = None) -> Any:
    """__array__(), which NumPy calls where the buffer protocol fails: for memory that the host does not reach, and for other
    orders than C's."""
    import numpy

    if isinstance(source, Buffer):
        check_host_access(source)
    elif source.__dlpack_device__()[0] not in (_CPU, _CUDA_HOST, _ROCM_HOST):
        raise BufferError(f"the memory of {source!r} is not accessible to the host; copy it with hipmm.Buffer.copy_of()")
    found = numpy.asarray(memoryview(source)) if isinstance(source, Buffer) else numpy.from_dlpack(source)
    if dtype is None or found.dtype == dtype:
        return found.copy() if copy else found
    if copy is False:
        raise BufferError(f"an array of {dtype} of elements of {found.dtype} needs a copy")
    return found.astype(dtype)


def rebuild(kind: type[Buffer], data: Any) -> Buffer:
    """A Buffer of a class whose own __new__() may want other arguments."""
    _hipmm.start_if_needed()  # as in a process that another one sends the Buffer to
    buffer: Buffer = copy_of(functools.partial(Buffer.__new__, kind), data)
    return buffer


def reduce(buffer: Buffer, protocol: int) -> tuple[Any, ...]:
    data: Any = buffer.read()
    if protocol >= 5:
        import pickle

        data = pickle.PickleBuffer(data)
    kind = type(buffer)
    if kind is Buffer:
        return rebuild, (kind, data)
    state = buffer.__getstate__() if hasattr(buffer, "__getstate__") else getattr(buffer, "__dict__", None)
    return rebuild, (kind, data), state


# ---- Copies of arrays


def _itemsize_of(typestr: str) -> int:
    """The bytes of an element, from the "typestr" of an array interface, such as "<f8" or "<M8[ns]"."""
    match = re.fullmatch(r"[<>|=]?([A-Za-z])(\d+)(\[.*\])?", typestr)
    if match is None:
        raise TypeError(f"{typestr!r} is not the typestr of an array")
    if match[1] == "O":
        raise ValueError("the array has objects of Python, which cannot be copied")
    return int(match[2]) * (4 if match[1] == "U" else 1)


class Interface:
    """The __cuda_array_interface__ of an object, checked. Raises TypeError for what is none, ValueError for numbers that no
    array has, and for an array that cannot be copied."""

    def __init__(self, source: Any) -> None:
        given, what = source.__cuda_array_interface__, f"the __cuda_array_interface__ of {type(source).__name__}"
        try:
            self.itemsize = _itemsize_of(given["typestr"])
            self.shape = tuple(map(operator.index, given["shape"]))
            strides, self.stream = given.get("strides"), given.get("stream")
            self.strides = None if strides is None else tuple(map(operator.index, strides))
            self.address = operator.index(given["data"][0])
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            raise TypeError(f"{what} is none: {error!r}") from error
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"{what} has shape {self.shape} and strides {self.strides}, which differ in length")
        if min(self.shape, default=0) < 0:
            raise ValueError(f"{what} has a negative length in its shape {self.shape}")
        if self.stream == 0:
            raise ValueError(f"{what} has stream 0, which is none: 1 is the legacy default stream, 2 the per-thread one")
        if given.get("mask") is not None:
            raise ValueError("masked arrays cannot be copied")
        self.nbytes = self.itemsize * math.prod(self.shape)

    def is_c_order(self) -> bool:
        step = self.itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides or ())):
            if self.nbytes and length > 1 and stride != step:
                return False
            step *= length
        return True


def write_interface(buffer: Buffer, source: Any, interface: Interface, stream: Any) -> None:
    """Copies an array to the front of a Buffer, behind the work that makes its contents ready."""
    held = None
    if isinstance(source, Buffer):
        _check_awake(source)
        held = source.__dlpack__(stream=-1)
    handle = _hipmm.stream_handle(buffer.stream if stream is None else stream)
    if interface.stream is not None and interface.stream != handle:
        Stream(handle, device=buffer.device).wait(interface.stream)
    buffer._write_device(interface.address, interface.nbytes, 0, stream)
    del held  # until here the source stays awake


def _copy_of_interface(kind: Callable[..., Any], source: Any, stream: Any, resource: Any) -> Any:
    interface = Interface(source)
    if not interface.is_c_order():
        raise ValueError("the array is not contiguous in C order; copy it first")
    buffer = kind(interface.nbytes, stream, resource)
    write_interface(buffer, source, interface, stream)
    return buffer


def _copy_of_dlpack(kind: Callable[..., Any], source: Any, stream: Any, resource: Any) -> Any:
    capsule = _capsule_of(source, _hipmm.stream_handle(stream))
    address, nbytes, _ = _hipmm.dlpack_open(capsule)
    buffer = kind(nbytes, stream, resource)
    buffer._write_device(address, nbytes, 0, stream)
    buffer.synchronize()  # the producer may free its memory when the capsule is gone
    return buffer


def copy_of(kind: Callable[..., Any], source: Any, stream: Any = None, resource: Any = None) -> Any:
    """A Buffer that kind(nbytes, stream, resource) makes, with a copy of an array or of other memory."""
    if getattr(source, "__cuda_array_interface__", None) is not None:
        return _copy_of_interface(kind, source, stream, resource)
    try:
        view = memoryview(source)
    except TypeError:
        if hasattr(source, "__dlpack__"):
            return _copy_of_dlpack(kind, source, stream, resource)
        raise TypeError(
            f"{type(source).__name__} is no memory: give bytes or another object with the buffer protocol, or an array "
            "with __cuda_array_interface__ or __dlpack__"
        ) from None
    except ValueError:
        if not hasattr(source, "__array_interface__"):
            raise
        view = memoryview(source.reshape(-1).view("u1"))  # NumPy's dates have the buffer protocol as bytes only
    if not view.c_contiguous:
        raise ValueError("the array is not contiguous in C order; copy it first")
    buffer = kind(view.nbytes, stream, resource)
    buffer.write(view, 0, stream)
    return buffer


# ---- DLPack, in


def _stream_for(source: Any, handle: int) -> dict[str, int]:
    """What __dlpack__() takes to make the contents ready for a stream. CUDA's default stream is 1 there, and ROCm's 0."""
    device = source.__dlpack_device__()
    if not isinstance(device, tuple) or len(device) != 2:
        raise TypeError(f"__dlpack_device__() of {type(source).__name__} gives {device!r}, not a device's type and number")
    device = device[0]
    return {} if device == _CPU else {"stream": handle if device in (_ROCM, _ROCM_HOST) else handle or 1}


def _capsule_of(source: Any, handle: int) -> Any:
    if not hasattr(source, "__dlpack__") or not hasattr(source, "__dlpack_device__"):
        raise TypeError(f"{type(source).__name__} has no __dlpack__() and __dlpack_device__()")
    wanted = _stream_for(source, handle)
    try:
        return source.__dlpack__(**wanted, max_version=(1, 0))
    except TypeError:  # a producer of before DLPack 1.0
        return source.__dlpack__(**wanted)


def from_dlpack(source: Any, stream: Any = None) -> View:
    handle = _hipmm.stream_handle(stream)
    return View(_capsule_of(source, handle), handle)


# ---- DLPack, out


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    runtime = _hipmm.runtime()
    if runtime == "software":
        _check_awake(buffer)
        return (_CPU, 0) if _is_of_host(buffer) else (_EXTENSION, buffer.device)
    types, is_cuda = _types(buffer), runtime == "nvidia"
    if types == {"host"}:
        return _CPU, 0
    if types and types <= {"pinned", "async_pinned"}:
        return (_CUDA_HOST if is_cuda else _ROCM_HOST), buffer.device
    if types == {"managed"} and is_cuda:
        return _CUDA_MANAGED, buffer.device
    return (_CUDA if is_cuda else _ROCM), buffer.device


def _check_dlpack(device: tuple[int, int], what: str, dl_device: Any) -> None:
    if dl_device is not None and tuple(dl_device) != device:
        raise BufferError(f"the {what} is on the DLPack device {device}, not {tuple(dl_device)}")


def prepare_view(
    view: View, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> bool:
    """Makes the contents ready for the consumer's stream; whether the consumer knows DLPack 1.0."""
    device = view.__dlpack_device__()
    if copy:
        raise BufferError("a View is exported without a copy; copy it first")
    _check_dlpack(device, "View", dl_device)
    if device[0] != _CPU and stream != -1:
        consumer = _hipmm.stream_handle(stream)
        if consumer != view.stream and {consumer, view.stream} != {0, 1}:
            Stream(consumer, device=device[1]).wait(view.stream)
    return max_version is not None and max_version[0] >= 1


def prepare_dlpack(
    buffer: Buffer, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> tuple[int, int, bool, Buffer]:
    """Checks the arguments of __dlpack__, and makes the memory, or a copy of it, ready for the consumer's stream."""
    device = dlpack_device(buffer)
    _check_dlpack(device, "Buffer", dl_device)
    if copy:
        buffer = buffer.copy()
    if device[0] == _CPU:
        buffer.synchronize()
    elif stream != -1:
        consumer = _hipmm.stream_handle(stream)
        if consumer != buffer.stream and {consumer, buffer.stream} != {0, 1}:
            Stream(consumer, device=buffer.device).wait(buffer.stream)
    return (*device, max_version is not None and max_version[0] >= 1, buffer)
