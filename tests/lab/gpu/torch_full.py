#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch on hipmm with a device that is full: it fails clearly, loses nothing, and goes on once memory is let go.
Prints one line of JSON.

    torch_full.py            (PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG)
"""

import json
import sys

import hipmm.torch
import torch


def fill(bytes_each):
    """Tensors until there is no more memory, and what PyTorch said then."""
    kept = []
    while len(kept) < 10_000:
        try:
            kept.append(torch.full((bytes_each // 4,), len(kept), dtype=torch.int32, device="cuda"))
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            return kept, str(error)
    return kept, "never full"


def main():
    if not torch.cuda.is_available():
        print("no GPU that this PyTorch can use", file=sys.stderr)
        return 77
    hipmm.torch.use()
    torch.cuda.init()
    free, total = torch.cuda.mem_get_info()
    piece = max(free // 40, 64 << 20)
    result = {"total_bytes": total, "piece_bytes": piece}
    kept, said = fill(piece)
    result["pieces"], result["said"] = len(kept), said.splitlines()[0]
    result["filled"] = len(kept) * piece / free
    result["intact"] = all(int(tensor[-1]) == i and int(tensor[0]) == i for i, tensor in enumerate(kept))
    again, said_again = fill(piece)
    result["again"] = len(again) == 0 and bool(said_again)
    del kept[::2], again
    torch.cuda.synchronize()
    refilled, _ = fill(piece)
    result["refilled"] = len(refilled)
    result["still_intact"] = all(int(tensor[-1]) == 2 * i + 1 for i, tensor in enumerate(kept))
    del kept, refilled
    torch.cuda.empty_cache()
    large = torch.ones(int(free * 0.6) // 4, dtype=torch.int32, device="cuda")
    result["large_sum_right"] = int(large[:: 1 << 20].sum()) == len(range(0, large.numel(), 1 << 20))
    del large
    left = torch.randn(2048, 2048, device="cuda")
    result["works_after"] = bool(torch.isfinite(left @ left).all())
    torch.cuda.empty_cache()
    free_after, _ = torch.cuda.mem_get_info()
    result["free_after"] = free_after / free
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
