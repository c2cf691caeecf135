# SPDX-License-Identifier: MIT
"""PyTorch's device memory from hipmm.

    import hipmm.torch
    hipmm.torch.use()          # before all use of CUDA, torch.cuda.set_device() too

or, beside PyTorch's own allocator and with captured graphs:

    with torch.cuda.use_mem_pool(hipmm.torch.pool()):
        ...

Each allocation uses the resource that is current on its device at that moment. The program chooses it for all its threads:

    with hipmm.torch.region("weights"):
        model = Model().cuda()

torch.multiprocessing can send tensors on a device after use(), except for tensors of private pools whose memory is a part of
an allocation. After use(pluggable=True) it cannot: PyTorch's pluggable allocators have no IPC handles
("CUDAPluggableAllocator does not yet support shareIPcHandle"). Tensors of pool() can be sent if the graph has no
sub-allocator, as in {"stack": ["statistics", "device"]}: PyTorch treats each block of hipmm as an allocation of the
driver, and only such allocations can be shared. For a part of an allocation, such as a block of `pool` with "growth":
"segments", another process would read the data at the start of the allocation. Such a block, and mapped memory, raise an
error.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any

import torch

import hipmm
from hipmm import _bridge, _hipmm
from hipmm._blocks import block_holders

# The setter (the first of these names that this PyTorch has), and its function.
_HOOKS = (
    (("set_init_fn",), "hipmm_torch_init"),
    (("set_reset_fn",), "hipmm_torch_reset"),
    (("set_memory_fraction_fn",), "hipmm_torch_memory_fraction"),
    (("set_base_alloc_fn",), "hipmm_torch_base_alloc"),
    (("set_record_stream_fn",), "hipmm_torch_record_stream"),
    (("set_begin_allocate_to_pool", "set_begin_allocate_to_pool_fn"), "hipmm_torch_begin_allocate_to_pool"),
    (("set_end_allocate_to_pool_fn", "set_end_allocate_to_pool"), "hipmm_torch_end_allocate_to_pool"),
    (("set_release_pool", "set_release_pool_fn"), "hipmm_torch_release_pool"),
)

_TOO_LATE = """hipmm.torch.use() was called after PyTorch's allocator had started, and PyTorch cannot exchange it then.
Call use() once, before torch.cuda.set_device(), the first tensor on a device and all else that uses CUDA; or leave
PyTorch's allocator in use and take hipmm's memory in parts of the program:

    with torch.cuda.use_mem_pool(hipmm.torch.pool()):
        ..."""

_PART = """this tensor's memory cannot be shared with another process: hipmm has it as a part of an allocation of the
driver, or mapped. Give hipmm.torch.pool() a graph with no sub-allocator, such as {"stack": ["statistics", "device"]}."""


def allocator() -> Any:
    """The allocator with all hooks, for change_current_allocator() or MemPool. Raises RuntimeError if this PyTorch cannot
    tell hipmm which streams use a block."""
    prefix = "hipmm_run_torch_" if _hipmm.is_under_run() else "hipmm_torch_"  # for the report
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(hipmm.library(), prefix + "malloc", prefix + "free")
    for setters, function in _HOOKS:
        for setter in setters:
            if hasattr(pluggable.allocator(), setter):
                getattr(pluggable.allocator(), setter)(_hipmm.function(function))
                break
        else:
            if function == "hipmm_torch_record_stream":
                raise RuntimeError(
                    "this PyTorch has no set_record_stream_fn: Tensor.record_stream() would not be heard"
                )
    return pluggable


_KINDS = ("bridge", "pluggable", "native")
_POOL, _POOL_OF_SEGMENTS = -1, -2  # of hipmm_torch_init()

_current: Any = None  # what use() returned
_reason: str | None = None  # why PyTorch keeps its own allocator, once that was found; "": it is wanted


def _kind(bridge: bool | None, pluggable: bool) -> str:
    """One of _KINDS that the program or the environment wants; "": the best."""
    if bridge and pluggable:
        raise ValueError("hipmm.torch.use() takes one of bridge=True and pluggable=True")
    if pluggable or bridge is not None:
        return "pluggable" if pluggable else "bridge" if bridge else "native"
    wanted = os.environ.get("HIPMM_TORCH", "")
    if wanted and wanted not in _KINDS:
        raise ValueError(f"HIPMM_TORCH={wanted} is not one of {', '.join(_KINDS)}")
    return wanted


def _take_pool() -> None:
    """Without a graph, PyTorch gets a pool."""
    start = ctypes.CFUNCTYPE(None, ctypes.c_int)(_hipmm.function("hipmm_torch_init"))
    start(_POOL_OF_SEGMENTS if _hipmm.is_under_run() else _POOL)


def _use_bridge(is_wanted: bool) -> Any:
    _bridge.install(torch, is_wanted)
    _take_pool()
    return _bridge


def _use_pluggable() -> Any:
    pluggable = allocator()
    try:
        torch.cuda.memory.change_current_allocator(pluggable)
    except RuntimeError as error:
        raise RuntimeError(_TOO_LATE) from error
    _take_pool()
    on_failure = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_hipmm.function("hipmm_torch_on_failure"))
    on_failure(_hipmm.torch_failure(getattr(getattr(torch, "_C", None), "__file__", None) or ""))
    _answer_for_pytorch()
    return pluggable


def _take(kind: str) -> str:
    """Puts an allocator into PyTorch, once. Returns why PyTorch keeps its own, although nobody has asked for that; else ""."""
    global _current, _reason
    if _current is not None or (_reason is not None and not kind):
        return _reason or ""
    try:
        if kind != "native":
            _current = _use_pluggable() if kind == "pluggable" else _use_bridge(kind == "bridge")
        _reason = ""
    except (_bridge.Unavailable, OSError, AttributeError) as error:
        if kind:
            raise RuntimeError(f"PyTorch keeps its own allocator: {error}") from None
        _reason = str(error)
    return _reason


def _take_under_run() -> str | None:
    """For the hook of `hipmm run`: why there is no bridge, if nobody has asked for that."""
    reason = _take(_kind(None, False))
    return f"{reason}. Its memory is still hipmm's, as the runtime's calls are served" if reason else None


def use(graph: Any = None, *, bridge: bool | None = None, pluggable: bool = False) -> Any:
    """Makes hipmm the allocator of this process, which must not have used CUDA before; again: no effect. `graph`: for
    hipmm.init(), unless hipmm is initialised already. Without a graph and a file of one: a pool over `device`.

    It does so by the bridge: a full allocator of PyTorch's, compiled at its first use, with which private pools, memory
    histories and PyTorch's own figures work as without hipmm. Where there is none for this PyTorch, PyTorch keeps its own
    allocator and a RuntimeWarning says why; under `hipmm run` that allocator's memory comes from hipmm too. With
    bridge=True, or HIPMM_TORCH=bridge in the environment, that is a RuntimeError. bridge=False, or HIPMM_TORCH=native,
    leaves PyTorch's own allocator. Returns None where PyTorch keeps it.

    A graph with functions in Python (failure_callback, callback) does not go with private pools: PyTorch asks for their
    memory under its allocator's lock. A thread that has Python's global lock and waits for that one, as in
    torch.cuda.memory_stats(), keeps the function from running: both hang.

    pluggable=True, or HIPMM_TORCH=pluggable: by PyTorch's interface for other allocators, which all releases have, and
    which has no private pools, histories and shared tensors. An allocation that fails raises torch.OutOfMemoryError,
    "CUDA out of memory. hipmm: ...", with the reason; before PyTorch 2.6 it raises RuntimeError with the same text.
    PyTorch's own figures, such as torch.cuda.memory_allocated(), memory_stats(), memory_summary() and memory._snapshot(),
    are those of the functions below from then on.
    """
    if graph is not None:
        hipmm.init(graph)
    kind = _kind(bridge, pluggable)
    reason = _take(kind)
    if reason:
        own = "PyTorch keeps its own allocator"
        if _hipmm.is_under_run():
            own += " over hipmm's memory"
        else:
            own += ", and hipmm serves none of its memory (under `hipmm run` it would)"
        warnings.warn(f"{own}: {reason}", RuntimeWarning, stacklevel=2)
    return _current


def region(resource: str | hipmm.Resource, device: int | None = None) -> hipmm.using:
    """with region("weights"): the resource, or the one of this name on `device` (None: the current one), is current on
    its device for all threads, so that the backward pass uses it too."""
    return hipmm.using(hipmm._on(resource, device) if isinstance(resource, (str, hipmm.Resource)) else resource)


# ---- Figures


def _number(device: Any) -> int:
    """A device's number: of an int, a torch.device, a text such as "cuda:1", or None."""
    if device is None or isinstance(device, int):
        return hipmm.current_device() if device is None else device
    index = torch.device(device).index
    return hipmm.current_device() if index is None else int(index)


