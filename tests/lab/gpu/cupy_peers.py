#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CuPy on two GPUs in one process: copies between them in all ways, CuPy's own kernels with arrays of both devices, raw
kernels that read and write the other device's memory, and the order of copies on the default streams. All data is compared
with NumPy's. Prints lines of JSON; the last line has all results: what was tried, and "right", what was wrong, or the
error.

    cupy_peers.py [--allocator pool|hipmm] [--home 0|1]

hipmm: PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG. --home: the device that is used first; the program allocates
arrays on it before it uses the other one.
"""

import argparse
import itertools
import random
import sys
import threading
import warnings

import cupy
import cupyx
import numpy
from attempts import Wrong, attempt, tell
from cupy.cuda import Device, runtime

SMALL, LARGE = 1000, 1_500_001  # elements of 32 bits; a LARGE array lies in several chunks of a mapped pool
DEVICES = (0, 1)
DELAY = 50_000_000  # cycles: a few hundredths of a second

DRAWN = numpy.random.default_rng(3).integers(0, 1 << 20, 12_000_000, dtype=numpy.uint32)
seeds = itertools.count(1)


def numbers(count):
    """Integers on the host; each call returns different ones."""
    return DRAWN[next(seeds) * 1009 % 4_000_037:][:count]


def wait():
    for device in DEVICES:
        with Device(device):
            runtime.deviceSynchronize()


def place(values, device):
    with Device(device):
        return cupy.array(values)


def zeros(count, device):
    with Device(device):
        return cupy.zeros(count, dtype=numpy.uint32)


def expect(got, wanted, what=""):
    wait()
    got = got.get()
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Wrong(f"{what}: {got.shape} of {got.dtype}, not {wanted.shape} of {wanted.dtype}")
    if not numpy.array_equal(got, wanted):
        raise Wrong(f"{what}: {int((got != wanted).sum())} of {wanted.size} elements differ")


def each_size(function):
    def all_sizes(*arguments):
        for count in (SMALL, LARGE):
            function(count, *arguments)

    return all_sizes


# ---- Copies from `source` to `target`; either of the two is the current device.


@each_size
def copied(count, source, target):
    """copy() allocates on the current device."""
    values = numbers(count)
    there = place(values, source)
    wait()
    with Device(target):
        own = there.copy()
    if own.device.id != target:
        raise Wrong(f"the copy is on device {own.device.id}")
    expect(own, values, f"{count}")


@each_size
def copied_to(count, source, target):
    values = numbers(count)
    there, output = place(values, source), zeros(count, target)
    wait()
    cupy.copyto(output, there)
    expect(output, values, f"{count}")
    thin = zeros(2 * count, target)
    wait()
    cupy.copyto(thin[::2], there)
    expect(thin[::2], values, f"every second of {count}")
    expect(thin[1::2], numpy.zeros_like(values), f"between {count}")


@each_size
def memory_pointers(count, source, target):
    values = numbers(count)
    there = place(values, source)
    for name, copy in {
        "copy_from_device": lambda output: output.data.copy_from_device(there.data, there.nbytes),
        "copy_from_device_async": lambda output: output.data.copy_from_device_async(there.data, there.nbytes),
        "copy_from": lambda output: output.data.copy_from(there.data, there.nbytes),
        "memcpy": lambda output: runtime.memcpy(output.data.ptr, there.data.ptr, there.nbytes, runtime.memcpyDeviceToDevice),
        "memcpyPeer": lambda output: runtime.memcpyPeer(output.data.ptr, target, there.data.ptr, source, there.nbytes),
        "memcpyPeerAsync": lambda output: runtime.memcpyPeerAsync(output.data.ptr, target, there.data.ptr, source,
                                                                there.nbytes, 0),
    }.items():
        output = zeros(count, target)
        wait()
        copy(output)
        expect(output, values, f"{name} of {count}")


@each_size
def hosts(count, source, target):
    """Copies from and to pageable and pinned host memory, for both devices."""
    pinned, back = (cupyx.empty_pinned(count, dtype=numpy.uint32) for _ in range(2))
    for device in (source, target):
        values = numbers(count).copy()
        output = zeros(count, device)
        wait()
        output.data.copy_from_host(values.ctypes.data, values.nbytes)
        expect(output, values, f"copy_from_host of {count}, device {device}")
        again = numpy.zeros_like(values)
        output.data.copy_to_host(again.ctypes.data, again.nbytes)
        if not numpy.array_equal(again, values):
            raise Wrong(f"copy_to_host of {count}, device {device}")
        pinned[:], back[:] = numbers(count), 0
        output.data.copy_from_host_async(pinned.ctypes.data, pinned.nbytes)
        output.data.copy_to_host_async(back.ctypes.data, back.nbytes)
        wait()
        if not numpy.array_equal(pinned, back):
            raise Wrong(f"pinned memory of {count}, device {device}")


@each_size
def streams(count, source, target):
    """Copies on a stream of the target, after an event of a stream of the source."""
    values = numbers(count)
    with Device(source):
        here = cupy.cuda.Stream(non_blocking=True)
        with here:
            there = cupy.array(values) * 2
            ready = here.record()
    with Device(target):
        on = cupy.cuda.Stream(non_blocking=True)
        with on:
            on.wait_event(ready)
            own = there.copy() + 1
            on.synchronize()
    with Device(source), here:
        del there
        again = cupy.full(count, 7, dtype=numpy.uint32)
        here.synchronize()
    expect(own, values * 2 + 1, f"{count}")
    expect(again, numpy.full(count, 7, dtype=numpy.uint32), f"{count}, the next array")


COPIES = {"copy()": copied, "copyto()": copied_to, "pointers": memory_pointers, "the host": hosts, "streams": streams}


# ---- Arrays of both devices in one kernel


@each_size
def operators(count, source, target):
    """CuPy enables peer access for these operations, and warns about it."""
    values, others = numbers(count), numbers(count)
    there, here = place(values, source), place(others, target)
    wait()
    expect(there + here, values + others, f"a sum of {count}")
    output = zeros(count, target)
    wait()
    cupy.add(there, here, out=output)
    expect(output, values + others, f"a sum of {count} to device {target}")
    output[:] = there
    expect(output, values, f"an assignment of {count}")
    output[::2] = there[::-1][::2]
    wanted = values.copy()
    wanted[::2] = values[::-1][::2]
    expect(output, wanted, f"every second of {count}")
    expect(there.sum(), values.sum(), f"sum() of {count}")
    expect(cupy.where(here > 500_000, there, here), numpy.where(others > 500_000, values, others), f"where() of {count}")


KERNELS = """
extern "C" __global__ void triple(unsigned *to, const unsigned *from, unsigned count)
{
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = 3 * from[i] + 1;
}
extern "C" __global__ void increment(unsigned *to, unsigned count)
{
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd_system(&to[i], 1u);
}
extern "C" __global__ void delay(long long cycles)
{
  for (long long start = clock64(); clock64() - start < cycles;)
    ;
}
"""

triple, increment, delay = (cupy.RawKernel(KERNELS, name) for name in ("triple", "increment", "delay"))


def enable_peers():
    """For raw kernels. CuPy may have enabled it before."""
    for device in DEVICES:
        with Device(device):
            try:
                runtime.deviceEnablePeerAccess(1 - device)
            except runtime.CUDARuntimeError as error:
                if "PeerAccessAlreadyEnabled" not in str(error):
                    raise


@each_size
def raw_kernels(count, source, target):
    """A kernel of the current device reads the source and writes the target."""
    values = numbers(count)
    there, output = place(values, source), zeros(count, target)
    wait()
    triple((64,), (256,), (output, there, numpy.uint32(count)))
    expect(output, values * 3 + 1, f"{count}")


@each_size
def raw_atomics(count, source, target):
    """Kernels of both devices increment the same words at the same time."""
    values = numbers(count)
    there = place(values, source)
    wait()
    for _ in range(20):
        for device in DEVICES:
            with Device(device):
                increment((64,), (256,), (there, numpy.uint32(count)))
    expect(there, values + 40, f"{count} on device {source}")


@each_size
def fills(count, source, target):
    for device in (source, target):
        output = place(numbers(count), device)
        wait()
        output.data.memset(0x5A, output.nbytes)
        expect(output, numpy.full(count, 0x5A5A5A5A, dtype=numpy.uint32), f"memset of {count} on device {device}")
        output.data.memset_async(0xA5, output.nbytes)
        expect(output, numpy.full(count, 0xA5A5A5A5, dtype=numpy.uint32), f"memset_async of {count} on device {device}")


PEERS = {"arrays of both": operators, "kernels": raw_kernels, "atomics": raw_atomics, "fills": fills}


# ---- The order of copies on the default streams


def copy_out(how, there, here, owner):
    """Copies `there` of `owner` to `here`, both arrays, or returns a copy."""
    if how == "copy()":
        return there.copy()
    if how == "copy_to_host":
        values = numpy.zeros(there.size, dtype=there.dtype)
        there.data.copy_to_host(values.ctypes.data, values.nbytes)
        return values
    if how == "memcpyPeer":
        runtime.memcpyPeer(here.data.ptr, here.device.id, there.data.ptr, owner, there.nbytes)
    else:
        getattr(here.data, how)(there.data, there.nbytes)
    return here


def order(how, owner, current):
    """The default stream of `owner` is delayed and then writes an array. A copy on the default stream of `current`
    reads it."""
    old, new = numbers(LARGE), numbers(LARGE)
    there, source, here = place(old, owner), place(new, owner), zeros(LARGE, 1 - owner)
    with Device(owner):
        delay((1,), (1,), (numpy.int64(1),))
    wait()
    with Device(owner):
        delay((1,), (1,), (numpy.int64(DELAY),))
        there.data.copy_from_device_async(source.data, there.nbytes)
    with Device(current):
        copied = copy_out(how, there, here, owner)
        wait()
        copied = cupy.asnumpy(copied)
    if not numpy.array_equal(copied, new):
        raise Wrong(f"{'all' if numpy.array_equal(copied, old) else 'part'} of the data is old")


def orders(home, other):
    for owner, current in itertools.product((home, other), repeat=2):
        for how in ("copy_from_device", "copy_from_device_async", "copy()", "copy_to_host", "memcpyPeer"):
            name = "order between devices" if owner != current else "order on one device"
            name = "order of memcpyPeer" if how == "memcpyPeer" else name
            attempt(f"{name}: {how} from device {owner}, device {current} current", order, how, owner, current)


# ---- Early arrays; allocation and deallocation on both devices


def first_use(early, values, home, other):
    """A copy is the first operation on the second device."""
    with Device(other):
        own = early.copy()
        expect(own, values, "to the other device")
        back = numpy.zeros_like(values)
        early.data.copy_to_host(back.ctypes.data, back.nbytes)
        if not numpy.array_equal(back, values):
            raise Wrong("read back")
        doubled = own * 2
    wait()
    with Device(home):
        early.data.copy_from_device(doubled.data, doubled.nbytes)
    expect(early, values * 2, "from the other device")


def early_kernels(early, device):
    """Kernels of `device` over memory that was allocated before the second device was used."""
    values = numbers(early.size)
    with Device(early.device.id):
        early.set(values)
    wait()
    with Device(device):
        output = cupy.zeros(early.size, dtype=early.dtype)
        triple((64,), (256,), (output, early, numpy.uint32(early.size)))
        expect(output, values * 3 + 1, "reads")
        triple((64,), (256,), (early, output, numpy.uint32(early.size)))
        expect(early, (values * 3 + 1) * 3 + 1, "writes")


def churn(home, other):
    """Pools grow, are trimmed, and grow again."""
    draw, kept = random.Random(7), {}
    for turn in range(48):
        source, target = (home, other) if turn % 2 else (other, home)
        values = numbers(draw.choice((1, 100, 10_000, 1_000_000, 7_000_000)) + draw.randrange(1000))
        there = place(values, source)
        wait()
        with Device(target):
            kept[turn] = values, there.copy()
        wait()
        if turn % 3 == 2:
            values, own = kept.pop(draw.choice(list(kept)))
            expect(own, values, f"before turn {turn}")
        if turn % 12 == 11:
            cupy.get_default_memory_pool().free_all_blocks()
    for turn, (values, own) in kept.items():
        expect(own, values, f"turn {turn}")


def in_threads(home, other):
    """Two threads for each device; each copies arrays to the other device and back."""
    failures = []

    def work(number, own, others):
        try:
            Device(own).use()
            for turn in range(12):
                values = numpy.arange(100_003 * (turn + 1) + number, dtype=numpy.uint32)
                array = cupy.array(values)
                runtime.deviceSynchronize()
                with Device(others):
                    doubled = array.copy() * 2
                    runtime.deviceSynchronize()
                if not numpy.array_equal(doubled.copy().get(), values * 2):
                    raise Wrong(f"thread {number}, turn {turn}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i, *((home, other) if i % 2 else (other, home)))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# ---- All of it


def owned():
    import ours

    for device in DEVICES:
        array = zeros(SMALL, device)
        if not ours.is_ours(array.data.ptr, array.nbytes):
            raise Wrong(f"memory on device {device} is not hipmm's")


def all_kinds(kinds, home, other):
    for current in (home, other):
        for source, target in ((home, other), (other, home)):
            for kind, function in kinds.items():
                with Device(current):
                    attempt(f"{kind}: device {source} to device {target}, device {current} current", function, source,
                            target)
    tell()


def try_all(home, other):
    values = numbers(LARGE)
    early = [place(values, home) for _ in range(3)]
    Device(home).synchronize()
    attempt("the second device's first use is a copy", first_use, early[0], values, home, other)
    all_kinds(COPIES, home, other)
    orders(home, other)
    attempt("peer access", enable_peers)
    attempt("kernels of the second device over early memory", early_kernels, early[1], other)
    attempt("kernels of the first device over early memory", early_kernels, early[2], home)
    all_kinds(PEERS, home, other)
    attempt("allocation and deallocation", churn, home, other)
    attempt("threads of both devices", in_threads, home, other)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocator", choices=("pool", "hipmm"), default="pool")
    parser.add_argument("--home", type=int, choices=(0, 1), default=0)
    chosen = parser.parse_args()
    if runtime.getDeviceCount() < 2:
        print("fewer than two GPUs that this CuPy can use", file=sys.stderr)
        return 77
    if chosen.allocator == "hipmm":
        import hipmm.cupy

        cupy.cuda.set_allocator(hipmm.cupy.Allocator().malloc)
    warnings.simplefilter("ignore")
    with Device(chosen.home):
        try_all(chosen.home, 1 - chosen.home)
        if chosen.allocator == "hipmm":
            attempt("the memory is hipmm's", owned)
    tell()
    return 0


if __name__ == "__main__":
    sys.exit(main())
