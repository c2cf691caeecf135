# SPDX-License-Identifier: MIT
"""python -m hipmm.rmm [-m MODULE | -c COMMAND | PROGRAM] [ARGUMENT...]: runs a program for which `import rmm` is hipmm.rmm."""

import os
import runpy
import sys

from hipmm.rmm._install import install

_USAGE = "usage: python -m hipmm.rmm [-m MODULE | -c COMMAND | PROGRAM] [ARGUMENT...]"


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    install()
    if arguments[0] in ("-m", "-c"):
        if len(arguments) < 2:
            sys.exit(_USAGE)
        what = arguments[1]
        sys.argv = [what if arguments[0] == "-m" else "-c", *arguments[2:]]
        if arguments[0] == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        return
    sys.argv = list(arguments)
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
