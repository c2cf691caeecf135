# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm.memory_resource import _memory_resource
from hipmm.rmm.pylibrmm.memory_resource._memory_resource import *  # noqa: F403
from hipmm.rmm.pylibrmm.memory_resource._memory_resource import _append_id, _flush_logs, _initialize

__all__ = ["_append_id", "_flush_logs", "_initialize"]
__all__ += _memory_resource.__all__
