# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm import memory_resource
from hipmm.rmm.pylibrmm.cuda_stream_pool import CudaStreamPool
from hipmm.rmm.pylibrmm.device_buffer import DeviceBuffer
from hipmm.rmm.pylibrmm.stream import CudaStreamFlags

__all__ = ["CudaStreamFlags", "CudaStreamPool", "DeviceBuffer", "memory_resource"]
