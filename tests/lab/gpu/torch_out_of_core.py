#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sorts two tables and joins them in PyTorch, with a third of their memory: all lies in movable buffers under a `limiting`
resource, and PyTorch's own allocations are below the same limit. Prints one line of JSON; exit status 1 if a key is wrong.

    torch_out_of_core.py [--gib 24] [--parts 96]

Each table is sorted in two passes. A chunk of it is made, sorted, and cut by ranges of keys into parts; then the parts of
each range are brought together and sorted. The join looks for each key of a range of one table in that range of the other.
"""

import argparse
import json
import sys
import time

import hipmm
import hipmm.torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gib", type=float, default=24, help="both tables together")
parser.add_argument("--parts", type=int, default=96, help="chunks of each table, and ranges of keys")
chosen = parser.parse_args()

PARTS = chosen.parts
KEYS = int(chosen.gib * (1 << 30)) // 2 // 8 // PARTS  # of a chunk
DATA = 2 * PARTS * KEYS * 8
hipmm.init({
    "resources": {
        "movable": {"type": "spilling", "upstream": "limit", "pinned": "staging"},
        "limit": {"type": "limiting", "limit": DATA // 3, "upstream": "pool"},
        "pool": {"type": "pool", "upstream": "memory"},
        "memory": {"type": "device"},
        "staging": {"type": "pool", "upstream": "host"},
        "host": {"type": "pinned"},
    },
    "devices": {"default": "movable"},
})

import torch  # noqa: E402

hipmm.torch.use()


def keys_of(array):
    return torch.as_tensor(array, device="cuda").view(torch.int64)


def mixed(index):
    """Takes indices one to one to keys that look random."""
    def shifted(key, bits):
        return key ^ ((key >> bits) & ((1 << (64 - bits)) - 1))

    key = shifted(index, 30) * -0x40A7B892E31B1A47
    key = shifted(key, 27) * -0x6B2FB644ECCEEE15
    return shifted(key, 31)


def bounds():
    """The least key of each range but the first."""
    step = (1 << 64) // PARTS
    return torch.tensor([step * part - (1 << 63) for part in range(1, PARTS)], device="cuda")


def cut(table, factor):
    """The table's keys, mixed(factor * row), as a list of parts for each range."""
    ranges = [[] for _ in range(PARTS)]
    limits = bounds()
    for chunk in range(PARTS):
        rows = torch.arange(chunk * KEYS, (chunk + 1) * KEYS, device="cuda")
        keys = mixed(rows * factor).sort().values
        table["sum"] += int(keys.sum())
        ends = [0, *torch.searchsorted(keys, limits).tolist(), KEYS]
        for part, (begin, end) in enumerate(zip(ends, ends[1:])):
            if end > begin:
                movable = hipmm.movable((end - begin) * 8)
                with movable.pinned(torch.cuda.current_stream()) as array:
                    keys_of(array).copy_(keys[begin:end])
                ranges[part].append(movable)
    return ranges


def gather(table, ranges):
    """Each range in one buffer, sorted. A part is freed as soon as it is copied."""
    stream = torch.cuda.current_stream()
    for part, pieces in enumerate(ranges):
        movable = hipmm.movable(sum(piece.nbytes for piece in pieces))
        with movable.pinned(stream) as whole:
            keys, at = keys_of(whole), 0
            while pieces:
                piece = pieces.pop(0)
                with piece.pinned(stream) as array:
                    keys[at:at + piece.nbytes // 8].copy_(keys_of(array))
                at += piece.nbytes // 8
                del piece
            keys.copy_(keys.sort().values)
        table["ranges"].append(movable)


def is_right(table):
    """Whether the keys ascend, and are as many, with the same sum."""
    count = total = 0
    last = -(1 << 63)
    for movable in table["ranges"]:
        with movable.pinned(torch.cuda.current_stream()) as array:
            keys = keys_of(array)
            if int(keys[0]) < last or not bool((keys[1:] >= keys[:-1]).all()):
                return False
            last, count, total = int(keys[-1]), count + keys.numel(), total + int(keys.sum())
    return count == PARTS * KEYS and (total - table["sum"]) % (1 << 64) == 0


def join(one, other):
    """How many keys both tables have."""
    found = 0
    stream = torch.cuda.current_stream()
    for mine, theirs in zip(one["ranges"], other["ranges"]):
        with mine.pinned(stream) as here, theirs.pinned(stream) as there:
            keys, wanted = keys_of(here), keys_of(there)
            places = torch.searchsorted(keys, wanted).clamp_(max=keys.numel() - 1)
            found += int((keys[places] == wanted).sum())
    return found


def main():
    tables = [{"sum": 0, "ranges": []} for _ in range(2)]
    factors = [1, 3]  # of the second table's rows, each third has its key in the first, as far as that goes
    began = time.monotonic()
    for table, factor in zip(tables, factors):
        gather(table, cut(table, factor))
    sorted_after = time.monotonic() - began
    found = join(*tables)
    seconds = time.monotonic() - began
    right = [is_right(table) for table in tables]
    wanted = -(-PARTS * KEYS // 3)
    values = {name: hipmm.query(f"devices/0/movable/{name}") for name in ("spills", "restores", "spilled_bytes", "restored_bytes")}
    held = hipmm.query("devices/0/pool/peak_reserved_bytes")
    print(json.dumps({"bytes": DATA, "limit_bytes": DATA // 3, "held_bytes": held, "sort_seconds": round(sorted_after, 3),
                      "seconds": round(seconds, 3), "right": right, "joined": found, "to_join": wanted, **values}))
    return 0 if all(right) and found == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
