#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch on two GPUs in one process: copies of all kinds between them, DataParallel, a pipeline of two stages, NCCL.
All data is compared with the CPU's. Prints lines of JSON; the last line has all results: what was tried, and "right",
what was wrong, or the error. Losses are printed as they are and must be equal with every allocator.

    torch_peers.py [--allocator native|hipmm] [--home 0|1]

hipmm: PYTHONPATH=python, HIPMM_LIBRARY, HIPMM_CONFIG. --home: the device that is used first; the program allocates
tensors on it before it uses the other one.
"""

import argparse
import itertools
import math
import os
import random
import sys
import threading

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
import torch.cuda.comm as comm  # noqa: E402
import torch.cuda.nccl as nccl  # noqa: E402
from attempts import Wrong, attempt, results, tell  # noqa: E402
from torch import nn  # noqa: E402

SMALL, LARGE = 1000, 1_500_001  # elements; a LARGE tensor lies in several chunks of a mapped pool
DTYPES = (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64)
EARLY_BYTES = 8 * LARGE + 64
DELAY = 20_000_000  # cycles: about a hundredth of a second

seeds = itertools.count(1)


DRAWN = torch.randint(0, 251, (16_000_000,), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def numbers(*shape, dtype=torch.float32):
    """Integers on the CPU that every dtype can hold; each call returns different ones."""
    values = DRAWN[next(seeds) * 1009 % 5_000_011:][: math.prod(shape)]
    if dtype is torch.bool:
        values = values % 2
    if dtype.is_complex:
        values = torch.complex(values.float(), values.float() + 1)
    return values.to(dtype).reshape(shape)


def expect(got, wanted, what=""):
    """`wanted` is on the CPU."""
    got = got.cpu().resolve_conj()
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Wrong(f"{what}: {tuple(got.shape)} of {got.dtype}, not {tuple(wanted.shape)} of {wanted.dtype}")
    if not torch.equal(got, wanted):
        raise Wrong(f"{what}: {int((got != wanted).sum())} of {wanted.numel()} elements differ")


# ---- Device memory


class Buffers:
    """Allocates tensors. On the device of the early tensors, each new tensor is a view of one of them, by turns."""

    def __init__(self, early=()):
        self.device = early[0].device if early else None
        self.early = itertools.cycle(early)

    def empty(self, shape, dtype, device):
        if device != self.device:
            return torch.empty(shape, dtype=dtype, device=device)
        return next(self.early)[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

    def place(self, values, device):
        return self.empty(values.shape, values.dtype, device).copy_(values)


# ---- Copies between devices: each function copies from `source` to `target`, with memory of `buffers`.


def moves(buffers, source, target):
    for dtype in DTYPES:
        for count in (1, SMALL, LARGE):
            values = numbers(count, dtype=dtype)
            expect(buffers.place(values, source).to(target), values, f"{count} of {dtype}")


def copies(buffers, source, target):
    for dtype in DTYPES:
        for count in (1, SMALL, LARGE):
            values = numbers(count, dtype=dtype)
            copied = buffers.empty((count,), dtype, target).zero_()
            copied.copy_(buffers.place(values, source))
            expect(copied, values, f"{count} of {dtype}")


def parts(buffers, source, target):
    """Copies a slice into a slice. The elements around the target slice must not change."""
    for count in (SMALL, LARGE):
        values, kept = numbers(count), numbers(count)
        whole = buffers.place(kept, target)
        whole[7:-5].copy_(buffers.place(values, source)[3:-9])
        expect(whole, torch.cat((kept[:7], values[3:-9], kept[-5:])), f"{count}")


def strided(buffers, source, target):
    """For these copies PyTorch runs kernels that read and write the other device's memory."""
    for dtype in (torch.float32, torch.uint8, torch.complex64):
        values = numbers(701, 903, dtype=dtype)
        there = buffers.place(values, source)
        expect(there.t().to(target), values.t(), f"transposed, {dtype}")
        expect(there[::3, 1::2].to(target), values[::3, 1::2], f"every third row, {dtype}")
        turned = buffers.empty((903, 701), dtype, target).zero_()
        turned.t().copy_(there)
        expect(turned, values.t().contiguous(), f"into a transposed one, {dtype}")
        thin = buffers.empty((701, 2 * 903), dtype, target).zero_()
        thin[:, ::2].copy_(there.flip(0))
        expect(thin[:, ::2], values.flip(0), f"into every second column, {dtype}")
        expect(thin[:, 1::2], torch.zeros_like(values), f"between the columns, {dtype}")
        row = numbers(903, dtype=dtype)
        thin[:, 1::2].copy_(buffers.place(row, source))
        expect(thin[:, 1::2], row.expand(701, 903), f"a row to all rows, {dtype}")
    images = numbers(4, 3, 65, 67)
    expect(buffers.place(images, source).to(memory_format=torch.channels_last).to(target), images, "channels last")


