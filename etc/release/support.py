#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What hipmm works with, from the table support.tsv:

  support.py          writes doc/support.md
  support.py check    fails where the page, CI, or a limit in the sources differs from the table

Called by hand and by tests/check-docs.sh."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc/support.md"
LEVELS = {"ci": "each change", "hand": "by hand", "compiled": "compiled only", "no": "not tried"}

# What a step of .ci/run is called on the page, and the words of .ci/run that show that the step is there
STEPS = {
    "chroot": ("all tests in a bare {}", "(table chroot)"),
    "aarch64": ("aarch64 in a bare {}", "(table aarch64)"),
    "clang": ("unit tests and plugins with clang {}", "(table clang)"),
    "hip": ("plugins with {}", "(table hip)"),
    "cuda-12": ("unit tests and plugins with {}", "(table cuda-12)"),
    "cuda-13": ("plugins with {}", "(table cuda-13)"),
    "rmm": ("RMM's containers over hipmm", "RMM_INCLUDE=pip"),
}
DEBIAN = {"bookworm": "Debian 12", "trixie": "Debian 13"}

# The oldest or newest of a subject, where the sources have it as a limit
LIMITS = [
    ("Python", "3.10", "pyproject.toml", r'requires-python = ">=(.*)"'),
    ("CUDA, to compile", "12.0", "m4/cuda.m4", r'older than CUDA (\d+)"'),
    ("HIP, to compile", "5.2", "m4/hip_headers.m4", r"as HIP (\d+\.\d+) does"),
    ("PyTorch", "2.8", "python/hipmm/bridge/torch.cpp", r"needs PyTorch (\S+) or later"),
    ("PyTorch", "2.15", "python/hipmm/bridge/torch.cpp", r"PyTorch \S+ to (\d+\.\d+);"),
    ("RMM, under hipmm", "25.4", "python/hipmm/bridge/rmm.cpp", r"RMM (\d+\.\d+) to"),
    ("RMM, under hipmm", "26.10", "python/hipmm/bridge/rmm.cpp", r"RMM \d+\.\d+ to (\d+\.\d+);"),
]


def rows():
    for number, line in enumerate((ROOT / "etc/release/support.tsv").read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 5 or columns[2] not in LEVELS or not columns[0] or not columns[1]:
                sys.exit(f"etc/release/support.tsv:{number}: a row has five columns with tabs between, the third of them {', '.join(LEVELS)}")
            of, version, level, by, note = columns
            step, _, argument = by.partition(" ")
            if level == "ci" and step not in STEPS:
                sys.exit(f"etc/release/support.tsv:{number}: .ci/run has no step {step!r}; there are {', '.join(STEPS)}")
            if level in ("hand", "compiled") and not re.fullmatch(r"20\d\d-\d\d-\d\d", by):
                sys.exit(f"etc/release/support.tsv:{number}: the fourth column is the date, as in 2026-11-29")
            yield of, version, level, by, step, argument, note


def page():
    text = """# What hipmm works with

This page is made by `etc/release/support.py` from `etc/release/support.tsv`, from which `.ci/run` takes the versions that it
tests. The column *tested* says how a version was tested, and *by* names the step of `.ci/run`, or the day:

- *each change*: `.ci/run` tests the version before a change is taken.
- *by hand*: the tests that the remarks name ran once, on that day.
- *compiled only*: the compiler accepted the sources without a warning on that day, and nothing ran.
- *not tried*: the version may work, unless the remarks say that it does not. Versions that are not listed were not tried.

[abi.md](abi.md) says when a version is dropped.
"""
    last = None
    for of, version, level, by, step, argument, note in rows():
        if of != last:
            text += f"\n## {of}\n\n| version | tested | by | remarks |\n|---|---|---|---|\n"
            last = of
        if level == "ci":
            by = STEPS[step][0].format(DEBIAN.get(argument, f"`{argument}`" if "=" in argument else argument))
        text += f"| {version} | {LEVELS[level]} | {by} | {note} |\n"
    return text


def check():
    wrong = []
    table = list(rows())
    if not PAGE.exists() or PAGE.read_text() != page():
        wrong.append("doc/support.md differs from etc/release/support.tsv; run: python3 etc/release/support.py")
    for of, version, file, pattern in LIMITS:
        named = [row[1] for row in table if row[0] == of]
        found = re.search(pattern, (ROOT / file).read_text())
        if not any(re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", name) for name in named):
            wrong.append(f"etc/release/support.tsv: {of} has no row for {version}, the limit in {file}")
        if not found or found[1] not in (version, version.removesuffix(".0")):
            wrong.append(f"{file}: the limit of {of} is {found and found[1]}, and that of etc/release/support.py {version}; change support.tsv with it")
    ci = ROOT / ".ci/run"
    if ci.exists():  # not in a distribution
        steps = ci.read_text()
        for step in {row[4] for row in table if row[2] == "ci"}:
            if STEPS[step][1] not in steps:
                wrong.append(f"etc/release/support.tsv: {step} is no step of .ci/run, which lacks {STEPS[step][1]}")
        for step in re.findall(r"\(table ([\w-]+)\)", steps):
            if not any(row[2] == "ci" and row[4] == step and row[5] for row in table):
                wrong.append(f".ci/run: the step {step} has no row in etc/release/support.tsv")
        workflow = (ROOT / ".github/workflows/ci.yml").read_text()
        oldest = next(row[1] for row in table if row[4] == "chroot").lower().replace(" ", ":")
        if f"image: {oldest}\n" not in workflow and f"image: {oldest} " not in workflow:
            wrong.append(f".github/workflows/ci.yml: the image is not {oldest}, the oldest system in etc/release/support.tsv")
    return wrong


if sys.argv[1:] == ["check"]:
    found = check()
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
if sys.argv[1:]:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
PAGE.write_text(page())
