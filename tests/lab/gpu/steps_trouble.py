# SPDX-License-Identifier: MIT
"""The steps of prove.py in which something is wrong, or short, or there is more than one of it: full devices, several
devices, and machines, drivers and configurations that are not right."""

import json
import shutil
import sys
from pathlib import Path

from proof import mib, number
from steps_programs import CUDA, compiled

# ---- Full


def oom(proof):
    proof.tap("test_full", proof.run([proof.bundle / "tests/devices/test_full"], 60))
    if not proof.on_gpu or not proof.has_module("torch"):
        return proof.leave_out("PyTorch", "needs CUDA and PyTorch")
    done = proof.python("torch_full.py", limit=60)
    found = done.json()
    if not proof.check("PyTorch: goes on to the end", done.status == 0 and found, done.last_words()):
        return None
    proof.check("PyTorch: fills three quarters and more", found["filled"] > 0.75, found)
    proof.check("PyTorch: says that memory is out", "out of memory" in found["said"].lower(), found["said"])
    proof.check("PyTorch: fails again while it is full", found["again"], found)
    proof.check("PyTorch: keeps data", found["intact"] and found["still_intact"], found)
    proof.check("PyTorch: gives what was let go", found["refilled"] >= found["pieces"] // 2 - 1, found)
    proof.check("PyTorch: goes on", found["large_sum_right"] and found["works_after"], found)
    proof.check("PyTorch: empty_cache() gives memory back", found["free_after"] > 0.9, found)
    proof.notes.append(f"PyTorch: {found['pieces']} pieces of {mib(found['piece_bytes'])} MiB, then: "
                       f"{found['said'][:160]}")
    return None


# ---- Several devices


def devices(proof):
    program = proof.bundle / "tests/devices/test_devices"
    if not program.exists():
        return proof.leave_out("devices", "is not in the bundle")
    return proof.tap("test_devices", proof.run([program], 45))


# ---- Races

# What tests/lab/gpu/races.c does wrong, over which stacks; None is right. A driver may refuse to use memory that its pool has back.
MISTAKES = [(None, ["pool", "device"]), (None, ["async"]), ("free_in_use", ["pool", "device"]),
            ("use_after_free", ["pool", "device"]), ("past_end", ["pool", "device"])]


def runtime_program(proof, name):
    """tests/lab/gpu/NAME.c for the machine's CUDA runtime, or for a HIP runtime that is the software device; and what hipmm then
    takes for the runtime."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        return proof.leave_out(name, "no C compiler here"), None
    command = [compiler, "-std=gnu11", "-O2", proof.bundle / f"tests/lab/gpu/{name}.c"]
    if proof.on_gpu:
        library = CUDA / "lib64"
        return compiled(proof, name, [*command, f"-L{library}", f"-Wl,-rpath,{library}", "-lcudart"]), proof.runtime
    library = proof.folder / "libamdhip64.so.5"
    shutil.copy(proof.bundle / "tests/preload/.libs/libamdhip64.so", library)
    return compiled(proof, name, [*command, "-DAPI=hip", library, f"-Wl,-rpath,{proof.folder}"]), str(library)


def reported(done):
    """The kinds of races that `hipmm run --check-streams` told of, by its last line."""
    last = next((line for line in done.err.splitlines() if line.startswith("hipmm: races: ")), "")
    return last.rpartition(": ")[2]


def torch_is_right(proof, name, *words, **environment):
    train = [proof.bundle / "tests/lab/gpu/torch_train.py", "--allocator", "native", "--steps", 8]
    plain = proof.python("torch_train.py", *train[1:], limit=60)
    done = proof.hipmm("run", "--strict", *words, "--check-streams", "--", sys.executable, "-B", *train, limit=90, **environment)
    losses = [(each.json() or {}).get("losses") for each in (plain, done)]
    rates = [(each.json() or {}).get("steps_per_second") for each in (plain, done)]
    proof.check(f"{name}: no report", done.status == 0 and not reported(done) and "race:" not in done.err,
                f"{done.last_words()}: {done.err[:4000]}")
    proof.check(f"{name}: the same losses", losses[0] and losses[0] == losses[1], f"{losses}")
    proof.notes.append(f"{name}: {rates[0]} steps a second by itself, {rates[1]} with --check-streams")


def races(proof):
    """hipmm run --check-streams: each mistake is told of, and nothing else."""
    program, runtime = runtime_program(proof, "races")
    for mistake, stack in MISTAKES if program else []:
        done = proof.hipmm("run", "--strict", "--check-streams", "--", program, mistake or "none", limit=60,
                           HIPMM_RUNTIME=runtime, HIPMM_CONFIG=str(proof.graph(*stack)))
        name = f"{mistake or 'no mistake'}, {stack[0]}"
        proof.check(f"{name}: runs to its end", "all is well" in done.out, done.last_words())
        proof.check(f"{name}: status", done.status == (66 if mistake else 0), f"{done.status}")
        proof.check(f"{name}: what is reported", reported(done) == (f"{mistake} 1" if mistake else ""), done.err[-2000:])
    if not proof.on_gpu or not proof.has_module("torch"):
        return proof.leave_out("PyTorch", "needs CUDA and PyTorch")
    torch_is_right(proof, "PyTorch on hipmm")
    torch_is_right(proof, "PyTorch's calls of CUDA", "--no-python", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    return None


# ---- Two processes

# The scenarios of tests/lab/gpu/ipc.c, besides `share`.
SHARED = ["twice", "stale", "altered", "owner_killed", "peer_killed", "forked", "full_table", "liar", "hostile"]


def ipc(proof):
    """A program shares mapped blocks with another process by cudaIpcGetMemHandle(), under hipmm run."""
    program, runtime = runtime_program(proof, "ipc")
    folder = proof.folder / "run"
    folder.mkdir(mode=0o700)
    exportable = proof.graph({"type": "pool", "growth": "mapped", "exportable": True}, "device")
    legacy = proof.graph({"type": "pool", "ipc": "legacy"}, "device")
    plain = proof.graph({"type": "pool", "growth": "mapped"}, "device")

    def attempt(scenario, graph, **more):
        return proof.hipmm("run", "--strict", "--config", graph, "--", program, scenario, limit=60, HIPMM_RUNTIME=runtime,
                           **{"XDG_RUNTIME_DIR": str(folder), **more})

    figures = proof.table("handles of blocks, in us", ["pool", "MiB", "get", "open", "close"])
    for name, graph in ("exportable", exportable), ("ipc: legacy", legacy):
        done = attempt("share", graph) if program else None
        rows = (done.json() or {}).get("blocks") if done else None
        proof.check(f"{name}: data", program and done.status == 0 and rows, done and done.last_words())
        figures += [[name, mib(row["bytes"]), *(number(row[key], 0) for key in ("get_us", "open_us", "close_us"))]
                    for row in rows or []]
    done = attempt("share", legacy, IPC_PLAIN_PEER="1") if program else None
    proof.check("ipc: legacy, and a peer without hipmm", done and done.status == 0, done and done.last_words())
    for scenario in SHARED if program else []:
        done = attempt(scenario, exportable)
        proof.check(scenario, done.status == 0 and done.out.endswith("good\n"), done.last_words())
    if program:
        says(proof, "not exportable", attempt("refused", plain), '"exportable": true', '"ipc": "legacy"', fails=False)
        says(proof, "too small", attempt("refused", exportable, IPC_BYTES="300000"), "1048576 bytes", fails=False)
        says(proof, "no folder", attempt("refused", exportable, XDG_RUNTIME_DIR=None), "XDG_RUNTIME_DIR", fails=False)
    exportable_costs(proof, {"": plain, "exportable": exportable})


def exportable_costs(proof, graphs):
    """What a chunk of its own for each large block costs, over the same logs."""
    figures = proof.table("logs, replayed three times", ["log", "pool", "requested MiB", "held MiB", "ratio", "first ns",
                                                         "later ns"])
    for log in sorted((proof.bundle / "traces").glob("*.csv.xz"), key=lambda file: file.stat().st_size)[:3]:
        for name, graph in graphs.items():
            done = proof.hipmm("replay", "--json", "--repeat", 3, "--config", graph, proof.unpacked(log), limit=20,
                               **({} if proof.on_gpu else {"HIPMM_SOFTWARE": "memory=64GiB"}))
            found = done.json()
            if proof.check(f"{log.name}, {name or 'not exportable'}", done.status == 0 and found, done.last_words()):
                figures.append([log.name.removesuffix(".csv.xz"), name or "not exportable", mib(found["peak_requested_bytes"]),
                                mib(found["peak_reserved_bytes"]), number(found["overhead"], 3), number(found["ns_per_op"]),
                                number(found["ns_per_op_warm"])])


# ---- Not right


def says(proof, name, done, *parts, fails=True):
    """It fails, or not, and says all of that."""
    said = " ".join((done.err + done.out).split())
    good = (done.status not in (0, 124) and done.status > 0) if fails else done.status == 0
    missing = [part for part in parts if part not in said]
    proof.check(name, good and not missing, f"status {done.status}, without {missing}: {said[-300:]}")


def bad_drivers(proof):
    work = ["bench", "--workload", "pair", "--seconds", "0.01", "--config", proof.graph("pool", "device")]
    fake = proof.bundle / "tests/lab/gpu/.libs/old_driver.so"
    stub = next((file for file in [Path("/usr/local/cuda/lib64/stubs/libcuda.so")] if file.exists()), None)

    def attempt(library, runtime="nvidia", **more):
        return proof.hipmm(*work, limit=30, HIPMM_RUNTIME=runtime, HIPMM_NVIDIA=f"library={library}", **more)

    says(proof, "no driver", attempt("libcuda-hidden.so.1"), "cannot be loaded", "libcuda-hidden.so.1")
    says(proof, "something else for a driver", attempt("libm.so.6"), "no cuGetProcAddress", "update it")
    says(proof, "a driver that lacks functions", attempt(fake), "lacks cuMemAlloc, cuEventRecord", "update the driver")
    if stub:
        says(proof, "the toolkit's stub", attempt(stub), "stub")
    else:
        proof.leave_out("the toolkit's stub", "there is none here")
    auto = attempt("libcuda-hidden.so.1", runtime=None)
    says(proof, "auto without a driver", auto, "no GPU found, using the software device", fails=False)
    proof.check("auto without a driver: one line", len(auto.err.splitlines()) == 1, auto.err)
    says(proof, "a runtime that there is not", proof.hipmm(*work, limit=30, HIPMM_RUNTIME="nvidea"), "nvidea")


def bad_devices(proof):
    work = ["bench", "--workload", "pair", "--seconds", "0.01", "--config", proof.graph("pool", "device")]
    log = proof.folder / "log.csv"
    log.write_text("Thread,Time,Action,Pointer,Size,Stream\n1,t,allocate,0x100,8,0x0\n1,t,free,0x100,8,0x0\n")
    says(proof, "a device that there is not", proof.hipmm("replay", "--device", 99, log, limit=30), "device 99")
    if proof.runtime != "nvidia":
        return proof.leave_out("CUDA_VISIBLE_DEVICES", "needs CUDA")
    for hidden in ("", "99", "-1"):
        done = proof.hipmm(*work, limit=30, CUDA_VISIBLE_DEVICES=hidden)
        says(proof, f'CUDA_VISIBLE_DEVICES="{hidden}"', done, "no device", f'CUDA_VISIBLE_DEVICES is "{hidden}"')
    says(proof, "a device that CUDA_VISIBLE_DEVICES hides",
         proof.hipmm("replay", "--device", 1, log, limit=30, CUDA_VISIBLE_DEVICES="0"), "device 1")
    return None


def bad_files(proof):
    """Each must be told of, where it is, by the command and, under PyTorch, in one line before PyTorch's error."""
    typo = proof.folder / "typo.json"
    typo.write_text(json.dumps({"stack": [{"type": "pool", "initail_size": "1MiB"}, "device"]}))
    syntax = proof.folder / "syntax.json"
    syntax.write_text('{"stack": ["pool",, "device"]}')
    large = proof.folder / "large.json"
    large.write_text(json.dumps({"stack": [{"type": "pool", "initial_size": "900TiB"}, "device"]}))
    wrong = [("missing", proof.folder / "nowhere.json", ["nowhere.json", "No such file"]),
             ("misspelt", typo, ["typo.json", "/stack/0/initail_size", 'did you mean "initial_size"']),
             ("not JSON", syntax, ["syntax.json"]),
             ("too large a pool", large, ["/stack/0/initial_size"])]
    torch = proof.on_gpu and proof.has_module("torch")
    for name, file, parts in wrong:
        done = proof.hipmm("bench", "--workload", "pair", "--seconds", "0.01", limit=30, HIPMM_CONFIG=str(file))
        says(proof, f"configuration {name}", done, *parts)
        if not torch:
            continue
        done = proof.python("torch_bad.py", limit=60, HIPMM_CONFIG=str(file))
        found = done.json() or {}
        said = done.err + (found.get("said") or "")
        proof.check(f"configuration {name}, PyTorch: an error is raised", found.get("raised"), done.last_words())
        missing = [part for part in parts if part not in said]
        proof.check(f"configuration {name}, PyTorch: says why", not missing, f"without {missing}: {said[-300:]}")
        lines = [line for line in done.err.splitlines() if line.startswith("hipmm:")]
        proof.check(f"configuration {name}, PyTorch: in a line", len(lines) <= 1, lines)
    if not torch:
        proof.leave_out("configurations under PyTorch", "needs CUDA and PyTorch")


def bad(proof):
    bad_drivers(proof)
    bad_devices(proof)
    bad_files(proof)
