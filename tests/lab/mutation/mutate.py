#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation test: takes waits, locks, orders of atomics, checks, comparisons and bounds away from a copy of the tree,
one at a time, builds what contains the line, and runs the programs of tests.txt that run the line: one must fail.
Of Python, whose patterns begin with `python/`, it changes python/src, and lets each public function and method of
python/hipmm do nothing; a test of python/tests must fail. TOP/build is used for that, or BUILD of the environment.

    tests/lab/mutation/mutate.py run [--seconds 600] [--seed 1] [--kinds wait,check,…] [FILE-PATTERN…]
    tests/lab/mutation/mutate.py report [--diffs]           counts for each file; what survived and is not explained
    tests/lab/mutation/mutate.py sites [FILE-PATTERN…]      how many there are
    tests/lab/mutation/mutate.py again [FILE-PATTERN…]      the survivors that are not explained once more, after new tests
    tests/lab/mutation/mutate.py open                       these survivors, a line each: the text of survivors.txt

Files are taken in the order of the patterns, kinds in the order of --kinds where --kinds is given, and sites of the same
pattern and kind in an order that is drawn from the seed. Results are kept, one line each, in --folder (build-mutation),
which has the copy too: the next run takes over what changed in the tree, and goes on where the last one ended. Several
runs side by side, each with a --folder of its own, share the sites by --part; results.jsonl of all of them, one after the
other in one file, are those of all.
  killed    a program failed, or did not end           same      the machine code is the same: no mutant
  survived  no program failed; explained.txt says why, or a test is missing
Every 40th try is a control, without a change: if a program fails then, its kills cannot be trusted, and the run ends."""
import argparse
import collections
import difflib
import fnmatch
import json
import os
import random
import signal
import subprocess
import sys
import time

from build_commands import BuildCommands, DoesNotCompile, Mutant
from line_coverage import LineCoverage, identity
from mutant_tree import MutantTree
from programs import Limits, run_program
from python_mutants import PythonMutants, python_sites
from results import Results, open_survivors, report
from sites import KINDS, sites_of
from workspace import HERE, TOP

CONTROL = 40
SURVIVORS = """# Changes that no program of tests.txt noticed, and that explained.txt does not explain: each waits for a test, or for a
# reason. `mutate.py open` writes this file, `mutate.py again FILE-PATTERN` tries them once more.
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def table():
    """(pattern, the libraries that the programs load, programs)"""
    rows = []
    for line in read(os.path.join(HERE, "tests.txt")).splitlines():
        if line and not line.startswith("#"):
            pattern, targets, programs = (part.strip() for part in line.split("|"))
            rows.append((pattern, targets.split(), programs.split()))
    return rows


def tests_of(rows, name):
    return next(((targets, programs) for pattern, targets, programs in rows if fnmatch.fnmatch(name, pattern)), None)


def all_sites(tree, rows, patterns=(), kinds=KINDS):
    """(the number of the first pattern that fits, the site)"""
    found_files = subprocess.run(["find", "core", "plugins", "-name", "*.[ch]"], cwd=tree, capture_output=True, check=True)
    names = [name for name in sorted(found_files.stdout.decode().split()) if tests_of(rows, name)]
    ranked = []
    for name in names:
        ranks = [rank for rank, pattern in enumerate(patterns or ["*"]) if fnmatch.fnmatch(name, pattern)]
        for site in sites_of(name, read(os.path.join(tree, name))) if ranks else ():
            if site.kind in kinds:
                ranked.append((ranks[0], site))
    for site in python_sites(kinds):
        ranks = [rank for rank, pattern in enumerate(patterns or ["*"]) if fnmatch.fnmatch(site.name, pattern)]
        ranked += [(ranks[0], site)] if ranks else []
    return ranked


def is_python(name):
    return name.startswith("python/")


