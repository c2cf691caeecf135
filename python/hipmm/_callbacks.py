# SPDX-License-Identifier: MIT
"""Functions of Python under names, for resources made in code. Their names are chosen here, and are dropped, with the
functions, once no stack can call them any more."""

from __future__ import annotations

from typing import Any, Callable

from . import _hipmm
from ._errors import ArgumentError, Error
from ._hipmm import Resource

_names: list[str] = []
_count = 0


def _lives(name: str) -> bool:
    """Whether the resource that was created under this name still exists. Others than the caller may hold it."""
    try:
        return _hipmm.list(f"created/{name}") != "[]"
    except ArgumentError:
        return False
    except Error:
        return True


def _sweep() -> None:
    for name in [name for name in _names if not _lives(name)]:
        _names.remove(name)
        _hipmm.forget(name)


def create(kind: str, option: str, register: Callable[[str], Any], upstreams: list[Resource]) -> Resource:
    """Creates a resource of the type `kind`, of which `option` names what `register` registers."""
    global _count
    _sweep()
    _count += 1
    name = f"python.{kind}.{_count}"
    register(name)
    try:
        resource = _hipmm.create(None, kind, name, f'{{"{option}": "{name}"}}', upstreams, [])
    except BaseException:
        _hipmm.forget(name)
        raise
    _names.append(name)
    return resource
