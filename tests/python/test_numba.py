# SPDX-License-Identifier: MIT
"""Tests of etc/python/hipmm_numba.py, over a driver that notes what it is asked for."""

import ctypes
import unittest
from types import SimpleNamespace

import fakes  # noqa: F401
import hipmm
import hipmm_numba

MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")
driver.fake_calls.restype = ctypes.c_char_p


def calls():
    """Since the last time."""
    return driver.fake_calls().decode().split()


class Numba(unittest.TestCase):
    def setUp(self):
        self.manager = hipmm_numba.Manager(SimpleNamespace(device=SimpleNamespace(id=0)))
        self.manager.initialize()

    def test_serves_memory(self):
        first, second = self.manager.memalloc(MIB), self.manager.memalloc(3 * MIB)
        self.assertEqual((first.size, second.size), (MIB, 3 * MIB))
        start, end = sorted((first.pointer.value, second.pointer.value))
        self.assertGreaterEqual(end - start, MIB)
        self.assertEqual(hipmm.live(), 2)
        first.free()
        second.free()
        self.assertEqual(hipmm.live(), 0)

    def test_frees_behind_all_that_streams_have_been_given(self):
        pointer = self.manager.memalloc(MIB)
        calls()
        pointer.free()
        self.assertEqual([call for call in calls() if call != "cuEventCreate"], ["cuEventRecord", "cuStreamWaitEvent"])
        pointer.free()  # as a finalizer may, after a reset
        self.assertEqual(calls(), [])

    def test_frees_all_when_the_context_is_reset(self):
        pointers = [self.manager.memalloc(MIB) for _ in range(3)]
        self.manager.allocations[123] = None  # host memory of Numba's own
        self.manager.reset()
        self.assertEqual(hipmm.live(), 0)
        for pointer in pointers:
            pointer.free()
        self.assertEqual(hipmm.live(), 0)

    def test_says_why_there_is_no_memory(self):
        with self.assertRaisesRegex(MemoryError, "hipmm: .*pool: cannot allocate 1 PiB"):
            self.manager.memalloc(1 << 50)

    def test_tells_what_the_driver_has(self):
        info = self.manager.get_memory_info()
        self.assertEqual((info.free, info.total), (3 * MIB, 5 * MIB))


if __name__ == "__main__":
    unittest.main()
