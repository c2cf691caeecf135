#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Numba on hipmm, through its External Memory Management: arrays of uneven length on four streams, one that is let go of
while work reads it, a request that is too large, and a context that is reset. Prints one line of JSON: what held, and
what did not.

    numba_work.py            (PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG)
    numba_work.py --plain    the work alone, without a word of hipmm
"""

import gc
import json
import sys

import numpy

# Numba releases go on naming what NumPy has dropped since, and compile no kernel then.
for dropped, kept in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
    if not hasattr(numpy, dropped):
        setattr(numpy, dropped, getattr(numpy, kept))

IS_PLAIN = "--plain" in sys.argv[1:]
if not IS_PLAIN:
    import hipmm.numba
    import ours
from numba import cuda  # noqa: E402

STREAMS, ROUNDS, MOST = 4, 50, 1 << 20


@cuda.jit
def combine(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 3 * a[i] + b[i]


def is_ours(array):
    return ours.is_ours(array.device_ctypes_pointer.value, array.nbytes)


def work():
    """Whether every result is right."""
    random = numpy.random.default_rng(7)
    streams = [cuda.stream() for _ in range(STREAMS)]
    good = True
    for number in range(ROUNDS):
        pending = []
        for stream in streams:
            length = int(random.integers(1, MOST))
            a, b = random.integers(0, 1000, length), random.integers(0, 1000, length)
            out = cuda.device_array(length, numpy.int64, stream=stream)
            combine[(length + 255) // 256, 256, stream](cuda.to_device(a, stream), cuda.to_device(b, stream), out)
            pending.append((stream, 3 * a + b, out))
        for stream, wanted, out in pending:
            good = good and numpy.array_equal(out.copy_to_host(stream=stream), wanted)
    return bool(good)


@cuda.jit
def copy_late(a, out, turns):
    i = cuda.grid(1)
    x = i
    for _ in range(turns):
        x = (x * 1664525 + 1013904223) % 4294967296
    if i < out.size:
        out[i] = a[i] + (1 if x < 0 else 0)


def keeps_what_late_work_reads():
    """An array is let go of while one stream still reads it, and another stream is given the next one."""
    first, second = cuda.stream(), cuda.stream()
    ones = cuda.to_device(numpy.full(MOST, 1))
    out = cuda.to_device(numpy.zeros(MOST, ones.dtype))
    copy_late[(MOST + 255) // 256, 256](ones, out, 1)  # compiled
    cuda.synchronize()
    copy_late[(MOST + 255) // 256, 256, first](ones, out, 5_000_000)
    del ones
    gc.collect()
    cuda.to_device(numpy.full(MOST, 2), second)
    return bool((out.copy_to_host(stream=first) == 1).all())


def fails_clearly():
    try:
        cuda.device_array(1 << 50, numpy.uint8)
    except MemoryError as error:
        return "hipmm" in str(error)
    return False


def main():
    if not cuda.is_available():
        print("no GPU that this Numba can use", file=sys.stderr)
        return 77
    if IS_PLAIN:
        print(json.dumps({"results are right": work(), "late work keeps what it reads": keeps_what_late_work_reads()}))
        return 0
    cuda.set_memory_manager(hipmm.numba.Manager)
    array = cuda.to_device(numpy.arange(1000))
    result = {"the memory is hipmm's": is_ours(array), "results are right": work()}
    result["too much is refused"] = fails_clearly()
    result["late work keeps what it reads"] = keeps_what_late_work_reads()
    result["and nothing is lost"] = bool((array.copy_to_host() == numpy.arange(1000)).all())
    info = cuda.current_context().get_memory_info()
    result["memory info"] = 0 < info.free <= info.total
    del array
    gc.collect()
    cuda.current_context().reset()
    array = cuda.to_device(numpy.arange(2000))
    result["works after a reset"] = is_ours(array) and bool((array.copy_to_host() == numpy.arange(2000)).all())
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
