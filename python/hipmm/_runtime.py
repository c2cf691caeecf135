# SPDX-License-Identifier: MIT
"""The GPU runtime that hipmm uses, for what hipmm's own interface does not have: HIP's functions, through ctypes, which
releases the GIL. nvidia.so and software.so have them under the same names."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import _hipmm

_FILES = {"amd": "libamdhip64.so", "nvidia": "/nvidia.so", "software": "/software.so"}

MEMCPY_DEFAULT = 4  # hipMemcpyDefault: the runtime finds out where the memory is


@functools.cache
def library() -> ctypes.CDLL:
    """The library of the runtime in use, which hipmm has loaded."""
    _hipmm.start_if_needed()
    name = _hipmm.runtime() or ""
    part = _FILES.get(name, name)
    with open("/proc/self/maps") as maps:
        for line in maps:
            if part in line:
                return ctypes.CDLL(line[line.index("/") :].rstrip("\n"))
    raise RuntimeError(f"the library of the runtime {name!r} is not found in this process")


def call(function: str, *arguments: Any) -> int:
    """Calls a function of HIP and returns its code, 0 for success."""
    code = int(getattr(library(), function)(*arguments))
    if code:
        library().hipGetLastError()
    return code


def copy(target: int, source: int, nbytes: int, stream: int) -> int:
    """hipMemcpyAsync(): its code."""
    return call(
        "hipMemcpyAsync",
        ctypes.c_void_p(target),
        ctypes.c_void_p(source),
        ctypes.c_size_t(nbytes),
        MEMCPY_DEFAULT,
        ctypes.c_void_p(stream),
    )


def error_text(code: int) -> str:
    """The name and the meaning of a code."""
    texts = library().hipGetErrorName, library().hipGetErrorString
    for text in texts:
        text.restype = ctypes.c_char_p
    return ": ".join(text(code).decode() for text in texts)
