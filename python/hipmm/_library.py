# SPDX-License-Identifier: MIT
"""Where the files of this package are."""

from __future__ import annotations

import pathlib


def command() -> str:
    """The program `hipmm` of this package."""
    return str(pathlib.Path(__file__).parent / "bin" / "hipmm")
