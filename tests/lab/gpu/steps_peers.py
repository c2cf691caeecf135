# SPDX-License-Identifier: MIT
"""The steps of prove.py for two GPUs in one process. A CUDA program, PyTorch and CuPy run by themselves, on hipmm, and
under `hipmm run`. Whatever a program may do with the runtime's own memory it may do with hipmm's."""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

from proof import mib, number
from steps_programs import SHARDED, needs, served, ways_by_turns

AT_ONCE = 4  # processes

COUNT = """import ctypes
driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
print(-1 if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) else count.value)
"""

PEERS = {"type": "device", "peers": [{"device": 0}, {"device": 1}]}
STACKS = {
    "pool": ["pool", "device"],
    "mapped": [{"type": "pool", "growth": "mapped"}, "device"],
    "segments": [{"type": "pool", "growth": "segments"}, "device"],
    "device": ["device"],
    "async": ["async"],
    "peers": ["pool", PEERS],
}
UNORDERED = ("mapped", "async")  # stacks whose memory lacks the order that copies between devices have by default


class Way:
    """One way to run a program: where its memory comes from, the stack, and which device it uses first."""

    def __init__(self, how, stack=None, home=0, note="", **environment):
        self.how, self.stack, self.home, self.environment = how, stack, home, environment
        self.name = ", ".join(filter(None, [how, stack, "device 1 first" if home else "", note]))

    def variables(self, proof):
        if not self.stack:
            return self.environment
        return {"HIPMM_CONFIG": str(proof.graph(*STACKS[self.stack])), "HIPMM_LOG": "info", **self.environment}

    def may_be_old(self, what):
        """Whether the copy may find old data, since nothing orders it: doc/guide.md, "Several devices"."""
        return self.stack in UNORDERED and what.startswith("order between devices")


NATIVE, OURS, UNDER = "by itself", "on hipmm", "under hipmm run"


def needs_two(proof, step, *modules):
    """Whether the machine has two GPUs and the modules; the step is left out if not."""
    if not needs(proof, step, *modules):
        return False
    count = proof.run([sys.executable, "-c", COUNT], 30).out.strip() or "none"
    if not count.isdigit() or int(count) < 2:
        proof.leave_out(step, f"needs two GPUs, and there is {count}")
        return False
    return True


def run_all(proof, ways, start):
    """Calls start(way, variables) for each way, several at the same time. Returns each way's Done."""
    variables = [way.variables(proof) for way in ways]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(ways, pool.map(start, ways, variables)))


def is_expected(what, said, wanted):
    """`wanted` has the results of the program by itself, with the same device first: where the runtime refuses a call,
    hipmm may refuse it with the same error. Without `wanted`, everything must be right."""
    if wanted is None:
        return said == "right" or what.startswith("losses")
    return said in ("right", wanted.get(what))


def judge(proof, done, way, wanted, figures):
    found = done.json() or {}
    tried = {**dict.fromkeys(wanted or {}, "was not tried"), **found}
    bad = {what: said for what, said in tried.items()
           if not is_expected(what, said, wanted) and not (way.may_be_old(what) and said.endswith("of the data is old"))}
    right = sum(said == "right" for said in found.values())
    proof.check(f"{way.name}: goes on to the end", done.status == 0 and found, done.last_words())
    some = "; ".join(f"{what}: {said}" for what, said in list(bad.items())[:5])
    proof.check(f"{way.name}: does what the runtime's memory does", found and not bad,
                f"{len(bad)} of {len(tried)} do not. {some}")
    figures.append([way.name, number(right, 0), number(len(tried) - right - len(bad), 0), number(len(bad), 0),
                    number(done.seconds, 1)])


def is_a_code(what):
    """Whether the result is an error code or a text that must be equal in all ways, instead of "right"."""
    return what.startswith("losses") or "PeerAccess" in what or "can access its peer" in what


def write_results(proof, step, outcomes):
    """All results, and the end of each standard error, in STEP.json beside prove.json."""
    whole = {way.name: {"status": done.status, "results": done.json(), "stderr": done.err[-3000:]}
             for way, done in outcomes.items()}
    try:
        (proof.bundle / f"{step}.json").write_text(json.dumps(whole, indent=1))
    except OSError as error:
        proof.notes.append(f"the results are not written: {error}")


