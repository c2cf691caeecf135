# SPDX-License-Identifier: MIT
"""Where the files of this package are."""

from __future__ import annotations

import pathlib
import shutil


def command() -> str:
    """The program `hipmm` of this package, or that of the system where a distribution's package has none."""
    own = pathlib.Path(__file__).parent / "bin" / "hipmm"
    return str(own) if own.exists() else shutil.which("hipmm") or str(own)
