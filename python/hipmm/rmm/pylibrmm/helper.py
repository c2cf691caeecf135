# SPDX-License-Identifier: MIT
"""Sizes as text."""

import re

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", 1):
    _UNITS[f"{_letter}b"] = 1000**_power
    _UNITS[f"{_letter}ib"] = 1024**_power

_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]*)?)[\t ]*([a-z]*)", re.ASCII | re.IGNORECASE)


def parse_bytes(s: int | str) -> int:
    """An int as it is; "1.5 GiB" (1024**3), "2GB" (1000**3), "100": bytes. Raises ValueError for other texts."""
    if isinstance(s, int):
        return s
    match = _PATTERN.fullmatch(s)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError(f"Could not parse {s} as a byte specification")
    size = float(match[1]) * _UNITS[match[2].lower()]
    if size == float("inf"):
        raise ValueError(f"Could not parse {s} as a byte specification")
    return int(size)


__all__ = ["parse_bytes"]
