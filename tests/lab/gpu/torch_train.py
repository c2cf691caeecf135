#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a model on random data and prints one line of JSON: the last losses, steps per second after the warm-up, and
the most memory held from the driver. Nothing is downloaded.

    torch_train.py [--model gpt2|graphs|llama|lora|reinforce|beam|volumes] --allocator native|expandable|hipmm|run [--steps 30]

torch_models.py has the models. gpt2 is of GPT-2 small's size, its tokens are random; graphs is a small network over a random
graph, of another size in each step; beam is a search, which learns nothing. hipmm: PYTHONPATH=python, HIPMM_LIBRARY,
HIPMM_CONFIG. run: under `hipmm run`, of which the program knows nothing.

The same seed must give the same losses with every allocator. torch_turns.py has several of them train by turns: with --turn N
this one begins, and goes on after each N steps, when a line comes on standard input, and tells in one how long they took;
the line "end" ends it. With WORLD_SIZE above 1 it is one of the ranks (RANK) of a training with FullyShardedDataParallel,
which meet at MEETING, a file that is not there yet.

--budget: in the end, also the least memory fraction, in bytes, with which the largest step can be made once more.
"""

import argparse
import gc
import json
import os
import sys
import time

WARM_UP = 5

# What each model takes, and its value if it is not given.
OPTIONS = {
    "gpt2": {"layers": 12, "batch": 8, "length": 1024, "varied": False},
    "graphs": {"layers": 4, "nodes": 8192},
    "llama": {"layers": 16, "width": 2048, "batch": 4, "length": 1024},
    "lora": {"layers": 16, "width": 2048, "batch": 4, "length": 2048, "rank": 16},
    "reinforce": {"layers": 4, "width": 1024, "batch": 32, "length": 192},
    "beam": {"layers": 4, "width": 1024, "batch": 8, "length": 128, "beams": 8},
    "volumes": {"width": 32, "batch": 1, "edge": 128},
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     argument_default=argparse.SUPPRESS)
    parser.add_argument("--model", choices=OPTIONS, default="gpt2")
    parser.add_argument("--allocator", choices=("native", "expandable", "hipmm", "run"), default="native")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--turn", type=int, metavar="N", default=None, help="the first turn is the warm-up")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--budget", action="store_true", default=False)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--width", type=int, help="a multiple of 64, or of 4 (volumes)")
    parser.add_argument("--batch", type=int, help="sequences or volumes in a step")
    parser.add_argument("--length", type=int, help="tokens in a sequence, at most 1024 (gpt2); the most (the others)")
    parser.add_argument("--varied", action="store_true", help="draw a sequence length for each step (gpt2)")
    parser.add_argument("--nodes", type=int, help="the median of a graph's nodes (graphs)")
    parser.add_argument("--rank", type=int, help="of the adapters (lora)")
    parser.add_argument("--beams", type=int)
    parser.add_argument("--edge", type=int, help="the most voxels along each edge (volumes)")
    chosen = parser.parse_args()
    defaults, given = OPTIONS[chosen.model], vars(chosen)
    for name in {name for options in OPTIONS.values() for name in options} & given.keys() - defaults.keys():
        parser.error(f"--{name} is not an option of the model {chosen.model}")
    chosen.options = {name: given.get(name, value) for name, value in defaults.items()}
    chosen.warm_up = WARM_UP if chosen.turn is None else chosen.turn
    if chosen.budget and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        parser.error("--budget is for one device: ranks would wait for one that failed")
    if not 0 < chosen.warm_up < chosen.steps:
        parser.error(f"more than {chosen.warm_up} steps, please, and turns of at least one")
    most = 1024 if chosen.model == "gpt2" else 1 << 20
    if not 16 <= chosen.options.get("length", 16) <= most or not 16 <= chosen.options.get("edge", 16):
        parser.error(f"--length is 16 to {most} tokens, and --edge at least 16")
    if chosen.options.get("width", 64) % (4 if chosen.model == "volumes" else 64):
        parser.error("--width is a multiple of 64, or of 4 for volumes")
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
from driver_memory import used_bytes  # noqa: E402

MODELS = {"gpt2": torch_models.Gpt2, "graphs": torch_models.Graphs, "llama": torch_models.Decoder,
          "lora": torch_models.Lora, "reinforce": torch_models.Reinforce, "beam": torch_models.Beam,
          "volumes": torch_models.Volumes}
RANK, RANKS = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))


def use_hipmm():
    import hipmm.torch

    hipmm.torch.use()


class Held:
    """What this program holds from the driver. While others have their turns, theirs may change."""

    def __init__(self):
        self.now = self.most = 0
        self.begin_turn()

    def begin_turn(self):
        self.others = used_bytes() - self.now

    def look(self):
        self.now = used_bytes() - self.others
        self.most = max(self.most, self.now)


def wait_for_turn():
    """False: the training ends here."""
    line = sys.stdin.readline() if chosen.turn else "go on"
    if not line:
        sys.exit("nobody gives turns any more")
    return line.strip() != "end"


class Loss(torch.nn.Module):
    """What a sharded training calls as a whole, so that the parameters of all layers are there."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *data):
        return self.model.loss(*data)


