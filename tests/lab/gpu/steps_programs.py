# SPDX-License-Identifier: MIT
"""The steps of prove.py that run other people's programs on hipmm: PyTorch, CuPy, and a CUDA program that knows nothing
of it."""

import shutil
import sys
from pathlib import Path

import rmm_own
from proof import mib, number


def needs(proof, step, *modules):
    """Whether the machine has what the step is about; says so if not."""
    if not proof.on_gpu:
        proof.leave_out(step, "needs CUDA")
        return False
    missing = [module for module in modules if not proof.has_module(module)]
    if missing:
        proof.leave_out(step, f"this machine has no {', '.join(missing)}")
    return not missing


def holds(proof, name, script, *words):
    """A check for each thing that the script found to hold, or not."""
    done = proof.python(script, *words, limit=60)
    found = done.json()
    if proof.check(f"{name}: goes on to the end", done.status == 0 and found, done.last_words()):
        for what, held in found.items():
            proof.check(f"{name}: {what}", held)


# ---- PyTorch

# What the steps are, and who takes turns. The first once more shows how far two differ that are the same. Steps
# over graphs are short: more turns, of more steps.
GRAPHS = ["--model", "graphs", "--turn", 10, "--turns", 60]
TURNS = [
    ("GPT-2 small, all alike", [], ["native", "hipmm", "native"]),
    ("GPT-2 small, all alike", [], ["expandable", "hipmm"]),
    ("GPT-2 small, a length drawn for each", ["--varied"], ["native", "hipmm"]),
    ("GPT-2 small, a length drawn for each", ["--varied"], ["expandable", "hipmm"]),
    ("graphs of all sizes", GRAPHS, ["native", "hipmm", "native"]),
    ("graphs of all sizes", GRAPHS, ["expandable", "hipmm"]),
]

# What both hold is the peak of the training and some units of mapping; whose peak falls better into units is chance.
AS_LITTLE = 1.01
AS_FAST = 0.98  # the median of the turns of two that are as fast is within a percent or two of 1


def by_turns(proof, mode, words, allocators, limit, rounding=0, **environment):
    """For each training but the first: the first, itself, how many times as fast it is, and the quartiles. `rounding` is the
    part of a loss by which it may differ, where sums have no order."""
    done = proof.python("torch_turns.py", *allocators, *words, limit=limit, **environment)
    found = done.json()
    name = f"{mode}, beside {allocators[0]}"
    if not proof.check(f"{name}: trains", done.status == 0 and found, done.last_words()):
        return
    theirs, *others = found["trainings"]
    for one, as_fast, quartiles in zip(others, found["as_fast"], found["quartiles"]):
        which = one["allocator"]
        losses = [*zip(theirs["losses"], one["losses"], strict=True)]
        proof.check(f"{name}: {which} has the same losses", all(abs(a - b) <= rounding * abs(a) for a, b in losses),
                    f"{theirs['losses']} and {one['losses']}")
        if which in ("hipmm", "run"):
            proof.check(f"{name}: {which} is as fast", as_fast >= AS_FAST, f"{as_fast} times")
            proof.check(f"{name}: {which} holds as little", one["most_bytes_held"] <= AS_LITTLE * theirs["most_bytes_held"],
                        f"{one['most_bytes_held']} and {theirs['most_bytes_held']} bytes")
        yield theirs, one, as_fast, " to ".join(number(q, 3) for q in quartiles)


def torch(proof):
    if not needs(proof, "torch", "torch"):
        return
    figures = proof.table("two trainings by turns",
                          ["steps", "1 with", "2 with", "steps/s 1", "steps/s 2", "2 over 1", "quartiles", "held MiB 1",
                           "held MiB 2", "last loss"])
    for mode, words, allocators in TURNS:
        for theirs, one, as_fast, quartiles in by_turns(proof, mode, words, allocators, 100):
            both = theirs, one
            figures.append([mode, *(each["allocator"] for each in both),
                            *(number(each["steps_per_second"], 2) for each in both), number(as_fast, 3),
                            quartiles, *(mib(each["most_bytes_held"]) for each in both), number(one["losses"][-1], 6)])


