# SPDX-License-Identifier: MIT
"""The step of prove.py that measures hipmm beside other libraries' allocators, which tests/lab/gpu/allocators makes types of
hipmm: all by the same commands, by turns, as many rounds for each. What it found is written as peers.json, which
tests/lab/bench/peers.py takes into doc/performance.md."""

import concurrent.futures
import json
import os
import statistics
import time

from proof import LATE, number
from steps_hipmm import ROOMY, host

# By the names that the tables use. hipmm's default stack comes first.
OURS = "hipmm"
STACKS = {
    OURS: ["pool", "device"],
    "hipmm arena": ["arena", "device"],
    "RMM pool": [{"type": "rmm", "kind": "pool"}, "device"],
    "RMM arena": [{"type": "rmm", "kind": "arena"}, "device"],
    "RMM binning": [{"type": "rmm", "kind": "binning"}, "device"],
    "driver pool": ["rmm_async"],
    "PyTorch": ["torch"],
    "PyTorch exp.": [{"type": "torch", "expandable_segments": True}],
}
OF_HIPMM = (OURS, "hipmm arena")
EXPANDABLE = "PyTorch exp."

# RMM's arena takes all of its memory at once, and its binning differs from its pool for small blocks alone.
REPLAYED = [OURS, "RMM pool", "RMM arena", "driver pool", "PyTorch", EXPANDABLE]
FITTED = [OURS, EXPANDABLE, "PyTorch", "RMM pool", "driver pool"]
BENCHED = [OURS, "hipmm arena", "RMM pool", "RMM arena", "RMM binning", "driver pool", "PyTorch"]
HOST = "mimalloc"

# Goals: the least budget over what a log requests at once; ns of a pair by its threads.
LEAST = {"gpt2_train": 1.004, "resnet50_train": 1.005, "llm_generate": 1.002, "cupy_frames": 1.05}
LEAST_OF_OTHERS = 1.01
PAIR_NS = {1: 11, 4: 13, 16: 14}
PAIR_NOISE = 1.25
RANDOM_OF_HOST, MANY_OF_HOST = 2, 1.5

LIVE, MANY = 1000, 10000
WORKLOADS = [("pair", 1, LIVE), ("pair", 4, LIVE), ("pair", 16, LIVE), ("random", 1, LIVE), ("random", 4, LIVE),
             ("random", 16, LIVE), ("random", 1, MANY)]
ROUNDS = 3
LONG_LOG = 32 << 20  # bytes of a log that is replayed in one round

# Seconds that must be left for the replays after a further round of the bench; and for a further round of the replays.
AFTER_BENCH, FOR_REPLAYS = 160, 100


class Allocators:
    """Which of them are there, and how to run them."""

    def __init__(self, proof):
        self.proof, self.folder = proof, proof.bundle / "allocators"
        cuda = f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/lib64"  # for PyTorch's library, if it finds no other
        self.environment = {"HIPMM_PLUGIN_PATH": f"{proof.bundle / 'plugins'}:{self.folder}",
                            "LD_LIBRARY_PATH": f"{proof.environment['LD_LIBRARY_PATH']}:{cuda}"}
        if not proof.on_gpu:
            self.environment.update(ROOMY)
        missing = {} if proof.on_gpu else dict.fromkeys(("rmm", "rmm_async", "torch"), "needs a GPU")
        self.names = [name for name in STACKS if self._is_there(name, missing)]

    def versions(self):
        """What the figures of other libraries depend on, as far as this machine tells."""
        found = []
        if (file := self.folder / "rmm_version").exists():
            found.append(f"RMM {file.read_text().strip()}")
        torch = self.proof.python_text("import torch; print(torch.__version__)")
        found += [f"PyTorch {torch.out.strip()}"] if torch.status == 0 else []
        return ", ".join(found)

    def _is_there(self, name, missing):
        first = STACKS[name][0]
        plugin = first if isinstance(first, str) else first["type"]
        if name not in OF_HIPMM and plugin not in missing:
            missing[plugin] = self._why_missing(plugin)
        if missing.get(plugin):
            self.proof.leave_out(name, missing[plugin])
            return False
        done = self.hipmm(name, "bench", "--workload", "pair", "--seconds", "0.01s", limit=30)
        return self.proof.check(f"{name}: works here", done.status == 0, done.last_words())

    def _why_missing(self, plugin):
        """PyTorch's plugin is built over the PyTorch of this machine."""
        if plugin == "torch":
            script = self.proof.bundle / "tests/lab/gpu/allocators/allocators.sh"
            done = self.proof.run(["sh", script, "torch", self.folder], 90)
            return None if done.status == 0 else done.last_words()
        return None if (self.folder / f"{plugin}.so").exists() else "is not in the bundle"

    def among(self, names):
        return [name for name in names if name in self.names]

    def hipmm(self, name, command, *words, limit):
        graph = self.proof.graph(*STACKS[name])
        return self.proof.hipmm(command, "--json", "--config", graph, *words, limit=limit, **self.environment)

    def measured(self, what, name, done, good):
        """A check of hipmm. What another allocator does not do, or does too slowly, is left out with its words."""
        if done.status == LATE or (not good and not name.startswith(OURS)):
            self.proof.leave_out(f"{what}: {name}", done.last_words())
            return False
        return self.proof.check(f"{what}: {name}", good, done.last_words())

    def has_time(self, turn, seconds):
        return turn == 0 or self.proof.step_ends - time.monotonic() > seconds


