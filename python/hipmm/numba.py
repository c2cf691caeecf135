# SPDX-License-Identifier: MIT
"""Numba's device memory from hipmm: an External Memory Management plugin.

    import hipmm.numba
    hipmm.numba.use()                           # before the first use of a device

or, without a change to the program, NUMBA_CUDA_MEMORY_MANAGER=hipmm.numba.

Numba passes no stream, and an array may be deleted while work on any stream still uses it. So each free is ordered in the
default stream: after all work that was submitted to Numba's own streams so far, and before their later work. The host
does not wait. The program must synchronise streams of another origin (external_stream()) that do not wait for the
default stream.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from numba import cuda
from numba.cuda import GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MemoryInfo, MemoryPointer
from numba.cuda.cudadrv import driver

import hipmm
from hipmm import _hipmm, _runtime

_events: dict[int, ctypes.c_void_p] = {}  # of the fences, by device


def _fence(device: int) -> None:
    """Orders earlier work of the device's streams before their later work. If the runtime fails, there is no work left: the
    process is ending, or the context was destroyed."""
    disable_timing, default_stream = 2, None
    if device not in _events:
        event = ctypes.c_void_p()
        if _runtime.call("hipEventCreateWithFlags", ctypes.byref(event), disable_timing):
            return
        _events[device] = event
    _runtime.call("hipEventRecord", _events[device], default_stream)
    _runtime.call("hipStreamWaitEvent", default_stream, _events[device], 0)


@functools.cache
def _reporter() -> Any:
    """What tells the report of `hipmm run` of an allocation, or of a free (bytes below zero)."""
    if not _hipmm.is_under_run():
        return lambda device, nbytes, is_failed: None
    function = ctypes.CDLL(hipmm.library()).hipmm_run_numba
    function.argtypes, function.restype = [ctypes.c_int, ctypes.c_int64, ctypes.c_int], None
    return function


def _report(device: int, nbytes: int, is_failed: bool = False) -> None:
    _reporter()(device, nbytes, is_failed)


def _free(buffer: hipmm.Buffer) -> None:
    """Frees on the buffer's device. The thread that deletes the last reference may have another current device."""
    try:
        before = _hipmm.current_device()
        _hipmm.set_device(buffer.device)
    except hipmm.Error:
        return  # the Buffer is freed when it dies, behind this function
    try:
        _fence(buffer.device)
        _report(buffer.device, -buffer.nbytes)
    finally:
        _hipmm.set_device(before)


def _device_pointer(address: int) -> Any:
    """The pointer type of Numba's driver calls: of NVIDIA's binding, which newer releases always use, or of ctypes."""
    binding = getattr(driver, "binding", None)
    return binding.CUdeviceptr(address) if binding else ctypes.c_uint64(address)


class OutOfMemory(driver.CudaAPIError, MemoryError):  # type: ignore[misc]
    """What Numba raises itself, so that programs that catch that go on catching it."""


def _out_of_memory(reason: object) -> OutOfMemory:
    binding = getattr(driver, "binding", None)
    code = binding.CUresult.CUDA_ERROR_OUT_OF_MEMORY if binding else 2
    return OutOfMemory(code, f"Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY. hipmm: {reason}")


class Manager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):  # type: ignore[misc]
    """Device memory from the current resource; pinned and mapped host memory from Numba."""

    def initialize(self) -> None:
        super().initialize()

    def memalloc(self, size: int) -> Any:
        """An allocation. Its Buffer lives in `allocations`, which Numba empties when the context is reset; finalizers may
        come later still."""
        _hipmm.start_if_needed()
        device = self.context.device.id
        try:
            buffer = hipmm.Buffer(size, None, hipmm.resource(device=device))
        except hipmm.MemoryError as error:
            _report(device, size, True)
            raise _out_of_memory(error) from error
        _report(device, size)
        address, allocations = buffer.ptr, self.allocations

        def free() -> None:
            owner = allocations.pop(address, None)
            if owner is not None:
                _free(owner)

        if address:
            allocations[address] = buffer
        del buffer
        return MemoryPointer(self.context, _device_pointer(address), size, finalizer=free)

    def reset(self) -> None:
        for owner in list(self.allocations.values()):
            if isinstance(owner, hipmm.Buffer):
                _free(owner)
        super().reset()

    def get_memory_info(self) -> Any:
        """What the runtime has: what hipmm keeps idle counts as used."""
        _hipmm.start_if_needed()
        free, total = _hipmm.device_memory(self.context.device.id)
        return MemoryInfo(free=free, total=total)

    @property
    def interface_version(self) -> int:
        return 1


_numba_memory_manager = Manager


def use(graph: Any = None) -> None:
    """Makes hipmm Numba's memory manager. `graph`: for hipmm.init(), unless hipmm is initialised already."""
    for device in driver.driver.devices.values():
        if device.primary_context and not isinstance(device.primary_context.memory_manager, Manager):
            raise hipmm.StateError(
                f"Numba uses device {device.id} already, with a memory manager that it keeps; call hipmm.numba.use() before "
                "the program's first use of a device"
            )
    if graph is not None:
        hipmm.init(graph)
    cuda.set_memory_manager(Manager)
