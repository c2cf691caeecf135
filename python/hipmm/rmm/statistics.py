# SPDX-License-Identifier: MIT
"""Statistics of allocations, and a profiler. All of it does nothing unless the current resource is a
StatisticsResourceAdaptor: enable_statistics(), or the context statistics(), puts one there."""

import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Statistics:
    """Bytes as requested, and allocations: now, at most, and in all."""

    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int

    def __getitem__(self, name: str) -> int:
        """As of the dict that hipMM 23.12 has."""
        value: int = vars(self)[name]
        return value


# ---- Of the current resource


def _adaptor() -> Any:
    """The current adaptor, or None."""
    from hipmm.rmm import mr

    resource = mr.get_current_device_resource()
    return resource if isinstance(resource, mr.StatisticsResourceAdaptor) else None


def enable_statistics() -> None:
    """Puts a StatisticsResourceAdaptor over the current resource, unless that is one."""
    from hipmm.rmm import mr

    if _adaptor() is None:
        mr.set_current_device_resource(mr.StatisticsResourceAdaptor(mr.get_current_device_resource()))


def get_statistics() -> Statistics | None:
    """The counters; None without a current adaptor."""
    adaptor = _adaptor()
    return adaptor.allocation_counts if adaptor else None


def push_statistics() -> Statistics | None:
    """The counters, and a new scope with zeroed ones; None without a current adaptor."""
    adaptor = _adaptor()
    return adaptor.push_counters() if adaptor else None


def pop_statistics() -> Statistics | None:
    """The counters of the scope that ends here; None without a current adaptor."""
    adaptor = _adaptor()
    return adaptor.pop_counters() if adaptor else None


@contextmanager
def statistics() -> Generator[None, None, None]:
    """Statistics for a block of the program: a new scope, or an adaptor for the block if none is current.

    Raises ValueError at the end if another resource is current then.
    """
    from hipmm.rmm import mr

    before = None
    if push_statistics() is None:
        before = mr.get_current_device_resource()
        enable_statistics()
    inside = mr.get_current_device_resource()
    try:
        yield
    finally:
        if mr.get_current_device_resource() is not inside:
            raise ValueError("the current memory resource was changed within the statistics context")
        if before is None:
            pop_statistics()
        else:
            mr.set_current_device_resource(before)


# ---- The profiler


class ProfilerRecords:
    """What profiled pieces of a program allocated, by name."""

    @dataclass
    class MemoryRecord:
        """One piece: how often it ran, the bytes that it allocated in all, and at most at once."""

        num_calls: int = 0
        memory_total: int = 0
        memory_peak: int = 0

        def add(self, memory_total: int, memory_peak: int) -> None:
            self.num_calls += 1
            self.memory_total += memory_total
            self.memory_peak = max(self.memory_peak, memory_peak)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, ProfilerRecords.MemoryRecord] = {}

    def add(self, name: str, data: Statistics) -> None:
        """Adds one run of the piece `name`. Thread-safe."""
        with self._lock:
            self._records.setdefault(name, self.MemoryRecord()).add(data.total_bytes, data.peak_bytes)

    @property
    def records(self) -> dict[str, MemoryRecord]:
        """The records by name."""
        with self._lock:
            return dict(self._records)

    def report(self, ordered_by: Literal["num_calls", "memory_peak", "memory_total"] = "memory_peak") -> str:
        """A table of all records, the largest first."""
        lines = ["Memory Profiling", "================", ""]
        rows = sorted(self.records.items(), key=lambda row: getattr(row[1], ordered_by), reverse=True)
        if not rows:
            return "\n".join([*lines, "No data: nothing was profiled, or no statistics were enabled."])
        lines += [f"Ordered by: {ordered_by}", "", f"{'ncalls':>6} {'memory_peak':>15} {'memory_total':>15}  name"]
        lines += [f"{r.num_calls:6,d} {r.memory_peak:15,d} {r.memory_total:15,d}  {name}" for name, r in rows]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.records})"

    def __str__(self) -> str:
        return self.report()


default_profiler_records = ProfilerRecords()


def _get_descriptive_name_of_object(obj: Any) -> str:
    """FILE:LINE(NAME) of a function or class."""
    inner = inspect.unwrap(obj)
    return f"{inspect.getfile(inner)}:{inspect.getsourcelines(inner)[1]}({inner.__qualname__})"


class ProfilerContext:
    """Decorator, and context if it has a name."""

    def __init__(self, records: ProfilerRecords, name: str) -> None:
        self._records = records
        self._name = name

    def _end(self, name: str) -> None:
        statistics = pop_statistics()
        if statistics is not None:
            self._records.add(name, statistics)

    def __call__(self, func: F) -> F:
        name = self._name or _get_descriptive_name_of_object(func)

        @wraps(func)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            push_statistics()
            try:
                return func(*args, **kwargs)
            finally:
                self._end(name)

        return profiled  # type: ignore[return-value]

    def __enter__(self) -> "ProfilerContext":
        if not self._name:
            raise ValueError("a profiler that is used as a context needs a name")
        push_statistics()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self._name)


def profiler(*, records: ProfilerRecords = default_profiler_records, name: str = "") -> ProfilerContext:
    """Profiles a function (a decorator) or a block (a context, with a name) into `records`."""
    return ProfilerContext(records, name)
