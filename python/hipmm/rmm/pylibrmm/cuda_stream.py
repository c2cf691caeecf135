# SPDX-License-Identifier: MIT
"""Where RMM before 26.06 has its stream flags."""

import warnings

from hipmm.rmm.pylibrmm.stream import CudaStreamFlags
from hipmm.rmm.pylibrmm.stream import Stream as CudaStream

warnings.warn("rmm.pylibrmm.cuda_stream is deprecated: use rmm.pylibrmm.stream", DeprecationWarning, stacklevel=2)

__all__ = ["CudaStream", "CudaStreamFlags"]
