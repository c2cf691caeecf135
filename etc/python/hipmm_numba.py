# SPDX-License-Identifier: MIT
"""Numba's device memory from hipmm: an External Memory Management plugin.

    import hipmm_numba
    numba.cuda.set_memory_manager(hipmm_numba.Manager)          # before the first use of a device

or, without a change to the program, NUMBA_CUDA_MEMORY_MANAGER=hipmm_numba. HIPMM_CONFIG names the graph.

Numba gives no stream: memory is allocated and freed on the default stream, which Numba's own streams wait for, and which
waits for them. The library is found as libhipmm.so, or where HIPMM_LIBRARY says.
"""

import ctypes
import os

from numba.cuda import GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MemoryInfo, MemoryPointer
from numba.cuda.cudadrv import driver


def _load():
    library = ctypes.CDLL(os.environ.get("HIPMM_LIBRARY") or "libhipmm.so")
    library.hipmm_cupy_malloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.hipmm_cupy_malloc.restype = ctypes.c_void_p
    library.hipmm_cupy_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    library.hipmm_cupy_free.restype = None
    library.hipmm_last_error_message.restype = ctypes.c_char_p
    return library


_library = _load()


def _device_pointer(address):
    """As Numba's own driver calls want it: NVIDIA's binding, which newer releases always use, or ctypes."""
    binding = getattr(driver, "binding", None)
    return binding.CUdeviceptr(address) if binding else ctypes.c_uint64(address)


class _Device(int):
    """What stands in `allocations` for a block of ours: the device that it is on. Numba's host memory stands there too."""


class Manager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """Device memory from hipmm; pinned and mapped host memory as Numba does it."""

    def initialize(self):
        super().initialize()

    def memalloc(self, size):
        device = self.context.device.id
        address = _library.hipmm_cupy_malloc(None, size, device)
        if size and not address:
            reason = _library.hipmm_last_error_message().decode(errors="replace")
            raise MemoryError(f"hipmm: {reason}")
        allocations = self.allocations  # emptied when the context is reset; finalizers may come later still

        def free():
            if allocations.pop(address, None) is not None:
                _library.hipmm_cupy_free(None, address, device)

        if address:
            allocations[address] = _Device(device)
        return MemoryPointer(self.context, _device_pointer(address or 0), size, finalizer=free)

    def reset(self):
        for address, device in list(self.allocations.items()):
            if isinstance(device, _Device):
                _library.hipmm_cupy_free(None, address, device)
        super().reset()

    def get_memory_info(self):
        """What the driver has: what hipmm keeps idle counts as used."""
        free, total = self._driver_info()
        return MemoryInfo(free=free, total=total)

    @staticmethod
    def _driver_info():
        driver = ctypes.CDLL("libcuda.so.1")
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)):
            raise RuntimeError("cuMemGetInfo failed")
        return free.value, total.value

    @property
    def interface_version(self):
        return 1


_numba_memory_manager = Manager
