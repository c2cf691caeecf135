# SPDX-License-Identifier: MIT
"""Tests of etc/python/hipmm_torch.py."""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

import fakes
import hipmm
import hipmm_torch

MIB = 1 << 20

# Each setter is given this function.
HOOKS = {
    "set_init_fn": "hipmm_torch_init",
    "set_reset_fn": "hipmm_torch_reset",
    "set_memory_fraction_fn": "hipmm_torch_memory_fraction",
    "set_base_alloc_fn": "hipmm_torch_base_alloc",
    "set_record_stream_fn": "hipmm_torch_record_stream",
    "set_begin_allocate_to_pool": "hipmm_torch_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "hipmm_torch_end_allocate_to_pool",
    "set_release_pool": "hipmm_torch_release_pool",
}


class Torch(unittest.TestCase):
    def test_serves_memory(self):
        allocator = hipmm_torch.allocator()
        first, second = allocator.malloc(MIB, 0, None), allocator.malloc(3 * MIB, 0, None)
        self.assertTrue(first + MIB <= second or second + 3 * MIB <= first)
        self.assertEqual(hipmm.live(), 2)
        allocator.free(first, MIB, 0, None)
        allocator.free(second, 3 * MIB, 0, None)
        self.assertEqual(hipmm.live(), 0)

    def test_gives_each_hook_its_function(self):
        given = hipmm_torch.allocator().allocator().given
        self.assertEqual(given, {setter: hipmm.address(function) for setter, function in HOOKS.items()})

    def test_hooks_do_as_they_are_called(self):
        allocator = hipmm_torch.allocator()
        given = allocator.allocator().given
        base_alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))(
            given["set_base_alloc_fn"])
        fraction = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)(given["set_memory_fraction_fn"])
        reset = ctypes.CFUNCTYPE(None)(given["set_reset_fn"])
        block, size = allocator.malloc(5 * MIB, 0, None), ctypes.c_size_t()
        self.assertEqual(base_alloc(block, ctypes.byref(size)), block)
        self.assertEqual(size.value, 5 * MIB)
        fraction(6 * MIB / hipmm.device_bytes(), 0)
        self.assertIsNone(allocator.malloc(2 * MIB, 0, None))
        fraction(1, 0)
        allocator.free(block, 5 * MIB, 0, None)
        self.assertGreater(hipmm.value("devices/0/held_bytes"), 0)
        reset()
        self.assertEqual(hipmm.value("devices/0/held_bytes"), 0)

    def test_will_not_do_without_record_stream(self):
        names = fakes._Hooks.NAMES
        fakes._Hooks.NAMES = [name for name in names if name != "set_record_stream_fn"]
        try:
            with self.assertRaisesRegex(RuntimeError, "set_record_stream_fn"):
                hipmm_torch.allocator()
        finally:
            fakes._Hooks.NAMES = names

    def test_says_what_to_do_when_it_is_used_too_late(self):
        fakes.torch_has_started = True
        try:
            with self.assertRaises(RuntimeError) as caught:
                hipmm_torch.use()
        finally:
            fakes.torch_has_started = False
        said = str(caught.exception)
        self.assertRegex(said, r"^hipmm_torch\.use\(\) was called after PyTorch's allocator had started")
        self.assertRegex(said, r"before torch\.cuda\.set_device\(\)")
        self.assertIn("with torch.cuda.use_mem_pool(hipmm_torch.pool()):", said)
        self.assertIn("already initialized", str(caught.exception.__cause__))
        self.assertEqual(fakes.torch_in_force, [])

    def test_makes_a_pool(self):
        self.assertIn("set_record_stream_fn", hipmm_torch.pool().allocator.given)

    def test_shares_no_part_of_an_allocation(self):
        hipmm_torch.pool()
        hipmm_torch.pool()
        allocator = hipmm_torch.allocator()
        first, second = allocator.malloc(2 * MIB, 0, None), allocator.malloc(2 * MIB, 0, None)
        foreign = 1 << 40
        fakes.torch_segments[:] = [(first, 2 * MIB), (second, 2 * MIB), (foreign, 2 * MIB)]
        is_allocation = hipmm.library.hipmm_torch_is_allocation
        is_allocation.argtypes = [ctypes.c_void_p]
        for start in first, second:
            storage = fakes.UntypedStorage(start + 512)
            if is_allocation(start):
                self.assertEqual(storage._share_cuda_(), "shared")
            else:
                with self.assertRaisesRegex(RuntimeError, r"(?s)a part of an allocation.*no sub-allocator"):
                    storage._share_cuda_()
        self.assertEqual([is_allocation(first), is_allocation(second)].count(0), 2)  # the pool is mapped
        self.assertEqual(fakes.UntypedStorage(foreign + 512)._share_cuda_(), "shared")
        self.assertEqual(fakes.UntypedStorage(1 << 41)._share_cuda_(), "shared")
        fakes.torch_segments.clear()
        allocator.free(first, 2 * MIB, 0, None)
        allocator.free(second, 2 * MIB, 0, None)

    def test_shares_whole_allocations(self):
        program = ("import fakes, hipmm_torch; hipmm_torch.pool(); allocator = hipmm_torch.allocator(); "
                   "start = allocator.malloc(1 << 21, 0, None); fakes.torch_segments.append((start, 1 << 21)); "
                   "print(fakes.UntypedStorage(start + 512)._share_cuda_())")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            config.write('{"runtime": "software", "stack": ["device"]}')
            config.flush()
            ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True,
                                   env={**os.environ, "HIPMM_CONFIG": config.name})
        self.assertEqual(ended.stdout, "shared\n", ended.stderr)

    def test_is_put_in_force_and_raises_what_pytorch_knows(self):
        program = ("import fakes, hipmm_torch; hipmm_torch.use(); [allocator] = fakes.torch_in_force; "
                   "print(bool(allocator.malloc(100, 0, None)), flush=True); allocator.malloc(1 << 50, 0, None)")
        ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
        self.assertEqual(ended.stdout, "True\n")
        self.assertRegex(ended.stderr, "runtime_error.*\n.*CUDA out of memory. hipmm: .*1 PiB")
        self.assertLess(ended.returncode, 0)  # the fake has nobody who would catch it


if __name__ == "__main__":
    unittest.main()