GOALS = ["figure", "of", "hipmm", "at most", "", ""]


def goal_of(name):
    return LEAST.get(name, LEAST_OF_OTHERS)


def ratio_text(value):
    return number(value, 3)


class Goals:
    """What must hold of hipmm: a table of its own, since a figure that misses its goal is no failure of the step."""

    def __init__(self, proof):
        self.proof, self.counts = proof, {True: 0, False: 0, None: 0}
        self.rows = proof.table("goals of the default stack", GOALS)

    def add(self, figure, of, ours, bound, why, digits):
        holds = None if ours is None or bound is None else ours <= bound
        self.counts[holds] += 1
        word = {True: "holds", False: "does not hold", None: "not measured"}[holds]
        self.rows.append([figure, of, number(ours, digits), number(bound, digits), why, word])

    def end(self):
        self.proof.notes.append(f"goals: {self.counts[True]} hold, {self.counts[False]} do not hold, "
                                f"{self.counts[None]} not measured")
        self.proof.notes.append("not measured here: a large block's instructions (tests/cmd/counts.sh), trainings by turns "
                                "(the step torch), pair at 64 threads and the adaptors' cost (make figures)")


# ---- Logs


def replay_all(allocators, logs):
    """By turns: for each log and round, each allocator in a new process. The median of the times, the most held."""
    found = {}
    for log, plain in logs:
        names = allocators.among(REPLAYED)
        for turn in range(1 if plain.stat().st_size > LONG_LOG else ROUNDS):
            for name in names if allocators.has_time(turn, FOR_REPLAYS) else []:
                done = allocators.hipmm(name, "replay", "--repeat", 3, plain, limit=40)
                said = done.json() or {}
                if allocators.measured(f"{log}, replay", name, done, done.status == 0 and said.get("failures") == 0):
                    found.setdefault((log, name), []).append(said)
    return {key: of_rounds(said) for key, said in found.items()}


def of_rounds(said):
    return {"first": statistics.median(one["ns_per_op"] for one in said),
            "later": statistics.median(one["ns_per_op_warm"] for one in said),
            "held": max(one["overhead"] for one in said)}


def fit_all(allocators, logs, at_once):
    """Nothing is timed, so they run beside each other; the long ones first."""
    wanted = [(log, plain, name) for log, plain in reversed(logs) for name in allocators.among(FITTED)]
    found = {}

    def fit(job):
        log, plain, name = job
        return log, name, allocators.hipmm(name, "replay", "--fit", plain, limit=120)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for log, name, done in pool.map(fit, wanted):
            said = done.json() or {}
            good = done.status in (0, 1) and said.get("needs_bytes", 0) >= said.get("peak_requested_bytes", 1)
            if allocators.measured(f"{log}, the least budget", name, done, good):
                found[log, name] = said["overhead"]
    return found


def show_logs(proof, allocators, logs, passes, fits):
    names = allocators.among(REPLAYED)
    times = proof.table("logs, ns an operation, first pass / later passes", ["log", *names])
    held = proof.table("logs, the most held over the most requested, while memory is plentiful", ["log", *names])
    least = proof.table("logs, the least budget over the most requested", ["log", *allocators.among(FITTED)])
    for log, _ in logs:
        found = [passes.get((log, name), {}) for name in names]
        times.append([log, *(f"{number(one.get('first'), 0)} / {number(one.get('later'), 0)}" for one in found)])
        held.append([log, *(ratio_text(one.get("held")) for one in found)])
        least.append([log, *(ratio_text(fits.get((log, name))) for name in allocators.among(FITTED))])


def best_other(figures, key):
    """The least figure of the others, and whose it is."""
    there = [(value, name) for (what, name), value in figures.items()
             if what == key and name not in OF_HIPMM and value is not None]
    return min(there, default=(None, "the others"))


