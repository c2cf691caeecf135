#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.multiprocessing with memory of hipmm's: what another process finds in tensors that it is sent. Prints one line
of JSON, a member for each way: "right", "wrong", or what was raised. Ends with 1 if a way is not what doc/guide.md says.

    torch_share.py        (PYTHONPATH=python, HIPMM_LIBRARY; a GPU)
"""

import json
import os
import subprocess
import sys
import tempfile

import hipmm.torch
import torch
import torch.multiprocessing

COUNT = 7 << 20  # of four bytes: PyTorch asks for a segment of its own for each tensor
TENSORS = 4

DEVICE = ["statistics", "device"]
SEGMENTS = [{"type": "pool", "growth": "segments"}, "device"]
MAPPED = [{"type": "pool", "growth": "mapped"}, "device"]

# Whether hipmm is in force, the stack, and what may come of it. The driver shares whole allocations, and PyTorch takes
# each of its segments for one: of a part of an allocation another process would find what lies at the start.
WAYS = {
    "in force": (True, DEVICE, ("shareIPcHandle",)),
    "pool() over device": (False, DEVICE, ("right",)),
    "pool() over segments": (False, SEGMENTS, ("right", "no sub-allocator")),
    "pool() over mapped memory": (False, MAPPED, ("CUDA error", "no sub-allocator")),
}


def look(connection):
    """The other process: whether each tensor is full of its number."""
    tensors = connection.recv()
    connection.send([bool((tensor == number).all()) for number, tensor in enumerate(tensors)])
    connection.recv()  # until then the tensors are in use


def full():
    return [torch.full((COUNT,), number, dtype=torch.int32, device="cuda") for number in range(TENSORS)]


def share(tensors):
    context = torch.multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    other = context.Process(target=look, args=(there,), daemon=True)
    other.start()
    try:
        here.send(tensors)
        if not here.poll(60):
            return "no answer"
        found = here.recv()
        here.send(None)
    finally:
        other.join(2)
        other.kill()
    return "right" if found == [True] * TENSORS else "wrong"


def attempt(current):
    if current:
        hipmm.torch.use(pluggable=True)
        return share(full())
    pool = hipmm.torch.pool()
    with torch.cuda.use_mem_pool(pool):
        tensors = full()
    torch.cuda.synchronize()
    return share(tensors)


def attempt_by_itself(current, stack):
    """In a process of its own, since an allocator is chosen once."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"stack": stack}, config)
        config.flush()
        done = subprocess.run([sys.executable, "-B", __file__, str(int(current))], capture_output=True, text=True,
                              env={**os.environ, "HIPMM_CONFIG": config.name})
    lines = done.stdout.splitlines()
    return lines[-1] if lines else f"ended with {done.returncode}: {done.stderr[-300:]}"


def main():
    if len(sys.argv) == 2:
        try:
            print(attempt(sys.argv[1] == "1"))
        except RuntimeError as error:
            print(" ".join(str(error).split())[:300])
        return 0
    found = {name: attempt_by_itself(current, stack) for name, (current, stack, _) in WAYS.items()}
    unexpected = [name for name, (_, _, allowed) in WAYS.items() if not any(word in found[name] for word in allowed)]
    print(json.dumps({**found, "unexpected": unexpected}))
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