def _known_stats(device: int) -> dict[str, dict[str, int]]:
    """What hipmm counts: by PyTorch's name of a figure, and "current", "peak", "allocated" or "freed"."""
    held, held_peak = hipmm.held_bytes(device)
    live, live_peak = _hipmm.torch_memory(device)
    known = {"reserved_bytes": {"current": held, "peak": held_peak}}
    for name in ("allocated_bytes", "active_bytes", "requested_bytes"):
        known[name] = {"current": live, "peak": live_peak}
    try:
        counters = hipmm.statistics(hipmm.resource(device=device))
    except hipmm.ArgumentError:
        return known
    live, _, total = counters[0::2]
    now, peak, allocated = counters[1::2]
    known["allocated_bytes"].update(allocated=total, freed=total - live)
    known["allocation"] = {"current": now, "peak": peak, "allocated": allocated, "freed": allocated - now}
    return known


_STATS = (
    *("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes"),
    *("inactive_split_bytes", "requested_bytes"),
)
_COUNTS = (
    *("num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams", "num_device_alloc"),
    "num_device_free",
)


def _stats_of_pytorch(device: int) -> dict[str, Any]:
    """The figures as torch._C._cuda_memoryStats() nests them, with all of PyTorch's names: what hipmm does not count is 0, as
    PyTorch has it for its other allocators. There is no pool for small blocks, so "all" and "large_pool" are the same."""
    _hipmm.start_if_needed()
    known = _known_stats(device)
    zeros = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
    stats: dict[str, Any] = {}
    for name in _STATS:
        full = {**zeros, **known.get(name, {})}
        stats[name] = {"all": full, "large_pool": dict(full), "small_pool": dict(zeros)}
    stats.update({name: dict(zeros) for name in ("oversize_allocations", "oversize_segments")})
    return {**stats, **dict.fromkeys(_COUNTS, 0)}


