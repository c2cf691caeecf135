# SPDX-License-Identifier: MIT
"""Numba's device memory from hipmm: an External Memory Management plugin.

    import hipmm_numba
    numba.cuda.set_memory_manager(hipmm_numba.Manager)          # before the first use of a device

or, without a change to the program, NUMBA_CUDA_MEMORY_MANAGER=hipmm_numba. HIPMM_CONFIG names the graph.

Numba passes no stream, and an array may be deleted while work on any stream still uses it. So each free is ordered in the
default stream: after all work that was submitted to Numba's own streams so far, and before their later work. The host
does not wait. The program must synchronise streams of another origin (external_stream()) that do not wait for the
default stream.

HIPMM_LIBRARY is the path of the library; the default is libhipmm.so.
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
    library.hipmm_device_enter.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
    library.hipmm_device_leave.argtypes = [ctypes.c_int]
    return library


def _load_driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuEventCreate.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint]
    cuda.cuEventRecord.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    cuda.cuStreamWaitEvent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
    cuda.cuMemGetInfo_v2.argtypes = [ctypes.POINTER(ctypes.c_size_t)] * 2
    return cuda


_library, _cuda = _load(), _load_driver()
_events = {}  # of the fences, by device


def _fence(device):
    """Orders earlier work of the device's streams before their later work. If the driver fails, there is no work left: the
    process is ending, or the context was destroyed."""
    disable_timing, default_stream = 2, None
    if device not in _events:
        event = ctypes.c_void_p()
        if _cuda.cuEventCreate(ctypes.byref(event), disable_timing):
            return
        _events[device] = event
    _cuda.cuEventRecord(_events[device], default_stream)
    _cuda.cuStreamWaitEvent(default_stream, _events[device], 0)


def _free(address, device):
    """Frees on `device`. The thread that deletes the last reference may have another current device."""
    previous = ctypes.c_int()
    is_there = _library.hipmm_device_enter(device, ctypes.byref(previous)) == 0
    if is_there:
        _fence(device)
    _library.hipmm_cupy_free(None, address, device)
    if is_there:
        _library.hipmm_device_leave(previous)


def _device_pointer(address):
    """The pointer type of Numba's driver calls: of NVIDIA's binding, which newer releases always use, or of ctypes."""
    binding = getattr(driver, "binding", None)
    return binding.CUdeviceptr(address) if binding else ctypes.c_uint64(address)


class _Device(int):
    """The entry of a block of hipmm in `allocations`: its device. Numba's host memory has entries there too."""


class Manager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """Device memory from hipmm; pinned and mapped host memory from Numba."""

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
                _free(address, device)

        if address:
            allocations[address] = _Device(device)
        return MemoryPointer(self.context, _device_pointer(address or 0), size, finalizer=free)

    def reset(self):
        for address, device in list(self.allocations.items()):
            if isinstance(device, _Device):
                _free(address, device)
        super().reset()

    def get_memory_info(self):
        """What the driver has: what hipmm keeps idle counts as used."""
        free, total = self._driver_info()
        return MemoryInfo(free=free, total=total)

    @staticmethod
    def _driver_info():
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if _cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)):
            raise RuntimeError("cuMemGetInfo failed")
        return free.value, total.value

    @property
    def interface_version(self):
        return 1


_numba_memory_manager = Manager
