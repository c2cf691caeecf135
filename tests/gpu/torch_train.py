#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a model of GPT-2 small's size on random tokens and prints one line of JSON: the last losses, steps per second
after the warm-up, and the most memory held from the driver. Nothing is downloaded.

    torch_train.py --allocator native|expandable|hipmm [--steps 30]

hipmm: PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG.

The same seed must give the same losses with every allocator. torch_turns.py has two of them train by turns: with --turn N
this one begins, and goes on after each N steps, when a line comes on standard input, and tells in one how long they took.
"""

import argparse
import json
import os
import sys
import time

WARM_UP = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocator", choices=("native", "expandable", "hipmm"), default="native")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--turn", type=int, metavar="N", help="the first turn is the warm-up")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024, help="tokens in a sequence, at most 1024")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--varied", action="store_true", help="draw a sequence length for each step")
    parser.add_argument("--seed", type=int, default=1234)
    chosen = parser.parse_args()
    chosen.warm_up = WARM_UP if chosen.turn is None else chosen.turn
    if not 0 < chosen.warm_up < chosen.steps or not 16 <= chosen.length <= 1024:
        parser.error(f"more than {chosen.warm_up} steps, please, of 16 to 1024 tokens")
    return chosen


chosen = arguments()
if chosen.allocator == "expandable":  # before torch is imported
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"):
        os.environ[variable] = "expandable_segments:True"
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

VOCABULARY, POSITIONS, WIDTH, HEADS = 50257, 1024, 768, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.attend(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        heads = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + self.project(heads.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def use_hipmm():
    import hipmm.torch

    hipmm.torch.use()


class Held:
    """What this program holds from the driver. While others have their turns, theirs may change."""

    def __init__(self):
        self.now = self.most = 0
        self.begin_turn()

    @staticmethod
    def _used():
        free, total = torch.cuda.mem_get_info()
        return total - free

    def begin_turn(self):
        self.others = self._used() - self.now

    def look(self):
        self.now = self._used() - self.others
        self.most = max(self.most, self.now)


def wait_for_turn():
    if chosen.turn and not sys.stdin.readline():
        sys.exit("nobody gives turns any more")


def step(model, optimizer, tokens):
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def draw_tokens(random):
    length = chosen.length
    if chosen.varied:
        length = int(torch.randint(chosen.length // 4, chosen.length + 1, (1,), generator=random))
    return torch.randint(VOCABULARY, (chosen.batch, length + 1), generator=random).cuda()


def train(held):
    """Returns the last losses, and the seconds of all steps after the warm-up."""
    torch.manual_seed(chosen.seed)
    model = Model(chosen.layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    random = torch.Generator().manual_seed(chosen.seed)
    losses = []

    def go(steps):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            losses.append(step(model, optimizer, draw_tokens(random)))
            held.look()
        torch.cuda.synchronize()
        took = time.perf_counter() - started
        if chosen.turn:
            print(json.dumps({"seconds": took}), flush=True)
        return took

    go(chosen.warm_up)
    seconds = 0.0
    while left := chosen.steps - len(losses):
        wait_for_turn()
        held.begin_turn()
        seconds += go(min(chosen.turn or left, left))
    return [loss.item() for loss in losses[-5:]], seconds


def main():
    wait_for_turn()
    if not torch.cuda.is_available():
        print("no GPU that this PyTorch can use", file=sys.stderr)
        return 77
    torch.use_deterministic_algorithms(True, warn_only=True)
    if chosen.allocator == "hipmm":
        use_hipmm()
    torch.cuda.init()
    held = Held()  # the driver's own, and other processes', are not this program's
    losses, seconds = train(held)
    wait_for_turn()  # what ends would disturb who has the turn
    print(
        json.dumps(
            {
                "allocator": chosen.allocator,
                "torch": torch.__version__,
                "device": torch.cuda.get_device_name(),
                "steps": chosen.steps,
                "losses": losses,
                "steps_per_second": round((chosen.steps - chosen.warm_up) / seconds, 3),
                "most_bytes_held": held.most,
                "most_bytes_reserved": torch.cuda.max_memory_reserved(),
                "most_bytes_allocated": torch.cuda.max_memory_allocated(),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
