# SPDX-License-Identifier: MIT
"""Numba's memory from the current resource: numba.cuda.set_memory_manager(RMMNumbaManager), or
NUMBA_CUDA_MEMORY_MANAGER=rmm.allocators.numba"""

from typing import Any

from numba.cuda import GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MemoryPointer
from numba.cuda.cudadrv import driver

from hipmm.rmm.pylibrmm.device_buffer import DeviceBuffer


def _device_pointer(address: int) -> Any:
    """The pointer type of Numba's driver calls: of NVIDIA's binding, or of ctypes."""
    binding = getattr(driver, "binding", None)
    if binding is not None:
        return binding.CUdeviceptr(address)
    import ctypes

    return ctypes.c_uint64(address)


class RMMNumbaManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):  # type: ignore[misc]
    """Device memory from the current resource; memory of the host from Numba."""

    def initialize(self) -> None:
        """Nothing is to be done."""

    def memalloc(self, size: int) -> Any:
        """An allocation; the DeviceBuffer lives in `allocations` until Numba drops it or resets the context."""
        buffer = DeviceBuffer(size=size)
        address, allocations = buffer.ptr, self.allocations
        allocations[address] = buffer
        return MemoryPointer(
            self.context, _device_pointer(address), size, finalizer=lambda: allocations.pop(address, None)
        )

    def get_memory_info(self) -> Any:
        """Raises NotImplementedError: the current resource may be a pool."""
        raise NotImplementedError()

    @property
    def interface_version(self) -> int:
        return 1


_numba_memory_manager = RMMNumbaManager
