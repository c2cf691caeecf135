# SPDX-License-Identifier: MIT
"""hipmm.torch, hipmm.cupy, hipmm.cuda_core and hipmm.numba, with frameworks that stand in for the real ones; tests/lab/gpu has those."""

import ctypes
import pickle
import sys
from types import SimpleNamespace

import pytest

import hipmm

MIB = 1 << 20
GRAPH = {
    "runtime": "software",
    "resources": {
        "memory": {"type": "device"},
        "pool": {"type": "pool", "upstream": "memory"},
        "weights": {"type": "pool", "upstream": "memory"},
        "pinned": {"type": "pinned"},
        "managed": {"type": "managed"},
        "both": {"type": "fallback", "upstream": ["pool", "weights"]},
        "main": {"type": "statistics", "upstream": "both"},
    },
    "devices": {"default": "main"},
}

pytestmark = pytest.mark.graph(GRAPH)

# Each setter is given this function.
HOOKS = {
    "set_init_fn": "hipmm_torch_init",
    "set_reset_fn": "hipmm_torch_reset",
    "set_memory_fraction_fn": "hipmm_torch_memory_fraction",
    "set_base_alloc_fn": "hipmm_torch_base_alloc",
    "set_record_stream_fn": "hipmm_torch_record_stream",
    "set_begin_allocate_to_pool": "hipmm_torch_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "hipmm_torch_end_allocate_to_pool",
    "set_release_pool": "hipmm_torch_release_pool",
}


@pytest.fixture
def fakes(monkeypatch):
    """The stand-ins, importable during the test, with modules of hipmm that import them anew."""
    before = dict(sys.modules)
    sys.modules.pop("fakes", None)
    import fakes

    for name in ("torch", "cupy", "cuda_core", "numba"):
        sys.modules.pop(f"hipmm.{name}", None)
    fakes.install()
    yield fakes
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] in ("torch", "cupy", "cuda", "numba", "fakes") or name in (
            "hipmm.torch",
            "hipmm.cupy",
            "hipmm.cuda_core",
            "hipmm.numba",
        ):
            del sys.modules[name]


def live(name="pool"):
    return hipmm.query(f"devices/0/{name}/live_count")


def address(name):
    return ctypes.cast(getattr(ctypes.CDLL(hipmm.library()), name), ctypes.c_void_p).value


# ---- PyTorch


@pytest.fixture
def torch(fakes):
    import hipmm.torch

    yield hipmm.torch
    on_failure = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(hipmm._hipmm.function("hipmm_torch_on_failure"))
    on_failure(None)  # use() makes it throw


def test_torch_is_served(torch):
    allocator = torch.allocator()
    first, second = allocator.malloc(MIB, 0, None), allocator.malloc(3 * MIB, 0, None)
    assert first + MIB <= second or second + 3 * MIB <= first
    assert live() == 2
    allocator.free(first, MIB, 0, None)
    allocator.free(second, 3 * MIB, 0, None)
    assert live() == 0


def test_each_hook_gets_its_function(torch):
    given = torch.allocator().allocator().given
    assert given == {setter: address(function) for setter, function in HOOKS.items()}


def test_a_region_is_another_resource(torch):
    allocator = torch.allocator()
    first = allocator.malloc(MIB, 0, None)
    with torch.region("weights"):
        second = allocator.malloc(MIB, 0, None)
    third = allocator.malloc(MIB, 0, None)
    assert (live(), live("weights")) == (2, 1)
    with torch.region(hipmm.resource("weights")):
        allocator.free(first, MIB, 0, None)
    allocator.free(second, MIB, 0, None)
    allocator.free(third, MIB, 0, None)
    assert (live(), live("weights")) == (0, 0)


MAPPED = {name: {"type": "pool", "upstream": "memory", "growth": "mapped"} for name in ("main", "weights", "kv")}


