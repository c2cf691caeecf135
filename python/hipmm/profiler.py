# SPDX-License-Identifier: MIT
"""Statistics of allocations, and a profiler for pieces of a program.

    with hipmm.profile("step"):
        with hipmm.profile("forward"):          # is recorded as "step/forward"
            ...
    print(hipmm.profiler.records.report())

Both need a `statistics` resource in the stack; without one nothing is recorded. Allocations of all threads count.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from . import _hipmm
from ._errors import Error
from ._hipmm import Resource

F = TypeVar("F", bound=Callable[..., Any])

Statistics = namedtuple(
    "Statistics", ["current_bytes", "current_count", "peak_bytes", "peak_count", "total_bytes", "total_count"]
)
Statistics.__doc__ = """Bytes as requested, and allocations: now, at most, and in all. Inside a pushed scope the current
ones may be negative: memory from before was freed."""


def _counters(resource: Resource | None, what: int) -> Statistics:
    if resource is None:
        resource = _hipmm.get_resource(None, None)
    elif not isinstance(resource, Resource):
        raise TypeError(f'statistics are of a hipmm.Resource, such as hipmm.resource("name"), not {resource!r}')
    return Statistics(*resource._counters(what))


def statistics(resource: Resource | None = None) -> Statistics:
    """The counters of the nearest `statistics` resource at or below `resource`. Raises ArgumentError without one."""
    return _counters(resource, 0)


def push(resource: Resource | None = None) -> Statistics:
    """The counters, and a new scope with zeroed ones."""
    return _counters(resource, 1)


def pop(resource: Resource | None = None) -> Statistics:
    """The counters of the scope that ends here, which are added to those of the outer one. The peaks are those of the whole
    scope: Resource.reset_peaks() in it does not change them."""
    return _counters(resource, 2)


class Record:
    """What one piece of the program allocated."""

    __slots__ = ("calls", "peak_bytes", "total_bytes")

    def __init__(self) -> None:
        self.calls = self.peak_bytes = self.total_bytes = 0

    def __repr__(self) -> str:
        return f"Record(calls={self.calls}, peak_bytes={self.peak_bytes}, total_bytes={self.total_bytes})"


class Records:
    """Records by name; nested names are joined by "/"."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, Record] = {}

    def add(self, name: str, statistics: Statistics) -> None:
        with self._lock:
            record = self._by_name.setdefault(name, Record())
            record.calls += 1
            record.total_bytes += statistics.total_bytes
            record.peak_bytes = max(record.peak_bytes, statistics.peak_bytes)

    def __getitem__(self, name: str) -> Record:
        return self._by_name[name]

    def __len__(self) -> int:
        return len(self._by_name)

    def names(self) -> list[str]:
        with self._lock:
            return list(self._by_name)

    def clear(self) -> None:
        with self._lock:
            self._by_name.clear()

    def report(self, order: Literal["peak_bytes", "total_bytes", "calls"] = "peak_bytes") -> str:
        """A table, the largest first. Raises ValueError for an unknown order."""
        if order not in Record.__slots__:
            raise ValueError(f"unknown order {order!r}; one of {', '.join(Record.__slots__)}")
        with self._lock:
            rows = sorted(self._by_name.items(), key=lambda row: -getattr(row[1], order))
        if not rows:
            return "nothing was recorded; is there a `statistics` resource in the stack?"
        lines = [f"{'calls':>8} {'peak bytes':>16} {'total bytes':>16}  name"]
        lines += [f"{r.calls:>8,} {r.peak_bytes:>16,} {r.total_bytes:>16,}  {name}" for name, r in rows]
        return "\n".join(lines)


records = Records()
_names = threading.local()


class Profile:
    """Records what is allocated between the start and the end of a block or a function."""

    def __init__(self, name: str | None = None, into: Records | None = None) -> None:
        if callable(name):
            raise TypeError(f"write @hipmm.profile(), with parentheses, above {name!r}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f'the name of a profile is a str, as in hipmm.profile("step"), not {name!r}')
        if into is not None and not isinstance(into, Records):
            raise TypeError(f"a profile is recorded into hipmm.profiler.Records, not {into!r}")
        self._name = name
        self._records = records if into is None else into

    def __enter__(self) -> Profile:
        if not self._name:
            raise ValueError('a profiled block needs a name: with hipmm.profile("name")')
        self._begin(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __call__(self, function: F) -> F:
        name = self._name or str(getattr(function, "__qualname__", repr(function)))
        if any(
            kind(function) for kind in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        ):
            raise TypeError(
                f"a call of {name} returns before its body runs, so nothing would be recorded; write "
                f'with hipmm.profile("name") inside, around a part that neither yields nor awaits'
            )

        @functools.wraps(function)
        def profiled(*args: Any, **named: Any) -> Any:
            self._begin(name)
            try:
                return function(*args, **named)
            finally:
                self._end()

        return profiled  # type: ignore[return-value]

    @staticmethod
    def _begin(name: str) -> None:
        try:
            resource: Resource | None = _hipmm.get_resource(None, None)
            push(resource)
        except Error:
            resource = None
        if not hasattr(_names, "stack"):
            _names.stack = []
        _names.stack.append((name, resource))

    def _end(self) -> None:
        full = "/".join(name for name, _ in _names.stack)
        _, resource = _names.stack.pop()
        if resource is not None:
            self._records.add(full, pop(resource))
