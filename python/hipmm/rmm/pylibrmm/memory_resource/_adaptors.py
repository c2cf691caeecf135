# SPDX-License-Identifier: MIT
"""Resources over other resources: sub-allocators and adaptors."""

import os
from collections.abc import Callable
from typing import Any

import hipmm
from hipmm import _callbacks, _hipmm
from hipmm.rmm.pylibrmm.memory_resource._base import (
    DeviceMemoryResource,
    UpstreamResourceAdaptor,
    aligned,
    bytes_of,
    create,
    half_of_free_memory,
    prime,
    rmm_errors,
    size_of,
)
from hipmm.rmm.pylibrmm.memory_resource._sources import raising_rmm
from hipmm.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream
from hipmm.rmm.pylibrmm.utils import as_stream
from hipmm.rmm.statistics import Statistics

# ---- Sub-allocators


class PoolMemoryResource(UpstreamResourceAdaptor):
    """A pool: `initial_pool_size` bytes at once (None: half of the free memory), up to `maximum_pool_size` (None: no limit).
    Sizes may be texts."""

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        initial_pool_size: int | str | None = None,
        maximum_pool_size: int | str | None = None,
    ) -> None:
        given = half_of_free_memory() if initial_pool_size is None else initial_pool_size
        initial, maximum = self._sizes(given, maximum_pool_size)
        self._resource = create("pool", upstream_mr, initial_size=initial, maximum_size=maximum)

    @staticmethod
    def _sizes(*given: int | str | None) -> list[int | None]:
        """The initial and the maximum size in bytes, checked."""
        initial, maximum = sizes = [None if size is None else bytes_of(size) for size in given]
        for name, size in (("Initial", initial), ("Maximum", maximum)):
            if size is not None and size % 256:
                raise RuntimeError(f"{name} pool size is required to be a multiple of 256 bytes")
        if initial is not None and maximum is not None and initial > maximum:
            raise RuntimeError("Initial pool size exceeds the maximum pool size!")
        return sizes

    def pool_size(self) -> int:
        """The bytes that the pool holds from its upstream."""
        return self._resource.query("reserved_bytes")


class ArenaMemoryResource(UpstreamResourceAdaptor):
    """An arena of a fixed size (None: half of the free memory), of which threads and streams have parts."""

    def __init__(
        self, upstream_mr: DeviceMemoryResource, arena_size: int | str | None = None, dump_log_on_failure: bool = False
    ) -> None:
        size = half_of_free_memory() if arena_size is None else bytes_of(arena_size) & ~255
        if size < 1 << 20:
            raise RuntimeError("Arena size smaller than minimum superblock size.")
        self._resource = create(
            "arena",
            upstream_mr,
            maximum_size=size,
            dump_log_on_failure=bool(dump_log_on_failure),
            dump_log_file="rmm_arena_memory_dump.log",
        )
        prime(self._resource, size)