@pytest.mark.graph({"runtime": "software", "resources": {"memory": {"type": "device"}, **MAPPED}, "devices": {"default": "main"}})
def test_segments_of_regions_sleep_and_wake(torch):
    """As an engine's: PyTorch's own allocator asks for segments by hipmm_torch_try_malloc() (the bridge), or by the function
    of pool()'s allocator."""
    try_malloc = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        address("hipmm_torch_try_malloc")
    )
    allocator = torch.allocator()

    def segment(region):
        block = ctypes.c_void_p()
        with torch.region(region):
            status = try_malloc(20 * MIB, 0, None, ctypes.byref(block))
        return status, block.value

    (_, weights), (_, cache) = segment("weights"), segment("kv")
    with torch.region("kv"):
        by_pool = allocator.malloc(20 * MIB, 0, None)
    data = bytes(range(256)) * (20 * MIB // 256)
    ctypes.memmove(weights, data, len(data))
    reserved, free = torch.memory_stats()["reserved_bytes.all.current"], hipmm.device_memory()[0]
    for level in (1, 2):
        hipmm.sleep("kv", keep=False)
        hipmm.sleep("weights", keep=level == 1)
        assert hipmm.device_memory()[0] - free == reserved >= 60 * MIB
        assert torch.memory_stats()["reserved_bytes.all.current"] == 0
        assert torch.memory_stats()["allocated_bytes.all.current"] == 60 * MIB
        assert segment("kv")[0] != 0
        with torch.region("kv"):
            assert allocator.malloc(20 * MIB, 0, None) is None
        awake = allocator.malloc(MIB, 0, None)  # of main
        assert awake
        allocator.free(awake, MIB, 0, None)
        hipmm.resource().trim()
        hipmm.wake("kv")
        hipmm.wake("weights")
        assert hipmm.device_memory()[0] == free
        if level == 1:
            assert ctypes.string_at(weights, len(data)) == data
        ctypes.memset(cache, 7, 20 * MIB)
    hipmm.sleep("kv", keep=False)
    allocator.free(cache, 20 * MIB, 0, None)
    hipmm.wake("kv")
    assert hipmm.query("devices/0/kv/live_bytes") == 20 * MIB
    for block in (by_pool, weights):
        allocator.free(block, 20 * MIB, 0, None)
    assert torch.memory_stats()["allocated_bytes.all.current"] == 0


def test_figures(torch):
    allocator = torch.allocator()
    block = allocator.malloc(5 * MIB, 0, None)
    stats = torch.memory_stats()
    assert stats["allocated_bytes.all.current"] == stats["allocated_bytes.all.peak"] == 5 * MIB
    assert stats["allocation.all.allocated"] == 1 and stats["reserved_bytes.all.current"] >= 5 * MIB
    assert torch.memory_stats("cuda:0") == torch.memory_stats(0) == stats
    allocator.free(block, 5 * MIB, 0, None)
    block = allocator.malloc(2 * MIB, 0, None)
    stats = torch.memory_stats()
    assert (stats["allocated_bytes.all.current"], stats["allocated_bytes.all.peak"]) == (2 * MIB, 5 * MIB)
    assert stats["allocated_bytes.all.freed"] == 5 * MIB and stats["allocation.all.freed"] == 1
    torch.reset_peak_memory_stats()
    stats = torch.memory_stats()
    assert stats["allocated_bytes.all.peak"] == 2 * MIB
    assert stats["reserved_bytes.all.peak"] == stats["reserved_bytes.all.current"]
    assert allocator.malloc(1 << 50, 0, None) is None  # in the peak is what was allocated
    assert torch.memory_stats()["allocated_bytes.all.peak"] == 2 * MIB
    summary = torch.memory_summary(0)
    assert "reserved_bytes.all.peak" in summary and "pool/live_bytes" in summary
    allocator.free(block, 2 * MIB, 0, None)


def test_pytorchs_own_figures_are_hipmms(torch, fakes):
    """Its pluggable allocators would refuse them: "does not yet support getDeviceStats"."""
    allocator = torch.use(pluggable=True)
    functions = fakes.torch_functions
    block = allocator.malloc(5 * MIB, 0, None)
    stats = functions._cuda_memoryStats(0)
    assert stats["allocated_bytes"]["all"] == stats["allocated_bytes"]["large_pool"]
    assert stats["allocated_bytes"]["all"]["current"] == stats["active_bytes"]["all"]["peak"] == 5 * MIB
    assert stats["reserved_bytes"]["all"]["current"] == hipmm.held_bytes()[0]
    assert stats["inactive_split"]["small_pool"] == dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
    allocator.free(block, 5 * MIB, 0, None)
    functions._cuda_resetPeakMemoryStats(0)
    functions._cuda_resetAccumulatedMemoryStats(0)
    assert functions._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"] == 0
    assert functions._cuda_memorySnapshot(None)["segments"] == torch.memory_snapshot()["segments"]
    with pytest.warns(UserWarning, match="no history"):
        functions._cuda_record_memory_history("all", "all", "all", 1)

def test_a_snapshot_in_the_form_of_pytorch(torch):
    import pickle
    import pickletools

    allocator = torch.allocator()
    blocks = [allocator.malloc(size, 0, None) for size in (3 * MIB, 1000, 5 * MIB)]
    allocator.free(blocks[1], 1000, 0, None)
    snapshot = pickle.loads(pickle.dumps(torch.memory_snapshot()))
    # The operations that the page's reader knows, whose numbers have at most eight bytes.
    known = {"PROTO", "FRAME", "MEMOIZE", "MARK", "APPEND", "APPENDS", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "BININT",
             "BININT1", "BININT2", "LONG1", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "SETITEM", "SETITEMS", "SHORT_BINUNICODE",
             "BINUNICODE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NEWTRUE", "NEWFALSE", "NONE", "BINFLOAT", "STOP"}
    data = pickle.dumps(torch.memory_snapshot(), protocol=4)
    for operation, value, place in pickletools.genops(data):
        assert operation.name in known and (operation.name != "LONG1" or data[place + 1] <= 8), (operation.name, value)
    parts = {block["address"]: block for segment in snapshot["segments"] for block in segment["blocks"]}
    assert parts[blocks[0]]["state"] == parts[blocks[2]]["state"] == "active_allocated"
    assert parts[blocks[0]]["requested_size"] == 3 * MIB
    for segment in snapshot["segments"]:
        ends = [block["address"] + block["size"] for block in segment["blocks"]]
        assert [segment["address"], *ends[:-1]] == [block["address"] for block in segment["blocks"]]
        assert segment["allocated_size"] <= segment["active_size"] <= segment["total_size"]
    assert sum(segment["requested_size"] for segment in snapshot["segments"]) == 8 * MIB
    allocator.free(blocks[0], 3 * MIB, 0, None)
    allocator.free(blocks[2], 5 * MIB, 0, None)


def test_pytorchs_page_can_read_the_snapshot(torch):
    """pytorch.org/memory_viz reads pickles of protocol 2 to 4 of these operations, and segments whose blocks add up."""
    import pickle
    import pickletools

    known = {
        *("PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "NONE"),
        *("APPEND", "APPENDS", "LIST", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT"),
        *("DICT", "SETITEM", "SETITEMS", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
        *("SHORT_BINUNICODE", "BINUNICODE"),
    }
    allocator = torch.allocator()
    blocks = [(allocator.malloc(size, 0, None), size) for size in (3 * MIB, 1000, 30 * MIB, 1 << 10, 700)]
    with torch.region("weights"):
        blocks.append((allocator.malloc(2 * MIB, 0, None), 2 * MIB))
    allocator.free(*blocks.pop(1), 0, None)
    snapshot = torch.memory_snapshot()
    operations = {operation.name for operation, _, _ in pickletools.genops(pickle.dumps(snapshot, 4))}
    assert operations <= known, operations - known
    for segment in snapshot["segments"]:
        assert len(snapshot["device_traces"]) > segment["device"] and isinstance(segment["stream"], int)
        sizes = [block["size"] for block in segment["blocks"]]
        assert sum(sizes) == segment["total_size"] and min(sizes) > 0
        assert all(block["requested_size"] <= block["size"] for block in segment["blocks"])
        assert {block["state"] for block in segment["blocks"]} <= {"active_allocated", "active_pending_free", "inactive"}
    live = {
        (block["address"], block["requested_size"])
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    assert live == set(blocks)
    for block, size in blocks:
        allocator.free(block, size, 0, None)


def test_hooks_do_as_they_are_called(torch):
    allocator = torch.allocator()
    given = allocator.allocator().given
    base = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))(
        given["set_base_alloc_fn"]
    )
    fraction = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)(given["set_memory_fraction_fn"])
    block, size = allocator.malloc(5 * MIB, 0, None), ctypes.c_size_t()
    fraction(6 * MIB / hipmm.device_memory()[1], 0)
    assert allocator.malloc(2 * MIB, 0, None) is None
    fraction(1, 0)
    allocator.free(block, 5 * MIB, 0, None)
    with torch.region("weights"):
        block = allocator.malloc(5 * MIB, 0, None)
        assert base(block, ctypes.byref(size)) == block and size.value == 5 * MIB
    allocator.free(block, 5 * MIB, 0, None)
    assert base(block, ctypes.byref(size)) is None


def test_record_stream_is_needed(torch, fakes, monkeypatch):
    monkeypatch.setattr(fakes._Hooks, "NAMES", [name for name in fakes._Hooks.NAMES if name != "set_record_stream_fn"])
    with pytest.raises(RuntimeError, match="set_record_stream_fn"):
        torch.allocator()


def test_use_says_what_to_do_when_it_is_too_late(torch, fakes, monkeypatch):
    monkeypatch.setattr(fakes, "torch_has_started", True)
    with pytest.raises(
        RuntimeError, match=r"^hipmm\.torch\.use\(\) was called after PyTorch's allocator had started"
    ) as caught:
        torch.use(pluggable=True)
    assert "with torch.cuda.use_mem_pool(hipmm.torch.pool()):" in str(caught.value)
    assert "already initialized" in str(caught.value.__cause__)
    assert fakes.torch_current == []


@pytest.fixture
def bridge(torch, monkeypatch):
    """_bridge.install(), which fails with what is in the list."""
    refusals, installed = [], []

    def install(module, may_be_newer):
        if refusals:
            raise torch._bridge.Unavailable(refusals[0])
        installed.append(module)

    monkeypatch.setattr(torch._bridge, "install", install)
    monkeypatch.delenv("HIPMM_TORCH", raising=False)
    return refusals, installed


def test_use_takes_the_bridge_once(torch, fakes, bridge):
    assert torch.use() is torch._bridge and torch.use() is torch._bridge and torch.use(pluggable=True) is torch._bridge
    assert len(bridge[1]) == 1 and fakes.torch_current == []


def test_pytorch_keeps_its_own_allocator_where_there_is_no_bridge(torch, fakes, bridge):
    bridge[0].append("no C++ compiler is found")
    figures = fakes.torch_functions._cuda_memoryStats
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="^PyTorch keeps its own allocator, and .*: no C\\+\\+ compiler is found") as said:
            assert torch.use() is None
        assert len(said) == 1 and "\n" not in str(said[0].message) and said[0].filename == __file__
    assert fakes.torch_current == [] and fakes.torch_functions._cuda_memoryStats is figures
    with pytest.raises(RuntimeError, match="^PyTorch keeps its own allocator: no C"):
        torch.use(bridge=True)
    assert torch.use(pluggable=True) is fakes.torch_current[0]


@pytest.mark.parametrize("how", [{"bridge": False}, "native"])
def test_pytorchs_own_allocator_stays_where_it_is_wanted(torch, fakes, bridge, monkeypatch, recwarn, how):
    if how == "native":
        monkeypatch.setenv("HIPMM_TORCH", how)
    assert torch.use(**({} if how == "native" else how)) is None
    assert fakes.torch_current == bridge[1] == [] and not recwarn.list


def test_the_environment_chooses(torch, fakes, bridge, monkeypatch):
    bridge[0].append("too old")
    monkeypatch.setenv("HIPMM_TORCH", "bridge")
    with pytest.raises(RuntimeError, match="^PyTorch keeps its own allocator: too old$"):
        torch.use()
    monkeypatch.setenv("HIPMM_TORCH", "plugable")
    with pytest.raises(ValueError, match="HIPMM_TORCH=plugable is not one of bridge, pluggable, native"):
        torch.use()
    with pytest.raises(ValueError, match="one of bridge=True and pluggable=True"):
        torch.use(bridge=True, pluggable=True)
    assert fakes.torch_current == []
    monkeypatch.setenv("HIPMM_TORCH", "pluggable")
    assert torch.use() is fakes.torch_current[0]


@pytest.mark.graph(None)
@pytest.mark.parametrize("has_file", [False, True])
def test_without_a_graph_the_bridge_has_a_pool(run, tmp_path, has_file):
    """What hipmm has without hipmm.json is a plain `device`, of which each block costs the runtime's own call."""
    import os

    if has_file:
        (tmp_path / "hipmm.json").write_text('{"stack": ["statistics", "device"]}')
    ended = run(
        "import os, sys; sys.path.insert(0, sys.argv[1]); import fakes; fakes.install(); os.chdir(sys.argv[2])\n"
        "from hipmm import _bridge; _bridge.install = lambda *_: None\n"
        "import hipmm.torch; hipmm.torch.use(); hipmm.init(); print(hipmm.resource().type); hipmm.init(); hipmm.init({})",
        os.path.dirname(__file__),
        str(tmp_path),
        code=1,
    )
    assert ended.stdout == ("statistics\n" if has_file else "pool\n")
    assert "StateError" in ended.stderr  # another graph than the one in use


def test_a_pool_shares_no_part_of_an_allocation(torch, fakes, monkeypatch):
    torch.pool()
    assert "set_record_stream_fn" in torch.pool().allocator.given
    allocator = torch.allocator()
    first, second = allocator.malloc(2 * MIB, 0, None), allocator.malloc(2 * MIB, 0, None)
    foreign = 1 << 40
    fakes.torch_segments[:] = [(first, 2 * MIB), (second, 2 * MIB), (foreign, 2 * MIB)]
    for start in first, second:  # the pool is mapped
        with pytest.raises(RuntimeError, match=r"(?s)a part of an allocation.*no sub-allocator"):
            fakes.UntypedStorage(start + 512)._share_cuda_()
    with monkeypatch.context() as patch:  # of the bridge, which moves it
        patch.setattr(torch._bridge, "has", lambda ptr: ptr == first + 512)
        assert fakes.UntypedStorage(first + 512)._share_cuda_() == "shared"
    assert fakes.UntypedStorage(foreign + 512)._share_cuda_() == "shared"
    assert fakes.UntypedStorage(1 << 41)._share_cuda_() == "shared"
    allocator.free(first, 2 * MIB, 0, None)
    allocator.free(second, 2 * MIB, 0, None)


@pytest.mark.graph({"runtime": "software", "stack": ["device"]})
def test_a_pool_shares_whole_allocations(torch, fakes):
    torch.pool()
    allocator = torch.allocator()
    start = allocator.malloc(2 * MIB, 0, None)
    fakes.torch_segments.append((start, 2 * MIB))
    assert fakes.UntypedStorage(start + 512)._share_cuda_() == "shared"
    allocator.free(start, 2 * MIB, 0, None)


@pytest.mark.parametrize("flags", [[], ["-DERROR_ALONE"]])
def test_out_of_memory_is_pytorchs_own_exception(run, tmp_path, flags):
    """c10::OutOfMemoryError, of which PyTorch makes torch.OutOfMemoryError."""
    import os
    import shutil
    import subprocess

    compiler = (os.environ.get("CXX") or "c++").split()  # empty where configure found none
    if not shutil.which(compiler[0]):
        pytest.skip("no C++ compiler")
    library = str(tmp_path / "libc10.so")
    source = os.path.join(os.path.dirname(__file__), "c10.cpp")
    subprocess.run([*compiler, "-std=c++17", *flags, "-shared", "-fPIC", "-o", library, source], check=True)
    ended = run(
        "import ctypes, sys, hipmm; from hipmm import _hipmm\n"
        "hipmm.init({'runtime': 'software', 'stack': ['pool', 'device']})\n"
        "c10 = ctypes.CDLL(sys.argv[1]); c10.try_allocation.restype = ctypes.c_char_p\n"
        "on_failure = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_hipmm.function('hipmm_torch_on_failure'))\n"
        "on_failure(_hipmm.torch_failure(sys.argv[1]))\n"
        "malloc = ctypes.c_void_p(_hipmm.function('hipmm_torch_malloc'))\n"
        "for nbytes in (1 << 50, 100, -5, 1 << 50):\n"
        "    print(c10.try_allocation(malloc, ctypes.c_ssize_t(nbytes)).decode())\n"
        "print(c10.count_alive(), hipmm.query('devices/0/pool/live_count'))",
        library,
    )
    lines = ended.stdout.splitlines()
    assert lines[0] == lines[3] and lines[0].startswith("memory: CUDA out of memory. hipmm: pool: cannot allocate 1 PiB")
    assert lines[1] == "" and lines[2].startswith("runtime: ") and lines[4] == "0 1"


def test_use_raises_what_pytorch_knows(run):
    """The stand-in has nobody who would catch C++'s exception."""
    import os

    ended = run(
        "import sys; sys.path.insert(0, sys.argv[1]); import fakes; fakes.install(); import hipmm.torch\n"
        "hipmm.torch.use({'runtime': 'software', 'stack': ['pool', 'device']}, pluggable=True)\n"
        "[allocator] = fakes.torch_current; print(bool(allocator.malloc(100, 0, None)), flush=True)\n"
        "allocator.malloc(1 << 50, 0, None)",
        os.path.dirname(__file__),
        code=-6,
    )
    assert ended.stdout == "True\n" and "CUDA out of memory. hipmm: " in ended.stderr and "1 PiB" in ended.stderr


# ---- CuPy


@pytest.fixture
def cupy(fakes):
    import hipmm.cupy

    return hipmm.cupy


def test_cupy_is_served(cupy, fakes):
    allocator = cupy.use()
    malloc = fakes.cupy_allocator[-1]
    first, second = malloc(MIB), malloc(3 * MIB)
    assert first.ptr + MIB <= second.ptr or second.ptr + 3 * MIB <= first.ptr
    assert live() == 2 and malloc(0).ptr == 0
    with hipmm.using(hipmm.resource("weights")):
        third = malloc(MIB)
    assert (live(), live("weights")) == (2, 1)
    del first, second, third
    assert (live(), live("weights")) == (0, 0) and allocator


def test_cupys_current_stream_counts(cupy, fakes):
    allocator = cupy.Allocator()
    streams = [hipmm.Stream(), hipmm.Stream()]
    for stream in streams * 2:
        fakes.cupy_stream[0] = fakes._Stream(stream.handle)
        allocator.malloc(MIB)
    assert fakes.CFunctionAllocator.params == [stream.handle for stream in streams]
    assert live() == 0


def test_cupy_is_told_why_there_is_no_memory(cupy, fakes):
    with pytest.raises(fakes.OutOfMemoryError) as caught:
        cupy.Allocator().malloc(1 << 50)
    assert isinstance(caught.value.__cause__, MemoryError) and "cannot allocate 1 PiB" in str(caught.value.__cause__)


def test_cupys_pool_answers_for_hipmms_memory(cupy, fakes):
    import cupy as library

    pool = cupy.use()
    assert library._default_memory_pool is pool and pool.used_bytes() == pool.n_free_blocks() == pool.get_limit() == 0
    first, second = pool.malloc(MIB), pool.malloc(3 * MIB)
    held, _ = hipmm.held_bytes()
    assert (pool.used_bytes(), pool.total_bytes(), pool.free_bytes()) == (4 * MIB, held, held - 4 * MIB)
    del second
    assert pool.used_bytes() == MIB and pool.n_free_blocks() >= 1 and pool.total_bytes() == held
    pool.free_all_blocks()
    assert MIB <= pool.total_bytes() <= held and pool.used_bytes() == MIB
    del first
    pool.free_all_blocks()
    assert pool.total_bytes() == pool.used_bytes() == 0


def test_cupys_limit_holds_for_what_the_stack_holds(cupy, fakes):
    fakes.cupy_limit[0] = 64 * MIB
    pool = cupy.use()
    assert pool.get_limit() == 64 * MIB
    block = pool.malloc(40 * MIB)
    with pytest.raises(fakes.OutOfMemoryError) as caught:
        pool.malloc(100 * MIB)
    size, held, limit = caught.value.args
    assert (size, limit) == (100 * MIB, 64 * MIB) and held > limit
    assert pool.used_bytes() == 40 * MIB and pool.total_bytes() <= 64 * MIB
    del block
    idle = pool.total_bytes()
    block = pool.malloc(48 * MIB)  # idle memory makes room for it
    assert idle and pool.total_bytes() <= 64 * MIB and pool.used_bytes() == 48 * MIB
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == hipmm.device_memory()[1] // 2
    pool.set_limit(0)
    assert pool.malloc(100 * MIB).ptr and pool.get_limit() == 0
    for wrong in ({}, {"size": 1, "fraction": 0.5}, {"fraction": 2}, {"size": -1}):
        with pytest.raises(ValueError):
            pool.set_limit(**wrong)
    assert pool.get_limit() == 0


# ---- cuda.core


@pytest.fixture
def cuda_core(fakes):
    import hipmm.cuda_core

    return hipmm.cuda_core


def test_cuda_core_is_served(cuda_core):
    resource, weights, stream = cuda_core.Resource(), cuda_core.Resource("weights"), hipmm.Stream()
    assert (resource.resource.name, weights.resource.name) == ("main", "weights")
    first, second = resource.allocate(MIB, stream=stream), resource.allocate(3 * MIB, stream=stream)
    third = weights.allocate(MIB, stream=stream)
    assert (first.size, live(), live("weights")) == (MIB, 2, 1) and first.memory_resource is resource
    assert first.handle + MIB <= second.handle or second.handle + 3 * MIB <= first.handle
    first.close()
    second.close(hipmm.Stream())
    third.close()
    assert (live(), live("weights")) == (0, 0)
    empty = resource.allocate(0, stream=stream)
    empty.close()
    assert live() == 0


def test_cuda_core_frees_in_the_order_of_the_buffers_stream(cuda_core):
    resource, streams = cuda_core.Resource(), [hipmm.Stream(), hipmm.Stream()]
    buffer = resource.allocate(MIB, stream=streams[0])
    address = buffer.handle
    buffer.close()
    again = resource.allocate(MIB, stream=streams[0])
    assert again.handle == address  # at once: it is behind the free in this stream
    again.close()


def test_an_older_cuda_core_is_refused(fakes, monkeypatch):
    import cuda.core

    monkeypatch.setattr(cuda.core, "__version__", "1.1.1")
    with pytest.raises(ImportError, match="needs cuda.core 1.2 or later, and this is 1.1.1"):
        import hipmm.cuda_core  # noqa: F401


def test_cuda_core_is_told_what_the_memory_is(cuda_core):
    device, pinned, managed = (cuda_core.Resource(name) for name in (None, "pinned", "managed"))
    assert [(r.is_device_accessible, r.is_host_accessible, r.is_managed) for r in (pinned, managed)] == [
        (True, True, False),
        (True, True, True),
    ]
    assert device.is_device_accessible and not device.is_managed and device.device_id == 0


def test_cuda_core_loses_nothing_when_a_buffer_cannot_be_made(cuda_core, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no buffer")

    with pytest.raises(MemoryError, match="1 PiB"):
        cuda_core.Resource().allocate(1 << 50)
    monkeypatch.setattr(cuda_core.Buffer, "from_handle", fail)
    with pytest.raises(RuntimeError, match="no buffer"):
        cuda_core.Resource().allocate(MIB)
    assert live() == 0


# ---- Numba


@pytest.fixture
def numba(fakes):
    import hipmm.numba

    return hipmm.numba


@pytest.fixture
def manager(numba):
    manager = numba.Manager(SimpleNamespace(device=SimpleNamespace(id=0)))
    manager.initialize()
    return manager


def test_numba_is_served(manager, numba, fakes):
    numba.use()
    assert fakes.numba_manager == [numba.Manager] and numba._numba_memory_manager is numba.Manager
    first, second = manager.memalloc(MIB), manager.memalloc(3 * MIB)
    assert (first.size, second.size, live()) == (MIB, 3 * MIB, 2)
    start, end = sorted((first.pointer.value, second.pointer.value))
    assert end - start >= MIB
    with hipmm.using(hipmm.resource("weights")):
        third = manager.memalloc(MIB)
    assert live("weights") == 1
    for pointer in (first, second, third):
        pointer.free()
    assert (live(), live("weights")) == (0, 0)


def test_numba_is_refused_once_it_has_a_manager(manager, numba, fakes):
    """Each context keeps the manager that it began with."""
    fakes.numba_devices[1] = SimpleNamespace(id=1, primary_context=SimpleNamespace(memory_manager=object()))
    with pytest.raises(hipmm.StateError, match="device 1 .* call hipmm.numba.use.. before"):
        numba.use()
    assert fakes.numba_manager == []
    fakes.numba_devices[1].primary_context.memory_manager = manager
    fakes.numba_devices[2] = SimpleNamespace(id=2, primary_context=None)
    numba.use()
    assert fakes.numba_manager == [numba.Manager]


def test_numba_frees_behind_all_that_streams_were_given(manager, numba, monkeypatch):
    calls, call = [], numba._runtime.call
    monkeypatch.setattr(
        numba._runtime, "call", lambda name, *rest: (calls.append((name, live())), call(name, *rest))[1]
    )
    pointer = manager.memalloc(MIB)
    pointer.free()
    assert calls[-2:] == [("hipEventRecord", 1), ("hipStreamWaitEvent", 1)] and live() == 0
    del calls[:]
    pointer.free()  # as a finalizer may, after a reset
    assert calls == []


def test_numba_frees_all_when_the_context_is_reset(manager):
    pointers = [manager.memalloc(MIB) for _ in range(3)]
    manager.allocations[123] = None  # host memory of Numba's own
    manager.reset()
    assert live() == 0
    for pointer in pointers:
        pointer.free()
    assert live() == 0


def test_numba_is_told_why_there_is_no_memory_and_what_there_is(manager, fakes):
    for kind in MemoryError, fakes.CudaAPIError:  # what programs catch without hipmm
        with pytest.raises(kind, match="CUDA_ERROR_OUT_OF_MEMORY.* hipmm: .*cannot allocate 1 PiB") as raised:
            manager.memalloc(1 << 50)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (raised.value.code, again.code, str(again)) == (2, 2, str(raised.value))
    info = manager.get_memory_info()
    assert (info.free, info.total) == hipmm.device_memory()


def test_no_library_is_loaded_by_a_vendors_name():
    import pathlib

    for file in pathlib.Path(hipmm.__file__).parent.rglob("*.py"):
        assert "libcuda" not in file.read_text() and "libcudart" not in file.read_text(), file
