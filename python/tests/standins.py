# SPDX-License-Identifier: MIT
"""numba.cuda and cuda.bindings as far as RMM's own tests use them, on the runtime that hipmm has: a plugin of pytest for
machines without a CUDA driver (pytest -p standins). Each does with memory what the real one does with it."""

import ctypes
import enum
import sys
import weakref
from types import ModuleType, SimpleNamespace

import numpy

import hipmm
from hipmm.rmm import _runtime


def _module(name, **members):
    module = ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


# ---- cuda.bindings


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorNoDevice = 100


class cudaDeviceAttr(enum.IntEnum):
    cudaDevAttrIntegrated = 18
    cudaDevAttrPageableMemoryAccess = 88
    cudaDevAttrConcurrentManagedAccess = 89
    cudaDevAttrMemoryPoolSupportedHandleTypes = 119


class cudaMemRangeAttribute(enum.IntEnum):
    cudaMemRangeAttributeLastPrefetchLocation = 4


class cudaMemAllocationHandleType(enum.IntEnum):
    cudaMemHandleTypePosixFileDescriptor = 1


class cudaMemAllocationType(enum.IntEnum):
    cudaMemAllocationTypePinned = 1


class cudaMemLocationType(enum.IntEnum):
    cudaMemLocationTypeDevice = 1


class cudaMemPool_t(int):
    pass


class CUmemoryPool(int):
    pass


class cudaMemPoolProps:
    def __init__(self):
        self.allocType = None
        self.location = SimpleNamespace(id=0, type=None)


class _PoolProps(ctypes.Structure):
    _fields_ = [("words", ctypes.c_int * 4), ("security", ctypes.c_void_p), ("reserved", ctypes.c_ubyte * 64)]


def _default_pool(device):
    pool = ctypes.c_void_p()
    _runtime.call("hipDeviceGetDefaultMemPool", ctypes.byref(pool), device)
    return cudaError_t.cudaSuccess, cudaMemPool_t(pool.value)


def _create_pool(props):
    pool = ctypes.c_void_p()
    words = (int(props.allocType), 0, int(props.location.type), props.location.id)
    _runtime.call("hipMemPoolCreate", ctypes.byref(pool), ctypes.byref(_PoolProps((ctypes.c_int * 4)(*words))))
    return cudaError_t.cudaSuccess, cudaMemPool_t(pool.value)


def _destroy_pool(pool):
    _runtime.call("hipMemPoolDestroy", ctypes.c_void_p(int(pool)))
    return (cudaError_t.cudaSuccess,)


def _range_attribute(nbytes, attribute, address, count):
    value = ctypes.c_int()
    _runtime.call(
        "hipMemRangeGetAttribute",
        ctypes.byref(value),
        ctypes.c_size_t(nbytes),
        int(attribute),
        ctypes.c_void_p(address),
        ctypes.c_size_t(count),
    )
    return cudaError_t.cudaSuccess, value.value


_module("cuda")
_module("cuda.bindings")
_module("cuda.bindings.driver", CUmemoryPool=CUmemoryPool)
_module(
    "cuda.bindings.runtime",
    cudaError_t=cudaError_t,
    cudaDeviceAttr=cudaDeviceAttr,
    cudaMemRangeAttribute=cudaMemRangeAttribute,
    cudaMemAllocationHandleType=cudaMemAllocationHandleType,
    cudaMemAllocationType=cudaMemAllocationType,
    cudaMemLocationType=cudaMemLocationType,
    cudaMemPool_t=cudaMemPool_t,
    cudaMemPoolProps=cudaMemPoolProps,
    cudaInvalidDeviceId=-2,
    cudaGetDevice=lambda: (cudaError_t.cudaSuccess, hipmm.current_device()),
    cudaDeviceGetDefaultMemPool=_default_pool,
    cudaMemPoolCreate=_create_pool,
    cudaMemPoolDestroy=_destroy_pool,
    cudaMemRangeGetAttribute=_range_attribute,
)


# ---- numba.cuda


class HostOnlyCUDAMemoryManager:
    def __init__(self, context):
        self.context, self.allocations = context, {}

    def initialize(self):
        pass


class MemoryPointer:
    def __init__(self, context, pointer, size, finalizer):
        self.address, self.size = getattr(pointer, "value", pointer) or 0, size
        weakref.finalize(self, finalizer)


class DeviceArray:
    """An array on the device, in memory of the manager in force, or of its `owner`."""

    __cuda_memory__ = True

    def __init__(self, shape, dtype, owner=None, strides=None):
        self.shape, self.dtype, self.strides, self.ndim = shape, numpy.dtype(dtype), strides, len(shape)
        self.nbytes = int(numpy.prod(shape)) * self.dtype.itemsize
        self.memory = owner or _manager().memalloc(self.nbytes)
        self.address = owner.__cuda_array_interface__["data"][0] if owner else self.memory.address
        self.flags = self._of_host().flags

    def _of_host(self):
        return numpy.ndarray(self.shape, self.dtype, strides=self.strides)

    @property
    def __cuda_array_interface__(self):
        return {
            "data": (self.address, False),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "version": 3,
        }

    def view(self, dtype):
        return DeviceArray(self.shape, dtype, self.memory, self.strides)

    def get_ipc_handle(self):
        return "handle", self.address

    def copy_to_device(self, source, stream=0):
        if isinstance(source, DeviceArray):
            address = source.address
        else:
            source = numpy.asarray(source, order="F" if self.flags.f_contiguous else "C")
            address = source.ctypes.data
        _runtime.copy(self.address, address, self.nbytes, 0)
        hipmm.synchronize()

    def copy_to_host(self):
        result = self._of_host()
        _runtime.copy(result.ctypes.data, self.address, self.nbytes, 0)
        hipmm.synchronize()
        return result


def _as_cuda_array(source):
    interface = source.__cuda_array_interface__
    return DeviceArray(interface["shape"], interface["typestr"], source, interface["strides"])


_current = {}


def _set_memory_manager(kind):
    _current.clear()
    _current["kind"] = kind


def _manager():
    if "manager" not in _current:
        _current["manager"] = _current["kind"](SimpleNamespace(device=SimpleNamespace(id=0)))
        _current["manager"].initialize()
    return _current["manager"]


def _to_device(array):
    result = DeviceArray(array.shape, array.dtype)
    result.copy_to_device(array)
    return result


class _Stream:
    def __init__(self, handle):
        self._handle = handle

    def __int__(self):
        return self._handle.handle if self._handle else 0

    def synchronize(self):
        hipmm.synchronize(int(self))


def _new_stream():
    _runtime.ensure()
    return _Stream(hipmm.Stream())


_module("numba")
_module(
    "numba.cuda",
    HostOnlyCUDAMemoryManager=HostOnlyCUDAMemoryManager,
    GetIpcHandleMixin=type("GetIpcHandleMixin", (), {}),
    MemoryPointer=MemoryPointer,
    set_memory_manager=_set_memory_manager,
    to_device=_to_device,
    as_cuda_array=_as_cuda_array,
    device_array_like=lambda array: DeviceArray(array.shape, array.dtype),
    default_stream=lambda: _Stream(None),
    stream=_new_stream,
)
_module("numba.cuda.cudadrv")
_module("numba.cuda.cudadrv.driver", Stream=_Stream)
