#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains with several allocators by turns, a few steps each and the same ones, so that whatever else the machine does
meets all alike. Prints one line of JSON: what torch_train.py says of each, and for all but the first how many times as
fast as with that they trained, turn by turn: the medians, and the quartiles.

    torch_turns.py native|expandable|hipmm native|expandable|hipmm… [--turns 30] [--turn 5]
        [--model graphs and the like]

The first named once more tells how far two differ that are the same. All have their memory at the same time, and the same
two cores: what else runs beside a core slows it by more than an allocator could, and for seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CORES = 2  # a training has two threads that take turns, forward and backward


class Training:
    def __init__(self, allocator, turns, steps, words):
        program = Path(__file__).resolve().with_name("torch_train.py")
        command = [sys.executable, "-B", program, "--allocator", allocator, "--turn", steps, "--steps", steps * turns]
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
    parser.add_argument("allocators", nargs="+", choices=("native", "expandable", "hipmm"), metavar="ALLOCATOR")
    parser.add_argument("--turns", type=int, default=30, help="after the warm-up")
    parser.add_argument("--turn", type=int, default=5, metavar="STEPS", help="in each turn")
    chosen, words = parser.parse_known_args()
    if chosen.turns < 2 or len(chosen.allocators) < 2:
        parser.error("two turns of two allocators at least")
    return chosen, words


def order_of(turn, count):
    """Each comes first as often as the others, and after each of them."""
    start = turn // 2 % count
    order = [*range(start, count), *range(start)]
    return order[::-1] if turn % 2 else order


def main():
    chosen, words = arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])
    trainings = [Training(allocator, 1 + chosen.turns, chosen.turn, words) for allocator in chosen.allocators]
    ratios = [[] for _ in trainings[1:]]
    for turn in range(1 + chosen.turns):
        took = {which: trainings[which].go_on()["seconds"] for which in order_of(turn, len(trainings))}
        for which, of_one in enumerate(ratios, 1):
            if turn:
                of_one.append(took[0] / took[which])
    quartiles = [[round(value, 4) for value in statistics.quantiles(of_one, n=4)] for of_one in ratios]
    ends = [training.go_on() for training in trainings]
    print(json.dumps({"trainings": ends, "as_fast": [median for _, median, _ in quartiles],
                      "quartiles": [[low, high] for low, _, high in quartiles]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