def converted(buffers, source, target):
    pairs = [(torch.float32, torch.float16), (torch.float32, torch.bfloat16), (torch.int64, torch.float32),
             (torch.float32, torch.bool), (torch.uint8, torch.int64), (torch.float16, torch.float64),
             (torch.complex64, torch.complex128)]
    for before, after in pairs:
        for count in (SMALL, 1_000_001):
            values = numbers(count, dtype=before)
            there, wanted = buffers.place(values, source), values.to(after)
            expect(there.to(target, after), wanted, f"{count} of {before} to {after}")
            copied = torch.zeros(count, dtype=after, device=target)
            copied.copy_(there)
            expect(copied, wanted, f"copy_() of {count} of {before} to {after}")
            copied.zero_()[::2].copy_(there[::2])
            expect(copied[::2], wanted[::2], f"every second of {count} of {before} to {after}")
    values = numbers(LARGE, dtype=torch.complex64)
    expect(buffers.place(values, source).conj().to(target), values.conj().resolve_conj(), "conjugates")


def unblocked(buffers, source, target):
    for count in (SMALL, LARGE):
        values = numbers(count)
        there = buffers.place(values, source)
        expect(there.to(target, non_blocking=True) * 2, values * 2, f"to() of {count}")
        copied = buffers.empty((count,), values.dtype, target)
        copied.copy_(there, non_blocking=True)
        expect(copied + 1, values + 1, f"copy_() of {count}")


def pinned(buffers, source, target):
    """From the host through both devices back to the host, without a wait in between."""
    for count in (SMALL, LARGE):
        values = numbers(count)
        sent, received = values.pin_memory(), torch.zeros(count).pin_memory()
        first = buffers.empty((count,), values.dtype, source)
        first.copy_(sent, non_blocking=True)
        second = first.to(target, non_blocking=True)
        received.copy_(second, non_blocking=True)
        torch.cuda.synchronize(target)
        expect(received, values, f"{count}")


def side_streams(buffers, source, target):
    """Copies from a stream that is delayed. The source is freed at once, and its memory is allocated again and filled on
    the same stream, or, after record_stream(), on another stream."""
    torch.cuda.synchronize(source)
    torch.cuda.synchronize(target)
    here, there = torch.cuda.Stream(source), torch.cuda.Stream(target)
    for count in (SMALL, LARGE):
        values = numbers(count)
        ready = values.to(source)
        torch.cuda.synchronize(source)
        with torch.cuda.stream(there), torch.cuda.stream(here):
            torch.cuda._sleep(DELAY)
            data = buffers.empty((count,), values.dtype, source).copy_(ready)
            moved = data.to(target, non_blocking=True)
            del data
            again = torch.full((count,), -1.0, device=source)
        with torch.cuda.stream(there):
            result = moved * 3
        there.synchronize()
        expect(result, values * 3, f"{count}")
        here.synchronize()
        expect(again, torch.full((count,), -1.0), f"{count}, the next tensor")

        data = buffers.place(values, source)
        torch.cuda.synchronize(source)
        with torch.cuda.stream(there), torch.cuda.stream(here):
            torch.cuda._sleep(DELAY)
            moved = data.to(target, non_blocking=True)
        data.record_stream(here)
        del data
        again = torch.full((count,), -1.0, device=source)
        there.synchronize()
        expect(moved, values, f"{count}, recorded")
        expect(again, torch.full((count,), -1.0), f"{count}, recorded, the next tensor")


