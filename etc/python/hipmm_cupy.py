# SPDX-License-Identifier: MIT
"""CuPy's device memory from hipmm.

    import cupy, hipmm_cupy
    cupy.cuda.set_allocator(hipmm_cupy.Allocator().malloc)      # HIPMM_CONFIG names the graph

For a program that works on one stream this does as well, without Python on the way:

    library = ctypes.CDLL("libhipmm.so")
    address = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    cupy.cuda.set_allocator(cupy.cuda.memory.CFunctionAllocator(
        stream.ptr, address("hipmm_cupy_malloc"), address("hipmm_cupy_free"), stream).malloc)

A block is allocated for CuPy's current stream and freed on the same one, as CuPy's own pool does it. A program that uses
it on a further stream makes the first wait for that before it lets go of the array.

The library is found as libhipmm.so, or where HIPMM_LIBRARY says.
"""

import ctypes
import os

import cupy


class Allocator:
    """Hands on to a CFunctionAllocator per stream, and keeps the streams alive, which makes their blocks cheap to reuse."""

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
        # Streams of CuPy's own live as long as they are referred to; those of others nobody here can speak for. Not before
        # the first allocation: hipmm is initialised now.
        if is_new and isinstance(stream, cupy.cuda.Stream) and stream.ptr > 2:
            self._library.hipmm_stream_retain(device, stream.ptr)
        return memory

    def last_error(self):
        return self._library.hipmm_last_error_message().decode(errors="replace")