def memory_stats(device: Any = None) -> dict[str, int]:
    """hipmm's figures under PyTorch's names: "reserved_bytes.all.current" and ".peak" are what the stack holds from the
    runtime, "allocated_bytes.all.current" and ".peak" what PyTorch's tensors have of it. "allocation.all.…" and
    "allocated_bytes.all.allocated" are counters of a `statistics` resource, where the stack has one."""
    known = _known_stats(_number(device))
    return {f"{name}.all.{key}": value for name, values in known.items() for key, value in values.items()}


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts the peaks of memory_stats() again from what is held and allocated now: those of all resources of the device's
    stack."""
    number = _number(device)
    _hipmm.torch_memory(number, True)
    hipmm.resource(device=number).reset_peaks()


def memory_summary(device: Any = None) -> str:
    """The figures of memory_stats(), and what each resource of the device's stack says, as text."""
    number = _number(device)
    lines = [f"hipmm on device {number} ({hipmm.device_name(number)}), runtime {hipmm.runtime()}"]
    lines += [f"  {name:<32} {value:>20,}" for name, value in memory_stats(number).items()]
    for entry in hipmm.paths(f"devices/{number}"):
        if entry["kind"] == "value" and isinstance(entry["value"], int):
            lines.append(f"  {entry['path'].split('/', 2)[2]:<32} {entry['value']:>20,} {entry['unit']}")
    return "\n".join(lines)


_STATES = {"live": "active_allocated", "pending": "active_pending_free"}


