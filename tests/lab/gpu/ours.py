# SPDX-License-Identifier: MIT
"""Whose memory an address is, for the programs here that run on hipmm inside of other libraries."""

import ctypes

from hipmm import _hipmm


class Pointer(ctypes.Structure):
    """struct hipmm_pointer of hipmm/inspect.h."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("resource", ctypes.c_void_p), ("device", ctypes.c_int32),
                ("flags", ctypes.c_uint32), ("ptr", ctypes.c_void_p), ("bytes", ctypes.c_size_t),
                ("usable_bytes", ctypes.c_size_t), ("base", ctypes.c_void_p), ("base_bytes", ctypes.c_size_t),
                ("offset", ctypes.c_size_t), ("stream", ctypes.c_void_p)]


def is_ours(address, least_bytes):
    """Whether a block of hipmm's that is live and no smaller begins there."""
    look_up = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(_hipmm.function("hipmm_pointer_lookup"))
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_hipmm.function("hipmm_resource_release"))
    found = Pointer(struct_size=ctypes.sizeof(Pointer))
    if look_up(address, ctypes.byref(found)):
        return False
    release(found.resource)
    return found.ptr == address and found.bytes >= least_bytes