class Baselines:
    """What each program takes without a change. A program that fails then is left out: it cannot tell anything."""

    def __init__(self, workspace):
        self.workspace, self.file = workspace, os.path.join(workspace.build, "baselines.json")
        self.known = json.loads(read(self.file)) if os.path.exists(self.file) else {}
        plugins = os.path.join(workspace.build, "plugins")
        self.libraries = [os.path.join(place, name) for place, _, files in sorted(os.walk(plugins))
                          for name in sorted(files) if name.endswith(".so")]

    def of(self, program):
        """(seconds, processor seconds), or None"""
        path = os.path.join(self.workspace.build, program)
        stamp = identity(path) + "".join(map(identity, self.libraries))
        if self.known.get(program, {}).get("stamp") != stamp:
            outcome = run_program(path, self.workspace.build, self.workspace.environment())
            self.known[program] = {"stamp": stamp, "passed": outcome.result == "passed", "wall": outcome.wall,
                                   "cpu": outcome.cpu}
            if outcome.result != "passed":
                print(f"left out, since it fails without a change: {program}: {outcome.case}", flush=True)
            with open(self.file, "w", encoding="utf-8") as file:
                json.dump(self.known, file)
        known = self.known[program]
        return (known["wall"], known["cpu"]) if known["passed"] else None


Plan = collections.namedtuple("Plan", "programs libraries objects is_run")  # programs: (name, limits)


def sites_to_try(options, results, ranked):
    """In the order of the patterns and, of each, in that of the kinds; sites of the same rank in an order drawn from the seed."""
    if options.command == "again":
        survivors = set(open_survivors(results, [site for _, site in ranked]))
        ranked = [(rank, site) for rank, site in ranked if site.key in survivors]
    else:
        ranked = [(rank, site) for rank, site in ranked if not results.of(site.key)]
    random.Random(options.seed).shuffle(ranked)
    kinds = options.kinds if options.kinds_given else ()
    sites = [site for _, site in sorted(ranked, key=lambda entry: (entry[0], kinds.index(entry[1].kind) if kinds else 0))]
    part, parts = options.part
    return sites[part - 1::parts]


class Run:
    def __init__(self, options, rows, results):
        self.options, self.rows, self.results = options, rows, results
        self.workspace = MutantTree(os.path.join(options.folder, "tree"), options.configure)
        self.commands = BuildCommands(self.workspace.build)
        wanted = sorted({program for _, _, programs in rows for program in programs})
        self.workspace.update(wanted, self.commands)
        self.coverage = LineCoverage(self.workspace, self.commands)
        self.coverage.update()
        self.baselines = Baselines(self.workspace)

    def sites(self):
        """The sites to try, in order."""
        ranked = all_sites(self.workspace.tree, self.rows, self.options.patterns, self.options.kinds)
        return sites_to_try(self.options, self.results, [(rank, site) for rank, site in ranked if not is_python(site.name)])

    def plan_for(self, site):
        """The programs that run the line, or all of tests.txt if none does: the likeliest first, for the time it takes."""
        targets, programs = tests_of(self.rows, site.name)
        times = {program: self.baselines.of(program) for program in programs}
        usable = [program for program in programs if times[program] and times[program][0] <= self.options.most_seconds]
        running = [program for program in usable if self.coverage.runs(program, site)]
        of_file, of_folder = self.results.kills(site.name)

        def gain(program):
            likely = 3 * of_file[program] + of_folder[program] + 2 / (1 + programs.index(program))
            return likely / (0.2 + times[program][0])

        chosen = [(program, Limits(*times[program])) for program in sorted(running or usable, key=gain, reverse=True)]
        return Plan(chosen, self.commands.outputs_of(targets), self.coverage.objects_of(site), bool(running))

    def judge(self, plan, mutant=None):
        """(result, by)"""
        is_other = False
        for program, limits in plan.programs:
            if mutant and not mutant.build_for(program, plan.libraries, plan.objects):
                continue
            is_other = True
            outcome = run_program(os.path.join(self.workspace.build, program), self.workspace.build,
                                  self.workspace.environment(), limits)
            self.workspace.empty_scratch()
            if outcome.result != "passed":
                return "killed", f"{program}: {outcome.case}"
        if not is_other:
            return "same", ""
        return "survived", "" if plan.is_run else "no program of tests.txt runs the line"

    def try_site(self, site):
        """The plan is made first, while the tree is as it was measured."""
        began, text = time.monotonic(), read(self.workspace.path(site.name))
        changed, plan, diff = site.apply(text), self.plan_for(site), ""
        try:
            with Mutant(self.commands, self.workspace.tree, site.name, changed) as mutant:
                result, by = self.judge(plan, mutant)
        except DoesNotCompile as error:
            lines = [line for line in str(error).split("\n") if "error" in line] + [str(error)[:200]]
            result, by = "invalid", lines[0][:200]
        if result == "survived":
            lines = difflib.unified_diff(text.split("\n"), changed.split("\n"), site.name, site.name, n=3, lineterm="")
            diff = "\n".join(lines)
        self.results.add(site, result, by, diff, time.monotonic() - began)
        return plan

    def go(self, end):
        sites = self.sites()
        print(f"{len(sites)} sites to try", flush=True)
        for number, site in enumerate(sites):
            if time.monotonic() > end:
                break
            plan = self.try_site(site)
            if number % CONTROL == CONTROL - 1:
                result, by = self.judge(plan)
                print(f"control: {result} {by}", flush=True)
                if result == "killed":
                    raise SystemExit(f"a test failed without a change: {by}")


