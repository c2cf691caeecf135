# SPDX-License-Identifier: MIT
"""Measures what an operation takes, and how large a pool's records are, as a program grows; and draws it:

    growth.py BUILD [--json FILE]       measures; with --json the figures go into FILE alone
    growth.py --from FILE               writes such a file's figures, which another machine may have measured

Writes doc/growth-*.svg and the table in doc/performance.md. On the software device: its driver calls cost little, so
what grows is the pool's own work."""

import argparse
import json
import sys
from pathlib import Path

import plot
from measure import CORES, ROOT, Bench, machine, median, say, sentence, table, write_section

ROUNDS = 3
SECONDS = 0.2
SMALL = 4096
GIB = 1 << 30
SEGMENTS = {"type": "pool", "growth": "segments"}


def rounds(measure):
    return median(measure() for _ in range(ROUNDS))


def powers(first, last, factor):
    values = []
    while first <= last:
        values.append(first)
        first *= factor
    return values


def bench_ns(bench, workload, options, config=None, **environment):
    return rounds(lambda: bench.bench(workload, *options, config=config, **environment)["ns_per_op"])


def per_block(found):
    """What the process grew by, the device's own records included, and what the pool counts as its own."""
    return found["resident_bytes"] / found["live_count"], found["metadata_bytes"] / found["live_count"]


