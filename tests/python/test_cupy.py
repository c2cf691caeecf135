# SPDX-License-Identifier: MIT
"""Tests of etc/python/hipmm_cupy.py."""

import ctypes
import unittest

import fakes
import hipmm
import hipmm_cupy

MIB = 1 << 20


def new_stream():
    handle = ctypes.c_void_p()
    assert hipmm.library.hipmm_stream_create(0, 0, ctypes.byref(handle)) == 0
    return fakes._Stream(handle.value)


class CuPy(unittest.TestCase):
    def setUp(self):
        self.allocator = hipmm_cupy.Allocator()
        self.usual, fakes.cupy_stream[0] = fakes.cupy_stream[0], fakes._Stream()

    def tearDown(self):
        fakes.cupy_stream[0] = self.usual

    def test_serves_memory(self):
        first, second = self.allocator.malloc(MIB), self.allocator.malloc(3 * MIB)
        self.assertTrue(first.ptr + MIB <= second.ptr or second.ptr + 3 * MIB <= first.ptr)
        self.assertEqual(hipmm.live(), 2)
        del first, second
        self.assertEqual(hipmm.live(), 0)

    def test_has_nothing_for_nothing(self):
        self.assertEqual(self.allocator.malloc(0).ptr, 0)

    def test_allocates_for_the_current_stream(self):
        self.allocator.malloc(MIB)  # which initialises hipmm
        streams = [new_stream(), new_stream()]
        fakes.CFunctionAllocator.params.clear()
        for stream in streams * 2:
            fakes.cupy_stream[0] = stream
            self.allocator.malloc(MIB)
        self.assertEqual(fakes.CFunctionAllocator.params, [stream.ptr for stream in streams])
        self.assertEqual(hipmm.live(), 0)

    def test_says_why_there_is_no_memory(self):
        with self.assertRaises(fakes.OutOfMemoryError) as caught:
            self.allocator.malloc(1 << 50)
        self.assertIsInstance(caught.exception.__cause__, MemoryError)
        self.assertRegex(str(caught.exception.__cause__), "pool: cannot allocate 1 PiB")


if __name__ == "__main__":
    unittest.main()
