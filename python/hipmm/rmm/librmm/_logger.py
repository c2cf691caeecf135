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

    TRACE, DEBUG, INFO, WARN, ERR, CRITICAL, OFF = range(7)  # the names in hipMM 23.12


__all__ = ["level_enum"]
