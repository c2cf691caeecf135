#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two ranks of NCCL on two GPUs, whose memory is hipmm's beside the driver's: an all-reduce over each by turns, with and
without ncclCommRegister(). All data is compared.

    nccl_ranks.py KIND [--register] [--threads] [--mib N] [--turns N]

KIND is where the blocks come from: `mapped`, `segments` and `shared` are pools that map chunks, that take segments, and that map
memory for other processes; `nccl` is a pool of segments from ncclMemAlloc(). The ranks are two processes; with --threads, two
threads of one. NCCL_LIBRARY names NCCL's library where PyTorch's is not meant. hipmm: PYTHONPATH=python, HIPMM_LIBRARY,
HIPMM_PLUGIN_PATH.

Prints one line of JSON: NCCL's version, whether the data was right, how many handles of the driver the block lies in, the seconds of
an all-reduce in each turn, and the lines of NCCL's log about registration.
"""

import argparse
import array
import ctypes
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RANKS = 2
FLOAT32, SUM = 7, 0
GRAPH = {
    "version": 1,
    "resources": {
        "memory": {"type": "device"},
        "mapped": {"type": "pool", "upstream": "memory", "growth": "mapped"},
        "segments": {"type": "pool", "upstream": "memory", "growth": "segments"},
        "shared": {"type": "pool", "upstream": "memory", "growth": "mapped", "exportable": True},
    },
    "devices": {"default": "memory"},
}
NCCL_MEMORY = {
    "nccl_memory": {"type": "callback", "allocator": "nccl"},
    "nccl": {"type": "pool", "upstream": "nccl_memory", "growth": "segments"},
}
KINDS = ("mapped", "segments", "shared", "nccl")


def options(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--register", action="store_true")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--id", help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    if chosen.mib < 1 or chosen.turns < 2:
        parser.error("at least 1 MiB and two turns")
    return chosen


# ---- NCCL


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def library_path():
    """NCCL_LIBRARY, or the library of the wheel nvidia-nccl, which PyTorch uses, or the system's."""
    if named := os.environ.get("NCCL_LIBRARY"):
        return named
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else ():
        if (file := Path(folder) / "nccl/lib/libnccl.so.2").exists():
            return str(file)
    return "libnccl.so.2"


