#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs that tests/cpp/rmm_own_tests.sh made of RMM's own tests, over several stacks, and says which tests
fail for another reason than a known one.

    rmm_own.py FOLDER          ends with 0 if nothing else failed
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Where hipmm differs on purpose: the test, and what hipmm does.
KNOWN = {
    "AsyncMRFabricTest.FabricHandlesSupport": "pools have no fabric handles",
    "PoolTest.ForceGrowth": "a pool asks its upstream for 2 MiB or more first; RMM's for half of its maximum",
    "PoolTest.NonAlignedPoolSize": "sizes that are no multiple of 256 bytes are rounded",
    "PinnedPoolTest.NonAlignedPoolSize": "sizes that are no multiple of 256 bytes are rounded",
}

# What RMM's cuda_memory_resource is.
STACKS = {
    "device": ["device"],
    "pool": ["statistics", "pool", "device"],
    "arena": ["arena", "device"],
}

# With a stack from which nothing can be had, a test must fail: else its memory is not hipmm's.
NOTHING = [{"type": "limiting", "limit": 1}, "device"]
CONTROL = "device_uvector_tests"


def programs(folder):
    return sorted(path for path in Path(folder).glob("*_tests") if os.access(path, os.X_OK))


def outcomes(output):
    """The tests of a program by name: OK, FAILED or SKIPPED; a test in which the program died is FAILED."""
    found = {name: "FAILED" for name in re.findall(r"^\[ RUN      \] (\S+)", output, re.M)}
    for outcome, name in re.findall(r"^\[ {1,7}(OK|FAILED|SKIPPED) \] (\S+?),? ", output, re.M):
        found[name] = outcome
    return found


class Tally:
    """What came of all tests over one stack."""

    def __init__(self):
        self.passed = self.skipped = 0
        self.known, self.failed = [], []
        self.right = set()

    def add(self, program, status, output):
        tests = outcomes(output)
        for name, outcome in tests.items():
            self.passed += outcome == "OK"
            if outcome == "OK" and name in KNOWN:
                self.right.add(name)
            self.skipped += outcome == "SKIPPED"
            if outcome == "FAILED":
                (self.known if name in KNOWN else self.failed).append(f"{program}: {name}")
        if not tests or status and "FAILED" not in tests.values():
            self.failed.append(f"{program}: status {status} after {len(tests)} tests: {output[-300:]}")

    def row(self, name):
        return [name, self.passed, self.skipped, len(self.known), len(self.failed)]


HEAD = ["stack", "passed", "skipped", "known", "failed"]


def run_all(folder, run, graph_file):
    """Yields a stack's name and its tally. `run(program, config)` gives the status and the output of a program."""
    past = set(KNOWN)  # what no stack fails
    for name, stack in STACKS.items():
        tally = Tally()
        config = graph_file(stack)
        for program in programs(folder):
            tally.add(program.name, *run(program, config))
        past &= tally.right
        yield name, tally
    control = Path(folder) / CONTROL
    if control.exists():
        status, _ = run(control, graph_file(NOTHING))
        tally = Tally()
        if status == 0:
            tally.failed.append(f"{CONTROL}: passes without memory of hipmm")
        tally.failed += [f"{name}: passes over each stack, so its row in KNOWN goes" for name in sorted(past)]
        yield "control: no memory, and known tests", tally


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:

        def graph_file(stack):
            path = Path(folder) / "graph.json"
            path.write_text(json.dumps({"stack": stack}))
            return path

        def run(program, config):
            devices = 2 if "multidevice" in program.name or "thrust" in program.name else 1
            environment = {"HIPMM_SOFTWARE": f"devices={devices},memory=16GiB,pageable_memory_access=true",
                           **os.environ, "HIPMM_CONFIG": str(config)}
            done = subprocess.run([program], env=environment, cwd=folder, stdin=subprocess.DEVNULL, timeout=120,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            return done.returncode, done.stdout

        print("%-36s %8s %8s %8s %8s" % tuple(HEAD))
        for name, tally in run_all(sys.argv[1], run, graph_file):
            print("%-36s %8d %8d %8d %8d" % tuple(tally.row(name)))
            for line in tally.failed:
                print(f"FAIL: {line}")
            failed += len(tally.failed)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
