# SPDX-License-Identifier: MIT
"""The memory of a device that is in use, as NVIDIA's management library has it: under `hipmm run` the runtime's answer to a
program, cudaMemGetInfo(), is hipmm's, for which its idle memory is free."""

import ctypes
import functools

import torch


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


@functools.cache
def _reader(device):
    """A function that fills a _Memory; None without the library."""
    try:
        library, handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}".encode()
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(handle)):
            return None
    except (OSError, AttributeError, RuntimeError, AssertionError):
        return None
    return lambda memory: library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))


def used_bytes():
    """Of the current device."""
    memory = _Memory()
    read = _reader(torch.cuda.current_device()) if torch.cuda.is_initialized() else None
    if read is None or read(memory):
        free, total = torch.cuda.mem_get_info()
        return total - free
    return memory.used
