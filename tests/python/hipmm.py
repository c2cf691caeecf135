# SPDX-License-Identifier: MIT
"""What the tests here ask libhipmm itself, past the file that they test."""

import ctypes
import os

library = ctypes.CDLL(os.environ["HIPMM_LIBRARY"])


def address(name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def value(path):
    """As hipmm_query() has it."""
    result = ctypes.c_int64()
    if library.hipmm_query(path.encode(), ctypes.byref(result)):
        library.hipmm_last_error_message.restype = ctypes.c_char_p
        raise LookupError(library.hipmm_last_error_message().decode())
    return result.value


def live():
    """Blocks of device 0 that nobody has freed."""
    return value("devices/0/pool/live_count")


def device_bytes():
    total = ctypes.c_size_t()
    assert library.hipmm_device_memory(0, None, ctypes.byref(total)) == 0
    return total.value
