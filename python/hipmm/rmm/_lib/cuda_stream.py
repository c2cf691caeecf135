# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm.stream import (
    Stream as CudaStream,
)

__all__ = [
    "CudaStream",
]
