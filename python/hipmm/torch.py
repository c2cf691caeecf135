# SPDX-License-Identifier: MIT
"""PyTorch's device memory from hipmm.

    import hipmm.torch
    hipmm.torch.use()          # before all use of CUDA, torch.cuda.set_device() too

or, beside PyTorch's own allocator and with captured graphs:

    with torch.cuda.use_mem_pool(hipmm.torch.pool()):
        ...

Each allocation is from the resource that is in force on its device then, so that the program chooses, for all its threads:

    with hipmm.torch.region("weights"):
        model = Model().cuda()

torch.multiprocessing cannot send tensors on a device after use(): PyTorch's pluggable allocators have no IPC handles
("CUDAPluggableAllocator does not yet support shareIPcHandle"). It can send tensors of pool() if the graph has no
sub-allocator, as in {"stack": ["statistics", "device"]}: PyTorch treats each block of hipmm as an allocation of the
driver, and only such allocations can be shared. For a part of an allocation, such as a block of `pool` with "growth":
"segments", another process would read the data at the start of the allocation. Such a block, and mapped memory, raise an
error.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

import hipmm

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
PyTorch's allocator in force and have hipmm's memory where it is wanted:

    with torch.cuda.use_mem_pool(hipmm.torch.pool()):
        ..."""

_PART = """this tensor's memory cannot be shared with another process: hipmm has it as a part of an allocation of the
driver, or mapped. Give hipmm.torch.pool() a graph with no sub-allocator, such as {"stack": ["statistics", "device"]}."""


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def allocator() -> Any:
    """The allocator with all hooks, for change_current_allocator() or MemPool. Raises RuntimeError if this PyTorch cannot
    tell hipmm which streams use a block."""
    path = hipmm.library()
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(path, "hipmm_torch_malloc", "hipmm_torch_free")
    library = ctypes.CDLL(path)
    for setters, function in _HOOKS:
        for setter in setters:
            if hasattr(pluggable.allocator(), setter):
                getattr(pluggable.allocator(), setter)(_address(library, function))
                break
        else:
            if function == "hipmm_torch_record_stream":
                raise RuntimeError(
                    "this PyTorch has no set_record_stream_fn: Tensor.record_stream() would not be heard"
                )
    return pluggable


def use(graph: Any = None) -> Any:
    """Makes hipmm the allocator of this process, which must not have used CUDA before. An allocation that fails raises
    RuntimeError, "CUDA out of memory...". `graph`: for hipmm.init(), unless hipmm is initialised already.

    PyTorch does not check for NULL, so hipmm raises the error itself, with std::__throw_runtime_error.
    """
    if graph is not None:
        hipmm.init(graph)
    pluggable = allocator()
    try:
        torch.cuda.memory.change_current_allocator(pluggable)
    except RuntimeError as error:
        raise RuntimeError(_TOO_LATE) from error
    library = ctypes.CDLL(hipmm.library())
    library.hipmm_torch_on_failure.argtypes = [ctypes.c_void_p]
    library.hipmm_torch_on_failure.restype = None
    library.hipmm_torch_on_failure(_address(ctypes.CDLL("libstdc++.so.6"), "_ZSt21__throw_runtime_errorPKc"))
    return pluggable


def region(resource: str | hipmm.Resource, device: int | None = None) -> hipmm.using:
    """with region("weights"): the resource, or the one of this name on `device` (None: the current one), is in force on
    its device: for all threads, so that the backward pass has it too."""
    return hipmm.using(hipmm.resource(resource, device) if isinstance(resource, str) else resource)


# ---- Figures


def memory_stats(device: int | None = None) -> dict[str, int]:
    """hipmm's figures under PyTorch's names: "reserved_bytes.all.current" and ".peak" are what the stack holds from the
    runtime, "allocated_bytes.all.…" and "allocation.all.…" the counters of a `statistics` resource, if the stack has
    one."""
    now, peak = hipmm.held_bytes(device)
    stats = {"reserved_bytes.all.current": now, "reserved_bytes.all.peak": peak}
    try:
        counters = hipmm.statistics(hipmm.resource(device=device))
    except hipmm.ArgumentError:
        return stats
    for what, values in (("allocated_bytes", counters[0::2]), ("allocation", counters[1::2])):
        for name, value in zip(("current", "peak", "allocated"), values):
            stats[f"{what}.all.{name}"] = value
    return stats


def memory_summary(device: int | None = None) -> str:
    """The figures of memory_stats(), and what each resource of the device's stack says, as text."""
    number = hipmm.current_device() if device is None else device
    lines = [f"hipmm on device {number} ({hipmm.device_name(number)}), runtime {hipmm.runtime()}"]
    lines += [f"  {name:<32} {value:>20,}" for name, value in memory_stats(number).items()]
    for entry in hipmm.paths(f"devices/{number}"):
        if entry["kind"] == "value" and isinstance(entry["value"], int):
            lines.append(f"  {entry['path'].split('/', 2)[2]:<32} {entry['value']:>20,} {entry['unit']}")
    return "\n".join(lines)


_STATES = {"live": "active_allocated", "pending": "active_pending_free"}


def _holders(resource: hipmm.Resource) -> list[tuple[hipmm.Resource, list[Any]]]:
    """The topmost resources at or below `resource` that divide memory, or are sources, with their blocks."""
    try:
        blocks = resource.blocks()
    except hipmm.NotSupportedError:
        blocks = []
    upstreams = resource.upstreams
    if not upstreams or any(state != "live" for _, _, state, _, _ in blocks):
        return [(resource, blocks)]
    below = [holder for upstream in upstreams for holder in _holders(upstream)]
    return below if any(blocks for _, blocks in below) else [(resource, blocks)]


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
    from a file: pickle.dump(hipmm.torch.memory_snapshot(), open("snapshot.pickle", "wb")). A segment's type is the name
    of its resource."""
    segments: list[dict[str, Any]] = []
    built = {stack["device"] for stack in hipmm.snapshot()["stacks"]}
    for device in sorted(built):
        for resource, ranges in dict(_holders(hipmm.resource(device=device))).items():
            segments += _segments(resource, ranges)
    return {"segments": segments, "device_traces": [[] for _ in range(hipmm.device_count())], "allocator_settings": {}}


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
    library = ctypes.CDLL(hipmm.library())
    library.hipmm_torch_is_allocation.argtypes = [ctypes.c_void_p]
    library.hipmm_torch_base_alloc.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.hipmm_torch_base_alloc.restype = ctypes.c_void_p

    def guarded(storage: Any, *arguments: Any, **named: Any) -> Any:
        start = _segment(storage.data_ptr())
        if start and library.hipmm_torch_base_alloc(start, None) and not library.hipmm_torch_is_allocation(start):
            raise RuntimeError(_PART)
        return share(storage, *arguments, **named)

    guarded.hipmm = True  # type: ignore[attr-defined]
    torch.UntypedStorage._share_cuda_ = guarded


def pool() -> Any:
    """A MemPool whose memory comes from hipmm, and is divided by PyTorch's own allocator, which stays in force.

    See above for the graphs whose tensors can be sent to other processes.
    """
    pluggable = allocator()
    _guard_sharing()
    return torch.cuda.MemPool(pluggable.allocator())
