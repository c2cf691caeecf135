# SPDX-License-Identifier: MIT
"""Runs the programs of a folder, such as CUDA's or HIP's samples, each with the folder as its own, and writes how each ended, one a
line, so that two runs can be compared.

    program_cases.py FOLDER RESULTS [--seconds 120] [--until SECONDS] [PATTERN…]
    program_cases.py --compare NATIVE UNDER    the programs that succeed in NATIVE alone; status 1 if there are any

Exit status 0 is a success; 2 is what CUDA's samples return where they lack something. JOBS: the programs at a time (4).
"""

import os
import sys

import outcomes


def run(words, seconds):
    folder, results, *patterns = words
    programs = [entry for entry in os.scandir(folder) if entry.is_file() and os.access(entry, os.X_OK)]
    commands = {entry.name: [os.path.abspath(entry.path)] for entry in sorted(programs, key=lambda entry: entry.name)
                if not patterns or any(pattern in entry.name for pattern in patterns)}
    if not commands:
        sys.exit(f"{folder} has no such program")
    return outcomes.run_programs(results, commands, seconds, skipped=2, folder=folder)


if __name__ == "__main__":
    sys.exit(outcomes.main(run, __doc__))
