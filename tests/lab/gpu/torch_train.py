#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a model on random data and prints one line of JSON: the last losses, steps per second after the warm-up, and
the most memory held from the driver. Nothing is downloaded.

    torch_train.py [--model gpt2|graphs] --allocator native|expandable|hipmm [--steps 30]

gpt2 is of GPT-2 small's size, its tokens are random; graphs is a small network over a random graph, of another size in
each step. hipmm: PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG.

The same seed must give the same losses with every allocator. torch_turns.py has two of them train by turns: with --turn N
this one begins, and goes on after each N steps, when a line comes on standard input, and tells in one how long they took.
"""

import argparse
import json
import os
import sys
import time

WARM_UP = 5

# What each model takes, and its value if it is not given.
OPTIONS = {
    "gpt2": {"layers": 12, "batch": 8, "length": 1024, "varied": False},
    "graphs": {"layers": 4, "nodes": 8192},
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     argument_default=argparse.SUPPRESS)
    parser.add_argument("--model", choices=OPTIONS, default="gpt2")
    parser.add_argument("--allocator", choices=("native", "expandable", "hipmm"), default="native")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--turn", type=int, metavar="N", default=None, help="the first turn is the warm-up")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--batch", type=int, help="sequences in a step (gpt2)")
    parser.add_argument("--length", type=int, help="tokens in a sequence, at most 1024 (gpt2)")
    parser.add_argument("--varied", action="store_true", help="draw a sequence length for each step (gpt2)")
    parser.add_argument("--nodes", type=int, help="the median of a graph's nodes (graphs)")
    chosen = parser.parse_args()
    defaults, given = OPTIONS[chosen.model], vars(chosen)
    for name in {name for options in OPTIONS.values() for name in options} & given.keys() - defaults.keys():
        parser.error(f"--{name} is not an option of the model {chosen.model}")
    chosen.options = {name: given.get(name, value) for name, value in defaults.items()}
    chosen.warm_up = WARM_UP if chosen.turn is None else chosen.turn
    if not 0 < chosen.warm_up < chosen.steps:
        parser.error(f"more than {chosen.warm_up} steps, please, and turns of at least one")
    if not 16 <= chosen.options.get("length", 16) <= 1024:
        parser.error("--length is 16 to 1024 tokens")
    if min(number for name, number in chosen.options.items() if name != "varied") < 1:
        parser.error("a model has at least one layer, and a step at least one sequence or node")
    return chosen


chosen = arguments()
if chosen.allocator == "expandable":  # before torch is imported
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"):
        os.environ[variable] = "expandable_segments:True"
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
import torch_models  # noqa: E402

MODELS = {"gpt2": torch_models.Gpt2, "graphs": torch_models.Graphs}


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


def step(model, optimizer, data):
    loss = model.loss(*data)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def train(held):
    """Returns the last losses, and the seconds of all steps after the warm-up."""
    torch.manual_seed(chosen.seed)
    model = MODELS[chosen.model](**chosen.options).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    random = torch.Generator().manual_seed(chosen.seed)
    losses = []

    def go(steps):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            losses.append(step(model, optimizer, model.draw(random)))
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
                "model": chosen.model,
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
