#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs that the other devices of a process reach the memory of device 0: a process of its own with 1, 2, 4, … devices
prints, as a line of JSON, the milliseconds in which the option `peers` grants access to memory of hipMalloc, the first time and
again, and the microseconds of an allocation that a pool maps anew and of its release, medians.

    peers_cost.py [DEVICES…]        by default 1, 2 and 4, as far as there are so many
"""

import json
import os
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
SIZES = (2, 64, 1024)  # MiB
ROUNDS = 9
GRAPH = {
    "resources": {"memory": {"type": "device"}, "pool": {"type": "pool", "upstream": "memory", "growth": "mapped"}},
    "devices": {"default": "pool"},
}


def seconds(function, *arguments, **named):
    began = time.perf_counter()
    result = function(*arguments, **named)
    return time.perf_counter() - began, result


def grants(hipmm, devices):
    """The resource's creation with a row for each other device, less its creation without one."""
    peers = [{"device": device} for device in range(1, devices)]
    plain, first, again = (seconds(hipmm.create, "device", peers=rows)[0] for rows in ([], peers, peers))
    return [round(max(took - plain, 0) * 1e3, 3) for took in (first, again)]


def maps(hipmm, mib):
    pool, taken, given = hipmm.resource("pool"), [], []
    for _ in range(ROUNDS):
        took, pointer = seconds(pool.allocate, mib * MIB)
        taken.append(took)
        pool.deallocate(pointer, mib * MIB)
        hipmm.synchronize()
        given.append(seconds(pool.trim)[0])
        if pool.query("reserved_bytes"):
            raise SystemExit(f"peers_cost.py: the pool keeps {pool.query('reserved_bytes')} bytes, so that nothing is mapped anew")
    return [round(statistics.median(times) * 1e6, 1) for times in (taken, given)]


def measure(devices):
    import hipmm

    hipmm.init(GRAPH)
    if hipmm.device_count() != devices:
        raise SystemExit(f"peers_cost.py: this process has {hipmm.device_count()} devices, not {devices}")
    hipmm.create("device")  # the context, before anything is timed
    first, again = grants(hipmm, devices)
    found = {"devices": devices, "grant_ms": first, "grant_again_ms": again}
    print(json.dumps({**found, "map_us": {mib: maps(hipmm, mib) for mib in SIZES}}))


def counted():
    text = "import hipmm; hipmm.init({'stack': ['device']}); print(hipmm.device_count())"
    return int(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout)


def main():
    if sys.argv[1:2] == ["--here"]:
        measure(int(sys.argv[2]))
        return 0
    there = counted()
    for devices in [int(word) for word in sys.argv[1:]] or [1, 2, 4]:
        if devices > there:
            continue
        visible = ",".join(map(str, range(devices)))
        again = [sys.executable, "-B", __file__, "--here", str(devices)]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": visible, "HIP_VISIBLE_DEVICES": visible,
                       "HIPMM_SOFTWARE": f"devices={devices},memory=3GiB"}
        if status := subprocess.run(again, env=environment).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