def run_python(options, results, end):
    sites = sites_to_try(options, results, [(rank, site) for rank, site in all_sites(TOP, [], options.patterns, options.kinds)])
    print(f"{len(sites)} sites of Python to try", flush=True)
    mutants = PythonMutants(os.path.join(options.folder, "python"), os.environ.get("BUILD", os.path.join(TOP, "build")),
                            options.most_seconds)
    for site in sites:
        if time.monotonic() > end:
            break
        began, text = time.monotonic(), read(os.path.join(TOP, site.name))
        changed = site.apply(text)
        result, by = mutants.judge(site, changed)
        lines = [] if site.kind == "call" else difflib.unified_diff(text.split("\n"), changed.split("\n"), site.name, site.name,
                                                                    n=3, lineterm="")
        results.add(site, result, by, "\n".join(lines) if result == "survived" else "", time.monotonic() - began)


def part_of(text):
    part, _, parts = text.partition("/")
    if not 1 <= int(part) <= int(parts):
        raise ValueError(text)
    return int(part), int(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "report", "sites", "again", "open"))
    parser.add_argument("patterns", nargs="*", metavar="FILE-PATTERN", help="such as 'plugins/fixed_size/*'; all without")
    parser.add_argument("--folder", default=os.path.join(TOP, "build-mutation"))
    parser.add_argument("--configure", default=[], action="append", metavar="FLAG",
                        help="a flag for the copy, with a --folder of its own: --configure=--enable-sanitizers=thread")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="N/OF", help="every OFth site, from the Nth on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-seconds", type=float, default=60, help="leave out programs, or files of Python's tests, that take longer by themselves")
    parser.add_argument("--kinds", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--diffs", action="store_true")
    options = parser.parse_intermixed_args()
    options.kinds_given, options.kinds = bool(options.kinds), options.kinds.split(",") if options.kinds else list(KINDS)
    os.makedirs(options.folder, exist_ok=True)
    rows, results = table(), Results(os.path.join(options.folder, "results.jsonl"))
    if options.command == "sites":
        for kind, count in sorted(collections.Counter(
                site.kind for _, site in all_sites(TOP, rows, options.patterns, options.kinds)).items()):
            print(f"{kind:10}{count:6}")
        return
    if options.command == "open":
        print(SURVIVORS + "\n".join(open_survivors(results, [site for _, site in all_sites(TOP, rows)])))
        return
    if options.command != "report":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        end = time.monotonic() + options.seconds
        if not options.patterns or not all(map(is_python, options.patterns)):
            Run(options, rows, results).go(end)
        if not options.patterns or any(map(is_python, options.patterns)):
            run_python(options, results, end)
    report(results, [site for _, site in all_sites(TOP, rows)], options.diffs)


if __name__ == "__main__":
    sys.exit(main())
