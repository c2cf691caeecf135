#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A rank of PyTorch whose tensors for NCCL lie in a MemPool over hipmm, which is registered: what NCCL's log says of it, and
whether all data is right. Started by torchrun on two GPUs:

    torchrun --standalone --nproc-per-node 2 torch_register.py MEMORY

MEMORY is where the MemPool's segments come from: `device` (the driver), `shared` (a pool over memory for other processes) or `main`
(the pool of all other tensors). Prints a line of JSON. With TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK, "hook" says
whether PyTorch would still register all memory.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

HOOK = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"
LOG = Path(tempfile.mkdtemp()) / "nccl.log"
os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="REG", NCCL_DEBUG_FILE=str(LOG), NCCL_NVLS_ENABLE="0",
                  NCCL_LEGACY_CUDA_REGISTER="1", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import hipmm.torch  # noqa: E402

MIB = 1 << 20
GRAPH = {
    "resources": {
        "memory": {"type": "device"},
        "main": {"type": "pool", "upstream": "memory"},
        "device": {"type": "device"},
        "shared": {"type": "pool", "upstream": "memory", "growth": "mapped", "exportable": True},
    },
    "devices": {"default": "main"},
}


def values(rank, count, device):
    return torch.arange(count, device=device, dtype=torch.float32) % 8191 + rank


def reduces(tensor, rank):
    """An all-reduce in place, and an all-gather into another tensor of the pool: NCCL opens registered buffers for the latter."""
    part = tensor[: tensor.numel() // 2]
    tensor.copy_(values(rank, tensor.numel(), tensor.device))
    dist.all_reduce(tensor)
    right = torch.equal(tensor, values(0, tensor.numel(), tensor.device) * 2 + 1)
    part.copy_(values(rank, part.numel(), tensor.device))
    return right, part


def works(tensor, whole, rank):
    right, part = reduces(tensor, rank)
    dist.all_gather_into_tensor(whole, part)
    wanted = torch.cat([values(other, part.numel(), part.device) for other in range(2)])
    return right and torch.equal(whole, wanted)


def segments_of(pool):
    return [(s["address"], s["total_size"]) for s in torch.cuda.memory_snapshot()
            if tuple(s["segment_pool_id"]) == tuple(pool.id)]


def main():
    memory = sys.argv[1]
    rank = int(os.environ["LOCAL_RANK"])
    hipmm.torch.use(GRAPH, bridge=True)
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", device_id=device)
    backend = dist.group.WORLD._get_backend(device)
    found = {"rank": rank, "hook": os.environ.get(HOOK), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    other = torch.empty(96 * MIB // 4, device=device)  # outside the MemPool
    pool = torch.cuda.MemPool()

    def tensors(mib):
        with hipmm.torch.region(memory), torch.cuda.use_mem_pool(pool):
            return [torch.empty(mib * MIB // 4, device=device) for _ in range(2)]

    before = tensors(256)
    backend.register_mem_pool(pool)
    after = tensors(192)  # new segments: PyTorch hears of them, and registers them
    found["right"] = {"registered before": works(*before, rank), "after": works(*after, rank),
                      "outside": reduces(other, rank)[0]}
    segments = segments_of(pool)
    log = LOG.read_text()
    registered = {(int(at, 16), int(size)) for at, size in re.findall(r"register comm \S+ buffer (\S+) size (\d+)", log)}
    found["segments"] = len(segments)
    found["registered"] = sum(segment in registered for segment in segments)
    found["outside"] = len(registered - set(segments))
    found["opened"] = len(re.findall(r"IPC register buffer", log))
    backend.deregister_mem_pool(pool)  # PyTorch 2.11 refuses to use the pool after that
    found["right"]["afterwards"] = works(*before, rank)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stderr.write(log[-1500:])
    dist.destroy_process_group()


main()
