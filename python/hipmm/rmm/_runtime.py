# SPDX-License-Identifier: MIT
"""The GPU runtime that hipmm uses, for what hipmm's own interface does not have: HIP's functions, through ctypes, which
release the GIL."""

import ctypes
import functools
from typing import Any

import hipmm
from hipmm import _hipmm

_FILES = {"amd": "libamdhip64.so", "nvidia": "/nvidia.so", "software": "/software.so"}

MEMCPY_DEFAULT = 4  # hipMemcpyDefault: the runtime finds out where the memory is


def ensure() -> None:
    """Initialises hipmm as hipmm.init() does, unless the program has."""
    _hipmm.start_if_needed()


@functools.cache
def _library() -> ctypes.CDLL:
    name = hipmm.runtime() or ""
    part = _FILES.get(name, name)
    with open("/proc/self/maps") as maps:
        for line in maps:
            if part in line:
                return ctypes.CDLL(line[line.index("/") :].rstrip("\n"))
    raise RuntimeError(f"the library of the runtime {name!r} is not found in this process")


def has(function: str) -> bool:
    ensure()
    return hasattr(_library(), function)


def call(function: str, *arguments: Any) -> None:
    """Calls a function of HIP; raises CUDARuntimeError for its error."""
    ensure()
    code = getattr(_library(), function)(*arguments)
    if code:
        from hipmm.rmm._cuda.gpu import CUDARuntimeError

        _library().hipGetLastError()
        raise CUDARuntimeError(code)


def copy(target: int, source: int, nbytes: int, stream: int) -> None:
    """hipMemcpyAsync()"""
    if nbytes:
        call(
            "hipMemcpyAsync",
            ctypes.c_void_p(target),
            ctypes.c_void_p(source),
            ctypes.c_size_t(nbytes),
            MEMCPY_DEFAULT,
            ctypes.c_void_p(stream),
        )


def error_text(code: int) -> str:
    library = _library()
    library.hipGetErrorName.restype = library.hipGetErrorString.restype = ctypes.c_char_p
    return f"{library.hipGetErrorName(code).decode()}: {library.hipGetErrorString(code).decode()}"