KINDS = {"to()": moves, "copy_()": copies, "copy_() of parts": parts, "not contiguous": strided, "other dtypes": converted,
         "non_blocking": unblocked, "pinned": pinned, "side streams": side_streams}


def all_kinds(state, buffers, devices):
    for current in devices:
        for source, target in (devices, devices[::-1]):
            for kind, function in KINDS.items():
                with torch.cuda.device(current):
                    attempt(f"{state}: {kind}, {source} to {target}, {current} current", function, buffers, source, target)


# ---- The second device's first use


def first_use(early, home, other):
    """A copy is the first operation on the second device."""
    values = numbers(LARGE)
    early.copy_(values)
    expect(early.to(other), values, "to the other device")
    with torch.cuda.device(other):
        expect(early, values, "read back")
        early.zero_()
        early.copy_(values.to(other))
    expect(early, values, "from the other device")


# ---- Allocation and deallocation on both devices


def churn(home, other):
    """Pools grow, are trimmed by empty_cache(), and grow again."""
    draw, kept = random.Random(7), {}
    for turn in range(48):
        source, target = (home, other) if turn % 2 else (other, home)
        values = numbers(draw.choice((1, 100, 10_000, 1_000_000, 7_000_000)) + draw.randrange(1000))
        kept[turn] = values, values.to(source).to(target)
        if turn % 3 == 2:
            values, tensor = kept.pop(draw.choice(list(kept)))
            expect(tensor, values, f"before turn {turn}")
        if turn % 12 == 11:
            torch.cuda.empty_cache()
    for turn, (values, tensor) in kept.items():
        expect(tensor, values, f"turn {turn}")


def in_threads(home, other):
    """Two threads for each device; each copies tensors to the other device and back."""
    failures = []

    def work(number, own, others):
        try:
            torch.cuda.set_device(own)
            for turn in range(12):
                values = torch.arange(100_003 * (turn + 1) + number, dtype=torch.int32)
                expect((values.to(own).to(others) * 2).to(own), values * 2, f"thread {number}, turn {turn}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i, *((home, other) if i % 2 else (other, home)))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# ---- Training


def close(got, wanted, what):
    if not torch.allclose(got.cpu(), wanted.cpu(), rtol=1e-9, atol=1e-12):
        raise Wrong(f"{what} differ by up to {float((got.cpu() - wanted.cpu()).abs().max()):.3g}")


def net():
    torch.manual_seed(11)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 512), nn.ReLU(),
                         nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10)).double()


def batches(count=4):
    draw = torch.Generator().manual_seed(5)
    return [(torch.randn(64, 3, 16, 16, dtype=torch.float64, generator=draw),
             torch.randint(10, (64,), generator=draw)) for _ in range(count)]


def train(forward, parameters, first, last, pieces=1):
    """Trains on a few batches. `forward` takes a tensor on `first` and returns one on `last`. A batch is split into
    `pieces` microbatches: all go forward, then all go backward. Returns the losses, on the CPU."""
    parameters = list(parameters)
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    losses = []
    for images, labels in batches():
        optimizer.zero_grad()
        outputs = [forward(part.to(first)) for part in images.chunk(pieces)]
        parts = [nn.functional.cross_entropy(output, part.to(last)) / pieces
                 for output, part in zip(outputs, labels.chunk(pieces))]
        for part in parts:
            part.backward()
        optimizer.step()
        losses.append(sum(part.item() for part in parts))
    return torch.tensor(losses, dtype=torch.float64)


def tell_losses(what, losses):
    """As text, for a comparison with other allocators."""
    results[f"losses of {what}"] = ", ".join(f"{float(loss):.9f}" for loss in losses)


def data_parallel(home, other):
    alone = net().to(home)
    wanted = train(alone, alone.parameters(), home, home)
    for first, second in ((home, other), (other, home)):
        inner = net().to(first)
        both = nn.DataParallel(inner, device_ids=[first.index, second.index], output_device=first.index)
        losses = train(both, both.parameters(), first, first)
        close(losses, wanted, f"losses, {first} first")
        for (name, own), theirs in zip(inner.named_parameters(), alone.parameters()):
            close(own.detach(), theirs.detach(), f"{name}, {first} first")
            close(own.grad, theirs.grad, f"the gradient of {name}, {first} first")
        images = batches(1)[0][0].to(first)
        close(both(images).detach(), alone(images.to(home)).detach(), f"outputs, {first} first")
        tell_losses(f"DataParallel, {first} first", losses)