class Axis:
    """What grows: its values, how they are called, and for each what was measured."""

    def __init__(self, name, label, values, tick=plot.number):
        self.name, self.label, self.values, self.tick = name, label, values, tick
        self.times, self.metadata = {}, []

    def add(self, series, value, ns):
        say(f"{self.name} {self.tick(value)}: {series}: {ns:.1f} ns")
        self.times.setdefault(series, []).append((value, ns))

    def add_metadata(self, found):
        self.metadata.append(per_block(found))

    def draw(self, y_label):
        step = max(1, len(self.values) // 6)
        ticks = [(value, self.tick(value)) for value in self.values[::step]]
        grown, counted = ([(x, pair[i]) for x, pair in zip(self.values, self.metadata)] for i in (0, 1))
        panels = [plot.Panel("Time", self.label, y_label, ticks, list(self.times.items())),
                  plot.Panel("Records", self.label, "bytes per live block", ticks,
                             [("the process grew by", grown), ("the pool's own count", counted)])]
        plot.write(ROOT / "doc" / f"growth-{self.name}.svg", f"Time and records over {self.label}", panels)

    def rows(self):
        for i in (0, len(self.values) // 2, len(self.values) - 1):
            times = "; ".join(f"{name} {points[i][1]:,.1f}" for name, points in self.times.items())
            label = self.label[:-1] if self.values[i] == 1 else self.label
            yield [f"{self.tick(self.values[i])} {label}", times, *(f"{size:,.0f}" for size in self.metadata[i])]


def gibibytes(value):
    return f"{value // GIB} GiB" if value < 1024 * GIB else f"{value // (1024 * GIB)} TiB"


def over_live(bench):
    axis = Axis("live", "live blocks", [1000, 3000, 10000, 30000, 100000, 300000, 1000000])
    configs = [("hipmm", bench.default), ("hipmm, segments", bench.graph(SEGMENTS, "device"))]
    for live in axis.values:
        options = ["--live", live, "--max-size", SMALL, "--seconds", SECONDS]
        for name, config in configs:
            axis.add(name, live, bench_ns(bench, "random", options, config))
        axis.add(bench.host_name, live, rounds(lambda: bench.host("random", 1, live, SMALL, SECONDS)))
        axis.add_metadata(bench.metadata(1, 1, live, SMALL))
    return axis


def over_threads(bench):
    """More threads than cores wait for a core most of the time; what is counted is the time that they had one."""
    axis = Axis("threads", "threads", powers(1, 64, 2))
    for n in axis.values:
        share = min(1, CORES / n)
        options = ["--threads", n, "--seconds", SECONDS]
        for workload in ("pair", "random"):
            axis.add(f"{workload}, hipmm", n, share * bench_ns(bench, workload, options))
            host = rounds(lambda: bench.host(workload, n, seconds=SECONDS))
            axis.add(f"{workload}, {bench.host_name}", n, share * host)
        axis.add_metadata(bench.metadata(n, n, 1000 * n, SMALL))
    return axis


def over_streams(bench):
    axis = Axis("streams", "streams", powers(1, 256, 2))
    for n in axis.values:
        options = ["--streams", n, "--seconds", SECONDS]
        axis.add("cross, 64 KiB", n, bench_ns(bench, "cross", options))
        options += ["--live", 10000, "--max-size", SMALL]
        axis.add("random, live 10,000", n, bench_ns(bench, "random", options))
        axis.add_metadata(bench.metadata(1, n, 10000, SMALL))
    return axis


def over_memory(bench):
    """The same work in a pool of all the memory; and blocks that grow with the memory, 1,000 of up to a thousandth."""
    axis = Axis("memory", "device memory", powers(GIB, 1024 * GIB, 4), gibibytes)
    filled = bench.graph({"type": "pool", "initial_size": "90%"}, "device")
    configs = [("blocks grow too", bench.default), ("the same, segments", bench.graph(SEGMENTS, "device"))]
    for memory in axis.values:
        device = {"HIPMM_SOFTWARE": f"memory={memory}"}
        options = ["--live", 10000, "--max-size", SMALL, "--seconds", SECONDS]
        axis.add("the same small blocks", memory, bench_ns(bench, "random", options, filled, **device))
        options = ["--dist", "uniform", "--max-size", memory // 1000, "--seconds", SECONDS]
        for name, config in configs:
            axis.add(name, memory, bench_ns(bench, "random", options, config, **device))
        axis.add_metadata(bench.metadata(1, 1, 1000, memory // 1000, "uniform", **device))
    return axis


def measure(build):
    bench = Bench(build)
    on = machine(bench)
    try:
        return on, [over_live(bench), over_threads(bench), over_streams(bench), over_memory(bench)]
    finally:
        bench.close()


def axis_of(kept):
    axis = Axis(kept["name"], kept["label"], kept["values"], gibibytes if kept["name"] == "memory" else plot.number)
    axis.times, axis.metadata = kept["times"], kept["metadata"]
    return axis


def kept(axis):
    return {name: getattr(axis, name) for name in ("name", "label", "values", "times", "metadata")}


def write(on, axes):
    for axis in axes:
        axis.draw("ns an operation")
    rows = [row for axis in axes for row in axis.rows()]
    head = ["", " ns an operation", "the process grew by, bytes per live block", "the pool's own count"]
    write_section("growth", f"{sentence(on)}\n\n{table(head, rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", nargs="?")
    parser.add_argument("--json", metavar="FILE", type=Path)
    parser.add_argument("--from", metavar="FILE", type=Path, dest="file")
    chosen = parser.parse_args()
    if (chosen.build is None) == (chosen.file is None) or (chosen.file and chosen.json):
        parser.error("name a build to measure, or a file with --from")
    if chosen.file:
        try:
            found = json.loads(chosen.file.read_text())
            write(found["on"], [axis_of(axis) for axis in found["axes"]])
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"growth.py: {chosen.file} is no file that growth.py --json wrote: {error}")
    else:
        if chosen.json:
            try:
                chosen.json.write_text("")  # rather than fail when all is measured
            except OSError as error:
                sys.exit(f"growth.py: {error}")
        on, axes = measure(chosen.build)
        if chosen.json:
            chosen.json.write_text(json.dumps({"on": on, "axes": [kept(axis) for axis in axes]}, indent=1) + "\n")
        else:
            write(on, axes)


if __name__ == "__main__":
    main()
