# SPDX-License-Identifier: MIT
"""Memory resources."""

from hipmm.rmm.mr import experimental
from hipmm.rmm.pylibrmm.memory_resource import _memory_resource
from hipmm.rmm.pylibrmm.memory_resource._memory_resource import *  # noqa: F403
from hipmm.rmm.pylibrmm.memory_resource._memory_resource import _flush_logs, _initialize

__all__ = ["_flush_logs", "_initialize", "experimental"]
__all__ += _memory_resource.__all__
