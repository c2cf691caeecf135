#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sorts, groups and searches columns of uneven length with CuPy on four streams in as many threads, and prints one line
of JSON: seconds, the most held from the driver and kept by CuPy's pool, and a sum of the results, which must be the same
with every allocator.

    cupy_work.py --allocator pool|hipmm [--rounds 40]    (hipmm: PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG)
"""

import argparse
import hashlib
import json
import sys
import threading
import time

import cupy
import numpy

STREAMS = 4


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocator", choices=("pool", "hipmm"), required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the longest column")
    return parser.parse_args()


def use_hipmm():
    import hipmm.cupy

    cupy.cuda.set_allocator(hipmm.cupy.Allocator().malloc)


def work(number, rounds, rows, digests, errors):
    try:
        random = numpy.random.default_rng(number)
        digest = hashlib.sha256()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            for _ in range(rounds):
                length = int(random.integers(rows // 8, rows))
                keys = cupy.asarray(random.integers(0, 1000, length // 8 + 1)).repeat(8)[:length]
                values = (cupy.arange(length, dtype=cupy.uint64) * 2654435761 + number) % 1000003
                order = cupy.argsort(values)
                groups, counts = cupy.unique(keys[order], return_counts=True)
                sums = cupy.zeros(1000, dtype=cupy.uint64)
                cupy.add.at(sums, keys, values)
                found = cupy.searchsorted(cupy.sort(values), cupy.arange(0, 1000003, 997))
                for result in (groups, counts, sums, found, values[order][::1000]):
                    digest.update(cupy.asnumpy(result).tobytes())
            stream.synchronize()
        digests[number] = digest.hexdigest()
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")


def watch(ended, before, most):
    """What the driver has given away, every now and then."""
    while not ended.wait(0.002):
        free, total = cupy.cuda.runtime.memGetInfo()
        most[0] = max(most[0], total - free - before)


def run(rounds, rows):
    digests, errors = {}, []
    threads = [threading.Thread(target=work, args=(i, rounds, rows, digests, errors)) for i in range(STREAMS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    if errors:
        raise SystemExit("; ".join(errors))
    return seconds, hashlib.sha256("".join(digests[i] for i in range(STREAMS)).encode()).hexdigest()


def main():
    chosen = parse()
    if chosen.allocator == "hipmm":
        use_hipmm()
    run(1, 10_000)  # kernels are compiled
    free, total = cupy.cuda.runtime.memGetInfo()
    before, most, ended = total - free, [0], threading.Event()
    watcher = threading.Thread(target=watch, args=(ended, before, most))
    watcher.start()
    seconds, result = run(chosen.rounds, chosen.rows)
    ended.set()
    watcher.join()
    pool = cupy.get_default_memory_pool()
    used = pool.total_bytes() if chosen.allocator == "pool" else None
    print(json.dumps({"allocator": chosen.allocator, "cupy": cupy.__version__, "seconds": round(seconds, 4),
                      "held_bytes": most[0], "used_bytes": used, "result": result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
