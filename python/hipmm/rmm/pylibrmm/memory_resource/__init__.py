# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm.memory_resource import _memory_resource, experimental
from hipmm.rmm.pylibrmm.memory_resource._memory_resource import *  # noqa: F403

__all__ = ["experimental"]
__all__ += _memory_resource.__all__