def log_goals(goals, logs, passes, fits):
    first = {key: one["first"] for key, one in passes.items()}
    later = {key: one["later"] for key, one in passes.items()}
    for log, _ in logs:
        goals.add("least budget", log, fits.get((log, OURS)), goal_of(log), "the goal", 3)
        bound, name = best_other(fits, log)
        goals.add("least budget", log, fits.get((log, OURS)), bound, name, 3)
        bound, name = best_other(first, log)
        goals.add("first pass", log, first.get((log, OURS)), bound, name, 0)
        bound, name = best_other(later, log)
        goals.add("later passes", log, later.get((log, OURS)), bound and bound / 3, f"a third of {name}", 0)
        ours, theirs = passes.get((log, OURS), {}), passes.get((log, EXPANDABLE), {})
        goals.add("held", log, ours.get("held"), theirs.get("held"), EXPANDABLE, 3)


# ---- The bench


def bench_one(proof, allocators, name, kind, threads, live):
    if name == HOST:
        return host(proof, kind, threads, live)
    of_random = ["--live", live] if kind == "random" else []
    done = allocators.hipmm(name, "bench", "--workload", kind, "--threads", threads, *of_random, "--seconds", "0.3s",
                            limit=20)
    said = done.json() or {}
    what = words_of((kind, threads, live))
    return said["ns_per_op"] if allocators.measured(what, name, done, said.get("failures") == 0) else None


def bench_all(proof, allocators):
    """The median of the rounds, as many for each as there is time for."""
    names = [HOST] if (proof.bundle / "lib/libmimalloc.so.2").exists() else []
    if not names:
        proof.leave_out(HOST, "lib/libmimalloc.so.2 is not in the bundle")
    names += allocators.among(BENCHED)
    rounds, began = [], time.monotonic()
    while len(rounds) < ROUNDS:
        a_round = (time.monotonic() - began) / max(1, len(rounds))
        if not allocators.has_time(len(rounds), AFTER_BENCH + a_round):
            break
        rounds.append({(workload, name): bench_one(proof, allocators, name, *workload)
                       for workload in WORKLOADS for name in names})
    found = {}
    for key in rounds[0]:
        there = [one[key] for one in rounds if one[key] is not None]
        found[key] = statistics.median(there) if there else None
    return names, found, len(rounds)


def words_of(workload):
    kind, threads, live = workload
    return f"{kind}, {threads} thread{'s' if threads > 1 else ''}" + (f", {live:,} live" if live == MANY else "")


def show_bench(proof, names, found, rounds):
    rows = proof.table(f"the bench, ns an operation, rounds: {rounds}", ["workload", *names])
    for workload in WORKLOADS:
        rows.append([words_of(workload), *(number(found.get((workload, name))) for name in names)])


def bench_goals(goals, found):
    for workload in WORKLOADS:
        kind, threads, live = workload
        ours, of_host = found.get((workload, OURS)), found.get((workload, HOST))
        times = MANY_OF_HOST if live == MANY else RANDOM_OF_HOST
        if kind == "pair":
            goals.add("bench", words_of(workload), ours, PAIR_NOISE * PAIR_NS[threads], "as it was, and noise", 1)
        else:
            goals.add("bench", words_of(workload), ours, of_host and times * of_host, f"{times} x {HOST}", 1)


# ---- The step


def by_row(figures, name_of=lambda what: what):
    """{(what, allocator): figure} as {what: {allocator: figure}}."""
    rows = {}
    for (what, name), value in figures.items():
        rows.setdefault(name_of(what), {})[name] = value
    return rows


def card_of(proof):
    driver = proof.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 20)
    return driver.out.splitlines()[0].replace(", ", ", driver ") if driver.status == 0 and driver.out else proof.card()


def allocators(proof):
    there = Allocators(proof)
    packed = sorted((proof.bundle / "traces").glob("*.csv.xz"), key=lambda file: file.stat().st_size)
    logs = [(file.name.removesuffix(".csv.xz"), proof.unpacked(file)) for file in packed]
    proof.check("logs", logs, "there is none in the bundle")
    names, bench, rounds = bench_all(proof, there)
    passes = replay_all(there, logs)
    fits = fit_all(there, logs, 6 if proof.on_gpu else 2)
    show_bench(proof, names, bench, rounds)
    show_logs(proof, there, logs, passes, fits)
    goals = Goals(proof)
    bench_goals(goals, bench)
    log_goals(goals, logs, passes, fits)
    goals.end()
    result = proof.bundle / "peers.json"
    result.write_text(json.dumps({
        "date": time.strftime("%Y-%m-%d"), "revision": proof.revision().split()[0], "card": card_of(proof),
        "versions": there.versions(), "command": "sh prove.sh allocators",
        "rounds": f"The bench: the median of {rounds} rounds for each; logs: of up to {ROUNDS}, as many for each",
        "bench": by_row(bench, words_of), "passes": by_row(passes), "least": by_row(fits), "goals": goals.rows}, indent=1) + "\n")
    proof.notes.append(f"{result}; in a clone: tests/lab/bench/peers.py {result}")
