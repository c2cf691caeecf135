# SPDX-License-Identifier: MIT
"""Resources that ask the runtime, or functions of the program, for memory."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

from hipmm import _callbacks, _hipmm
from hipmm.rmm import _runtime
from hipmm.rmm.pylibrmm.memory_resource._base import DeviceMemoryResource, bytes_of, create, size_of
from hipmm.rmm.pylibrmm.stream import Stream


class CudaMemoryResource(DeviceMemoryResource):
    """Plain device memory (hipMalloc, cudaMalloc)."""

    def __init__(self) -> None:
        self._resource = create("device")


class ManagedMemoryResource(DeviceMemoryResource):
    """Managed memory, which moves between host and devices."""

    def __init__(self) -> None:
        self._resource = create("managed")


class PinnedHostMemoryResource(DeviceMemoryResource):
    """Pinned memory of the host, which devices reach."""

    def __init__(self) -> None:
        self._resource = create("pinned")


class SystemMemoryResource(DeviceMemoryResource):
    """Pageable memory of the host, on devices that reach it."""

    def __init__(self) -> None:
        self._resource = create("system")


class SamHeadroomMemoryResource(DeviceMemoryResource):
    """Pageable memory of the host that prefers the device, of which `headroom` bytes stay free."""

    def __init__(self, headroom: int) -> None:
        self._resource = create("sam_headroom", headroom=size_of(headroom, "headroom"))


class CudaAsyncMemoryResource(DeviceMemoryResource):
    """Stream-ordered memory of a pool of the driver. `initial_pool_size` may be a text; `enable_ipc`: other processes can
    import the pool (POSIX file descriptors)."""

    def __init__(
        self,
        initial_pool_size: int | str | None = None,
        release_threshold: int | None = None,
        enable_ipc: bool = False,
        enable_fabric: bool = False,
    ) -> None:
        if enable_fabric:
            raise RuntimeError("hipmm has no fabric handles: Requested IPC memory handle type not supported")
        self._resource = create(
            "async",
            initial_pool_size=None if initial_pool_size is None else bytes_of(initial_pool_size),
            release_threshold=None if release_threshold is None else size_of(release_threshold),
            handle_type="posix_fd" if enable_ipc else None,
        )


_pools = itertools.count(1)


class CudaAsyncViewMemoryResource(DeviceMemoryResource):
    """Stream-ordered memory of a driver's pool that the program has: a cudaMemPool_t or CUmemoryPool of cuda.bindings, or a
    handle of hip-python. The pool must live as long as the resource."""

    def __init__(self, pool_handle: Any) -> None:
        if type(pool_handle).__name__ not in ("cudaMemPool_t", "CUmemoryPool", "ihipMemPoolHandle_t"):
            raise ValueError("pool_handle must be a cudaMemPool_t or CUmemoryPool")
        _runtime.ensure()
        self._handle = int(pool_handle)
        if not self._handle:
            raise MemoryError("the pool's handle is null")
        name = f"python.mempool.{next(_pools)}"
        _hipmm.register_mempool(name, self._handle)
        self._resource = create("async_view", pool_handle=name)

    def pool_handle(self) -> int:
        """The handle, as an int."""
        return self._handle


def _takes_stream(function: Callable[..., Any], count: int) -> bool:
    """Whether a callback has RMM's signature, with a stream, or hipMM 23.12's, without."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def raising_rmm(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of whose exceptions RMM passes on MemoryError, and the text of others in a RuntimeError."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (MemoryError, RuntimeError):
            raise
        except BaseException as error:
            raise RuntimeError(str(error)) from error

    return call


class CallbackMemoryResource(DeviceMemoryResource):
    """Memory from functions: allocate_func(nbytes, stream) returns an address, deallocate_func(ptr, nbytes, stream) frees
    it. Functions without the last parameter are called without the stream, as in hipMM 23.12."""

    def __init__(self, allocate_func: Callable[..., int], deallocate_func: Callable[..., object]) -> None:
        _runtime.ensure()
        self._allocate_func, self._deallocate_func = allocate_func, deallocate_func
        with_stream = _takes_stream(allocate_func, 2), _takes_stream(deallocate_func, 3)

        @raising_rmm
        def allocate(nbytes: int, alignment: int, stream: int) -> int:
            more = (Stream._from_handle(stream),) if with_stream[0] else ()
            return allocate_func(nbytes, *more)

        def deallocate(ptr: int, nbytes: int, alignment: int, stream: int) -> None:
            more = (Stream._from_handle(stream),) if with_stream[1] else ()
            deallocate_func(ptr, nbytes, *more)

        self._resource = _callbacks.create(
            "callback", "allocator", lambda name: _hipmm.register_allocator(name, allocate, deallocate), []
        )
