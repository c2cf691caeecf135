# SPDX-License-Identifier: MIT
"""Facts of devices, as RMM tells them: with CUDA's numbers of attributes, on every runtime."""

from typing import Any

import hipmm
from hipmm import _hipmm
from hipmm.rmm import _runtime

# CUDA's number of an attribute (cudaDeviceAttr) to HIP's (hipDeviceAttribute_t).
_ATTRIBUTES = {
    1: 56,  # MaxThreadsPerBlock
    8: 74,  # MaxSharedMemoryPerBlock
    10: 87,  # WarpSize
    13: 5,  # ClockRate
    16: 63,  # MultiProcessorCount
    18: 16,  # Integrated
    19: 3,  # CanMapHostMemory
    20: 6,  # ComputeMode
    31: 8,  # ConcurrentKernels
    32: 0,  # EccEnabled
    33: 67,  # PciBusId
    34: 68,  # PciDeviceId
    36: 60,  # MemoryClockRate
    37: 59,  # GlobalMemoryBusWidth
    38: 19,  # L2CacheSize
    39: 57,  # MaxThreadsPerMultiProcessor
    40: 2,  # AsyncEngineCount
    41: 85,  # UnifiedAddressing
    50: 69,  # PciDomainId
    75: 23,  # ComputeCapabilityMajor
    76: 61,  # ComputeCapabilityMinor
    83: 24,  # ManagedMemory
    88: 65,  # PageableMemoryAccess
    89: 9,  # ConcurrentManagedAccess
    95: 10,  # CooperativeLaunch
    100: 66,  # PageableMemoryAccessUsesHostPageTables
    101: 13,  # DirectManagedMemAccessFromHost
    115: 88,  # MemoryPoolsSupported
    119: 91,  # MemoryPoolSupportedHandleTypes
}


class CUDARuntimeError(RuntimeError):
    """An error of the runtime; `status` is its code."""

    def __init__(self, status: Any) -> None:
        self.status = status
        self.msg = _runtime.error_text(int(status))
        super().__init__(self.msg)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status,)


class CUDADriverError(CUDARuntimeError):
    """An error of the driver."""


_INVALID_DEVICE = 101  # of CUDA and HIP


def _raise(error: hipmm.Error) -> Any:
    code = _INVALID_DEVICE if isinstance(error, hipmm.NoDeviceError) else error.hip_code
    raise (CUDARuntimeError(code) if code else RuntimeError(str(error))) from error


def driverGetVersion() -> int:
    """The version of the driver, as 1000 * major + 10 * minor on NVIDIA."""
    _runtime.ensure()
    return _hipmm.runtime_version(True)


def runtimeGetVersion() -> int:
    """The version of the runtime."""
    _runtime.ensure()
    return _hipmm.runtime_version(False)


def getDevice() -> int:
    """The current device."""
    _runtime.ensure()
    return _hipmm.current_device()


def setDevice(device: int) -> None:
    """Makes a device current for the calling thread."""
    _runtime.ensure()
    try:
        _hipmm.set_device(device)
    except hipmm.Error as error:
        _raise(error)


def getDeviceCount() -> int:
    """The number of devices."""
    _runtime.ensure()
    return _hipmm.device_count()


def getDeviceAttribute(attr: Any, device: int) -> int:
    """An attribute, by CUDA's number; 0 for one that HIP does not have, or that this runtime does not know."""
    _runtime.ensure()
    number = _ATTRIBUTES.get(int(attr))
    if number is None:
        return 0
    try:
        return _hipmm.device_attribute(number, device)
    except hipmm.NoDeviceError as error:
        return int(_raise(error))
    except hipmm.Error:
        return 0


class _Properties:
    """What getDeviceProperties() returns: the attributes that programs of RMM's ask for."""

    def __init__(self, device: int) -> None:
        self.name = deviceGetName(device).encode()
        self.totalGlobalMem = hipmm.device_memory(device)[1]
        self.major, self.minor = getDeviceAttribute(75, device), getDeviceAttribute(76, device)
        self.multiProcessorCount = getDeviceAttribute(16, device)
        self.warpSize = getDeviceAttribute(10, device)
        self.maxThreadsPerBlock = getDeviceAttribute(1, device)
        self.integrated = getDeviceAttribute(18, device)
        self.managedMemory = getDeviceAttribute(83, device)
        self.concurrentManagedAccess = getDeviceAttribute(89, device)


def getDeviceProperties(device: int) -> _Properties:
    """The properties of a device."""
    _runtime.ensure()
    return _Properties(device)


def deviceGetName(device: int) -> str:
    """The name of a device."""
    _runtime.ensure()
    try:
        return _hipmm.device_name(device)
    except hipmm.Error as error:
        return str(_raise(error))
