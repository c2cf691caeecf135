#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation test: takes waits, locks, orders of atomics, checks, comparisons and bounds away from a copy of the tree,
one at a time, builds what contains the file, and runs the tests of tests.txt, which must notice.

    tests/mutation/mutate.py run [--seconds 600] [--seed 1] [--kinds wait,check,…] [FILE-PATTERN…]
    tests/mutation/mutate.py report [--diffs]
    tests/mutation/mutate.py sites [FILE-PATTERN…]      how many there are
    tests/mutation/mutate.py again                      the survivors once more, after new tests

The order is drawn from the seed. Results are kept, one line each, in --folder (build-mutation), which has the copy too:
the next run goes on where the last one ended. A change that gives the same machine code is no mutant ("same")."""
import argparse
import collections
import difflib
import fnmatch
import json
import os
import random
import subprocess
import sys
import time

from sites import KINDS, sites_of
from workspace import HERE, TOP, Workspace


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def table():
    """(pattern, what to build, programs)"""
    rows = []
    for line in read(os.path.join(HERE, "tests.txt")).splitlines():
        if line and not line.startswith("#"):
            pattern, targets, programs = (part.strip() for part in line.split("|"))
            rows.append((pattern, targets.split(), programs.split()))
    return rows


def tests_of(rows, name):
    return next(((targets, programs) for pattern, targets, programs in rows if fnmatch.fnmatch(name, pattern)), None)


def all_sites(patterns, kinds):
    found_files = subprocess.run(["find", "core", "plugins", "-name", "*.[ch]"], cwd=TOP, capture_output=True, check=True)
    rows, found = table(), []
    for name in sorted(found_files.stdout.decode().split()):
        wanted = not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
        if wanted and "/cmd/" not in name and tests_of(rows, name):
            found += [site for site in sites_of(name, read(os.path.join(TOP, name))) if site.kind in kinds]
    return found


BATCH = 3  # programs that are built at a time


class Run:
    def __init__(self, options):
        self.options, self.rows = options, table()
        self.results_file = os.path.join(options.folder, "results.jsonl")
        self.workspace, self.baselines, self.codes = None, {}, {}

    def results(self):
        if not os.path.exists(self.results_file):
            return {}
        rows = (json.loads(line) for line in read(self.results_file).splitlines())
        return {row["key"]: row for row in rows}

    def note(self, site, result, by, diff=""):
        row = {"key": site.key, "file": site.name, "kind": site.kind, "result": result, "by": by, "diff": diff}
        with open(self.results_file, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{result:8} {site.key}" + (f"  ({by})" if by else ""), flush=True)

    def baseline(self, program):
        """How long the program takes without a change; None if it fails then, so that it cannot tell anything."""
        if program not in self.baselines:
            status, _, seconds = self.workspace.test(program)
            self.baselines[program] = seconds if not status else None
            if status:
                print(f"left out, since it fails without a change: {program}", flush=True)
        return self.baselines[program]

    def unchanged(self, name, targets, programs):
        """How long each program takes without a change, and the code that the file is then; looked at once."""
        if name not in self.codes:
            self.workspace.make(targets + programs)
            self.codes[name] = self.workspace.objects(name)
        return {program: self.baseline(program) for program in programs}, self.codes[name]

    def try_site(self, site):
        """Programs are built when their turn comes: most changes are noticed by one of the first."""
        workspace, text = self.workspace, read(os.path.join(TOP, site.name))
        targets, programs = tests_of(self.rows, site.name)
        limits, before = self.unchanged(site.name, targets, programs)
        changed = site.apply(text)
        with open(workspace.path(site.name), "w", encoding="utf-8") as file:
            file.write(changed)
        try:
            for first in range(0, len(programs), BATCH):
                batch = programs[first:first + BATCH]
                status, output = workspace.make(targets + batch)
                if status:
                    lines = [line for line in output.split("\n") if "error" in line] + [output[:200]]
                    return self.note(site, "invalid", lines[0][:200])
                if not first and site.name.endswith(".c") and before == workspace.objects(site.name):
                    return self.note(site, "same", "")
                for program in batch:
                    status = limits[program] and workspace.test(program, max(10, 10 * limits[program]))[0]
                    if status:
                        return self.note(site, "killed", program + (", which did not end" if status == -1 else ""))
            diff = difflib.unified_diff(text.split("\n"), changed.split("\n"), site.name, site.name, n=2, lineterm="")
            return self.note(site, "survived", "", "\n".join(diff))
        finally:
            workspace.restore([site.name])

    def go(self, sites):
        self.workspace = Workspace(os.path.join(self.options.folder, "tree"), self.options.build, self.options.configure)
        end = time.monotonic() + self.options.seconds
        for site in sites:
            if time.monotonic() > end:
                break
            self.try_site(site)


def report(rows, with_diffs):
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        for group in (row["file"], "all: " + row["kind"], "all"):
            counts[group][row["result"]] += 1
    print(f"{'file':44}{'killed':>8}{'survived':>10}{'same code':>11}{'invalid':>9}")
    for group in sorted(counts, key=lambda name: (name.startswith("all"), name)):
        count = counts[group]
        print(f"{group:44}{count['killed']:8}{count['survived']:10}{count['same']:11}{count['invalid']:9}")
    survivors = sorted((row for row in rows if row["result"] == "survived"), key=lambda row: row["key"])
    for row in survivors if with_diffs else ():
        print("\n" + row["diff"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "report", "sites", "again"))
    parser.add_argument("patterns", nargs="*", metavar="FILE-PATTERN", help="such as 'plugins/fixed_size/*'; all without")
    parser.add_argument("--folder", default=os.path.join(TOP, "build-mutation"))
    parser.add_argument("--build", default="build", help="the build whose objects the copy takes over")
    parser.add_argument("--configure", default=[], action="append", metavar="FLAG",
                        help="configure the copy anew, such as --configure=--enable-sanitizers=thread")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--diffs", action="store_true")
    options = parser.parse_intermixed_args()
    os.makedirs(options.folder, exist_ok=True)
    run = Run(options)
    sites = all_sites(options.patterns, options.kinds.split(","))
    results = run.results()
    if options.command == "report":
        return report(list(results.values()), options.diffs)
    if options.command == "sites":
        for kind, count in sorted(collections.Counter(site.kind for site in sites).items()):
            print(f"{kind:10}{count:6}")
        return print(f"{'all':10}{len(sites):6}")
    if options.command == "again":
        sites = [site for site in sites if results.get(site.key, {}).get("result") == "survived"]
    else:
        sites = [site for site in sites if site.key not in results]
        random.Random(options.seed).shuffle(sites)
    run.go(sites)
    return report(list(run.results().values()), False)


if __name__ == "__main__":
    sys.exit(main())
