# SPDX-License-Identifier: MIT
"""The step of prove.py for memory that others use: NCCL over it, beside the driver's, by turns; PyTorch's registered pools; UCX's
calls, and UCX's own program where it can be had; what access of other devices costs."""

import json
import os
import shutil
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from proof import number
from steps_peers import STACKS, needs_two

AS_FAST = 0.97  # of the driver's memory, the median of the turns' ratios
SHARED = [{"type": "pool", "growth": "mapped", "exportable": True}, "device"]
LEGACY = [{"type": "pool", "ipc": "legacy"}, "device"]

# Where blocks come from, nccl_ranks.py's words, and whether the other rank opens a block that is registered: the driver must have one
# handle for all of it (or NCCL be of release 2.29, with a handle for each chunk that other processes may have).
NCCL_WAYS = [
    ("mapped", [], False),
    ("mapped", ["--register"], False),
    ("segments", ["--register"], True),
    ("shared", ["--register"], True),
    ("nccl", ["--register"], True),
    ("mapped", ["--threads"], False),
]


def software(proof, devices):
    """So many devices, where there is no GPU."""
    return {} if proof.on_gpu else {"HIPMM_SOFTWARE": f"devices={devices},memory=3GiB"}


def ratios(found, kind):
    """How many times as fast as the driver's memory the block's is: of each turn, of the first rank."""
    seconds = found["ranks"][0]["seconds"]
    return [theirs / ours for theirs, ours in zip(seconds["memory"], seconds[kind])]


def judge_nccl(proof, kind, words, opens, done, figures, gib):
    """One way: data, registration, speed."""
    name = ", ".join(["NCCL", kind, *(word.strip("-") for word in words)])
    found = done.json()
    if not proof.check(f"{name}: goes on to the end", done.status == 0 and found, done.last_words()):
        return
    wrong = [(rank["rank"], where) for rank in found["ranks"] for where, right in rank["right"].items() if not right]
    proof.check(f"{name}: the sums are right", not wrong, f"wrong: {wrong}")
    handles = found["ranks"][0]["handles"][kind]
    if kind == "mapped" and handles:
        proof.check(f"{name}: the block lies in several chunks", handles > 1, f"{handles}")
    log, buffers = found["log"], 8  # two blocks of each kind in both ranks
    if "--register" in words:
        proof.check(f"{name}: NCCL's log has the registrations", log["registered"] >= buffers, f"{log}")
    opened = log["opened"] > buffers // 4  # more than those of the driver's memory
    if opens:
        proof.check(f"{name}: the other rank opens the buffer", opened, f"{log}: {done.err[-600:]}")
    times = ratios(found, kind)
    ratio = statistics.median(times)
    if proof.on_gpu and (opened or "--register" not in words):  # else NCCL copies what it need not copy of the driver's
        proof.check(f"{name}: within 3 % of the driver's memory", ratio >= AS_FAST, f"{ratio:.3f}")
    ours = statistics.median(found["ranks"][0]["seconds"][kind])
    low, _, high = statistics.quantiles(times, n=4)
    figures.append([name.removeprefix("NCCL, "), handles or "-", log["registered"], log["opened"], log["refused"],
                    number(gib / ours, 1), number(ratio, 3), f"{low:.3f} to {high:.3f}"])


def nccl(proof):
    size = 1024 if proof.on_gpu else 16
    figures = proof.table(f"an all-reduce of {size} MiB over two devices, beside the driver's memory by turns",
                          ["block", "handles", "registered", "opened", "refused", "GiB/s", "as fast", "quartiles"])
    for kind, words, opens in NCCL_WAYS:
        done = proof.python("nccl_ranks.py", kind, *words, "--mib", size, limit=45, HIPMM_CONFIG=None, **software(proof, 2))
        judge_nccl(proof, kind, words, opens, done, figures, size / 1024)


# ---- PyTorch

# Where the MemPool's segments come from, whether the other rank opens them, and whether all memory is to be registered, too.
POOLS = [("device", True, None), ("shared", True, None), ("main", False, "1")]
HOOK = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"


