# SPDX-License-Identifier: MIT
from enum import IntEnum


class level_enum(IntEnum):
    """Levels of the debug log."""

    trace = 0
    debug = 1
    info = 2
    warn = 3
    error = 4
    critical = 5
    off = 6
    n_levels = 7


__all__ = ["level_enum"]
