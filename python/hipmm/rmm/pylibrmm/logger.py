# SPDX-License-Identifier: MIT
"""The levels of RMM's debug log. hipmm's log is another: HIPMM_LOG and hipmm.set_log_sink() set it. Where RMM_DEBUG_LOG_FILE
is set, the lines of hipmm's log up to the level are appended to that file, as RMM's are."""

import os
import time
import warnings
from typing import Any

import hipmm
from hipmm.rmm.librmm._logger import level_enum

logging_level = level_enum  # as hipMM 23.12 calls it

_levels: dict[str, level_enum] = {"logging": level_enum.info, "flush": level_enum.info}
_NAMES = ("trace", "debug", "info", "warning", "error", "error")
_file: Any = None


def _check(level: Any) -> level_enum:
    """RMM's page writes "trace"; its tests want no other text."""
    if isinstance(level, str) and level in (known.name for known in level_enum):
        return level_enum[level]
    if not isinstance(level, level_enum):
        raise TypeError("level must be an instance of the level_enum enum")
    return level


def _write(level: str, about: str, message: str) -> None:
    _file.write(f"[{time.strftime('%H:%M:%S')}][{level}] {about}: {message}\n")
    if _NAMES.index(level) >= _levels["flush"]:
        _file.flush()


def should_log(level: level_enum | str) -> bool:
    """Whether a line of this level would be logged."""
    return bool(_check(level) >= _levels["logging"])


def set_logging_level(level: level_enum | str) -> None:
    """Sets the least severe level that is logged: a level_enum, or the name of one. Raises TypeError for what is none."""
    global _file
    level = _check(level)
    name = os.environ.get("RMM_DEBUG_LOG_FILE")
    if name and _file is None:
        _file = open(name, "a")
    _levels["logging"] = level
    if _file is not None:
        off = level >= level_enum.off
        hipmm.set_log_sink(None if off else _write, "error" if off else _NAMES[level])


def get_logging_level() -> level_enum:
    """The current level."""
    return _levels["logging"]


def _begin() -> None:
    """A program that only sets RMM_DEBUG_LOG_FILE has the lines of the default level in it, as with RMM."""
    if os.environ.get("RMM_DEBUG_LOG_FILE"):
        try:
            set_logging_level(_levels["logging"])
        except (OSError, hipmm.Error) as error:
            warnings.warn(f"RMM_DEBUG_LOG_FILE: {error}; nothing is logged there")


def flush_logger() -> None:
    """Writes all lines so far."""
    hipmm.flush_log()
    if _file is not None:
        _file.flush()


def set_flush_level(level: level_enum | str) -> None:
    """Sets the level from which on each line is written at once."""
    _levels["flush"] = _check(level)


def get_flush_level() -> level_enum:
    """The current flush level."""
    return _levels["flush"]


_begin()

__all__ = [
    "flush_logger",
    "get_flush_level",
    "get_logging_level",
    "level_enum",
    "logging_level",
    "set_flush_level",
    "set_logging_level",
    "should_log",
]