def reason(done):
    """Why a rank of torchrun failed: its errors come before torchrun's own."""
    errors = [line.strip() for line in done.err.splitlines() if "Error" in line or "error:" in line]
    return " / ".join(errors[:4])[:900] or done.last_words()


def judge_torch(proof, memory, opens, hook, done, figures):
    name = f"PyTorch, {memory}" + (", the hook" if hook else "")
    said = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    if not proof.check(f"{name}: goes on to the end", done.status == 0 and len(said) == 2, reason(done)):
        return
    wrong = [(rank["rank"], what) for rank in said for what, right in rank["right"].items() if not right]
    proof.check(f"{name}: all data is right", not wrong, f"wrong: {wrong}")
    for rank in said:
        whole = rank["segments"] > 1 and rank["registered"] == rank["segments"]
        proof.check(f"{name}, rank {rank['rank']}: NCCL's log has each segment of the MemPool", whole, f"{rank}")
        proof.check(f"{name}, rank {rank['rank']}: and nothing else", rank["outside"] == 0, f"{rank}")
        if opens:
            proof.check(f"{name}, rank {rank['rank']}: the other rank opens it", rank["opened"] > 0, f"{rank}")
        if hook:
            proof.check(f"{name}, rank {rank['rank']}: the hook is turned off", rank["hook"] == "0", f"{rank}")
        figures.append([f"{name}, rank {rank['rank']}", rank["segments"], rank["registered"], rank["opened"]])


