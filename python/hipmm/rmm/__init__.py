# SPDX-License-Identifier: MIT
"""RMM's Python API over hipmm, with the modules and names of RMM 26.x, those of hipMM 23.12, and the arrays of RMM 0.12.

    import hipmm.rmm as rmm                     # in a program of one's own
    hipmm.rmm.install()                         # from here on `import rmm` finds this package
    $ python -m hipmm.rmm program.py            # the same for a program that is not changed

Without a graph each device has plain device memory, as in RMM; with one (hipmm.init(), HIPMM_CONFIG), what the graph
says. doc/rmm.md has what differs.
"""

from hipmm.rmm import _cuda, mr, pylibrmm, statistics  # RMM has all of them after `import rmm`
from hipmm.rmm._install import install
from hipmm.rmm._version import __git_commit__, __version__
from hipmm.rmm.mr import disable_logging, enable_logging, get_log_filenames
from hipmm.rmm.pylibrmm.device_buffer import DeviceBuffer
from hipmm.rmm.pylibrmm.logger import (
    flush_logger,
    get_flush_level,
    get_logging_level,
    level_enum,
    logging_level,
    set_flush_level,
    set_logging_level,
    should_log,
)
from hipmm.rmm.rmm import (
    RMMError,
    auto_device,
    device_array,
    device_array_like,
    get_ipc_handle,
    is_initialized,
    register_reinitialize_hook,
    reinitialize,
    to_device,
    unregister_reinitialize_hook,
)

__all__ = [
    "DeviceBuffer",
    "RMMError",
    "auto_device",
    "device_array",
    "device_array_like",
    "disable_logging",
    "enable_logging",
    "flush_logger",
    "get_flush_level",
    "get_ipc_handle",
    "get_log_filenames",
    "get_logging_level",
    "install",
    "is_initialized",
    "level_enum",
    "logging_level",
    "mr",
    "register_reinitialize_hook",
    "reinitialize",
    "set_flush_level",
    "set_logging_level",
    "should_log",
    "to_device",
    "unregister_reinitialize_hook",
]
