# SPDX-License-Identifier: MIT
"""The current resources, and the log files of all devices."""

import operator
from typing import Any

import hipmm
from hipmm import _hipmm
from hipmm.rmm import _runtime
from hipmm.rmm.pylibrmm.memory_resource._adaptors import LoggingResourceAdaptor, PoolMemoryResource
from hipmm.rmm.pylibrmm.memory_resource._base import DeviceMemoryResource
from hipmm.rmm.pylibrmm.memory_resource._sources import CudaMemoryResource, ManagedMemoryResource

_per_device_mrs: dict[int, DeviceMemoryResource] = {}


def _device(device: Any) -> int:
    return operator.index(device)


def get_per_device_resource(device: int) -> DeviceMemoryResource:
    """The current resource of a device."""
    device = _device(device)
    known = _per_device_mrs.get(device)
    if known is not None:
        return known
    _runtime.ensure()
    resource = hipmm.resource(device=device)
    kind = CudaMemoryResource if resource.type == "device" else DeviceMemoryResource
    return _per_device_mrs.setdefault(device, kind._wrap(resource))


def set_per_device_resource(device: int, mr: DeviceMemoryResource) -> None:
    """Makes a resource of a device current there. Raises RuntimeError for one of another device."""
    if not isinstance(mr, DeviceMemoryResource):
        raise TypeError(f"Argument 'mr' has incorrect type (expected DeviceMemoryResource, got {type(mr).__name__})")
    device = _device(device)
    if mr._resource.device != device:
        raise RuntimeError(f"{mr!r} is a resource of device {mr._resource.device}, not of device {device}")
    _per_device_mrs[device] = mr
    hipmm.set_resource(mr._resource)


def get_current_device_resource() -> DeviceMemoryResource:
    """The current resource of the current device."""
    _runtime.ensure()
    return get_per_device_resource(_hipmm.current_device())


def set_current_device_resource(mr: DeviceMemoryResource) -> None:
    """Makes a resource current on the current device."""
    _runtime.ensure()
    set_per_device_resource(_hipmm.current_device(), mr)


def get_per_device_resource_type(device: int) -> type[DeviceMemoryResource]:
    """The class of a device's current resource."""
    return type(get_per_device_resource(device))


def get_current_device_resource_type() -> type[DeviceMemoryResource]:
    """The class of the current device's current resource."""
    return type(get_current_device_resource())


def is_initialized() -> bool:
    """Whether the current resources can be used."""
    return hipmm.is_initialized() or hipmm.runtime() is None


def _make(pool: bool, managed: bool, initial: Any, maximum: Any) -> DeviceMemoryResource:
    upstream = ManagedMemoryResource() if managed else CudaMemoryResource()
    return PoolMemoryResource(upstream, initial, maximum) if pool else upstream


def _initialize(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: Any = None,
    maximum_pool_size: Any = None,
    devices: Any = 0,
    logging: bool = False,
    log_file_name: str | None = None,
) -> None:
    """What reinitialize() does after its hooks."""
    from hipmm.rmm._cuda.gpu import setDevice

    _runtime.ensure()
    devices = [0] if devices is None else [devices] if isinstance(devices, int) else [*devices]
    before = _hipmm.current_device()
    try:  # mistakes are found before anything changes
        for device in devices:
            setDevice(device)
        if pool_allocator:
            PoolMemoryResource._sizes(initial_pool_size, maximum_pool_size)
        if logging:
            LoggingResourceAdaptor._wanted(log_file_name)
        for device in _per_device_mrs:
            hipmm.reset_resource(device)
        _per_device_mrs.clear()
        for device in devices:
            setDevice(device)
            mr = _make(pool_allocator, managed_memory, initial_pool_size, maximum_pool_size)
            set_per_device_resource(device, LoggingResourceAdaptor(mr, log_file_name) if logging else mr)
    finally:
        _hipmm.set_device(before)


# ---- Log files


def _flush_logs() -> None:
    """Writes all rows so far of the log files of all devices."""
    for mr in _per_device_mrs.values():
        if isinstance(mr, LoggingResourceAdaptor):
            mr.flush()


def enable_logging(log_file_name: str | None = None) -> None:
    """Writes a log file for each device in use (None: as RMM_LOG_FILE says), with ".devN" before its extension."""
    for device in list(_per_device_mrs) or [0]:
        mr = get_per_device_resource(device)
        if isinstance(mr, LoggingResourceAdaptor):
            continue
        before = _hipmm.current_device()
        _hipmm.set_device(device)
        try:
            set_per_device_resource(device, LoggingResourceAdaptor(mr, log_file_name))
        finally:
            _hipmm.set_device(before)


def disable_logging() -> None:
    """Ends the log files of enable_logging() and reinitialize()."""
    for device, mr in list(_per_device_mrs.items()):
        if isinstance(mr, LoggingResourceAdaptor):
            set_per_device_resource(device, mr.get_upstream())


def get_log_filenames() -> dict[int, str | None]:
    """The log file, or None, of each device in use."""
    return {
        device: mr.get_file_name() if isinstance(mr, LoggingResourceAdaptor) else None
        for device, mr in _per_device_mrs.items()
    }


def available_device_memory() -> tuple[int, int]:
    """The free and the total memory of the current device, in bytes."""
    _runtime.ensure()
    return _hipmm.device_memory()
