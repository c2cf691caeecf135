#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A rank of a training with DistributedDataParallel, its memory from hipmm. Started by torchrun, with a graph that has
"report" and "current_device": "local_rank":

    HIPMM_CONFIG=ranks.json torchrun --standalone --nproc-per-node 2 torch_ranks.py

Prints one line of JSON: the rank, its device as PyTorch and hipmm have it, and the losses, which are the same in all ranks.
Without a GPU the model is the processor's, and a Buffer stands for its memory.
"""

import json
import os
import sys

import torch
import torch.distributed
from torch import nn

import hipmm.torch

STEPS = 5


def train(device):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to(device)
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        torch.manual_seed(100 * step + torch.distributed.get_rank())
        batch = torch.randn(64, 1024, device=device)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        torch.distributed.all_reduce(total)
        losses.append(total.item())
    return losses


def main():
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        hipmm.torch.use(os.environ["HIPMM_CONFIG"])
        device = torch.cuda.current_device()
    else:
        hipmm.init(os.environ["HIPMM_CONFIG"])
        device = hipmm.current_device()
        kept = hipmm.Buffer(1 << 20)
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    rank = torch.distributed.get_rank()
    losses = train(f"cuda:{device}" if on_gpu else "cpu")
    line = json.dumps({"rank": rank, "torch": device, "hipmm": hipmm.current_device(), "losses": losses})
    sys.stdout.write(line + "\n")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    if not on_gpu:
        del kept


main()
