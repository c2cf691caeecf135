# SPDX-License-Identifier: MIT
"""Where the files of this package are."""

from __future__ import annotations

import ctypes
import pathlib


class _Info(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


def path() -> str:
    """The file of libhipmm, as the dynamic linker has it."""
    from . import _hipmm

    extension = ctypes.CDLL(_hipmm.__file__)
    info = _Info()
    address = ctypes.cast(extension.hipmm_version, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(info)):
        raise RuntimeError("the dynamic linker does not know libhipmm")
    return str(pathlib.Path(info.file.decode()).resolve())


def command() -> str:
    """The program `hipmm` of this package."""
    return str(pathlib.Path(__file__).parent / "bin" / "hipmm")
