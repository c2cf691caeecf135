# SPDX-License-Identifier: MIT
"""The figures of other libraries' allocators, which the step `allocators` of tests/lab/gpu measures:

    peers.py FILE       takes the peers.json of that step into peers.json beside this file, and writes its tables; a file that
                        lacks an allocator or a log of the one before is refused, but with --fewer behind it
    peers.py            writes the tables of peers.json into doc/performance.md: all of them, and the short one at its top
    peers.py --check    whether they are what the document has; tests/check-docs.sh runs it

figures.py reads peers.json for the columns of other allocators."""

import json
import math
import sys
from pathlib import Path

from measure import DOCUMENT, section, table, write_section

FILE = Path(__file__).with_name("peers.json")
KEYS = ("date", "revision", "card", "versions", "command", "rounds", "bench", "passes", "least", "goals")
WORDS = {"driver pool": "CUDA's pool", "PyTorch exp.": "PyTorch, expandable segments"}


def load(path=FILE):
    try:
        found = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"peers.py: {path}: {error}") from error
    if not isinstance(found, dict) or (missing := [key for key in KEYS if key not in found]):
        raise SystemExit(f"peers.py: {path} is no file of the step `allocators`: it lacks {', '.join(missing)}")
    return found


def lost(before, after):
    """What a new file lacks of the one before: rows, and allocators of a row that had a figure."""
    for key in ("bench", "passes", "least"):
        for row, figures in before[key].items():
            names = [name for name, value in figures.items() if value is not None and after[key].get(row, {}).get(name) is None]
            if names:
                yield f"{key}, {row}: {', '.join(names)}"


def dumps(peers):
    """JSON with a line for each row of a table."""
    lines = []
    for key in KEYS:
        text = json.dumps(peers[key])
        if isinstance(peers[key], dict):
            rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in peers[key].items())
            text = f"{{\n{rows}\n }}"
        elif isinstance(peers[key], list):
            rows = ",\n".join(f"  {json.dumps(row)}" for row in peers[key])
            text = f"[\n{rows}\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def number(value, digits):
    return "" if value is None else f"{value if digits else math.floor(value + 0.5):,.{digits}f}"


def grid(first, figures, cell):
    """A row for each key, a column for each allocator that has a figure."""
    names = list(dict.fromkeys(name for row in figures.values() for name in row))
    head = [first, *(WORDS.get(name, name) for name in names)]
    return table(head, [[key, *(cell(row.get(name)) for name in names)] for key, row in figures.items()])


def pass_cell(found):
    return f"{number(found['first'], 0)} / {number(found['later'], 0)}" if found else ""


def goal_rows(peers):
    """The goals that do not hold, as the step printed them."""
    return [row[:5] for row in peers["goals"] if row[5] == "does not hold"]


def short_of(peers):
    """What the page says first."""
    names = ["hipmm", "RMM pool", "PyTorch", "PyTorch exp.", "mimalloc"]
    bench, logs = peers["bench"], peers["passes"]

    def of_bench(*workloads):
        return lambda name: " / ".join(filter(None, (number(bench[workload].get(name), 0) for workload in workloads)))

    def least_of(log):
        return lambda name: number(peers["least"].get(log, {}).get(name), 3)

    rows = [("4 KiB, 1 thread / 16 threads, ns", of_bench("pair, 1 thread", "pair, 16 threads")),
            ("random sizes, 1 thread / 16 threads, ns", of_bench("random, 1 thread", "random, 16 threads")),
            ("a training's log, first pass / later, ns", lambda name: pass_cell(logs.get("gpt2_train", {}).get(name))),
            ("the memory with which that training runs, over what it requests", least_of("gpt2_train")),
            ("the same for CuPy on columns of uneven length", least_of("cupy_frames"))]
    head = ["", *(WORDS.get(name, name) for name in names[:-1]), "mimalloc, on the host"]
    return table(head, [[words, *map(cell, names)] for words, cell in rows])


def text_of(peers):
    verdicts = [row[5] for row in peers["goals"]]
    parts = [
        f"Measured on {peers['date']}: revision {peers['revision']}, {peers['card']}, {peers['versions']}; "
        f"`{peers['command']}`. {peers['rounds']}.",
        "ns an operation:", grid("workload", peers["bench"], lambda ns: number(ns, 1)),
        "Logs, first pass / later passes, ns an operation:", grid("log", peers["passes"], pass_cell),
        "The least budget is the smallest maximum with which the whole log runs, over the most that it requests at once:",
        grid("log", peers["least"], lambda ratio: number(ratio, 3)),
        "The most held over the most requested, while memory is plentiful (RMM's arena takes half of the device at once):",
        grid("log", peers["passes"], lambda found: number(found and found["held"], 3)),
        f"Of the goals of this run {verdicts.count('holds')} hold, and these do not:",
        table(["figure", " of", "hipmm", "at most", " why"], goal_rows(peers)),
    ]
    return "\n\n".join(parts)


SECTIONS = {"short": short_of, "peers": text_of}


def main():
    words = sys.argv[1:]
    if words == ["--check"]:
        peers = load()
        for name, text in SECTIONS.items():
            if section(name).strip() != text(peers).strip():
                raise SystemExit(f"doc/performance.md: the section `{name}` is not what {FILE.name} says; run "
                                 "tests/lab/bench/peers.py")
        return
    if words[1:] not in ([], ["--fewer"]) or words[:1] in (["-h"], ["--help"], ["--fewer"]):
        raise SystemExit(__doc__)
    peers = load(*words[:1])
    if words:
        if words[1:] == [] and (missing := list(lost(load(), peers))):
            raise SystemExit("\n  ".join([f"peers.py: {words[0]} lacks figures that {FILE.name} has; --fewer drops them", *missing]))
        FILE.write_text(dumps(peers))
    for name, text in SECTIONS.items():
        write_section(name, text(peers))


if __name__ == "__main__":
    main()