class Nccl:
    def __init__(self):
        self.library = ctypes.CDLL(library_path())
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        version = ctypes.c_int()
        self.call("ncclGetVersion", ctypes.byref(version))
        self.version = version.value

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: {self.library.ncclGetErrorString(code).decode()}")

    def new_id(self):
        made = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made).hex()

    def join(self, unique_id, rank):
        communicator, device = ctypes.c_void_p(), ctypes.c_int(-1)
        given = UniqueId.from_buffer_copy(bytes.fromhex(unique_id))
        self.call("ncclCommInitRank", ctypes.byref(communicator), RANKS, given, rank)
        self.call("ncclCommCuDevice", communicator, ctypes.byref(device))
        if device.value != rank:
            raise RuntimeError(f"rank {rank} got device {device.value}")
        return communicator

    def register(self, communicator, buffer):
        handle = ctypes.c_void_p()
        self.call("ncclCommRegister", communicator, ctypes.c_void_p(buffer.ptr), ctypes.c_size_t(buffer.nbytes),
                  ctypes.byref(handle))
        return handle

    def all_reduce(self, communicator, pair, stream):
        send, receive = pair
        self.call("ncclAllReduce", ctypes.c_void_p(send.ptr), ctypes.c_void_p(receive.ptr),
                  ctypes.c_size_t(send.nbytes // 4), FLOAT32, SUM, communicator, ctypes.c_void_p(stream.handle))

    def allocate(self, nbytes, _alignment, _stream):
        pointer = ctypes.c_void_p()
        self.call("ncclMemAlloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        return pointer.value

    def deallocate(self, pointer, _nbytes, _alignment, _stream):
        self.call("ncclMemFree", ctypes.c_void_p(pointer))


# ---- Data

PERIOD = 1 << 20  # bytes: whole floats, and no chunk's size is a multiple of its prime part


def pattern(rank):
    """Small whole numbers, whose sums are exact: each rank has others, and they differ along the block."""
    return array.array("f", ((i * (3 + rank)) % 8191 for i in range(PERIOD // 4))).tobytes()


def fill(buffer, rank):
    part = pattern(rank)
    for offset in range(0, buffer.nbytes, PERIOD):
        buffer.write(part[: buffer.nbytes - offset], offset)


def sums():
    parts = [array.array("f", pattern(rank)) for rank in range(RANKS)]
    return array.array("f", (sum(values) for values in zip(*parts))).tobytes()


def is_right(buffer, wanted):
    return all(buffer.read(offset, min(PERIOD, buffer.nbytes - offset)) == wanted[: buffer.nbytes - offset]
               for offset in range(0, buffer.nbytes, PERIOD))


def count_handles(buffer):
    """How many allocations of the driver the block lies in, as NCCL asks for them; 0 without the driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    base, nbytes, at, found = ctypes.c_uint64(), ctypes.c_size_t(), buffer.ptr, 0
    while at < buffer.ptr + buffer.nbytes:
        if driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(nbytes), ctypes.c_uint64(at)):
            return 0
        at = base.value + nbytes.value
        found += 1
    return found


# ---- A rank


def turn(nccl, communicator, pair, stream, repeats):
    began = time.perf_counter()
    for _ in range(repeats):
        nccl.all_reduce(communicator, pair, stream)
    stream.synchronize()
    return (time.perf_counter() - began) / repeats


def rank_main(nccl, unique_id, rank, chosen):
    import hipmm

    hipmm.set_device(rank)
    stream = hipmm.Stream(non_blocking=True)
    nbytes = chosen.mib << 20
    pairs = {}
    for name in ("memory", chosen.kind):
        pieces = [hipmm.Buffer(nbytes // 4, stream, hipmm.resource(name)) for _ in range(8)]
        del pieces  # so that a pool that divides memory has it in several chunks
        pairs[name] = [hipmm.Buffer(nbytes, stream, hipmm.resource(name)) for _ in range(2)]
    communicator = nccl.join(unique_id, rank)  # after the first allocation: the device's context is current
    for send, receive in pairs.values():
        fill(send, rank)
        receive.fill(0xff)
    stream.synchronize()
    handles = [nccl.register(communicator, buffer) for pair in pairs.values() for buffer in pair] if chosen.register else []
    for pair in pairs.values():
        turn(nccl, communicator, pair, stream, 2)
    wanted = sums()
    right = {name: is_right(pair[1], wanted) for name, pair in pairs.items()}
    times = {name: [] for name in pairs}
    for number in range(chosen.turns):
        for name in sorted(pairs, reverse=number % 2):
            times[name].append(turn(nccl, communicator, pairs[name], stream, 5))
    right = {name: right[name] and is_right(pair[1], wanted) for name, pair in pairs.items()}
    parts = {name: min(count_handles(buffer) for buffer in pair) for name, pair in pairs.items()}
    for handle in handles:
        nccl.call("ncclCommDeregister", communicator, handle)
    nccl.call("ncclCommDestroy", communicator)
    return {"rank": rank, "right": right, "seconds": times, "handles": parts, "kind": chosen.kind}


def start_hipmm(nccl, kind):
    import hipmm

    graph = {**GRAPH, "resources": dict(GRAPH["resources"])}
    if kind == "nccl":
        hipmm.register_allocator("nccl", nccl.allocate, nccl.deallocate)
        graph["resources"].update(NCCL_MEMORY)
    hipmm.init(graph)
    if hipmm.device_count() < RANKS:
        raise SystemExit(f"nccl_ranks.py: needs {RANKS} devices")


def rank_process(chosen):
    """The first rank says the communicator's number, the second one gets it as --id."""
    nccl = Nccl()
    start_hipmm(nccl, chosen.kind)
    unique_id = chosen.id
    if not unique_id:
        unique_id = nccl.new_id()
        print(unique_id, flush=True)
    print(json.dumps(rank_main(nccl, unique_id, chosen.rank, chosen)), flush=True)


def rank_threads(chosen):
    nccl = Nccl()
    start_hipmm(nccl, chosen.kind)
    unique_id, found = nccl.new_id(), []
    threads = [threading.Thread(target=lambda rank=rank: found.append(rank_main(nccl, unique_id, rank, chosen)))
               for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(found) < RANKS:
        raise SystemExit(1)
    return found


# ---- Both


def run_processes(words):
    def start(rank, *more):
        return subprocess.Popen([sys.executable, "-B", __file__, *words, "--rank", str(rank), *more],
                                stdout=subprocess.PIPE, text=True)

    first = start(0)
    unique_id = next((line.strip() for line in first.stdout if re.fullmatch(r"[0-9a-f]{256}\n", line)), None)
    if not unique_id:
        raise SystemExit(first.wait() or 1)
    ranks = [first, start(1, "--id", unique_id)]
    while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
        time.sleep(0.05)
    for rank in ranks:  # one that waits for a rank that has failed
        rank.kill()
    texts = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"nccl_ranks.py: the ranks ended with {ranks[0].returncode} and {ranks[1].returncode}")
    return [json.loads(text.splitlines()[-1]) for text in texts]


# Of NCCL's log: a registration that ncclCommRegister() makes; one that the other rank has opened; one that was tried in vain.
LINES = {
    "registered": r"register comm \S+ buffer (\S+) size (\d+)",
    "opened": r"IPC register buffer (\S+) size (\d+)",
    "refused": r"failed to IPC register userbuff (\S+) buffSize (\d+)",
}


def read_log(folder):
    text = "".join(file.read_text(errors="replace") for file in sorted(Path(folder).glob("nccl.*")))
    return {what: len(re.findall(line, text)) for what, line in LINES.items()}, text


def main():
    chosen = options()
    if chosen.rank is not None:
        rank_process(chosen)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="REG", NCCL_DEBUG_FILE=f"{folder}/nccl.%h.%p",
                          NCCL_NVLS_ENABLE="0", NCCL_LEGACY_CUDA_REGISTER="1")  # the latter: of cudaMalloc's memory, too
        found = rank_threads(chosen) if chosen.threads else run_processes(sys.argv[1:])
        counts, text = read_log(folder)
    version = Nccl().version
    found.sort(key=lambda result: result["rank"])
    sys.stderr.write(text[-4000:])
    print(json.dumps({"nccl": version, "ranks": found, "log": counts}))


if __name__ == "__main__":
    main()
