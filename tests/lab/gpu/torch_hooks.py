#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch asks of its allocator besides memory, on hipmm: record_stream(), captured graphs, a memory fraction, and
pools beside PyTorch's own allocator. Prints one line of JSON: what held, and what did not.

    torch_hooks.py [--beside]        (PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG)

--beside: PyTorch's own allocator stays in force, and hipmm serves a MemPool.
"""

import json
import sys

import hipmm.torch
import ours
import torch

COUNT = 1 << 22
LATE = 200_000_000  # cycles: about a tenth of a second


def is_ours(tensor):
    return ours.is_ours(tensor.data_ptr(), tensor.nbytes)


def full(value):
    return torch.full((COUNT,), value, dtype=torch.int32, device="cuda")


def crosses(recorded):
    """Lets go of a tensor that late work on another stream reads. Returns whether that read what it should, and whether
    the memory was taken again meanwhile."""
    home, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(home):
        data = full(1)
    other.wait_stream(home)
    with torch.cuda.stream(other):
        copy = full(0)
        torch.cuda._sleep(LATE)
        copy.copy_(data)
    if recorded:
        data.record_stream(other)
    address = data.data_ptr()
    del data
    with torch.cuda.stream(home):
        again = full(2)
    torch.cuda.synchronize()
    return bool((copy == 1).all()) and bool((again == 2).all()), again.data_ptr() == address


def warm_up(given):
    """What a graph is captured of has to have run before."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        (given * 3 + 1).sum()
    torch.cuda.synchronize()


def captures():
    """A graph's memory stays its own while the program goes on."""
    given = full(0)
    warm_up(given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        part = given * 3
        result = part + 1
    for value in (5, 7):
        others = [full(-1) for _ in range(8)]
        given.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        if not bool((result == 3 * value + 1).all()) or not all(bool((other == -1).all()) for other in others):
            return False
    return True


def attempt(count):
    try:
        torch.empty(count, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


def limits():
    """Below what is asked for, and then not."""
    torch.cuda.empty_cache()
    _, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(0.05)
    refused = attempt(total // 10)
    torch.cuda.set_per_process_memory_fraction(1.0)
    return "out of memory" in refused and not attempt(total // 10)


def fails_as_pytorch_does():
    """Want of memory is PyTorch's own exception, with hipmm's reason, and does no harm."""
    kept = full(3)
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        return "hipmm: " in str(error) and bool((kept == 3).all()) and bool((full(4) == 4).all())
    except RuntimeError as error:
        print(f"{type(error)}: {error}", file=sys.stderr)
    return False


def figures():
    """PyTorch's own functions tell hipmm's figures."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept, other = full(1), full(2)
    del other
    allocated, most = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    stats, told = torch.cuda.memory_stats(), hipmm.torch.memory_stats()
    good = allocated - before == kept.nbytes and most - before == 2 * kept.nbytes
    good = good and all(stats[name] == value for name, value in told.items())
    good = good and torch.cuda.memory_reserved() == hipmm.held_bytes()[0] >= allocated
    return good and "Allocated memory" in torch.cuda.memory_summary()


def snapshot_is_read():
    """torch.cuda._memory_viz reads what hipmm writes."""
    from torch.cuda import _memory_viz

    kept = full(5)
    snapshot = torch.cuda.memory._snapshot()
    blocks = [(block["address"], block["requested_size"]) for segment in snapshot["segments"]
              for block in segment["blocks"] if block["state"] == "active_allocated"]
    text = lambda lines: lines  # noqa: E731
    pages = [_memory_viz.segments(snapshot, format_flamegraph=text), _memory_viz.memory(snapshot, format_flamegraph=text),
             _memory_viz.segsum(snapshot), _memory_viz.trace_plot(snapshot)]
    return (kept.data_ptr(), kept.nbytes) in blocks and all(pages) and torch.cuda.memory_snapshot() is not None


def current():
    hipmm.torch.use(pluggable=True)
    result = {"the memory is hipmm's": is_ours(full(0))}
    kept, _ = crosses(recorded=True)
    lost, again = crosses(recorded=False)
    result["record_stream() keeps what is in use"] = kept
    result["without it the loss is noticed"] = not lost and again
    result["a captured graph keeps its memory"] = captures()
    result["a memory fraction holds"] = limits()
    result["want of memory is torch.OutOfMemoryError"] = fails_as_pytorch_does()
    result["PyTorch's figures are hipmm's"] = figures()
    result["PyTorch's reader reads the snapshot"] = snapshot_is_read()
    return result


def beside():
    pool = hipmm.torch.pool()
    outside = full(1)
    with torch.cuda.use_mem_pool(pool):
        inside = [full(i) for i in range(4)]
    result = {"a pool's memory is hipmm's": is_ours(inside[0]), "and no other": not is_ours(outside)}
    inside.pop(1)
    with torch.cuda.use_mem_pool(pool):
        inside.append(full(9))
    values = [int(tensor.sum(dtype=torch.int64)) // COUNT for tensor in inside]
    result["a pool keeps data"] = values == [0, 2, 3, 9] and bool((outside == 1).all())
    warm_up(inside[-1])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        doubled = inside[-1] * 2
    graph.replay()
    result["a graph captures in a pool"] = bool((doubled == 18).all())
    del graph, doubled, inside, pool
    torch.cuda.empty_cache()
    result["works afterwards"] = bool((outside + full(1) == 2).all())
    return result


def main():
    if not torch.cuda.is_available():
        print("no GPU that this PyTorch can use", file=sys.stderr)
        return 77
    print(json.dumps(beside() if "--beside" in sys.argv[1:] else current()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
