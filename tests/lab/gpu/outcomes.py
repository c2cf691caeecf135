# SPDX-License-Identifier: MIT
"""What became of the cases of another project's tests: a file of results, one case a line, so that two runs can be compared.

A line is OUTCOME NAME WHY, the outcome "begun", "passed", "failed" or "skipped". A case that began and has no other line ended
the process. "cut NAME": the time was over, so the case is to run again. The line "end" says that no case was left. A call that finds a file of results goes on with the cases that it lacks.
"""

import faulthandler
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

SKIPPED = 77  # the exit status of a program that says that it is left out
CHILD = "HIPMM_CASES_CHILD"


def read(file):
    """(outcome, why) by case; "crashed" where the process ended in it."""
    results = {}
    if os.path.exists(file):
        with open(file) as lines:
            for line in lines:
                outcome, _, name = line.rstrip("\n").partition(" ")
                name, _, why = name.partition(" ")
                if not name:
                    continue
                if outcome == "begun":
                    results.setdefault(name, ("crashed", ""))
                elif outcome == "cut":
                    results.pop(name, None)
                else:
                    results[name] = (outcome, why)
    return results


def is_over(file):
    """Whether no case was left."""
    with open(file) as lines:
        return "end\n" in lines


def named(name):
    """One word, the same in each process."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x", "_".join(name.split()))


def _shortened(why):
    """The beginning and the end. Cases of PyTorch's end with how to repeat them."""
    why = why.partition(" To execute this test, run")[0]
    return why if len(why) <= 300 else why[:150] + " … " + why[-150:]


class Writer:
    """Writes each case as it begins and as it ends. A case that takes longer than `seconds` ends the process, as a crash does."""

    def __init__(self, file, seconds=None):
        self._seconds, self._open = seconds, open(file, "a", buffering=1)

    def say(self, outcome, name, why=""):
        self._open.write(f"{outcome} {named(name)} {_shortened(' '.join(str(why).split()))}".rstrip() + "\n")

    def begin(self, name):
        self.say("begun", name)
        if self._seconds:
            faulthandler.dump_traceback_later(self._seconds, exit=True)

    def end(self):
        faulthandler.cancel_dump_traceback_later()


def lost_and_gained(alone, under):
    """The cases that pass in `alone` and not in `under`, with what became of them, and the names of those the other way round."""
    passed = [name for name, (outcome, _) in alone.items() if outcome == "passed"]
    lost = {name: under.get(name, ("missing", "")) for name in passed if under.get(name, ("", ""))[0] != "passed"}
    gained = [name for name, (outcome, _) in under.items()
              if outcome == "passed" and alone.get(name, ("", ""))[0] in ("failed", "crashed")]
    return lost, gained


def counts(results):
    found = {}
    for outcome, _ in results.values():
        found[outcome] = found.get(outcome, 0) + 1
    return dict(sorted(found.items()))


def compare(native, under):
    """Prints what differs; whether a case is lost."""
    alone, with_hipmm = read(native), read(under)
    lost, gained = lost_and_gained(alone, with_hipmm)
    print("native", counts(alone))
    print("under", counts(with_hipmm))
    for name, (outcome, why) in lost.items():
        print(f"LOST {name}: {outcome} {why}")
    for name in gained:
        print(f"gained {name}")
    return bool(lost) or not alone


def run_programs(results, commands, seconds, skipped=SKIPPED, folder=None):
    """Runs the programs, by their names, that the results lack, several at a time (JOBS)."""
    writer, done = Writer(results), read(results)

    def run_one(name):
        writer.begin(name)
        try:
            ended = subprocess.run(commands[name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", timeout=seconds, cwd=folder)
            outcome = {0: "passed", skipped: "skipped"}.get(ended.returncode, "failed")
            why = f"status {ended.returncode}: " * (outcome == "failed") + ended.stdout if outcome != "passed" else ""
        except subprocess.TimeoutExpired:
            outcome, why = "failed", f"not over after {seconds} seconds"
        writer.say(outcome, name, why)

    with ThreadPoolExecutor(int(os.environ.get("JOBS", "4"))) as pool:
        list(pool.map(run_one, (name for name in commands if named(name) not in done)))
    return 0


def cut(results, size):
    """The cases under way after the first `size` bytes of results are not done."""
    with open(results, "a+") as file:
        file.seek(size)
        lines = [line.split(" ")[:2] for line in file.read().splitlines()]
        over = {name for outcome, *names in lines if outcome != "begun" for name in names}
        file.writelines(f"cut {name}\n" for outcome, *names in lines if outcome == "begun" for name in names if name not in over)


def main(run, usage):
    """The command of a runner. `run(words, seconds)` runs the cases that words[1], the file of results, lacks, in a process that
    may end at any of them."""
    words = sys.argv[1:]
    if len(words) == 3 and words[0] == "--compare":
        return compare(*words[1:])
    options = {"--seconds": 120, "--until": 560}
    for option in options:
        if option in words:
            at = words.index(option)
            options[option] = int(words[at + 1])
            del words[at : at + 2]
    words.sort(key=lambda word: word.startswith("--"))  # a runner's own options stay behind the files
    if len(words) < 2 or words[1].startswith("--"):
        sys.exit(usage)
    if os.environ.get(CHILD):
        return run(words, options["--seconds"])
    end = time.monotonic() + options["--until"]
    for _ in range(40):
        before = len(read(words[1]))
        size = os.path.getsize(words[1]) if before else 0
        try:
            status = subprocess.run([sys.executable, "-B", *sys.argv], env={**os.environ, CHILD: "1"},
                                    timeout=max(1, end - time.monotonic())).returncode
        except subprocess.TimeoutExpired:
            cut(words[1], size)
            print("out of time; call again to go on")
            return 2
        if status == 0:
            with open(words[1], "a") as file:
                file.write("end\n")
            return 0
        print(f"status {status} after {len(read(words[1]))} cases", flush=True)
        if len(read(words[1])) == before:
            return 1
    return 1
