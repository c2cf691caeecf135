# SPDX-License-Identifier: MIT
"""Measures the tables of doc/performance.md and writes them there. figures.sh runs it:

    figures.py BUILD TRACE...

Everything runs in turns, round after round, so that what else the machine does meets all alike."""

import sys
import time
from pathlib import Path

import peers
from measure import RUNTIME, Bench, machine, median, say, sentence, table, write_section

ROUNDS = 5
SECONDS = 0.3
THREADS = [1, 2] if RUNTIME == "software" else [1, 4, 16]
LIVE = [1000, 10000]

PEERS = peers.load()
TODAY = time.strftime("%Y-%m-%d")
EXPANDABLE = "PyTorch exp."


def peers_of(figures, names, cell):
    """The columns of these allocators, in a row of peers.json that may be missing."""
    return [peers.number(cell(figures[name]), digits) if name in figures and cell(figures[name]) else ""
            for name, digits in names.items()]


def words_of(key):
    """A workload, as peers.json names it."""
    kind, n, live = key if len(key) == 3 else (*key, LIVE[0])
    return f"{kind}, {n} thread{'s' * (n > 1)}" + (f", {live:,} live" if live > LIVE[0] else "")


def ns(value):
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def against(value, most):
    """A ratio or a difference, and what it should be at most."""
    return [f"{value:.2f}" if most < 10 else f"{value:.1f}", f"{most:g}", "holds" if value <= most else "**behind**"]


class Rounds:
    """What each case took, round by round."""

    def __init__(self):
        self.values = {}

    def add(self, key, value):
        self.values.setdefault(key, []).append(value)

    def of(self, key):
        return median(self.values[key])

    def ratio(self, key, base):
        return median(a / b for a, b in zip(self.values[key], self.values[base]))


def play_rounds(bench):
    rounds = Rounds()
    for i in range(ROUNDS):
        say(f"round {i + 1} of {ROUNDS}")
        for n in THREADS:
            rounds.add(("pair", n), bench.bench("pair", "--threads", n, "--seconds", SECONDS)["ns_per_op"])
            rounds.add(("host pair", n), bench.host("pair", n, seconds=SECONDS))
        for n in [1] if RUNTIME == "software" else THREADS:
            for live in LIVE if n == 1 else LIVE[:1]:
                options = ["--threads", n, "--live", live, "--seconds", SECONDS]
                rounds.add(("random", n, live), bench.bench("random", *options)["ns_per_op"])
                rounds.add(("host random", n, live), bench.host("random", n, live, seconds=SECONDS))
        rounds.add(("cross", 1), bench.bench("cross", "--seconds", SECONDS)["ns_per_op"])
    return rounds


# ---- Work against the host's allocator


def work_row(rounds, label, key, target):
    host = ("host " + key[0], *key[1:])
    cells = [label, ns(rounds.of(key)), ns(rounds.of(host)), f"{rounds.ratio(key, host):.2f}"]
    if not target:
        return cells + ["", "", ""]
    words, base, most = target
    value, *rest = against(rounds.ratio(key, base or host), most)
    return cells + [f"{words}: {value}", *rest]


def work_table(bench, rounds):
    host = bench.host_name
    rows = []
    for n in THREADS:
        target = (f"of {host}", None, 2) if n in (1, 16) else None
        if n > 1 and RUNTIME == "software":
            target = ("of its own at 1 thread", ("pair", 1), 1.15)
        rows.append(work_row(rounds, f"pair 4 KiB, {n} thread{'s' * (n > 1)}", ("pair", n), target))
    for key in sorted(key for key in rounds.values if key[0] == "random"):
        _, n, live = key
        target = (f"of {host}", None, 2 if n == 16 else 1.5) if n in (1, 16) else None
        if live > LIVE[0]:
            target = (f"of its own at live {LIVE[0]:,}", ("random", 1, LIVE[0]), 1.5)
        rows.append(work_row(rounds, f"random, live {live:,}, {n} thread{'s' * (n > 1)}", key, target))
    rows.append(["cross 64 KiB, 4 streams", ns(rounds.of(("cross", 1)))] + [""] * 5)
    head = ["workload", "hipmm, ns", f"{host}, ns", "hipmm over it", "goal", "at most", " "]
    return table(head, rows) if RUNTIME == "software" else gpu_table(head, rows, rounds)


