# SPDX-License-Identifier: MIT
"""Where the files of this package are."""

from __future__ import annotations

import pathlib
import shutil


def command() -> str:
    """The program `hipmm` of this package, or that of the system where a distribution's package has none."""
    own = pathlib.Path(__file__).parent / "bin" / "hipmm"
    return str(own) if own.exists() else shutil.which("hipmm") or str(own)


def folder(path: str, file: str) -> str:
    """A folder of this package that has the file."""
    found = pathlib.Path(__file__).parent / path
    if not (found / file).is_file():
        raise FileNotFoundError(
            f"{found} has no {file}: this hipmm is not from a wheel, and uses an installation of hipmm, whose folders "
            "`pkg-config --cflags --libs hipmm` names and CMake finds"
        )
    return str(found)
