# SPDX-License-Identifier: MIT
"""Stands for the package librmm, whose only task is to load RMM's library."""


def load_library() -> None:
    """Nothing is left to load: hipmm loads its own library."""


__all__ = ["load_library"]