def gpu_table(head, rows, rounds):
    names = dict.fromkeys(("RMM pool", "RMM binning", "driver pool", "PyTorch"), 0)
    keys = [("pair", n) for n in THREADS] + sorted(key for key in rounds.values if key[0] == "random") + [("cross", 1)]
    rows = [row + peers_of(PEERS["bench"].get(words_of(key), {}), names, float) for key, row in zip(keys, rows)]
    return table(head + [peers.WORDS.get(name, name) for name in names], rows)


# ---- Traces


def trace_name(path):
    return path.name.split(".")[0]


def calls_of(run, *names):
    """Calls an operation; 0 where the runtime does not count them, and the columns are not shown."""
    return sum((run["runtime_calls"] or {}).get(name, 0) for name in names) / max(run["ops"], 1)


def trace_measure(bench, path, config):
    say(f"trace {trace_name(path)} through {Path(config).stem}")
    file = bench.trace(path)
    runs = [bench.bench("replay", "--trace", file, "--seconds", SECONDS, config=config) for _ in range(ROUNDS)]
    first, later = bench.replay(file, 1, config), bench.replay(file, 4, config)
    events = first["allocations"] + first["frees"]
    return {
        "cold": median(run["ns_per_op_cold"] for run in runs),
        "warm": median(run["ns_per_op"] for run in runs),
        "mapped": f"{median(calls_of(run, 'hipMemMap') * events for run in runs):,.0f}",
        "asked": f"{median(calls_of(run, 'hipEventRecord', 'hipEventQuery') for run in runs):.2f}",
        "requested": first["peak_requested_bytes"],
        "held": [one["peak_reserved_bytes"] / one["peak_requested_bytes"] for one in (first, later)],
    }


def trace_time_table(bench, rounds, traces):
    pair = rounds.of(("host pair", 1))
    names = dict.fromkeys(("RMM pool", "driver pool", "PyTorch", EXPANDABLE), 0)
    rows = []
    for name, found in traces.items():
        cells = [name, ns(found["cold"]), ns(found["warm"])]
        if RUNTIME == "software":
            cells += [found["mapped"], found["asked"], *against(found["warm"] / pair, 4)]
        else:
            theirs = peers_of(PEERS["passes"].get(name, {}), names, lambda one: one["later"])
            cells += against(found["warm"], 40)[1:] + theirs
        rows.append(cells + [TODAY])
    head = ["trace", "first pass, ns", "later passes, ns"]
    if RUNTIME == "software":
        head += ["chunks mapped a pass, later", "event calls an operation, later", f"later over {bench.host_name}'s pair",
                 "at most", " "]
    else:
        head += ["later at most", " ", *(peers.WORDS.get(name, name) for name in names)]
    return table(head + ["measured"], rows)


def trace_held_table(traces):
    """At most as much as PyTorch's expandable segments held."""
    names = dict.fromkeys((EXPANDABLE, "PyTorch", "RMM pool", "driver pool"), 3)
    rows = []
    for name, found in traces.items():
        theirs = PEERS["passes"].get(name, {})
        most = theirs.get(EXPANDABLE, {}).get("held")
        held = max(round(ratio, 3) for ratio in found["held"])
        verdict = ("holds" if held <= most else "**behind**") if most else ""
        rows.append([name, f"{found['requested'] / (1 << 20):,.0f}", *(f"{ratio:.3f}" for ratio in found["held"]), verdict,
                     *peers_of(theirs, names, lambda one: one["held"]), TODAY])
    head = ["trace", "peak requested, MiB", "first pass", "four passes", " ", "at most, as PyTorch's expandable segments"]
    return table(head + [peers.WORDS.get(name, name) for name in list(names)[1:]] + ["measured"], rows)


