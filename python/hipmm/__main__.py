# SPDX-License-Identifier: MIT
"""python -m hipmm [OPTION]... PROGRAM [ARGUMENT]...: `hipmm run` of a Python program, with this Python.

The options are those of `hipmm run`, such as --report and --config=FILE. PROGRAM is a file, -m MODULE or -c COMMAND.
"""

import os
import subprocess
import sys

from hipmm._library import command

_USAGE = "usage: python -m hipmm [OPTION of hipmm run]... [-m MODULE | -c COMMAND | PROGRAM] [ARGUMENT]..."
_HELP = """
Runs a Python program with its GPU memory served by hipmm. `hipmm run --help` lists the options.
The other commands of hipmm, such as `hipmm check`, are run without Python."""


def main(words: list[str]) -> None:
    options = []
    while words and words[0].startswith("--") and words[0] != "--":
        options.append(words.pop(0))
        if options[-1] == "--config" and words:
            options.append(words.pop(0))
    if words and words[0] == "--":
        words.pop(0)
    if not words or words[0] == "-h" or "--help" in options:
        is_asked = bool(words or options)
        print(_USAGE + _HELP if is_asked else _USAGE, file=sys.stdout if is_asked else sys.stderr)
        sys.exit(0 if is_asked else 2)
    if not words[0].startswith("-") and not os.path.exists(words[0]):
        print(f"hipmm: {words[0]}: no such Python program; for a command of hipmm, run `hipmm COMMAND`", file=sys.stderr)
        sys.exit(2)
    program = command()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    try:
        os.execv(program, [program, "run", *options, "--", sys.executable, *flags, *words])
    except OSError as error:
        sys.exit(f"hipmm: {program}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
