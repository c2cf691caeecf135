# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm.logger import (
    flush_logger,
    get_flush_level,
    get_logging_level,
    logging_level,
    set_flush_level,
    set_logging_level,
    should_log,
)

__all__ = [
    "flush_logger",
    "get_flush_level",
    "get_logging_level",
    "logging_level",
    "set_flush_level",
    "set_logging_level",
    "should_log",
]