# Programs of several kinds, 40 seconds each: by themselves, with hipmm.torch.use(), and under `hipmm run`.
WAYS = ["native", "hipmm", "run"]
PROGRAMS = [
    ("LoRA", ["--model", "lora", "--turn", 2]),
    ("reinforcement by turns", ["--model", "reinforce", "--turn", 1]),
    ("3D U-Net", ["--model", "volumes", "--turn", 5]),
    ("beam search", ["--model", "beam", "--turn", 1]),
    ("graph network", ["--model", "graphs", "--turn", 10]),
]
SHARDED = [("FSDP on two GPUs", ["--model", "llama", "--turn", 2, "--ranks", 2])]
BRIDGE = {"HIPMM_TORCH": "bridge"}


def ways_by_turns(proof, programs, *words):
    """A row for each program and way."""
    proof.run([sys.executable, "-c", "import hipmm.torch; hipmm.torch.use()"], 60, **BRIDGE)  # is compiled once
    figures = proof.table("by turns", ["program", "with", "steps/s", "over native", "quartiles", "held MiB", "reserved MiB",
                                       "allocated MiB", "least budget MiB"])

    def add(name, one, *ratio):
        figures.append([name, one["allocator"], number(one["steps_per_second"], 2), *ratio, *map(mib, (
            one["most_bytes_held"], one["most_bytes_reserved"], one["most_bytes_allocated"], one.get("least_budget")))])

    for name, own in programs:
        for i, (theirs, one, as_fast, quartiles) in enumerate(by_turns(proof, name, [*own, *words], WAYS, 110, 1e-3, **BRIDGE)):
            if not i:
                add(name, theirs, "", "")
            add(name, one, number(as_fast, 3), quartiles)


def programs(proof):
    if needs(proof, "programs", "torch"):
        ways_by_turns(proof, PROGRAMS, "--turns", 60, "--seconds", 22, "--budget")


def serving(proof):
    """An engine that sleeps and wakes, with PyTorch alone, over hipmm.torch.pool(), with use(), and under `hipmm run`."""
    if needs(proof, "serving", "torch"):
        done = proof.python("torch_serving.py", limit=100, **BRIDGE)
        proof.check("the same tokens after each sleep, and memory released", done.status == 0, done.last_words())
        proof.notes += done.out.splitlines()


def spill(proof):
    """Sort and join of three times the memory that they may have."""
    if not needs(proof, "spill", "torch"):
        return
    done = proof.python("torch_out_of_core.py", limit=110, **BRIDGE)
    found = done.json()
    if not proof.check("all keys are right", done.status == 0 and found, done.last_words()):
        return
    moved = [found[name] for name in ("spilled_bytes", "restored_bytes")]
    proof.check("most of the data was moved", min(moved) >= found["bytes"] - found["limit_bytes"], f"{found}")
    figures = proof.table("a sort of two tables and their join, in movable buffers",
                          ["data MiB", "limit MiB", "most held MiB", "moved out MiB", "moved back MiB", "sorts, s", "all, s"])
    figures.append([*(mib(found[name]) for name in ("bytes", "limit_bytes", "held_bytes")), *map(mib, moved),
                    number(found["sort_seconds"], 2), number(found["seconds"], 2)])


def hooks(proof):
    if needs(proof, "hooks", "torch"):
        holds(proof, "in force", "torch_hooks.py")
        holds(proof, "beside PyTorch's own", "torch_hooks.py", "--beside")


# ---- CuPy and Numba


def cupy(proof):
    if not needs(proof, "cupy", "cupy"):
        return
    figures = proof.table("sorting and grouping on four streams",
                          ["allocator", "seconds", "held MiB", "in CuPy's pool MiB", "result"])
    results = {}
    for allocator in ("pool", "hipmm"):
        done = proof.python("cupy_work.py", "--allocator", allocator, limit=60)
        found = done.json() or {}
        proof.check(f"{allocator}: runs", done.status == 0 and found.get("result"), done.last_words())
        results[allocator] = found.get("result")
        figures.append([allocator, number(found.get("seconds"), 3), mib(found.get("held_bytes")),
                        mib(found.get("used_bytes")), str(found.get("result"))[:16]])
    if all(results.values()):
        proof.check("the same results", results["pool"] == results["hipmm"], f"{results}")


def numba(proof):
    if needs(proof, "numba", "numba"):
        holds(proof, "Numba", "numba_work.py")


# ---- A CUDA program


