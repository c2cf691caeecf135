#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains with several allocators by turns, a few steps each and the same ones, so that whatever else the machine does
meets all alike. Prints one line of JSON: what torch_train.py says of each, the seconds of each one's warm-up, and for all but
the first how many times as fast as with that they trained, turn by turn: the medians, and the quartiles.

    torch_turns.py native|expandable|hipmm|run native|expandable|hipmm|run… [--turns 30] [--turn 5] [--seconds N]
        [--ranks 2] [--model graphs and the like]

The first named once more tells how far two differ that are the same. run: as native, under `hipmm run` (HIPMM_COMMAND, or
the command of the bundle, or of PATH). hipmm:FILE, run:FILE: with that graph, not that of HIPMM_CONFIG. --seconds: no turn begins later than that after the first. --ranks: processes of each training, one for each
device. All have their memory at the same time, and the same two cores for each rank: what else runs beside a core slows it
by more than an allocator could, and for seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CORES = 2  # a training has two threads that take turns, forward and backward


HERE = Path(__file__).resolve().parent


def under_run():
    """What stands before a program for `hipmm run`."""
    of_bundle = HERE / "../../../hipmm"
    command = os.environ.get("HIPMM_COMMAND") or (of_bundle if of_bundle.is_file() else "hipmm")
    return [command, "run", "--strict", "--"]


class Training:
    def __init__(self, which, turns, steps, words, ranks, meeting):
        allocator, _, graph = which.partition(":")
        graph = {"HIPMM_CONFIG": graph} if graph else {}
        command = [sys.executable, "-B", HERE / "torch_train.py", "--allocator", allocator, "--turn", steps, "--steps",
                   steps * turns, *words]
        command = [str(word) for word in [*(under_run() if allocator == "run" else ()), *command]]
        self.processes = []
        for rank in range(ranks):
            place = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MEETING": meeting} if ranks > 1 else {}
            self.processes.append(subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                   env={**os.environ, **graph, **place}))

    def go_on(self, word=""):
        """What it says: of each figure that ranks differ in, the greatest, and of all else the first rank's."""
        for process in self.processes:
            try:
                process.stdin.write(word + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass
        said = []
        for process in self.processes:
            line = process.stdout.readline()
            if not line:
                status = process.wait() or 1  # it has said why
                for other in self.processes:
                    other.kill()  # they wait for it
                sys.exit(status)
            said.append(json.loads(line))
        return {name: max(each[name] for each in said) if name == "seconds" or "bytes" in name else value
                for name, value in said[0].items()}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)  # --rank is for the training
    parser.add_argument("allocators", nargs="+", metavar="ALLOCATOR")
    parser.add_argument("--turns", type=int, default=30, help="after the warm-up")
    parser.add_argument("--turn", type=int, default=5, metavar="STEPS", help="in each turn")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--ranks", type=int, default=1)
    chosen, words = parser.parse_known_args()
    if chosen.turns < 2 or len(chosen.allocators) < 2:
        parser.error("two turns of two allocators at least")
    for which in chosen.allocators:
        allocator, of_graph, _ = which.partition(":")
        if allocator not in ("hipmm", "run") and (of_graph or allocator not in ("native", "expandable")):
            parser.error(f"{which} is not native, expandable, hipmm or run; the latter two take a graph, as in hipmm:FILE")
    return chosen, words


def order_of(turn, count):
    """Each comes first as often as the others, and after each of them."""
    start = turn // 2 % count
    order = [*range(start, count), *range(start)]
    return order[::-1] if turn % 2 else order


def main():
    chosen, words = arguments()
    ends = 0
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES * chosen.ranks:])
    with tempfile.TemporaryDirectory() as folder:
        trainings = [Training(allocator, 1 + chosen.turns, chosen.turn, words, chosen.ranks, f"{folder}/{which}")
                     for which, allocator in enumerate(chosen.allocators)]
        ratios = [[] for _ in trainings[1:]]
        for turn in range(1 + chosen.turns):
            if turn > 2 and time.monotonic() > ends:
                break
            took = {which: trainings[which].go_on()["seconds"] for which in order_of(turn, len(trainings))}
            if not turn:
                ends, warm_up = time.monotonic() + chosen.seconds, [round(took[which], 3) for which in sorted(took)]
            for which, of_one in enumerate(ratios, 1):
                if turn:
                    of_one.append(took[0] / took[which])
        said = [training.go_on("end") for training in trainings]
    quartiles = [[round(value, 4) for value in statistics.quantiles(of_one, n=4)] for of_one in ratios]
    print(json.dumps({"trainings": said, "as_fast": [median for _, median, _ in quartiles],
                      "quartiles": [[low, high] for low, _, high in quartiles], "turns": len(ratios[0]), "warm_up_seconds": warm_up}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
