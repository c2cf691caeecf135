# SPDX-License-Identifier: MIT
"""PyTorch, CuPy, cuda.core and Numba as far as hipmm's modules for them use them, without a GPU: each does with an
allocator what the real one does with it. install() makes them importable."""

import ctypes
import os
import sys
from types import ModuleType, SimpleNamespace

_modules = {}


def _module(name, **members):
    module = _modules[name] = ModuleType(name)
    module.__dict__.update(members)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(_modules[parent], child, module)
    return module


def install(package=""):
    """Makes all of them importable, or a package and what it has."""
    sys.modules.update({name: module for name, module in _modules.items() if name.startswith(package)})


# ---- PyTorch


class _Hooks:
    """What CUDAPluggableAllocator.allocator() gives: a setter per hook, which takes an address."""

    NAMES = (
        "set_init_fn",
        "set_reset_fn",
        "set_memory_fraction_fn",
        "set_base_alloc_fn",
        "set_record_stream_fn",
        "set_begin_allocate_to_pool",
        "set_end_allocate_to_pool_fn",
        "set_release_pool",
    )

    def __init__(self):
        self.given = {}
        for name in self.NAMES:
            setattr(self, name, lambda address, name=name: self.given.__setitem__(name, address))


class CUDAPluggableAllocator:
    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        malloc_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        free_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        self.malloc, self.free = malloc_type((malloc, library)), free_type((free, library))
        self._hooks = _Hooks()

    def allocator(self):
        return self._hooks


class _MemPool:
    def __init__(self, allocator):
        self.allocator = allocator


torch_current = []
torch_has_started = False  # as after torch.cuda.set_device(), or any use of CUDA


def _change_current_allocator(allocator):
    if torch_has_started:
        raise RuntimeError("Can't swap an already initialized allocator")
    torch_current.append(allocator)


class UntypedStorage:
    def __init__(self, address):
        self._address = address

    def data_ptr(self):
        return self._address

    def _share_cuda_(self):
        return "shared"


torch_segments = []  # (address, bytes) of what PyTorch's own allocator has


def _memory_snapshot():
    return [{"address": address, "total_size": size} for address, size in torch_segments]


def _refuse(*_):
    raise RuntimeError("CUDAPluggableAllocator does not yet support this")


torch_functions = SimpleNamespace(
    **dict.fromkeys(
        (
            *("_cuda_memoryStats", "_cuda_resetPeakMemoryStats", "_cuda_resetAccumulatedMemoryStats"),
            *("_cuda_memorySnapshot", "_cuda_record_memory_history"),
        ),
        _refuse,
    )
)
_memory = SimpleNamespace(
    CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=_change_current_allocator
)
_module(
    "torch",
    version=SimpleNamespace(cuda=None if os.environ.get("FAKE_TORCH_CPU") else "13.0"),
    cuda=SimpleNamespace(memory=_memory, MemPool=_MemPool, memory_snapshot=_memory_snapshot),
    UntypedStorage=UntypedStorage,
    device=lambda text: SimpleNamespace(index=int(text.partition(":")[2]) if ":" in text else None),
    _C=torch_functions,
)


# ---- CuPy


class OutOfMemoryError(Exception):
    def __init__(self, size, total, limit=0):
        super().__init__(size, total, limit)


class _Stream:
    def __init__(self, ptr=0):
        self.ptr = ptr


class _Memory:
    def __init__(self, ptr, free):
        self.ptr, self._free = ptr, free

    def __del__(self):
        if self.ptr:
            self._free(self.ptr)


class CFunctionAllocator:
    params = []  # of all that were made

    def __init__(self, param, malloc, free, owner):
        self.params.append(param)
        self._param, self._owner = param, owner
        self._malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(malloc)
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(free)

    def malloc(self, nbytes):
        device = cupy_device[0]
        return _Memory(self._malloc(self._param, nbytes, device) or 0, lambda ptr: self._free(self._param, ptr, device))


cupy_device = [0]
cupy_stream = [_Stream()]
_memory = SimpleNamespace(CFunctionAllocator=CFunctionAllocator, OutOfMemoryError=OutOfMemoryError)
cupy_allocator = []
cupy_limit = [0]  # CUPY_GPU_MEMORY_LIMIT
_module(
    "cupy",
    _default_memory_pool=SimpleNamespace(get_limit=lambda: cupy_limit[0]),
    cuda=SimpleNamespace(
        Stream=_Stream,
        memory=_memory,
        get_current_stream=lambda: cupy_stream[0],
        runtime=SimpleNamespace(getDevice=lambda: cupy_device[0]),
        set_allocator=cupy_allocator.append,
    ),
)


# ---- cuda.core


class MemoryResource:
    pass


class Buffer:
    """Frees as cuda.core's does: in the order of the stream that it was made with, unless close() names another."""

    @classmethod
    def from_handle(cls, ptr, size, mr=None, owner=None, *, stream=None):
        buffer = cls()
        buffer.handle, buffer.size, buffer.memory_resource, buffer._stream = ptr, size, mr, stream
        return buffer

    def close(self, stream=None):
        handle, self.handle = self.handle, 0
        if handle:
            self.memory_resource.deallocate(handle, self.size, stream=stream or self._stream)


_module("cuda")
_module("cuda.core", Buffer=Buffer, MemoryResource=MemoryResource, __version__="1.2.2")


# ---- Numba


class GetIpcHandleMixin:
    pass


class HostOnlyCUDAMemoryManager:
    def __init__(self, context):
        self.context, self.allocations = context, {}

    def initialize(self):
        pass

    def reset(self):
        self.allocations.clear()


class MemoryPointer:
    def __init__(self, context, pointer, size, finalizer):
        self.pointer, self.size, self.free = pointer, size, finalizer


numba_manager = []
_module("numba")
_module(
    "numba.cuda",
    GetIpcHandleMixin=GetIpcHandleMixin,
    HostOnlyCUDAMemoryManager=HostOnlyCUDAMemoryManager,
    MemoryInfo=SimpleNamespace,
    MemoryPointer=MemoryPointer,
    set_memory_manager=numba_manager.append,
)
class CudaAPIError(Exception):
    def __init__(self, code, msg):
        super().__init__(code, msg)
        self.code, self.msg = code, msg

    def __str__(self):
        return f"[{self.code}] {self.msg}"


numba_devices = {}
_module("numba.cuda.cudadrv")
_module("numba.cuda.cudadrv.driver", CudaAPIError=CudaAPIError, driver=SimpleNamespace(devices=numba_devices))
