# SPDX-License-Identifier: MIT
"""PyTorch's device memory from hipmm.

    import hipmm_torch
    hipmm_torch.use()          # before all use of CUDA, torch.cuda.set_device() too; HIPMM_CONFIG names the graph

or, beside PyTorch's own allocator and with captured graphs:

    with torch.cuda.use_mem_pool(hipmm_torch.pool()):
        ...

torch.multiprocessing cannot send tensors on a device after use(): PyTorch's pluggable allocators have no IPC handles
("CUDAPluggableAllocator does not yet support shareIPcHandle"). It can send tensors of pool() if the graph has no
sub-allocator, as in {"stack": ["statistics", "device"]}: PyTorch treats each block of hipmm as an allocation of the
driver, and only such allocations can be shared. For a part of an allocation, such as a block of `pool` with "growth":
"segments", another process would read the data at the start of the allocation. Such a block, and mapped memory, raise an
error.

HIPMM_LIBRARY is the path of the library; the default is libhipmm.so.
"""

import ctypes
import os

import torch

# The setter (the first of these names that this PyTorch has), and its function.
_HOOKS = (
    (("set_init_fn",), "hipmm_torch_init"),
    (("set_reset_fn",), "hipmm_torch_reset"),
    (("set_memory_fraction_fn",), "hipmm_torch_memory_fraction"),
    (("set_base_alloc_fn",), "hipmm_torch_base_alloc"),
    (("set_record_stream_fn",), "hipmm_torch_record_stream"),
    (("set_begin_allocate_to_pool", "set_begin_allocate_to_pool_fn"), "hipmm_torch_begin_allocate_to_pool"),
    (("set_end_allocate_to_pool_fn", "set_end_allocate_to_pool"), "hipmm_torch_end_allocate_to_pool"),
    (("set_release_pool", "set_release_pool_fn"), "hipmm_torch_release_pool"),
)


_TOO_LATE = """hipmm_torch.use() was called after PyTorch's allocator had started, and PyTorch cannot exchange it then.
Call use() once, before torch.cuda.set_device(), the first tensor on a device and all else that uses CUDA; or leave
PyTorch's allocator in force and have hipmm's memory where it is wanted:

    with torch.cuda.use_mem_pool(hipmm_torch.pool()):
        ..."""

_PART = """this tensor's memory cannot be shared with another process: hipmm has it as a part of an allocation of the
driver, or mapped. Give hipmm_torch.pool() a graph with no sub-allocator, such as {"stack": ["statistics", "device"]}."""


def _path(path):
    return path or os.environ.get("HIPMM_LIBRARY") or "libhipmm.so"


def _address(library, name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def allocator(path=None):
    """The allocator with all hooks, for change_current_allocator() or MemPool."""
    path = _path(path)
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(path, "hipmm_torch_malloc", "hipmm_torch_free")
    library = ctypes.CDLL(path)
    for setters, function in _HOOKS:
        for setter in setters:
            if hasattr(pluggable.allocator(), setter):
                getattr(pluggable.allocator(), setter)(_address(library, function))
                break
        else:
            if function == "hipmm_torch_record_stream":
                raise RuntimeError("this PyTorch has no set_record_stream_fn: Tensor.record_stream() would not be heard")
    return pluggable


def use(path=None):
    """Makes hipmm the allocator of this process, which must not have used CUDA before. An allocation that fails raises
    RuntimeError, "CUDA out of memory...".

    PyTorch does not check for NULL, so hipmm raises the error itself, with std::__throw_runtime_error.
    """
    pluggable = allocator(path)
    try:
        torch.cuda.memory.change_current_allocator(pluggable)
    except RuntimeError as error:
        raise RuntimeError(_TOO_LATE) from error
    library = ctypes.CDLL(_path(path))
    library.hipmm_torch_on_failure.argtypes = [ctypes.c_void_p]
    library.hipmm_torch_on_failure.restype = None
    library.hipmm_torch_on_failure(_address(ctypes.CDLL("libstdc++.so.6"), "_ZSt21__throw_runtime_errorPKc"))
    return pluggable


def _segment(address):
    """The start of the segment of PyTorch's own allocator that contains the address; None if there is none."""
    for segment in torch.cuda.memory_snapshot():
        if segment["address"] <= address < segment["address"] + segment["total_size"]:
            return segment["address"]
    return None


def _guard_sharing(path):
    """Checks, before PyTorch shares a storage, that its segment is an allocation of the driver, as PyTorch assumes.
    Otherwise the other process would read other data."""
    share = getattr(torch.UntypedStorage, "_share_cuda_", None)
    if share is None or hasattr(share, "hipmm"):
        return
    library = ctypes.CDLL(path)
    library.hipmm_torch_is_allocation.argtypes = [ctypes.c_void_p]
    library.hipmm_torch_base_alloc.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.hipmm_torch_base_alloc.restype = ctypes.c_void_p

    def guarded(storage, *arguments, **named):
        start = _segment(storage.data_ptr())
        if start and library.hipmm_torch_base_alloc(start, None) and not library.hipmm_torch_is_allocation(start):
            raise RuntimeError(_PART)
        return share(storage, *arguments, **named)

    guarded.hipmm = True
    torch.UntypedStorage._share_cuda_ = guarded


def pool(path=None):
    """A MemPool whose memory comes from hipmm, and is divided by PyTorch's own allocator, which stays in force.

    See above for the graphs whose tensors can be sent to other processes.
    """
    pluggable = allocator(path)
    _guard_sharing(_path(path))
    return torch.cuda.MemPool(pluggable.allocator())
