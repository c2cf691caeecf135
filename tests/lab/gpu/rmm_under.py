#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What hipmm.under_rmm() does and costs under the real RMM on a GPU, within a minute:

    python3 rmm_under.py                needs the packages hipmm and rmm-cu13 (or rmm-cu12), and CUDA's headers

It prints the microseconds of an allocation with its free, from Python, for RMM's own resources and for hipmm's; then what
holds of data, streams, adaptors and RMM's own pool, here and under `hipmm run`. It ends with 0 if all holds. The words cost, check
and run choose parts."""

import json
import os
import subprocess
import sys
import tempfile
import time

import rmm
from rmm.pylibrmm.stream import Stream

MIB = 1 << 20
SIZES = (256, 4096, MIB, 32 * MIB)
ROUNDS, SECONDS = 5, 0.15
GRAPH = {"stack": ["statistics", "pool", "device"]}


def check(holds, what):
    print(f"{'holds' if holds else 'FAILS'}: {what}", flush=True)
    check.failed += not holds


check.failed = 0


def microseconds(resource, size, stream):
    """The best round of pairs."""
    best = float("inf")
    resource.deallocate(resource.allocate(size, stream), size, stream)
    for _ in range(ROUNDS):
        n, began = 0, time.perf_counter()
        while time.perf_counter() - began < SECONDS / ROUNDS:
            for _ in range(20):
                resource.deallocate(resource.allocate(size, stream), size, stream)
            n += 20
        best = min(best, (time.perf_counter() - began) / n)
    return best * 1e6


def cost():
    import hipmm
    from hipmm import _under_rmm

    hipmm.init(GRAPH)
    rows = {
        "RMM cuda": rmm.mr.CudaMemoryResource(),
        "RMM async": rmm.mr.CudaAsyncMemoryResource(),
        "RMM pool": rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 128 * MIB),
        "hipmm, by Python": _under_rmm._resource(rmm, hipmm.resource(), 0),
        "hipmm.under_rmm()": hipmm.under_rmm(),
        "the same, statistics": rmm.mr.StatisticsResourceAdaptor(hipmm.under_rmm()),
        "nothing, by Python": rmm.mr.CallbackMemoryResource(lambda n, stream: 4096, lambda ptr, n, stream: None),
    }
    stream = Stream()
    print(f"{'us of allocate + deallocate':28}" + "".join(f"{size:>12}" for size in SIZES))
    for name, resource in rows.items():
        times = [microseconds(resource, size, stream) for size in SIZES]
        print(f"{name:28}" + "".join(f"{value:12.2f}" for value in times), flush=True)
    check(rows["hipmm.under_rmm()"].__class__ is rows["hipmm, by Python"].__class__, "both are objects of one class")


def checks():
    import hipmm

    if not hipmm.is_initialized():
        hipmm.init(GRAPH)
    hipmm.resource()  # builds the stack, whose values are asked for
    rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())
    before = rmm.DeviceBuffer.to_device(b"before" * 1000)
    mr = hipmm.under_rmm()
    live = lambda: hipmm.query("devices/0/pool/live_bytes")  # noqa: E731
    held = live()
    data = os.urandom(3 * MIB)
    buffer = rmm.DeviceBuffer.to_device(data)
    check(buffer.tobytes() == data and live() - held == len(data), "a DeviceBuffer's bytes are hipmm's and come back")
    del buffer
    check(live() == held, "its end gives them back")
    check(before.tobytes() == b"before" * 1000, "what RMM had allocated before stays")
    del before
    streams, wrong = [Stream() for _ in range(8)], 0
    buffers = []
    for turn in range(200):
        text = bytes([turn]) * (1 + turn * 5003)
        buffers.append((rmm.DeviceBuffer.to_device(text, streams[turn % 8]), text))
        if turn % 3 == 0:
            buffer, text = buffers.pop(turn // 4 % len(buffers))
            wrong += buffer.tobytes() != text
    wrong += sum(buffer.tobytes() != text for buffer, text in buffers)
    check(not wrong, "eight streams keep their data")
    del buffers, buffer
    try:
        rmm.DeviceBuffer(size=1 << 50)
        check(False, "a request that is too large fails")
    except MemoryError as error:
        check("hipmm" in str(error), f"a request that is too large is a MemoryError: {str(error)[:90]}")
    statistics = rmm.mr.StatisticsResourceAdaptor(mr)
    rmm.mr.set_current_device_resource(statistics)
    buffer = rmm.DeviceBuffer(size=5 * MIB)
    check(statistics.allocation_counts.current_bytes == 5 * MIB == live() - held, "RMM's adaptor stands above hipmm")
    del buffer
    pool = rmm.mr.PoolMemoryResource(mr, 64 * MIB)
    check(live() - held == 64 * MIB, "RMM's pool stands above hipmm")
    del pool
    rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())


UNDER_RUN = """
import os, rmm
first = rmm.DeviceBuffer.to_device(b"first" * 1000)
rmm.reinitialize(pool_allocator=True, initial_pool_size=256 << 20)
buffer = rmm.DeviceBuffer.to_device(b"hello" * 1000)
print(type(rmm.mr.get_current_device_resource()).__name__, buffer.tobytes() == b"hello" * 1000)
"""


def under_run():
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        with open(os.path.join(folder, "hipmm.json"), "w") as file:
            json.dump(GRAPH, file)
        words = [sys.executable, "-m", "hipmm", f"--report={report}", "--json", "--config", os.path.join(folder, "hipmm.json")]
        words += ["-c", UNDER_RUN]
        ended = subprocess.run(words, capture_output=True, text=True)
        print(ended.stdout, ended.stderr, sep="", end="")
        check(ended.returncode == 0 and ended.stdout.split() == ["PoolMemoryResource", "True"], "RMM's pool wins under run")
        rows = json.loads(open(report).read().splitlines()[0]) if os.path.exists(report) else {"functions": {}, "memory": []}
        print(json.dumps(rows["functions"]), json.dumps(rows["memory"])[:600])
        check(rows["functions"].get("rmm: malloc", {}).get("calls"), "the first import of RMM was served")
        peak = max((row["peak_requested_bytes"] for row in rows["memory"]), default=0)
        check(peak >= 256 * MIB, f"the memory below RMM's pool is hipmm's: a peak of {peak} bytes")


def main():
    words = sys.argv[1:] or ["cost", "check", "run"]
    print(f"RMM {rmm.__version__}, Python {sys.version.split()[0]}")
    for word in words:
        {"cost": cost, "check": checks, "run": under_run}[word]()
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