def served(report):
    """Whether calls of the report's table stayed with hipmm: cudaMalloc… or cuMemAlloc…  CALLS  PASSED ON."""
    lines = [line.split() for line in report.splitlines() if line.strip().startswith(("cudaMalloc", "cuMemAlloc"))]
    counts = [words[1:3] for words in lines if len(words) > 2 and words[1].isdigit() and words[2].isdigit()]
    return any(int(calls) > int(passed) for calls, passed in counts)


def under_run(proof, name, key, script, *words, **environment):
    """The program by itself and under `hipmm run`: the same results, as `key` names them. Returns the report."""
    plain = proof.python(script, *words, limit=60, **environment)
    command = ["run", "--strict", "--no-python", "--report", "--", sys.executable, "-B", proof.bundle / "tests/lab/gpu" / script, *words]
    under = proof.hipmm(*command, limit=60, **environment)
    said = [done.json() or {} for done in (plain, under)]
    results = [one.get(key) for one in said]
    proof.check(f"{name}: runs by itself", plain.status == 0 and results[0], plain.last_words())
    proof.check(f"{name}: runs under hipmm run", under.status == 0 and results[1], under.last_words())
    proof.check(f"{name}: the same results", results[0] == results[1], f"{results}")
    note = f"{name}: by itself {plain.seconds:.2f} s, under hipmm {under.seconds:.2f} s"
    rates = [one.get("steps_per_second") for one in said]
    proof.notes += [note + (f"; {rates[0]} and {rates[1]} steps a second" if all(rates) else "")]
    return under.err


