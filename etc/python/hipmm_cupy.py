# SPDX-License-Identifier: MIT
"""CuPy's device memory from hipmm.

    import cupy, hipmm_cupy
    cupy.cuda.set_allocator(hipmm_cupy.Allocator().malloc)      # HIPMM_CONFIG names the graph

A program that works on one stream can do the same without Python in the allocation path:

    library = ctypes.CDLL("libhipmm.so")
    address = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    cupy.cuda.set_allocator(cupy.cuda.memory.CFunctionAllocator(
        stream.ptr, address("hipmm_cupy_malloc"), address("hipmm_cupy_free"), stream).malloc)

A block is allocated for CuPy's current stream and freed on the same stream, as in CuPy's own pool. A program that uses
the block on another stream must make the first stream wait for that work before the array is deleted.

HIPMM_LIBRARY is the path of the library; the default is libhipmm.so.
"""

import ctypes
import os

import cupy


class Allocator:
    """Uses one CFunctionAllocator per stream, and keeps the streams alive, so that their blocks are cheap to reuse."""

    def __init__(self, path=None):
        self._library = ctypes.CDLL(path or os.environ.get("HIPMM_LIBRARY") or "libhipmm.so")
        self._library.hipmm_last_error_message.restype = ctypes.c_char_p
        self._library.hipmm_stream_retain.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self._functions = [
            ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
            for name in ("hipmm_cupy_malloc", "hipmm_cupy_free")
        ]
        self._allocators = {}

    def malloc(self, nbytes):
        """For cupy.cuda.set_allocator()."""
        stream = cupy.cuda.get_current_stream()
        device = cupy.cuda.runtime.getDevice()
        malloc = self._allocators.get((device, stream.ptr))
        is_new = malloc is None
        if is_new:
            malloc = cupy.cuda.memory.CFunctionAllocator(stream.ptr, *self._functions, (self, stream)).malloc
            self._allocators[device, stream.ptr] = malloc
        memory = malloc(nbytes)
        if nbytes and not memory.ptr:
            raise cupy.cuda.memory.OutOfMemoryError(nbytes, 0) from MemoryError(self.last_error())
        # CuPy's own streams live as long as a reference to them; the lifetime of other streams is unknown. The first
        # allocation has initialised hipmm.
        if is_new and isinstance(stream, cupy.cuda.Stream) and stream.ptr > 2:
            self._library.hipmm_stream_retain(device, stream.ptr)
        return memory

    def last_error(self):
        return self._library.hipmm_last_error_message().decode(errors="replace")