def pipeline(home, other):
    alone = net().to(home)
    wanted = train(alone, alone.parameters(), home, home)
    for first, second in ((home, other), (other, home)):
        for streams in (False, True):
            layers = net()
            stages = layers[:5].to(first), layers[5:].to(second)
            link = torch.cuda.Stream(first) if streams else None

            def forward(piece):
                hidden = stages[0](piece)
                if link is None:
                    return stages[1](hidden.to(second, non_blocking=True))
                link.wait_stream(torch.cuda.current_stream(first))
                with torch.cuda.stream(link):
                    sent = hidden.to(second, non_blocking=True)
                    hidden.record_stream(link)
                return stages[1](sent)

            losses = train(forward, itertools.chain(*(stage.parameters() for stage in stages)), first, second, 4)
            name = f"{first} first" + (", copies on a stream of their own" if streams else "")
            close(losses, wanted, f"losses, {name}")
            for got, theirs in zip(itertools.chain(*(stage.parameters() for stage in stages)), alone.parameters()):
                close(got.detach(), theirs.detach(), f"parameters, {name}")
            tell_losses(f"the pipeline, {name}", losses)


# ---- NCCL and torch.cuda.comm


def expect_all(tensors, wanted, devices, what):
    for tensor, values, device in zip(tensors, wanted, devices, strict=True):
        if tensor.device != device:
            raise Wrong(f"{what}: is on {tensor.device} and not on {device}")
        expect(tensor, values, f"{what}, {device}")


def comm_broadcast(devices):
    for count in (SMALL, LARGE):
        values = numbers(count)
        for origin in (*devices, torch.device("cpu")):
            wanted = [values] * 2
            ordered = devices if origin != devices[1] else devices[::-1]
            expect_all(comm.broadcast(values.to(origin), ordered), wanted, ordered, f"{count} from {origin}")
            out = [torch.zeros(count, device=device) for device in devices]
            comm.broadcast(values.to(origin), out=out)
            expect_all(out, wanted, devices, f"{count} from {origin} to what there is")
    several = [numbers(count, dtype=dtype) for count in (3, SMALL, LARGE) for dtype in (torch.float32, torch.float16)]
    got = comm.broadcast_coalesced([values.to(devices[0]) for values in several], devices)
    for device, tensors in zip(devices, got, strict=True):
        expect_all(tensors, several, [device] * len(several), "coalesced")


def comm_reduce_add(devices):
    for destination in devices:
        for count in (SMALL, LARGE):
            values = [numbers(count) for _ in devices]
            there = [one.to(device) for one, device in zip(values, devices)]
            expect_all([comm.reduce_add(there, destination.index)], [values[0] + values[1]], [destination], f"{count}")
        several = [[numbers(count) for count in (3, SMALL, LARGE)] for _ in devices]
        there = [[one.to(device) for one in each] for each, device in zip(several, devices)]
        got = comm.reduce_add_coalesced(there, destination.index)
        expect_all(got, [a + b for a, b in zip(*several)], [destination] * 3, "coalesced")


def comm_scatter(devices):
    for origin in (*devices, torch.device("cpu")):
        values = numbers(1003, 501)
        there = values.to(origin)
        for name, words in {"halves": {}, "unlike": {"chunk_sizes": [1001, 2]}, "columns": {"dim": 1},
                            "streams": {"streams": [torch.cuda.Stream(device) for device in devices]}}.items():
            dimension = words.get("dim", 0)
            wanted = values.split(words["chunk_sizes"]) if "chunk_sizes" in words else values.chunk(2, dimension)
            got = comm.scatter(there, devices, **words)
            for device in devices:
                torch.cuda.synchronize(device)
            expect_all(got, wanted, devices, f"{name} from {origin}")


def comm_gather(devices):
    for destination in (*devices, torch.device("cpu")):
        for dimension in (0, 1):
            values = [numbers(503, 701), numbers(503, 701)]
            there = [one.to(device) for one, device in zip(values, devices)]
            got = comm.gather(there, dimension, destination)
            for device in devices:
                torch.cuda.synchronize(device)
            expect_all([got], [torch.cat(values, dimension)], [destination], f"dimension {dimension} to {destination}")