def _segments(resource: hipmm.Resource, ranges: list[Any]) -> list[dict[str, Any]]:
    """The ranges of a resource as segments of PyTorch's: a range that begins a block of an upstream begins a segment."""
    segments: list[dict[str, Any]] = []
    for address, nbytes, state, stream, begins in sorted(ranges):
        if begins or not segments:
            segments.append({"address": address, "stream": stream, "blocks": []})
        blocks = segments[-1]["blocks"]
        if blocks:
            blocks[-1]["size"] = address - blocks[-1]["address"]
        blocks.append(
            {
                "address": address,
                "size": nbytes + 511 & ~511,
                "requested_size": nbytes,
                "state": _STATES.get(state, "inactive"),
                "frames": [],
            }
        )
    for segment in segments:
        blocks = segment["blocks"]
        live = [block for block in blocks if block["state"] == "active_allocated"]
        active = sum(block["size"] for block in blocks if block["state"] != "inactive")
        segment.update(
            device=resource.device,
            total_size=sum(block["size"] for block in blocks),
            allocated_size=sum(block["size"] for block in live),
            requested_size=sum(block["requested_size"] for block in live),
            active_size=active,
            segment_type=resource.name,
            segment_pool_id=(0, 0),
            is_expandable=False,
            frames=[],
        )
    return segments


def memory_snapshot() -> dict[str, Any]:
    """The memory of all devices in the form of torch.cuda.memory._snapshot(), which the page pytorch.org/memory_viz reads
    from a file: pickle.dump(hipmm.torch.memory_snapshot(), open("snapshot.pickle", "wb"), protocol=4). The page does not read
    protocol 5, Python's default from 3.14 on. A segment's type is the name of its resource."""
    segments: list[dict[str, Any]] = []
    built = {stack["device"] for stack in hipmm.snapshot()["stacks"]}
    for device in sorted(built):
        for resource, ranges in block_holders(hipmm.resource(device=device)).items():
            segments += _segments(resource, ranges)
    return {"segments": segments, "device_traces": [[] for _ in range(hipmm.device_count())], "allocator_settings": {}}


def _refuse_history(*_: Any) -> None:
    warnings.warn(
        "hipmm keeps no history of allocations for PyTorch: a snapshot has the memory of its moment. For the stack of each "
        'live block put {"type": "tracking", "stacks": "all"} into the graph',
        stacklevel=3,
    )


def _answer_for_pytorch() -> None:
    """PyTorch's functions on memory, which a pluggable allocator refuses ("does not yet support getDeviceStats"), ask these
    functions of torch._C. A program that prints torch.cuda.memory_allocated() goes on, with hipmm's figures."""
    module = getattr(torch, "_C", None)
    for name, function in (
        ("_cuda_memoryStats", _stats_of_pytorch),
        ("_cuda_resetPeakMemoryStats", reset_peak_memory_stats),
        ("_cuda_resetAccumulatedMemoryStats", lambda device: None),
        ("_cuda_memorySnapshot", lambda *_: memory_snapshot()),
        ("_cuda_record_memory_history", _refuse_history),
        ("_cuda_record_memory_history_legacy", _refuse_history),
    ):
        if hasattr(module, name):
            setattr(module, name, function)


# ---- A pool beside PyTorch's allocator


def _segment(address: int) -> int | None:
    """The start of the segment of PyTorch's own allocator that contains the address; None if there is none."""
    for segment in torch.cuda.memory_snapshot():
        if segment["address"] <= address < segment["address"] + segment["total_size"]:
            return int(segment["address"])
    return None


def _guard_sharing() -> None:
    """Checks, before PyTorch shares a storage, that its segment is an allocation of the driver, as PyTorch assumes.
    Otherwise the other process would read other data."""
    share = getattr(torch.UntypedStorage, "_share_cuda_", None)
    if share is None or hasattr(share, "hipmm"):
        return
    is_allocation = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_hipmm.function("hipmm_torch_is_allocation"))
    base_alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        _hipmm.function("hipmm_torch_base_alloc")
    )

    def guarded(storage: Any, *arguments: Any, **named: Any) -> Any:
        start = None if _bridge.has(storage.data_ptr()) else _segment(storage.data_ptr())
        if start and base_alloc(start, None) and not is_allocation(start):
            raise RuntimeError(_PART)
        return share(storage, *arguments, **named)

    guarded.hipmm = True  # type: ignore[attr-defined]
    torch.UntypedStorage._share_cuda_ = guarded


def pool() -> Any:
    """A MemPool whose memory comes from hipmm, and is divided by PyTorch's own allocator, which stays in use.

    See above for the graphs whose tensors can be sent to other processes.
    """
    pluggable = allocator()
    _guard_sharing()
    return torch.cuda.MemPool(pluggable.allocator())