def torch(proof):
    if not proof.has_module("torch"):
        return proof.leave_out("reach: PyTorch", "this machine has no torch")
    figures = proof.table("segments of a MemPool that is registered", ["memory", "segments", "registered", "opened"])
    launcher = [sys.executable, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    script = proof.bundle / "tests/lab/gpu/torch_register.py"
    for memory, opens, hook in POOLS:
        done = proof.run([*launcher, script, memory], 90, HIPMM_CONFIG=None, **{HOOK: hook})
        judge_torch(proof, memory, opens, hook, done, figures)
    return None


# ---- UCX

UCX_STACKS = {"device": ["device"], "segments": STACKS["segments"], "mapped": STACKS["mapped"], "shared": SHARED, "legacy": LEGACY}


def ucx_library(proof):
    return "libcuda.so.1" if proof.on_gpu else str(next((proof.bundle / "tests/preload").glob("**/libamdhip64.so*"), ""))


def runtime_folder(proof):
    """Where hipmm's sockets lie."""
    folder = proof.folder / "runtime"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def ucx_calls(proof):
    """tests/preload/ucx.c by itself and under `hipmm run`."""
    program, library = proof.bundle / "tests/preload/ucx", ucx_library(proof)
    runtime = runtime_folder(proof)
    for name, stack in [("by itself", None), *UCX_STACKS.items()]:
        if stack:
            done = proof.hipmm("run", "--strict", "--config", proof.graph(*stack), "--", program, library, limit=30,
                               XDG_RUNTIME_DIR=str(runtime))
        else:
            done = proof.run([program, library], 30)
        lines = [line for line in done.out.splitlines() if line.startswith("bytes=")]
        if done.status == 77:
            proof.leave_out(f"UCX's calls, {name}", done.last_words())
            continue
        proof.check(f"UCX's calls, {name}", done.status == 0 and "good" in done.out.splitlines(),
                    f"{done.last_words()} {[line for line in done.out.splitlines() if 'wrong' in line][:3]}")
        proof.notes += [f"UCX's calls, {name}: {line}" for line in lines[::3]]


def ucx_program():
    """UCX's ucx_perftest: UCX_PERFTEST, that of PATH, or of the wheel libucx."""
    places = [os.environ.get("UCX_PERFTEST"), shutil.which("ucx_perftest")]
    places += [str(Path(folder) / "libucx/bin/ucx_perftest") for folder in sys.path]
    return next((place for place in places if place and Path(place).exists()), None)


BANDWIDTH = 5  # the column of ucx_perftest's last row: MB/s, overall
PORT = 13347


def listens(port):
    """Whether a process waits for connections; a connection that asks would be taken for the client."""
    tables = [Path("/proc/net", name) for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def perftest(proof, program, stack, size, count):
    """A server and a client, each with its GPU: the client's end, and the MB/s of a put or None."""
    words = ["-t", "ucp_put_bw", "-m", "cuda", "-s", size, "-n", count, "-w", 1, "-p", PORT, "-f"]
    place = Path(program).resolve().parents[1]
    libraries = [place / "lib", place / "lib/ucx", *place.parent.glob("libucx*.libs")]
    settings = {"LD_LIBRARY_PATH": ":".join([*map(str, libraries), proof.environment["LD_LIBRARY_PATH"]]),
                "UCX_TLS": "cuda,sm,self,tcp", "UCX_MODULE_DIR": str(place / "lib/ucx")}

    def start(device, *more):
        environment = {**settings, "CUDA_VISIBLE_DEVICES": str(device)}
        command = [program, *words, *more]
        if stack:
            return proof.hipmm("run", "--config", proof.graph(*stack), "--", *command, limit=25, **environment)
        return proof.run(command, 25, **environment)

    Path(program).chmod(0o755)
    settings["XDG_RUNTIME_DIR"] = str(runtime_folder(proof))
    with ThreadPoolExecutor(2) as pool:
        server = pool.submit(start, 0)
        ends = time.monotonic() + 15
        while not server.done() and not listens(PORT) and time.monotonic() < ends:
            time.sleep(0.1)
        client = server.result() if server.done() else start(1, "127.0.0.1")
        server.result()
    rows = [words for words in map(str.split, client.out.splitlines()) if len(words) == 8 and words[0].isdigit()]
    return client, float(rows[-1][BANDWIDTH]) if rows else None


def ucx(proof):
    ucx_calls(proof)
    program = ucx_program()
    if not program or not proof.on_gpu:
        return proof.leave_out("UCX's program", "this machine has no ucx_perftest (PyPI's libucx-cu13), or no GPU")
    figures = proof.table("ucx_perftest, puts of 64 MiB to the other device (mapped: of 4 MiB)", ["memory", "GiB/s"])
    for name, stack in [("the driver's", None), *UCX_STACKS.items()]:
        # UCX copies what it cannot share in pieces of some KiB, and asks the driver about each.
        client, speed = perftest(proof, program, stack, *((4 << 20, 1) if name == "mapped" else (64 << 20, 50)))
        proof.check(f"ucx_perftest over memory of {name}: goes on to the end", client.status == 0, client.last_words())
        figures.append([name, number(speed and speed * 1e6 / (1 << 30), 4 if name == "mapped" else 1)])
    return None


# ---- Access


def peers(proof):
    done = proof.python("peers_cost.py", limit=60, HIPMM_CONFIG=None, **software(proof, 4))
    rows = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    proof.check("what access costs is measured", done.status == 0 and len(rows) > 1, done.last_words())
    sizes = list(rows[0]["map_us"]) if rows else []
    figures = proof.table("access of other devices: microseconds of an allocation that is mapped anew, and of its release",
                          ["devices", "first grant, ms", "again, ms", *(f"{mib} MiB" for mib in sizes)])
    for row in rows:
        cells = [f"{number(taken)} + {number(given)}" for taken, given in row["map_us"].values()]
        figures.append([row["devices"], row["grant_ms"], row["grant_again_ms"], *cells])


def reach(proof):
    if proof.on_gpu and not needs_two(proof, "reach"):
        return
    peers(proof)
    ucx(proof)
    if not proof.on_gpu and not os.environ.get("NCCL_LIBRARY"):
        proof.leave_out("reach: NCCL", "needs GPUs, or a stand-in (NCCL_LIBRARY)")
        return
    nccl(proof)
    if proof.on_gpu:
        torch(proof)
