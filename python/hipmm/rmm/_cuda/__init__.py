# SPDX-License-Identifier: MIT
from hipmm.rmm._cuda import gpu

__all__ = ["gpu"]
