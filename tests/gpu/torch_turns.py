#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains with two allocators by turns, a few steps each and the same ones, so that whatever else the machine does meets
both alike. Prints one line of JSON: what torch_train.py says of each, and how many times as fast as with the first the
second trained, turn by turn: the median, and the quartiles.

    torch_turns.py native|expandable|hipmm native|expandable|hipmm [--turns 30] [--varied and the like]

Both have their memory at the same time, and the same two cores: what else runs beside a core slows it by more than an
allocator could, and for seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

STEPS = 5  # of a turn
CORES = 2  # a training has two threads that take turns, forward and backward


class Training:
    def __init__(self, allocator, turns, words):
        program = Path(__file__).resolve().with_name("torch_train.py")
        command = [sys.executable, "-B", program, "--allocator", allocator, "--turn", STEPS, "--steps", STEPS * turns]
        self.process = subprocess.Popen([str(word) for word in [*command, *words]], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def go_on(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            sys.exit(self.process.wait() or 1)  # it has said why
        return json.loads(line)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("allocators", nargs=2, choices=("native", "expandable", "hipmm"), metavar="ALLOCATOR")
    parser.add_argument("--turns", type=int, default=30, help="after the warm-up")
    chosen, words = parser.parse_known_args()
    if chosen.turns < 2:
        parser.error("two turns at least")
    return chosen, words


def main():
    chosen, words = arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])
    trainings = [Training(allocator, 1 + chosen.turns, words) for allocator in chosen.allocators]
    ratios = []
    for turn in range(1 + chosen.turns):
        order = (0, 1) if turn % 2 else (1, 0)  # neither always comes first
        took = {which: trainings[which].go_on()["seconds"] for which in order}
        if turn:
            ratios.append(took[0] / took[1])
    low, median, high = statistics.quantiles(ratios, n=4)
    ends = [training.go_on() for training in trainings]
    print(json.dumps({"trainings": ends, "as_fast": round(median, 4), "quartiles": [round(low, 4), round(high, 4)]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
