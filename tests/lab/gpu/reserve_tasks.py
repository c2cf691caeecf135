# SPDX-License-Identifier: MIT
"""Tasks in threads that do not fit into memory together, with and without reservations, and what a reservation costs.

    reserve_tasks.py RESULT.json [--tasks 8] [--rounds 20] [--share 0.3]

Each task reserves a share of what may be reserved, takes it in four blocks, fills them, and looks at their data. With
reservations no task may fail; without, the same tasks over the same limit fail where they meet. Needs the package hipmm; under
HIPMM_RUNTIME=software it is tried without a GPU.
"""

import argparse
import json
import threading
import time

import hipmm

MIB = 1 << 20


def graph(kind, limit):
    return {"stack": [{"type": kind, "limit": limit}, "pool", "device"]}


def work(memory, nbytes, value):
    """Whether the data of all blocks is right."""
    blocks = [hipmm.Buffer(nbytes // 4, resource=memory) for _ in range(4)]
    for block in blocks:
        block.fill(value)
    ends = [block.read(0, 4096) + block.read(nbytes // 4 - 4096, 4096) for block in blocks]
    return all(end == bytes([value]) * 8192 for end in ends)


def run(tasks, rounds, nbytes, reserves):
    counts = {"done": 0, "failed": 0, "wrong": 0}
    lock = threading.Lock()

    def count(name):
        with lock:
            counts[name] += 1

    def one(value):
        if not reserves:
            return work(None, nbytes, value)
        with hipmm.reserve(nbytes, timeout=600) as memory:
            return work(memory, nbytes, value)

    def task(number):
        for i in range(rounds):
            try:
                count("done" if one((number * rounds + i) % 251) else "wrong")
            except hipmm.MemoryError:
                count("failed")

    threads = [threading.Thread(target=task, args=(number,)) for number in range(tasks)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {**counts, "seconds": round(time.monotonic() - begun, 3)}


def cost(times=2000):
    """Microseconds for a reservation and its release, and for a block of 4 KiB in one and beside one."""
    begun = time.monotonic()
    for _ in range(times):
        with hipmm.reserve(MIB):
            pass
    pair = (time.monotonic() - begun) / times * 1e6

    def blocks(memory):
        begun = time.monotonic()
        for _ in range(10 * times):
            memory.deallocate(memory.allocate(4096), 4096)
        return (time.monotonic() - begun) / (10 * times) * 1e6

    with hipmm.reserve(MIB) as memory:
        block, pool = blocks(memory), blocks(hipmm.resource("pool"))
    return {"reserve_release_us": round(pair, 2), "block_us": round(block, 3), "pool_us": round(pool, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("result")
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.3)
    given = parser.parse_args()
    hipmm.init({"stack": ["device"]})
    limit = hipmm.device_memory()[0] // 2 // MIB * MIB
    nbytes = int(limit * given.share) // MIB * MIB
    result = {"device": hipmm.device_name(), "limit": limit, "task_bytes": nbytes, "tasks": given.tasks, "rounds": given.rounds}
    hipmm.finalize()
    for name, kind in (("reserved", "reserving"), ("unreserved", "limiting")):
        hipmm.init(graph(kind, limit))
        result[name] = run(given.tasks, given.rounds, nbytes, kind == "reserving")
        if kind == "reserving":
            values = ("waits", "waited_ns", "overbooked", "held_bytes", "used_bytes")
            result["values"] = {value: hipmm.query(f"devices/0/reserving/{value}") for value in values}
            result["cost"] = cost()
        hipmm.finalize()
    with open(given.result, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print(json.dumps(result))
    reserved = result["reserved"]
    assert reserved["done"] == given.tasks * given.rounds and not result["values"]["held_bytes"], "a task failed"
    assert not result["unreserved"]["wrong"], "data is wrong"


if __name__ == "__main__":
    main()