def judge_all(proof, step, outcomes):
    """The first way is that of the program by itself, with device 0 first."""
    write_results(proof, step, outcomes)
    first, *_ = outcomes
    figures = proof.table("two devices", ["memory", "right", "as by itself", "wrong", "seconds"])
    by_itself = {way.home: done.json() for way, done in outcomes.items() if way.how == NATIVE}
    for way, done in outcomes.items():
        judge(proof, done, way, by_itself.get(way.home), figures)
    attempts = {what: said for what, said in (by_itself[first.home] or {}).items() if not is_a_code(what)}
    refused = {what: said for what, said in attempts.items() if said != "right"}
    proof.check(f"{first.name}: most of it is possible", attempts and len(refused) < len(attempts) / 5, refused)
    proof.notes += [f"not possible {first.name}: {what}: {said}" for what, said in list(refused.items())[:6]]


def check_served(proof, outcomes):
    """`hipmm run` served each program."""
    for way, done in outcomes.items():
        if way.how == UNDER:
            proof.check(f"{way.name}: its memory is hipmm's", served(done.err), done.err[-1000:])


def check_growth(proof, outcomes, growth):
    """What a pool takes by itself with two devices."""
    for way, done in outcomes.items():
        if way.how == OURS and way.stack == "pool":
            proof.check(f"{way.name}: the log says: growth {growth}", f"growth {growth}" in done.err, done.err[-1000:])


SEVERAL = "segments: this process has several devices"


# ---- A CUDA program

PROGRAM_WAYS = [
    Way(NATIVE),
    Way(OURS, "pool"),
    Way(OURS, "segments"),
    Way(OURS, "mapped"),
    Way(OURS, "device"),
    Way(OURS, "async"),
    Way(UNDER, "pool"),
    Way(UNDER, "segments"),
    Way(UNDER, "mapped"),
    Way(UNDER, "device"),
    Way(UNDER, "async"),
    Way(UNDER, "peers"),
    Way(NATIVE, home=1),
    Way(OURS, "pool", home=1),
    Way(UNDER, "pool", home=1),
]


def compile_program(proof, compiler, name, *words):
    """Compiles tests/lab/gpu/peers*.c with CUDA's shared runtime. Returns None, with a failed check, on failure."""
    program = proof.folder / name
    sources = sorted((proof.bundle / "tests/lab/gpu").glob("peers*.c"))
    command = [compiler, "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I/usr/local/cuda/include", "-o", program, *sources, *words,
               "-L/usr/local/cuda/lib64", "-Wl,-rpath,/usr/local/cuda/lib64", "-lcudart", "-lpthread"]
    done = proof.run(command, 60)
    return program if proof.check(f"{name} compiles", done.status == 0, done.err[-1000:]) else None


def compile_both(proof, compiler):
    """The program with memory of the runtime, and with memory of hipmm's C API."""
    library = proof.bundle / "lib/libhipmm.so.0"
    link = proof.folder / "libhipmm.so.0"
    if not link.exists():
        link.symlink_to(library)
    return (compile_program(proof, compiler, "peers"),
            compile_program(proof, compiler, "peers-hipmm", "-DPEERS_HIPMM", f"-I{proof.bundle / 'include'}", library,
                            f"-Wl,-rpath-link,{library.parent}", f"-Wl,-rpath,{link.parent}"))


def program(proof):
    step = "peers-c"
    if not needs_two(proof, step):
        return None
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        return proof.leave_out(step, "no C compiler here")
    plain, ours = compile_both(proof, compiler)
    if not plain or not ours:
        return None

    def start(way, variables):
        words = ["--home", way.home]
        if way.how == UNDER:
            return proof.hipmm("run", "--strict", "--report", "--", plain, *words, limit=40, **variables)
        return proof.run([ours if way.how == OURS else plain, *words], 40, **variables)

    outcomes = run_all(proof, PROGRAM_WAYS, start)
    judge_all(proof, step, outcomes)
    check_served(proof, outcomes)
    check_growth(proof, outcomes, SEVERAL)
    return None


# ---- PyTorch and CuPy

UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}

TORCH_WAYS = [
    Way(NATIVE),
    Way(OURS, "pool"),
    Way(OURS, "async"),
    Way(UNDER, "pool", **UNCACHED),
    Way(UNDER, "async", **UNCACHED),
    Way(UNDER, "pool", note="PyTorch's cache on it"),
    Way(OURS, "pool", home=1),
]

CUPY_WAYS = [
    Way(NATIVE),
    Way(OURS, "pool"),
    Way(OURS, "mapped"),
    Way(OURS, "async"),
    Way(UNDER, "pool"),
    Way(OURS, "pool", home=1),
]


def script(proof, file, native, way, variables):
    """`native` is the script's name for the framework's own allocator."""
    words = [proof.bundle / "tests/lab/gpu" / file, "--allocator", "hipmm" if way.how == OURS else native, "--home", way.home]
    command = [sys.executable, "-B", *words]
    variables = {"OMP_NUM_THREADS": "6", **variables}
    if way.how == UNDER:
        return proof.hipmm("run", "--strict", "--no-python", "--report", "--", *command, limit=80, **variables)
    return proof.run(command, 80, **variables)


def run_scripts(proof, ways, file, native):
    return run_all(proof, ways, lambda way, variables: script(proof, file, native, way, variables))


def torch(proof):
    if needs_two(proof, "peers-torch", "torch"):
        outcomes = run_scripts(proof, TORCH_WAYS, "torch_peers.py", "native")
        judge_all(proof, "peers-torch", outcomes)
        check_served(proof, outcomes)
        check_growth(proof, outcomes, "mapped")


def cupy(proof):
    if needs_two(proof, "peers-cupy", "cupy"):
        outcomes = run_scripts(proof, CUPY_WAYS, "cupy_peers.py", "pool")
        judge_all(proof, "peers-cupy", outcomes)
        check_served(proof, outcomes)
        check_growth(proof, outcomes, SEVERAL)


def ranks(proof):
    """Two ranks of torchrun over one graph: each has the device of its local rank and writes a report, and the merged
    report adds up."""
    if not needs_two(proof, "ranks", "torch"):
        return
    graph = proof.graph("statistics", "pool", "device", report=str(proof.folder / "rank.%r.json"),
                        current_device="local_rank")
    launcher = [sys.executable, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    done = proof.run([*launcher, proof.bundle / "tests/lab/gpu/torch_ranks.py"], 80, HIPMM_CONFIG=str(graph))
    lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    said = sorted(lines, key=lambda line: line["rank"])
    if not proof.check("two ranks train", done.status == 0 and len(said) == 2, done.last_words()):
        return
    proof.check("the same losses in both", said[0]["losses"] == said[1]["losses"], f"{said}")
    devices = [(line["rank"], line["torch"], line["hipmm"]) for line in said]
    proof.check("each has the device of its local rank", devices == [(0, 0, 0), (1, 1, 1)], f"{devices}")
    merged = proof.hipmm("run", "--merge", "--json", proof.folder / "rank.*.json", limit=20)
    found = merged.json() or {}
    rows, totals = found.get("memory", []), found.get("totals", [])
    if not proof.check("a report of each", [row["rank"] for row in rows] == [0, 1], merged.last_words()):
        return
    proof.check("each is of its device", [row["device"] for row in rows] == [0, 1], f"{rows}")
    proof.check("each used memory", all(row["peak_requested_bytes"] > 1 << 24 for row in rows), f"{rows}")
    sums = [{key: sum(row[key] for row in rows) for key in total if key.endswith("_bytes")} for total in totals]
    wanted = [{key: total[key] for key in one} for total, one in zip(totals, sums)]
    proof.check("the merged report adds up", len(totals) == 1 and sums == wanted, f"{totals}")
    figures = proof.table("two ranks", ["rank", "device", "peak requested MiB", "peak reserved MiB"])
    for row in rows:
        figures.append([row["rank"], row["device"], mib(row["peak_requested_bytes"]), mib(row["peak_reserved_bytes"])])


def sharded(proof):
    if needs_two(proof, "sharded", "torch"):
        ways_by_turns(proof, SHARDED, "--turns", 100, "--seconds", 60)
