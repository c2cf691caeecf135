# SPDX-License-Identifier: MIT
"""Calls of the GPU runtime with RMM's exceptions."""

from typing import Any

from hipmm import _hipmm, _runtime


def ensure() -> None:
    """Initialises hipmm as hipmm.init() does, unless the program has."""
    _hipmm.start_if_needed()


def has(function: str) -> bool:
    """Whether the runtime has a function."""
    return hasattr(_runtime.library(), function)


def _check(code: int) -> None:
    if code:
        from hipmm.rmm._cuda.gpu import CUDARuntimeError

        raise CUDARuntimeError(code)


def call(function: str, *arguments: Any) -> None:
    """Calls a function of HIP; raises CUDARuntimeError for its error."""
    _check(_runtime.call(function, *arguments))


def copy(target: int, source: int, nbytes: int, stream: int) -> None:
    """Copies memory of the host or of any device, in the order of the stream."""
    if nbytes:
        _check(_runtime.copy(target, source, nbytes, stream))


error_text = _runtime.error_text
