#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves hipmm on a GPU, step by step; started by prove.sh, from the folder that bundle.sh made.

    prove.sh [STEP…] [--json FILE] [--seconds N] [--list]

Each step is a line: ok, not ok, or left out and why; what failed in it and its figures follow. All of it is written as
JSON, too, by default to prove.json in the bundle. Ends with 0 if nothing failed. PROVE_RUNTIME=software proves what
needs no GPU.
"""

import argparse
import json
import shutil
import sys
import time
import traceback
from pathlib import Path

import steps_allocators
import steps_hipmm
import steps_peers
import steps_programs
import steps_python
import steps_reach
import steps_trouble
from proof import Proof, print_table

# In order, each with the seconds that it may take.
STEPS = [
    ("suite", steps_hipmm.suite, 150),
    ("integrity", steps_hipmm.integrity, 60),
    ("traces", steps_hipmm.traces, 75),
    ("tune", steps_hipmm.tune, 90),
    ("bench", steps_hipmm.bench, 45),
    ("pinned", steps_hipmm.pinned, 240),
    ("sleep", steps_hipmm.sleep, 180),
    ("spill", steps_programs.spill, 120),
    ("torch", steps_programs.torch, 300),
    ("hooks", steps_programs.hooks, 45),
    ("hook", steps_python.hook, 180),
    ("cupy", steps_programs.cupy, 60),
    ("numba", steps_programs.numba, 30),
    ("preload", steps_programs.preload, 45),
    ("driver", steps_programs.driver, 90),
    ("run", steps_programs.run, 150),
    ("rmm", steps_programs.rmm, 240),
    ("races", steps_trouble.races, 150),
    ("ipc", steps_trouble.ipc, 60),
    ("oom", steps_trouble.oom, 60),
    ("devices", steps_trouble.devices, 45),
    ("bad", steps_trouble.bad, 60),
    ("peers-c", steps_peers.program, 60),
    ("peers-torch", steps_peers.torch, 120),
    ("peers-cupy", steps_peers.cupy, 60),
    ("ranks", steps_peers.ranks, 90),
    ("reach", steps_reach.reach, 240),
    ("allocators", steps_allocators.allocators, 360),
    ("serving", steps_programs.serving, 100),
    ("programs", steps_programs.programs, 280),
    ("sharded", steps_peers.sharded, 130),
    ("growth", steps_hipmm.growth, 240),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(name for name, _, _ in STEPS))
    parser.add_argument("--bundle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=525, help="for all of it; what does not fit is left out")
    parser.add_argument("--list", action="store_true", help="name the steps and stop")
    chosen = parser.parse_args()
    unknown = set(chosen.steps) - {name for name, _, _ in STEPS}
    if unknown:
        parser.error(f"no step is called {', '.join(sorted(unknown))}; there are {', '.join(n for n, _, _ in STEPS)}")
    return chosen


def run_step(proof, name, function, limit):
    """Nothing that happens in a step stops the next."""
    began = time.monotonic()
    proof.checks, proof.tables, proof.notes = [], [], []
    proof.step_ends = min(proof.ends, began + limit)
    if proof.ends - began < 10:
        proof.leave_out(name, "no time is left")
    else:
        try:
            function(proof)
        except Exception:
            proof.check(f"{name}: the step itself", False, traceback.format_exc(limit=-2).replace("\n", " / "))
    return {"step": name, "seconds": round(time.monotonic() - began, 1), "checks": proof.checks,
            "tables": proof.tables, "notes": proof.notes}


def show(result):
    passed = sum(check["good"] is True for check in result["checks"])
    failed = [check for check in result["checks"] if check["good"] is False]
    left_out = [check for check in result["checks"] if check["good"] is None]
    word = "not ok" if failed else "ok" if passed else "left out"
    counts = f"{passed} passed, {len(failed)} failed" + (f", {len(left_out)} left out" if left_out else "")
    print(f"{word:8} {result['step']:11} {counts}, {result['seconds']} s", flush=True)
    for check in failed:
        print(f"    ! {check['name']}: {check['detail']}")
    for check in left_out[:3 if passed else 1]:
        print(f"    - {check['name']}: {check['detail']}")
    if len(left_out) > 3 and passed:
        print(f"    - and {len(left_out) - 3} more, see the JSON")
    for note in result["notes"]:
        print(f"    {note}")
    for table in result["tables"]:
        print_table(table)
    sys.stdout.flush()
    return word


def main():
    chosen = arguments()
    if chosen.list:
        print("\n".join(name for name, _, _ in STEPS))
        return 0
    proof = Proof(chosen.bundle, chosen.seconds)
    version, about = proof.revision(), proof.card()
    print(f"hipmm {version}; runtime {proof.runtime}: {about}", flush=True)
    results, words = [], []
    for name, function, limit in STEPS:
        if not chosen.steps or name in chosen.steps:
            results.append(run_step(proof, name, function, limit))
            words.append(show(results[-1]))
    file = Path(chosen.json) if chosen.json else proof.bundle / "prove.json"
    try:
        file.write_text(json.dumps({"version": version, "runtime": proof.runtime, "about": about, "steps": results},
                                   indent=1))
    except OSError as error:
        print(f"prove.py: {error}", file=sys.stderr)
    shutil.rmtree(proof.folder, ignore_errors=True)
    if "left out" in words:
        print(f"steps left out: {words.count('left out')}")
    print(f"{words.count('ok')} passed, {words.count('not ok')} failed")
    return 1 if "not ok" in words else 0


if __name__ == "__main__":
    sys.exit(main())