def trace_segments_table(traces):
    rows = []
    for name, found in traces.items():
        times = [ns(found["cold"]), ns(found["warm"])]
        rows.append([name, *times, *(f"{ratio:.3f}" for ratio in found["held"]), TODAY])
    head = ["trace, segments", "first pass, ns", "later passes, ns", "held, first pass", "held, four passes", "measured"]
    return table(head, rows)


# ---- The other sub-allocators


def sub_allocator_table(bench):
    """A thread's own arena, and bins in front of the pool, beside the pool alone."""
    bins = {"type": "binning", "min_size_exponent": 8, "max_size_exponent": 22}
    configs = [bench.default, bench.graph("arena", "device"), bench.graph(bins, "pool", "device")]
    rows = []
    for workload, options in (("pair", []), ("random", ["--live", LIVE[0]])):
        for n in THREADS:
            runs = [[one["ns_per_op"] for one in bench.compare(workload, configs, "--threads", n, "--seconds", "0.5",
                                                               *options)] for _ in range(ROUNDS)]
            found = [median(run[i] for run in runs) for i in range(len(configs))]
            ratios = [f"{median(run[i] / run[0] for run in runs):.2f}" for i in range(1, len(configs))]
            rows.append([f"{workload}, {n} thread{'s' * (n > 1)}", *(ns(value) for value in found), *ratios])
    return table(["workload", "pool, ns", "arena, ns", "binning, ns", "arena over pool", "binning over pool"], rows)


# ---- Adaptors


def adaptor_table(bench):
    adaptors = [("only forwards", "forward", 3), ("`statistics`", "statistics", 10),
                ("`limiting`", {"type": "limiting", "limit": "8GiB"}, None),
                ("`logging` into /dev/null", {"type": "logging", "file": "/dev/null"}, 40)]
    configs = [bench.default] + [bench.graph(adaptor, "pool", "device") for _, adaptor, _ in adaptors]
    runs = [[one["ns_per_op"] for one in bench.compare("pair", configs, "--seconds", "1")] for _ in range(ROUNDS)]
    rows = [["none", ns(median(run[0] for run in runs)), "", "", ""]]
    for i, (label, _, most) in enumerate(adaptors, start=1):
        more = median(run[i] - run[0] for run in runs)
        verdict = against(more, most)[1:] if most else ["", ""]
        rows.append([label, ns(median(run[i] for run in runs)), f"{more:.1f}", *verdict])
    return table(["adaptor over the pool", "pair, ns", "it adds, ns", "at most", " "], rows)


def main():
    if len(sys.argv) < 3:
        raise SystemExit("usage: figures.py BUILD TRACE...")
    bench = Bench(sys.argv[1])
    on = machine(bench)
    try:
        rounds = play_rounds(bench)
        segments = bench.graph({"type": "pool", "growth": "segments"}, "device")
        paths = [Path(word) for word in sys.argv[2:]]
        traces, in_segments = ({trace_name(path): trace_measure(bench, path, config) for path in paths}
                               for config in (bench.default, segments))
        write_section(f"{RUNTIME} work", f"{sentence(on)}\n\n{work_table(bench, rounds)}")
        write_section(f"{RUNTIME} traces", trace_time_table(bench, rounds, traces), keeps_rows=True)
        write_section(f"{RUNTIME} held", trace_held_table(traces), keeps_rows=True)
        write_section(f"{RUNTIME} segments", trace_segments_table(in_segments), keeps_rows=True)
        write_section(f"{RUNTIME} sub-allocators", sub_allocator_table(bench))
        write_section(f"{RUNTIME} adaptors", adaptor_table(bench))
    finally:
        bench.close()


if __name__ == "__main__":
    main()
