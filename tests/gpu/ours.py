# SPDX-License-Identifier: MIT
"""Whose memory an address is, for the programs here that run on hipmm inside of other libraries."""

import ctypes
import os


def is_ours(address, least_bytes):
    """Whether a block of hipmm's that is live and no smaller begins there."""
    library = ctypes.CDLL(os.environ.get("HIPMM_LIBRARY") or "libhipmm.so")
    library.hipmm_torch_base_alloc.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
    library.hipmm_torch_base_alloc.restype = ctypes.c_void_p
    size = ctypes.c_size_t()
    return library.hipmm_torch_base_alloc(address, ctypes.byref(size)) == address and size.value >= least_bytes
