# SPDX-License-Identifier: MIT
"""reinitialize(), its hooks, RMMError, and the arrays of RMM 0.12."""

import operator
from collections.abc import Callable
from typing import Any

from hipmm.rmm import mr
from hipmm.rmm.pylibrmm.device_buffer import DeviceBuffer
from hipmm.rmm.pylibrmm.memory_resource._devices import _initialize
from hipmm.rmm.pylibrmm.stream import Stream


class RMMError(Exception):
    """An error of RMM's, with a number. Nothing here raises it; programs catch it."""

    def __init__(self, errcode: int, msg: str) -> None:
        self.errcode = errcode
        super().__init__(msg)


_reinitialize_hooks: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []


def reinitialize(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: int | str | None = None,
    maximum_pool_size: int | str | None = None,
    devices: int | list[int] | None = 0,
    logging: bool = False,
    log_file_name: str | None = None,
) -> None:
    """Calls the hooks, then makes new resources current on `devices`, and forgets those of other devices. A mistake in an
    argument changes nothing.

    With `pool_allocator`, a pool of `initial_pool_size` (None: half of the free memory) up to `maximum_pool_size` (None:
    unlimited); sizes are bytes, or texts such as "1GiB". With `managed_memory`, over managed memory. With `logging`, each
    device writes `log_file_name` (None: RMM_LOG_FILE), with ".devN" before its extension.
    """
    for function, arguments, named in reversed(_reinitialize_hooks):
        function(*arguments, **named)
    _initialize(
        pool_allocator=pool_allocator,
        managed_memory=managed_memory,
        initial_pool_size=initial_pool_size,
        maximum_pool_size=maximum_pool_size,
        devices=devices,
        logging=logging,
        log_file_name=log_file_name,
    )


def is_initialized() -> bool:
    """Whether RMM's resources can be used."""
    return mr.is_initialized()


def register_reinitialize_hook(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Has func(*args, **kwargs) called before each reinitialize(); the latest hook first. Returns `func`."""
    _reinitialize_hooks.append((func, args, kwargs))
    return func


def unregister_reinitialize_hook(func: Callable[..., Any]) -> None:
    """Removes every registration of `func`."""
    _reinitialize_hooks[:] = [hook for hook in _reinitialize_hooks if hook[0] != func]


# ---- RMM 0.12: Numba's arrays in memory of the current resource. A stream is a handle, 0 for the default one, or one of
# Numba's streams.


class _Memory:
    """Memory that Numba wraps, and keeps as long as an array needs it."""

    def __init__(self, buffer: DeviceBuffer, **interface: Any) -> None:
        self._buffer = buffer
        self.__cuda_array_interface__ = {"data": (buffer.ptr, False), "version": 3, **interface}


def _strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    if order not in ("C", "F"):
        raise ValueError(f"the order of an array is 'C' or 'F', not {order!r}")
    strides, step = [], itemsize
    for length in shape if order == "F" else reversed(shape):
        strides.append(step)
        step *= length
    return tuple(strides if order == "F" else reversed(strides))


def device_array(shape: Any, dtype: Any = float, strides: Any = None, order: str = "C", stream: Any = 0) -> Any:
    """An array of Numba's, whose contents are undefined; freed on `stream`, when Numba drops it."""
    import numpy
    from numba import cuda

    kind = numpy.dtype(dtype)
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    strides = _strides(shape, kind.itemsize, order) if strides is None else tuple(strides)
    if len(shape) != len(strides) or min(shape + strides, default=0) < 0:
        raise ValueError(f"no array has shape {shape} and strides {strides}")
    nbytes = kind.itemsize + sum((n - 1) * step for n, step in zip(shape, strides)) if 0 not in shape else 0
    queue = Stream._from_handle(stream) if isinstance(stream, int) else Stream(stream)
    memory = _Memory(DeviceBuffer(size=nbytes, stream=queue), shape=shape, strides=strides, typestr=kind.str)
    array = cuda.as_cuda_array(memory)
    return array if kind.fields is None else array.view(kind)  # a typestr has no fields


def device_array_like(ary: Any, stream: Any = 0) -> Any:
    """device_array() of the shape, type and order of another array; of one element for a scalar."""
    if not ary.ndim:
        ary = ary.reshape(1)
    order = "F" if ary.flags["F_CONTIGUOUS"] and not ary.flags["C_CONTIGUOUS"] else "C"
    return device_array(ary.shape, ary.dtype, order=order, stream=stream)


def to_device(ary: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """An array of Numba's with a copy of an array of NumPy's; `to` is such an array that exists."""
    target = device_array_like(ary, stream) if to is None else to
    if copy or to is None:
        target.copy_to_device(ary, stream=stream)
    return target


def auto_device(obj: Any, stream: Any = 0, copy: bool = True) -> tuple[Any, bool]:
    """(array, whether it is a new one for memory of the host): `obj` itself if it is an array of Numba's."""
    import numpy
    from numba import cuda

    if getattr(obj, "__cuda_memory__", False):
        return obj, False
    if hasattr(obj, "__cuda_array_interface__"):
        return to_device(cuda.as_cuda_array(obj), stream), False
    array = numpy.asarray(obj)
    return (to_device(array, stream) if copy else device_array_like(array, stream)), True


def get_ipc_handle(ary: Any, stream: Any = 0) -> Any:
    """Numba's handle of an array, for another process. The runtime refuses it for memory that a pool has mapped."""
    return ary.get_ipc_handle()