def sharded(model):
    """Between the ranks, layer by layer."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    device = next(model.parameters()).device
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=RANK, world_size=RANKS,
                                         init_method=f"file://{os.environ['MEETING']}")
    layers = ModuleWrapPolicy({torch_models.Block, torch_models.Layer})
    return FullyShardedDataParallel(Loss(model), auto_wrap_policy=layers, use_orig_params=True, device_id=device)


def step(loss_of, optimizer, data):
    loss = loss_of(*data)
    if optimizer is None:
        return loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def least_budget(go):
    """The least memory fraction, in bytes, with which go() does not fail: a search between what is allocated and what is
    reserved at most."""
    total = torch.cuda.mem_get_info()[1]
    too_little, enough = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    for _ in range(6):
        tried = (too_little + enough) // 2
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(tried / total)
        try:
            go()
            torch.cuda.synchronize()
            enough = tried
        except torch.OutOfMemoryError:
            too_little = tried
    return enough


def train(held):
    """Returns the losses, the seconds of all steps after the warm-up, and what makes the largest step once more."""
    torch.manual_seed(chosen.seed)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = MODELS[chosen.model](**chosen.options)
    loss_of = sharded(model) if RANKS > 1 else model.loss
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=3e-4) if learnt else None
    random = torch.Generator().manual_seed(chosen.seed + RANK)
    losses, largest = [], (0, None)

    def draw():
        nonlocal largest
        state = random.get_state()
        data = model.draw(random)
        size = sum(part.numel() if torch.is_tensor(part) else part for part in data)
        largest = max(largest, (size, state), key=lambda each: each[0])
        return data

    def go(steps):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            losses.append(step(loss_of, optimizer, draw()))
            held.look()
        torch.cuda.synchronize()
        took = time.perf_counter() - started
        if chosen.turn:
            print(json.dumps({"seconds": took}), flush=True)
        return took

    def go_largest():
        step(loss_of, optimizer, model.draw(random.set_state(largest[1])))

    go(chosen.warm_up)
    seconds, goes_on = 0.0, True
    while goes_on and (left := chosen.steps - len(losses)):
        if goes_on := wait_for_turn():
            held.begin_turn()
            seconds += go(min(chosen.turn or left, left))
    if goes_on:
        wait_for_turn()  # what ends would disturb who has the turn
    return [loss.item() for loss in losses], seconds, go_largest


def main():
    if not wait_for_turn():
        return 1
    if not torch.cuda.is_available():
        print("no GPU that this PyTorch can use", file=sys.stderr)
        return 77
    torch.use_deterministic_algorithms(True, warn_only=True)
    if chosen.allocator == "hipmm":
        use_hipmm()
    torch.cuda.init()
    if torch.cuda.is_available() and RANKS > 1:
        torch.cuda.set_device(RANK)
    held = Held()  # the driver's own, and other processes', are not this program's
    losses, seconds, go_largest = train(held)
    reserved, allocated = torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
    print(
        json.dumps(
            {
                "model": chosen.model,
                "allocator": chosen.allocator,
                "torch": torch.__version__,
                "device": torch.cuda.get_device_name(),
                "steps": len(losses),
                "losses": losses[-5:],
                "steps_per_second": round((len(losses) - chosen.warm_up) / seconds, 3) if seconds else None,
                "most_bytes_held": held.most,
                "most_bytes_reserved": reserved,
                "most_bytes_allocated": allocated,
                **({"least_budget": least_budget(go_largest)} if chosen.budget else {}),
            }
        ),
        flush=True,
    )
    if RANKS > 1:
        torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