def nccl_operations(devices, streams):
    for dtype in (torch.float32, torch.float16, torch.int64):
        for count in (2, SMALL, 2_000_000):
            values = [numbers(count, dtype=dtype) for _ in devices]
            total, name = values[0] + values[1], f"{count} of {dtype}"

            def placed():
                tensors = [one.to(device) for one, device in zip(values, devices)]
                for device in devices:
                    torch.cuda.synchronize(device)
                return tensors

            def done():
                for device in devices:
                    torch.cuda.synchronize(device)

            tensors = placed()
            if not nccl.is_available(tensors):
                raise Wrong("torch.cuda.nccl is not available")
            nccl.all_reduce(tensors, streams=streams)
            done()
            expect_all(tensors, [total] * 2, devices, f"all_reduce of {name}")
            for turn in (1, -1):  # each device is the root once: PyTorch passes 0 to NCCL, whatever `root` is
                tensors = placed()[::turn]
                nccl.broadcast(tensors, streams=streams and streams[::turn])
                done()
                expect_all(tensors, [values[::turn][0]] * 2, devices[::turn], f"broadcast of {name}")
            tensors = placed()
            output = torch.zeros(count, dtype=dtype, device=devices[1])
            done()
            nccl.reduce(tensors, output, root=1, streams=streams)
            done()
            expect_all([output], [total], devices[1:], f"reduce of {name}")
            gathered = [torch.zeros(2 * count, dtype=dtype, device=device) for device in devices]
            tensors = placed()
            nccl.all_gather(tensors, gathered, streams=streams)
            done()
            expect_all(gathered, [torch.cat(values)] * 2, devices, f"all_gather of {name}")
            halves = [torch.zeros(count // 2, dtype=dtype, device=device) for device in devices]
            tensors = placed()
            nccl.reduce_scatter(tensors, halves, streams=streams)
            done()
            expect_all(halves, total.chunk(2), devices, f"reduce_scatter of {name}")


# ---- All of it


def owned(devices):
    import ours

    for device in devices:
        tensor = torch.ones(SMALL, device=device)
        if not ours.is_ours(tensor.data_ptr(), tensor.nbytes):
            raise Wrong(f"memory on {device} is not hipmm's")


def try_all(home, other):
    devices = [home, other]
    early = [torch.zeros(EARLY_BYTES, dtype=torch.uint8, device=home) for _ in range(4)]
    attempt("the second device's first use is a copy", first_use, early[0][: 4 * LARGE].view(torch.float32), home, other)
    tell()
    all_kinds("memory allocated before the second device is used", Buffers(early), devices)
    tell()
    all_kinds("memory allocated later", Buffers(), devices)
    tell()
    attempt("allocation and deallocation", churn, home, other)
    attempt("threads of both devices", in_threads, home, other)
    tell()
    attempt("a pipeline of two stages", pipeline, home, other)
    tell()
    attempt("DataParallel", data_parallel, home, other)
    tell()
    for function in (comm_broadcast, comm_reduce_add, comm_scatter, comm_gather):
        attempt(f"torch.cuda.{function.__name__.replace('_', '.', 1)}", function, devices)
        tell()
    attempt("torch.cuda.nccl", nccl_operations, devices, None)
    attempt("torch.cuda.nccl on streams", nccl_operations, devices, [torch.cuda.Stream(device) for device in devices])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocator", choices=("native", "hipmm"), default="native")
    parser.add_argument("--home", type=int, choices=(0, 1), default=0)
    return parser.parse_args()


def main():
    chosen = arguments()
    if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
        print("fewer than two GPUs that this PyTorch can use", file=sys.stderr)
        return 77
    if chosen.allocator == "hipmm":
        import hipmm.torch

        hipmm.torch.use()
    torch.backends.cudnn.deterministic = True
    home, other = (torch.device("cuda", index) for index in (chosen.home, 1 - chosen.home))
    torch.cuda.set_device(home)
    try_all(home, other)
    if chosen.allocator == "hipmm":
        attempt("the memory is hipmm's", owned, [home, other])
    tell()
    return 0


if __name__ == "__main__":
    sys.exit(main())
