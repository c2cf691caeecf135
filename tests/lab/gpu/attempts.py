# SPDX-License-Identifier: MIT
"""Runs checks one after the other and keeps the result of each: "right", what was wrong, or the error. tell() prints all
results so far as one line of JSON, so that those of a program that dies are not lost."""

import json

results = {}


class Wrong(Exception):
    """A result differs from what is expected."""


def attempt(what, function, *arguments):
    """Calls the function, which raises an exception if anything is wrong."""
    try:
        function(*arguments)
        results[what] = "right"
    except Wrong as wrong:
        results[what] = f"wrong: {wrong}"
    except Exception as error:
        lines = str(error).splitlines() or [""]
        results[what] = f"{type(error).__name__}: {lines[0][:200]}"


def tell():
    """Prints the results so far; the last line that a program prints has all."""
    print(json.dumps(results), flush=True)