class FixedSizeMemoryResource(UpstreamResourceAdaptor):
    """Blocks of one size; larger requests raise MemoryError."""

    def __init__(
        self, upstream_mr: DeviceMemoryResource, block_size: int = 1 << 20, blocks_to_preallocate: int = 128
    ) -> None:
        size, count = size_of(block_size, "block_size"), size_of(blocks_to_preallocate, "blocks_to_preallocate")
        in_a_chunk = min(max(count // 8, 1), 4096)  # so that little more than these blocks is taken
        self._resource = create("fixed_size", upstream_mr, block_size=size, blocks_per_chunk=in_a_chunk)
        prime(self._resource, size, count)


class BinningMemoryResource(UpstreamResourceAdaptor):
    """Bins of sizes over an upstream for larger requests: one for each power of two between the exponents, and those of
    add_bin()."""

    def __init__(
        self, upstream_mr: DeviceMemoryResource, min_size_exponent: int = -1, max_size_exponent: int = -1
    ) -> None:
        for exponent in (min_size_exponent, max_size_exponent):
            if not -128 <= exponent <= 127:
                raise OverflowError("value too large to convert to int8_t")
        self._bins: dict[int, DeviceMemoryResource | None] = {}
        self._bin_mrs: list[DeviceMemoryResource] = []
        self._earlier: list[hipmm.Resource] = []
        if -1 not in (min_size_exponent, max_size_exponent):
            exponents = range(min_size_exponent, max_size_exponent + 1)
            self._bins = {aligned(1 << exponent): None for exponent in exponents}
        self._resource = self._build(self._bins)

    def _build(self, of: dict[int, DeviceMemoryResource | None]) -> hipmm.Resource:
        named = list({mr._resource for mr in of.values() if mr})
        bins = [{"size": size, **({"resource": mr._resource.name} if mr else {})} for size, mr in sorted(of.items())]
        return create("binning", self.upstream_mr, resources=named, bins=bins)

    def add_bin(self, allocation_size: int, bin_resource: DeviceMemoryResource | None = None) -> None:
        """Adds a bin for requests up to a size: of `bin_resource`, or of blocks of that size. A bin of the same size stays."""
        size = aligned(size_of(allocation_size, "allocation_size"))
        if bin_resource is not None and not isinstance(bin_resource, DeviceMemoryResource):
            raise TypeError(
                "Argument 'bin_resource' has incorrect type "
                f"(expected DeviceMemoryResource, got {type(bin_resource).__name__})"
            )
        if size not in self._bins:
            bins = {**self._bins, size: bin_resource}
            before, self._resource, self._bins = self._resource, self._build(bins), bins
            self._earlier.append(before)
            if hipmm.resource(device=before.device) == before:
                hipmm.set_resource(self._resource)
        if bin_resource is not None:
            self._bin_mrs.append(bin_resource)

    def deallocate(self, ptr: int, nbytes: int, stream: Stream = DEFAULT_STREAM) -> None:
        stream = as_stream(stream)
        for resource in self._earlier:
            try:
                return resource.deallocate(size_of(ptr), size_of(nbytes), stream)
            except hipmm.ArgumentError:
                pass  # a block from after the next add_bin()
        super().deallocate(ptr, nbytes, stream)

    @property
    def bin_mrs(self) -> list[DeviceMemoryResource]:
        """The resources that add_bin() was given."""
        return self._bin_mrs


# ---- Adaptors


class LimitingResourceAdaptor(UpstreamResourceAdaptor):
    """Raises MemoryError when more than `allocation_limit` bytes would be allocated at once."""

    def __init__(self, upstream_mr: DeviceMemoryResource, allocation_limit: int) -> None:
        self._limit = size_of(allocation_limit, "allocation_limit")
        self._resource = create("limiting", upstream_mr, limit=self._limit)

    def get_allocated_bytes(self) -> int:
        """The bytes that are allocated."""
        return self._resource.query("allocated_bytes")

    def get_allocation_limit(self) -> int:
        """The limit."""
        return self._limit


def _append_id(filename: str, id: int) -> str:
    """The name with ".devID" before its extension."""
    name, extension = os.path.splitext(filename)
    return f"{name}.dev{id}{extension}"


def _identity(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class LoggingResourceAdaptor(UpstreamResourceAdaptor):
    """Writes a row for each allocation and free into a file, which it begins anew; None: the one that RMM_LOG_FILE names."""

    _written: dict[str, tuple[int, int] | None] = {}  # the files of all adaptors so far

    def __init__(self, upstream_mr: DeviceMemoryResource, log_file_name: str | None = None) -> None:
        name = self._wanted(log_file_name)
        self._log_file_name = os.path.abspath(_append_id(os.fspath(name), _hipmm.current_device()))
        file = os.path.realpath(self._log_file_name)
        try:
            self._resource = self._open()
        except RuntimeError as error:
            cause, identity = error.__cause__, self._written.get(file)
            if not isinstance(cause, hipmm.ConfigError) or cause.path != "/file" or identity != _identity(file):
                raise
            os.unlink(file)  # an earlier adaptor, whose blocks live, writes it: its further rows have no name
            self._resource = self._open()
        self._written[file] = _identity(file)

    def _open(self) -> hipmm.Resource:
        return create("logging", self.upstream_mr, file=self._log_file_name.replace("%", "%%"))

    @staticmethod
    def _wanted(log_file_name: str | None) -> str:
        name = log_file_name or os.getenv("RMM_LOG_FILE")
        if not name:
            raise ValueError(
                "RMM log file must be specified either using log_file_name= argument or RMM_LOG_FILE environment variable"
            )
        return name

    def flush(self) -> None:
        """Writes all rows so far."""
        self._resource.perform("flush")

    def get_file_name(self) -> str:
        """The file, with its folder."""
        return self._log_file_name


class StatisticsResourceAdaptor(UpstreamResourceAdaptor):
    """Counts bytes and allocations: now, at their peak, and in all; with a stack of counters."""

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._resource = create("statistics", upstream_mr)

    @property
    def allocation_counts(self) -> Statistics:
        """The counters."""
        return Statistics(*self._resource._counters(0))

    def push_counters(self) -> Statistics:
        """The counters, and a new scope with zeroed ones."""
        return Statistics(*self._resource._counters(1))

    def pop_counters(self) -> Statistics:
        """The counters of the scope that ends here. The last one raises IndexError."""
        try:
            return Statistics(*self._resource._counters(2))
        except hipmm.StateError as error:
            raise IndexError("cannot pop the last counter pair") from error


class TrackingResourceAdaptor(UpstreamResourceAdaptor):
    """Keeps a list of live allocations, with stack traces if they are wanted."""

    def __init__(self, upstream_mr: DeviceMemoryResource, capture_stacks: bool = False) -> None:
        stacks = "all" if capture_stacks else "off"
        self._resource = create("tracking", upstream_mr, stacks=stacks, stack_sample=0, report_at_end=False)

    def get_allocated_bytes(self) -> int:
        """The bytes that are allocated."""
        return self._resource.query("outstanding_bytes")

    def get_outstanding_allocations_str(self) -> str:
        """The live allocations as text; empty if there are none."""
        return self._resource.report() if self._resource.query("outstanding_count") else ""

    def log_outstanding_allocations(self) -> None:
        """Writes the list to hipmm's log."""
        self._resource.perform("log_outstanding")


class FailureCallbackResourceAdaptor(UpstreamResourceAdaptor):
    """Calls a function with the bytes of an allocation that failed for want of memory; True from it: try again."""

    def __init__(self, upstream_mr: DeviceMemoryResource, callback: Callable[[int], bool]) -> None:
        self._callback = callback
        function: Callable[..., Any] = raising_rmm(callback)
        with rmm_errors:
            self._resource = _callbacks.create(
                "failure_callback",
                "callback",
                lambda name: _hipmm.register_failure_handler(name, function),
                [upstream_mr._resource],
            )


class PrefetchResourceAdaptor(UpstreamResourceAdaptor):
    """Moves managed memory to the device at each allocation."""

    def __init__(self, upstream_mr: DeviceMemoryResource) -> None:
        self._resource = create("prefetch", upstream_mr)
