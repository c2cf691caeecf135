# SPDX-License-Identifier: MIT
"""CuPy's memory from the current resource: cupy.cuda.set_allocator(rmm_cupy_allocator)"""

from typing import Any

from hipmm.rmm.pylibrmm.device_buffer import DeviceBuffer
from hipmm.rmm.pylibrmm.stream import Stream

try:
    import cupy
except ImportError:
    cupy = None


def rmm_cupy_allocator(nbytes: int) -> Any:
    """A MemoryPointer of CuPy to a DeviceBuffer on CuPy's current stream."""
    if cupy is None:
        raise ModuleNotFoundError("No module named 'cupy'")
    buffer = DeviceBuffer(size=nbytes, stream=Stream(cupy.cuda.get_current_stream()))
    device = -1 if buffer.ptr else cupy.cuda.device.get_device_id()
    memory = cupy.cuda.UnownedMemory(ptr=buffer.ptr, size=buffer.size, owner=buffer, device_id=device)
    return cupy.cuda.memory.MemoryPointer(memory, 0)
