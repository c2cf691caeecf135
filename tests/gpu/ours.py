# SPDX-License-Identifier: MIT
"""Whose memory an address is, for the programs here that run on hipmm inside of other libraries."""

import ctypes
import os


class Pointer(ctypes.Structure):
    """struct hipmm_pointer of hipmm/inspect.h."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("resource", ctypes.c_void_p), ("device", ctypes.c_int32),
                ("flags", ctypes.c_uint32), ("ptr", ctypes.c_void_p), ("bytes", ctypes.c_size_t),
                ("usable_bytes", ctypes.c_size_t), ("base", ctypes.c_void_p), ("base_bytes", ctypes.c_size_t),
                ("offset", ctypes.c_size_t), ("stream", ctypes.c_void_p)]


def is_ours(address, least_bytes):
    """Whether a block of hipmm's that is live and no smaller begins there."""
    library = ctypes.CDLL(os.environ.get("HIPMM_LIBRARY") or "libhipmm.so.0")
    found = Pointer(struct_size=ctypes.sizeof(Pointer))
    if library.hipmm_pointer_lookup(ctypes.c_void_p(address), ctypes.byref(found)):
        return False
    library.hipmm_resource_release(ctypes.c_void_p(found.resource))
    return found.ptr == address and found.bytes >= least_bytes
