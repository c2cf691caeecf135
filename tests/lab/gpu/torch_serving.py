#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small serving engine that sleeps and wakes: weights, a cache, and decoding captured at eleven batch sizes in one pool.
Level 1 saves the weights in host memory and drops the cache. Level 2 drops both, and the weights are loaded again. After each,
the captured graphs must find the same tokens. Prints a table, or one line of JSON with --way, and ends with 1 if a token
differs or memory was not released.

    torch_serving.py [--ways native,pool,use,run] [--layers 24] [--width 2048] [--length 512]
    torch_serving.py --way native|pool|use|run [the same]

native: PyTorch alone. It copies the weights to the host, drops the cache and the graphs, and captures anew when it wakes.
pool:   PyTorch's own allocator. hipmm's memory is in hipmm.torch.pool().
use:    hipmm.torch.use(). The cache is in a torch.cuda.MemPool().
run:    as use, under `hipmm run` (HIPMM_COMMAND, or the command of the bundle, or of PATH), which has the graph.

hipmm: PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_PLUGIN_PATH. doc/serving.md has what of this an engine needs.
"""

import argparse
import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("native", "pool", "use", "run")
SIZES = (64, 56, 48, 40, 32, 24, 16, 8, 4, 2, 1)  # in one pool, the largest first
PROMPT, ANSWER = 8, 24
MIB = 1 << 20

# Each sleeps by itself. What nothing names is in `main`, which stays awake.
GRAPH = {
    "version": 1,
    "resources": {
        "memory": {"type": "device"},
        **{name: {"type": "pool", "upstream": "memory", "growth": "mapped"} for name in ("main", "weights", "kv", "graphs")},
    },
    "devices": {"default": "main"},
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS))
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=2048, help="a multiple of 64")
    parser.add_argument("--length", type=int, default=512, help=f"places of a row in the cache, more than {PROMPT + ANSWER}")
    parser.add_argument("--wait", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if set(chosen.ways) - set(WAYS):
        parser.error(f"the ways are {', '.join(WAYS)}")
    if chosen.layers < 1 or chosen.width < 64 or chosen.width % 64 or chosen.length <= PROMPT + ANSWER:
        parser.error(f"a layer, a width that is a multiple of 64, and a length above {PROMPT + ANSWER} at least")
    return chosen


# ---- The engine


def on_host(model):
    return {name: torch.empty_like(value, device="cpu", pin_memory=True).copy_(value)
            for name, value in model.state_dict().items()}


class Engine:
    """Decodes with PyTorch alone. Where it keeps its memory, and how it sleeps, are for subclasses."""

    def __init__(self, chosen):
        self.chosen = chosen
        with self.place("weights"), torch.device("cuda"):
            torch.manual_seed(7)
            self.model = torch_models.Decoder(chosen.layers, chosen.width, max(SIZES), chosen.length)
            self.model = self.model.requires_grad_(False).bfloat16()
        torch.cuda.empty_cache()  # what loading has left
        self.checkpoint = on_host(self.model)
        with self.place("kv"):
            self.cache = self.new_cache()
        self.tokens = torch.zeros(max(SIZES), 1, dtype=torch.long, device="cuda")
        self.positions = torch.zeros(max(SIZES), dtype=torch.long, device="cuda")
        self.graphs = self.capture()

    def place(self, name):
        return contextlib.nullcontext()

    def graph_pool(self):
        return torch.cuda.graph_pool_handle()

    def new_cache(self):
        """For each layer keys and values, and for each row their places."""
        chosen = self.chosen
        heads = chosen.width // torch_models.HEAD
        return torch.zeros(chosen.layers, 2, max(SIZES), heads, chosen.length, torch_models.HEAD, dtype=torch.bfloat16,
                           device="cuda")

    def decode(self, rows):
        """A token for each row, from the one before and what the cache has."""
        model, places = self.model, self.positions[:rows]
        x = model.tokens(self.tokens[:rows]) + model.positions(places)[:, None]
        seen = torch.arange(self.chosen.length, device="cuda") <= places[:, None]
        for layer, (keys, values) in zip(model.layers, self.cache):
            q, k, v = layer.attend(layer.norm1(x)).view(rows, 1, 3, -1, torch_models.HEAD).permute(2, 0, 3, 1, 4)
            at = places.view(rows, 1, 1, 1).expand_as(k)
            keys[:rows].scatter_(2, at, k)
            values[:rows].scatter_(2, at, v)
            heads = functional.scaled_dot_product_attention(q, keys[:rows], values[:rows], attn_mask=seen[:, None, None])
            x = x + layer.project(heads.transpose(1, 2).reshape(rows, 1, -1))
            gate, up = layer.widen(layer.norm2(x)).chunk(2, -1)
            x = x + layer.narrow(functional.silu(gate) * up)
        self.tokens[:rows].copy_(model.head(model.norm(x)).argmax(-1))
        self.positions[:rows].add_(1)

    def capture(self):
        pool, graphs = self.graph_pool(), {}
        self.positions.zero_()
        for rows in SIZES:
            self.decode(rows)
            torch.cuda.synchronize()
            graphs[rows] = torch.cuda.CUDAGraph()
            with self.place("graphs"), torch.cuda.graph(graphs[rows], pool=pool):
                self.decode(rows)
        return graphs

    def serve(self, prompts):
        """The answers to prompts, as lists of tokens."""
        count = len(prompts)
        replay = self.graphs[min(size for size in SIZES if size >= count)].replay
        self.positions.zero_()
        said = []
        for place in range(PROMPT + ANSWER):
            if place < PROMPT:
                self.tokens[:count, 0].copy_(prompts[:, place])
            replay()
            if place >= PROMPT:
                said.append(self.tokens[:count, 0].clone())
        return torch.stack(said, 1).tolist()

    def sleep(self, level):
        self.saved = on_host(self.model) if level == 1 else None
        for parameter in self.model.parameters():
            parameter.data = torch.empty(0, dtype=torch.bfloat16, device="cuda")
        self.cache = self.graphs = None
        gc.collect()
        torch.cuda.empty_cache()

    def wake(self, level):
        weights = self.saved if level == 1 else self.checkpoint
        for name, parameter in self.model.named_parameters():
            parameter.data = weights[name].to("cuda", non_blocking=True)
        self.cache = self.new_cache()
        self.graphs = self.capture()


class OnHipmm(Engine):
    """The weights, the cache and the graphs keep their addresses, so the graphs stay captured."""

    def __init__(self, chosen):
        is_beside = chosen.way == "pool"
        new = hipmm.torch.pool if is_beside else torch.cuda.MemPool
        self.pools = {name: new() for name in ("weights", "kv", "graphs") if is_beside or name == "kv"}
        super().__init__(chosen)

    @contextlib.contextmanager
    def place(self, name):
        with hipmm.torch.region(name):
            if name in self.pools and name != "graphs":
                with torch.cuda.use_mem_pool(self.pools[name]):
                    yield
            else:
                yield

    def graph_pool(self):
        return self.pools["graphs"].id if "graphs" in self.pools else super().graph_pool()

    def sleep(self, level):
        hipmm.sleep("kv", keep=False)
        hipmm.sleep("weights", keep=level == 1)
        hipmm.sleep("graphs")
        torch.cuda.empty_cache()

    def wake(self, level):
        for name in ("weights", "kv", "graphs"):
            hipmm.wake(name)
        if level == 2:
            self.model.load_state_dict(self.checkpoint)
        self.cache.zero_()


# ---- What is measured


def timed(function, *words):
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = function(*words)
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def spoil(asleep, awake):
    """Writes over what is free now, as another program would."""
    other = torch.full(((awake - asleep) * 9 // 10,), 0xFF, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    del other
    torch.cuda.empty_cache()


def measure(chosen):
    torch.cuda.init()
    torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")  # loads what a program has anyway
    before = used_bytes()
    seconds, engine = timed(Engine if chosen.way == "native" else OnHipmm, chosen)
    figures = {"way": chosen.way, "start": seconds, "awake": used_bytes() - before, "right": True}
    random = torch.Generator().manual_seed(3)
    prompts = [torch.randint(torch_models.TOKENS, (count, PROMPT), generator=random).cuda() for count in (1, 5, 64)]
    expected = [engine.serve(each) for each in prompts]
    figures["tokens"] = sum(sum(map(sum, each)) for each in expected)
    figures["decode"] = timed(engine.serve, prompts[2])[0] / (PROMPT + ANSWER)
    for level in (1, 2):
        figures[f"sleep{level}"], _ = timed(engine.sleep, level)
        asleep = used_bytes()
        figures[f"asleep{level}"] = asleep - before
        reserved = [value for name, value in torch.cuda.memory_stats().items() if name.startswith("reserved") and "current" in name]
        assert min(reserved) >= 0, reserved
        spoil(asleep, figures["awake"] + before)
        figures[f"wake{level}"], _ = timed(engine.wake, level)
        figures["right"] = figures["right"] and [engine.serve(each) for each in prompts] == expected
    weights, cache = (sum(part.numel() * part.element_size() for part in parts)
                      for parts in (engine.checkpoint.values(), [engine.cache]))
    figures["weights"], figures["cache"] = weights, cache
    figures["released"] = all(figures["awake"] - figures[f"asleep{level}"] >= (weights + cache) * 0.95 for level in (1, 2))
    return figures


# ---- All ways


def command_of(way, words):
    from torch_turns import under_run

    command = [sys.executable, "-B", os.path.abspath(__file__), "--way", way, "--wait", *words]
    return [str(word) for word in [*(under_run() if way == "run" else ()), *command]]


def all_ways(chosen):
    """All import PyTorch at the same time, and have the device one after the other."""
    words = ["--layers", chosen.layers, "--width", chosen.width, "--length", chosen.length]
    folder = tempfile.mkdtemp()
    graph = Path(folder, "serving.json")
    graph.write_text(json.dumps(GRAPH))
    processes = {way: subprocess.Popen(command_of(way, words), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env={**os.environ, **({"HIPMM_CONFIG": str(graph)} if way == "run" else {})})
                 for way in chosen.ways}
    found, good = [], True
    for way, process in processes.items():
        said, _ = process.communicate("go on\n")
        lines = [line for line in said.splitlines() if line.startswith("{")]
        good = good and process.returncode == 0 and bool(lines)
        if lines:
            found.append(json.loads(lines[-1]))
        else:
            print(f"{way}: ended with {process.returncode}")
    shutil.rmtree(folder)
    show(found)
    if len({one["tokens"] for one in found}) > 1:
        print("the ways find different tokens")  # other kernels may be chosen for other addresses, so it is no failure
    return 0 if good else 1


def show(found):
    names = ["start", "decode", "sleep1", "wake1", "sleep2", "wake2"]
    print("way      start s  decode ms  sleep 1 s   wake 1 s  sleep 2 s   wake 2 s  awake MiB  asleep 1   asleep 2  result")
    for one in found:
        seconds = [one[name] * (1000 if name == "decode" else 1) for name in names]
        memory = [one[name] // MIB for name in ("awake", "asleep1", "asleep2")]
        result = "same tokens" if one["right"] else "OTHER TOKENS"
        result += "" if one["released"] else ", NOT RELEASED"
        print(f"{one['way']:<7}" + "".join(f"{value:>10.3f} " for value in seconds) + "".join(f"{value:>10,} " for value in memory),
              result)


def one_way(chosen):
    if chosen.wait and not sys.stdin.readline():
        return 1
    if not torch.cuda.is_available():
        print("no GPU that this PyTorch can use", file=sys.stderr)
        return 77
    figures = measure(chosen)
    print(json.dumps(figures), flush=True)
    return 0 if figures["right"] and figures["released"] else 1


if __name__ == "__main__":
    chosen = arguments()
    if not chosen.way:
        sys.exit(all_ways(chosen))
    os.environ.setdefault("HIPMM_TORCH", "bridge")
    import torch  # under `hipmm run` this gives it hipmm

    if chosen.way != "native":
        import hipmm.torch

        if chosen.way != "run":
            hipmm.init(GRAPH)
        if chosen.way != "pool":
            hipmm.torch.use()
    import torch_models
    from driver_memory import used_bytes
    from torch.nn import functional

    sys.exit(one_way(chosen))
