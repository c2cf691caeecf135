# SPDX-License-Identifier: MIT
"""The command `hipmm` of the wheel: runs the program that lies in the package."""

from __future__ import annotations

import os
import sys

from ._library import command


def main() -> None:
    program = command()
    os.execv(program, [program, *sys.argv[1:]])
