# SPDX-License-Identifier: MIT
"""PyTorch's memory from the current resource: torch.cuda.memory.change_current_allocator(rmm_torch_allocator)"""

from typing import Any

rmm_torch_allocator: Any = None  # without PyTorch, or without a device that it can use

try:
    from torch.cuda import is_available
    from torch.cuda.memory import CUDAPluggableAllocator
except ImportError:
    pass
else:
    del CUDAPluggableAllocator
    if is_available():
        from hipmm.torch import allocator

        rmm_torch_allocator = allocator()