def run(proof):
    """The programs of the steps before, which know nothing of hipmm, by what they ask of the runtime."""
    if needs(proof, "PyTorch", "torch"):
        report = under_run(proof, "PyTorch", "losses", "torch_train.py", "--allocator", "native", "--steps", 15,
                           PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        proof.check("PyTorch: its memory is hipmm's", served(report), report[-2000:])
    if needs(proof, "CuPy", "cupy"):
        report = under_run(proof, "CuPy", "result", "cupy_work.py", "--allocator", "pool", "--rounds", 10)
        proof.check("CuPy: its memory is hipmm's", served(report), report[-2000:])
    if needs(proof, "JAX", "jax"):
        report = under_run(proof, "JAX", "losses", "jax_work.py", XLA_PYTHON_CLIENT_ALLOCATOR="cuda_async",
                           XLA_PYTHON_CLIENT_MEM_FRACTION=".2")
        proof.check("JAX: its memory is hipmm's", served(report), report[-2000:])


CUDA = Path("/usr/local/cuda")


def both(proof, name, program, *words):
    """The program by itself and under `hipmm run`: the same words, and its memory is hipmm's. Returns the report."""
    plain = proof.run([program, *words], 60)
    under = proof.hipmm("run", "--strict", "--report", "--", program, *words, limit=60)
    proof.check(f"{name}: runs by itself", plain.status == 0 and "all is well" in plain.out, plain.last_words())
    proof.check(f"{name}: runs under hipmm run", under.status == 0, under.last_words())
    proof.check(f"{name}: says the same", plain.out == under.out, f"{plain.out!r} and {under.out!r}")
    proof.check(f"{name}: its memory is hipmm's", served(under.err), under.err[-2000:])
    proof.notes += [f"{name}: by itself {plain.seconds:.2f} s, under hipmm {under.seconds:.2f} s"]
    proof.notes += [line for line in plain.err.splitlines() if "addresses are" in line]
    return under.err


def compiled(proof, name, command):
    """The program that the compiler makes, or None; `command` ends with the sources and libraries."""
    program = proof.folder / name
    done = proof.run([*command, "-o", program], 120)
    return program if proof.check(f"{name}: compiles", done.status == 0, done.last_words()) else None


def driver(proof):
    """Programs that call NVIDIA's driver: by themselves, and through a runtime that is linked into them."""
    if not needs(proof, "driver"):
        return
    here = proof.bundle / "tests/lab/gpu"
    compiler, nvcc = shutil.which("gcc") or shutil.which("cc"), shutil.which("nvcc") or CUDA / "bin/nvcc"
    if not compiler:
        return proof.leave_out("driver", "no C compiler here")
    base = [compiler, "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-pthread"]
    program = compiled(proof, "driver", [*base, here / "driver.c", "-ldl"])
    if program:
        both(proof, "cuGetProcAddress()", program)
        both(proof, "dlsym()", program, "dlsym")
    library = CUDA / "lib64/libcudart_static.a"
    if library.exists():
        program = compiled(proof, "a static runtime", [*base, f"-I{CUDA}/include", here / "preload.c", library, "-ldl",
                                                       "-lrt", "-lm"])
        if program:
            both(proof, "a static runtime", program)
            both(proof, "a static runtime, reset", program, "--reset")
            without = proof.hipmm("run", "--strict", "--no-driver", "--report", "--", program, limit=60)
            proof.check("--no-driver: runs, and is not served", without.status == 0 and "no call came" in without.err,
                        without.last_words())
    if not Path(nvcc).exists():
        return proof.leave_out("nvcc", "this machine has none")
    program = compiled(proof, "nvcc", [nvcc, "-O2", "-ccbin", compiler, here / "static.cu"])
    if program:
        report = both(proof, "nvcc", program)
        both(proof, "nvcc, reset", program, "--reset")
        proof.notes += report.splitlines()
    return None


def preload(proof):
    """tests/lab/gpu/preload.c, linked to CUDA's shared runtime, once as it is and once under `hipmm run`."""
    source = proof.bundle / "tests/lab/gpu/preload.c"
    if not source.exists() or proof.hipmm("run", "--help").status != 0:
        return proof.leave_out("preload", "this build has no hipmm run")
    if not needs(proof, "preload"):
        return None
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        return proof.leave_out("preload", "no C compiler here")
    program = proof.folder / "preload"
    done = proof.run([compiler, "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I/usr/local/cuda/include", "-o", program,
                      source, "-L/usr/local/cuda/lib64", "-Wl,-rpath,/usr/local/cuda/lib64", "-lcudart", "-lpthread",
                      "-ldl", "-lm"], 60)
    if not proof.check("compiles", done.status == 0, done.last_words()):
        return None
    plain = proof.run([program], 60)
    proof.check("runs by itself", plain.status == 0, plain.last_words())
    under = proof.hipmm("run", "--strict", "--report", "--", program, limit=60)
    proof.check("runs under hipmm run", under.status == 0 and "all is well" in under.out, under.last_words())
    proof.check("its memory is hipmm's", served(under.err), under.err[-2000:])
    proof.check("the loader takes what is put in front", "ld.so" not in under.err, under.err[:500])
    reset = proof.hipmm("run", "--strict", "--", program, "--reset", limit=60)
    proof.check("ends with its device reset", reset.status == 0, reset.last_words())
    proof.notes += [f"by itself {plain.seconds:.2f} s, under hipmm {under.seconds:.2f} s"]
    proof.notes += under.err.splitlines()
    return None


# ---- RMM


def rmm(proof):
    """RMM's containers, README and own tests over hipmm: what tests/cpp/rmm.sh and rmm_own_tests.sh put into the bundle."""
    folder = proof.bundle / "tests/lab/gpu/rmm_own"
    names = ("rmm_containers", "rmm_readme", "thrust", "rmm_thrust")
    programs = [program for name in names if (program := proof.bundle / "tests/lab/gpu" / name).exists()]
    if not folder.is_dir() and not programs:
        return proof.leave_out("rmm", "the bundle has no programs of RMM: see tests/lab/gpu/README.md")
    if not needs(proof, "rmm"):
        return None
    for program in programs:
        done = proof.run([program], 60)
        proof.check(f"{program.name}: ends well", done.status == 0, done.last_words())
        for line in done.out.splitlines():
            if line.startswith(("ok ", "not ok ")):
                proof.check(f"{program.name}: {line.removeprefix('not ').removeprefix('ok ')}", line[0] == "o")
    if not folder.is_dir():
        return None
    rows = proof.table("RMM's own tests", rmm_own.HEAD)

    def run(program, config):
        done = proof.run([program], 100, HIPMM_CONFIG=str(config))
        return done.status, done.out + done.err

    for stack, tally in rmm_own.run_all(folder, run, lambda stack: proof.graph(*stack)):
        rows.append(tally.row(stack))
        proof.check(f"RMM's own tests: {stack}", not tally.failed, "; ".join(tally.failed)[:4000])
    return None
