# SPDX-License-Identifier: MIT
"""What PyTorch's memory functions do, with the allocator that is in force: to be run by itself, under `hipmm run` with
HIPMM_TORCH=bridge, and with --use (hipmm.torch.use(bridge=True)). Each case is printed with "ok", or "FAIL" and why.

    torch_bridge.py [--use] [--native FILE] [CASE…]

FILE is what a run without hipmm printed: a case that failed there is skipped. Knows nothing of hipmm but for --use, so that what passes by itself has to pass with hipmm."""

import gc
import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing

MIB = 1 << 20
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def fresh():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


@case
def allocate():
    before = torch.cuda.memory_allocated()
    tensors = [torch.full((n * 1000,), n, device="cuda") for n in range(1, 200)]
    assert torch.cuda.memory_allocated() > before
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    assert all(int(tensor.sum()) == n * n * 1000 for n, tensor in enumerate(tensors, 1))
    del tensors
    assert torch.cuda.memory_allocated() == before, (torch.cuda.memory_allocated(), before)


@case
def figures():
    fresh()
    before = torch.cuda.memory_allocated()
    a = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() - before == 3 * MIB
    assert torch.cuda.max_memory_allocated() >= before + 3 * MIB
    stats = torch.cuda.memory_stats()
    assert stats["requested_bytes.all.current"] > 0 and stats["allocation.all.current"] > 0
    assert "memory" in torch.cuda.memory_summary().lower()
    torch.cuda.memory_snapshot()
    del a
    torch.cuda.reset_accumulated_memory_stats()
    raw = torch.cuda.caching_allocator_alloc(12345)
    assert torch.cuda.memory_allocated() > before
    torch.cuda.caching_allocator_delete(raw)
    assert torch.cuda.memory_allocated() == before
    torch.cuda.list_gpu_processes()


@case
def streams():
    side = torch.cuda.Stream()
    for _ in range(20):
        a = torch.ones(MIB, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            b = a * 2
            a.record_stream(side)
        del a
        c = torch.zeros(MIB, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        assert float(b.sum()) == 2 * MIB and float(c.sum()) == 0


@case
def capture():
    fresh()
    static = torch.zeros(MIB, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            (static * 2 + 1) @ torch.ones(MIB, device="cuda")
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = (static * 2 + 1) @ torch.ones(MIB, device="cuda")
    static.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert float(out) == 7 * MIB, float(out)
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other, pool=graph.pool()):
        again = static.cumsum(0)
    noise = [torch.randn(MIB, device="cuda") for _ in range(20)]
    graph.replay()
    other.replay()
    torch.cuda.synchronize()
    assert float(out) == 7 * MIB and float(again[-1]) == 3 * MIB
    del noise, out, again, graph, other
    fresh()


@case
def failed_capture():
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            torch.ones(10, device="cuda").item()
    except RuntimeError:
        pass
    del graph
    torch.cuda.synchronize()
    assert float(torch.ones(10, device="cuda").sum()) == 10
    capture()


@case
def callables():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).cuda()
    sample = torch.randn(8, 64, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(model, (sample,))
    real = torch.randn(8, 64, device="cuda", requires_grad=True)
    graphed(real).sum().backward()
    torch.cuda.synchronize()
    assert real.grad is not None and bool(torch.isfinite(real.grad).all())


@case
def mem_pool():
    fresh()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        a = torch.full((4 * MIB,), 5, dtype=torch.uint8, device="cuda")
    b = torch.full((4 * MIB,), 6, dtype=torch.uint8, device="cuda")
    segments = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(pool.id)]
    assert any(s["address"] <= a.data_ptr() < s["address"] + s["total_size"] for s in segments), segments
    assert not any(s["address"] <= b.data_ptr() < s["address"] + s["total_size"] for s in segments)
    assert int(a[7]) == 5 and int(b[7]) == 6
    del a
    del pool
    fresh()


@case
def history():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        a = torch.empty(7 * MIB, dtype=torch.uint8, device="cuda")
        b = torch.empty(1000, device="cuda")
        del b
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    pickle.dumps(snapshot)
    events = [event for trace in snapshot["device_traces"] for event in trace]
    mine = [event for event in events if event["action"] == "alloc" and event["size"] == 7 * MIB]
    assert mine, events[:3]
    assert any("torch_bridge.py" in frame["filename"] for frame in mine[-1]["frames"]), mine[-1]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    assert any(block["address"] == a.data_ptr() and block["state"] == "active_allocated" for block in blocks)
    assert {"free_requested", "free_completed"} <= {event["action"] for event in events}


@case
def out_of_memory():
    fresh()
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *words: seen.append(words))
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        raise AssertionError("it was allocated")
    except torch.OutOfMemoryError as error:
        print("   ", error)
        assert "Tried to allocate 1048576.00 GiB. GPU 0 has a total capacity of" in str(error)
    assert len(seen) == 1, seen
    assert torch.cuda.memory_stats()["num_ooms"] >= 1
    assert float(torch.ones(10, device="cuda").sum()) == 10


@case
def retry():
    fresh()
    size = int(torch.cuda.get_device_properties(0).total_memory * 0.55)
    a = torch.empty(size, dtype=torch.int8, device="cuda")
    try:
        torch.empty(size, dtype=torch.int8, device="cuda")
        raise AssertionError("it was allocated")
    except torch.OutOfMemoryError as error:
        print("   ", error)
    del a
    b = torch.empty(size, dtype=torch.int8, device="cuda")
    del b
    fresh()


@case
def fraction():
    fresh()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.25)
    try:
        if hasattr(torch.cuda, "get_per_process_memory_fraction"):
            assert abs(torch.cuda.get_per_process_memory_fraction() - 0.25) < 0.01
        a = torch.empty(int(total * 0.24) - torch.cuda.max_memory_reserved(), dtype=torch.int8, device="cuda")
        del a
        torch.cuda.empty_cache()
        try:
            torch.empty(int(total * 0.26), dtype=torch.int8, device="cuda")
            raise AssertionError("it was allocated")
        except torch.OutOfMemoryError as error:
            print("   ", error)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    fresh()


@case
def compiled():
    for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs"):
        torch._dynamo.reset()
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 128)).cuda()
        fast = torch.compile(model, mode=mode)
        for rows in (16, 32):
            x = torch.randn(rows, 128, device="cuda")
            for _ in range(4):
                torch.compiler.cudagraph_mark_step_begin()
                with torch.no_grad():
                    assert torch.allclose(fast(x), model(x), atol=1e-3), mode
        torch._dynamo.reset()
        fast = torch.compile(model, mode=mode)
        for _ in range(4):
            model.zero_grad(set_to_none=True)  # gradients of graphs last until the next step
            torch.compiler.cudagraph_mark_step_begin()
            fast(torch.randn(16, 128, device="cuda")).sum().backward()
    torch._dynamo.reset()
    fresh()


def _child(queue, answers):
    tensor = queue.get()
    tensor = pickle.loads(tensor) if isinstance(tensor, bytes) else tensor
    answers.put(float(tensor.sum()))
    tensor.add_(1)
    torch.cuda.synchronize()
    answers.put("done")
    queue.get()


def _share(tensor, sent):
    """Another process reads the ones of a tensor, and adds ones. `sent` is the tensor, or is pickled."""
    context = torch.multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=_child, args=(queue, answers))
    process.start()
    try:
        queue.put(sent)
        assert answers.get(timeout=60) == tensor.numel()
        assert answers.get(timeout=60) == "done"
        torch.cuda.synchronize()
        assert float(tensor.sum()) == 2 * tensor.numel()
        queue.put(None)
        process.join(30)
    finally:
        process.kill()


@case
def shared():
    for count in (100, 3 * MIB):
        tensor = torch.ones(count, device="cuda")
        other = torch.from_dlpack(tensor)  # of the memory that the tensor had before
        _share(tensor, tensor)
        after = [torch.zeros(count, device="cuda") for _ in range(4)]
        assert float(other.sum()) in (count, 2 * count) and not any(float(each.sum()) for each in after)


@case
def shared_beside_a_pool():
    """hipmm.torch.pool() refuses to share parts of its memory. Other tensors are shared as without it."""
    if "hipmm.torch" not in sys.modules:
        return
    import hipmm.torch

    pool = hipmm.torch.pool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(11 * MIB, device="cuda")
    outside = torch.empty(3 * MIB, device="cuda")
    assert len(outside.untyped_storage()._share_cuda_()) == 8
    del inside, outside, pool
    fresh()


@case
def shared_of_a_pool():
    """The other process has the tensor's data, or the tensor is refused and a copy has them."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        before = torch.zeros(11 * MIB, device="cuda")  # each is a segment
        tensor = torch.ones(11 * MIB, device="cuda")
    try:
        sent = bytes(ForkingPickler.dumps(tensor))
    except RuntimeError as error:
        assert "cannot be shared" in str(error)
        tensor = tensor.clone()
        sent = bytes(ForkingPickler.dumps(tensor))
    _share(tensor, sent)
    assert float(before.sum()) == 0
    del before, tensor, pool
    fresh()


@case
def lists():
    """Texts on the memory, and words that events carry."""
    assert isinstance(torch.cuda.list_gpu_processes(), str)
    if not hasattr(torch.cuda.memory, "_set_memory_metadata"):
        return
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        torch.cuda.memory._set_memory_metadata("step 7")
        assert torch.cuda.memory._get_memory_metadata() == "step 7"
        a = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
        torch.cuda.memory._set_memory_metadata("")
        b = torch.empty(6 * MIB, dtype=torch.uint8, device="cuda")
        events = [event for trace in torch.cuda.memory._snapshot()["device_traces"] for event in trace]
    finally:
        torch.cuda.memory._set_memory_metadata("")
        torch.cuda.memory._record_memory_history(enabled=None)
    of = {event["addr"]: event.get("user_metadata", "") for event in events if event["action"] == "alloc"}
    assert of[a.data_ptr()] == "step 7" and of[b.data_ptr()] == "", of


@case
def summary():
    """Figures, their peaks and resets, and snapshots agree, with tensors in and outside a private pool."""
    fresh()
    pool = torch.cuda.MemPool()
    before = torch.cuda.memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        with torch.cuda.use_mem_pool(pool):
            inside = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (3 * MIB, 100)]
        outside = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (5 * MIB, 1000)]
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    stats = torch.cuda.memory_stats()
    live = {block["address"]: block for segment in snapshot["segments"] for block in segment["blocks"]
            if block["state"] == "active_allocated"}
    for tensor in inside + outside:
        assert live[tensor.data_ptr()]["requested_size"] == tensor.nbytes
        assert any("torch_bridge.py" in frame["filename"] for frame in live[tensor.data_ptr()]["frames"])
    for figure, unit in (("allocated_bytes", "allocated_size"), ("reserved_bytes", "total_size"),
                         ("active_bytes", "active_size"), ("requested_bytes", "requested_size")):
        for kind in ("all", "small_pool", "large_pool"):
            found = sum(s[unit] for s in snapshot["segments"] if kind == "all" or s["segment_type"] + "_pool" == kind)
            assert stats[f"{figure}.{kind}.current"] == found, (figure, kind, stats[f"{figure}.{kind}.current"], found)
    grown = {key: stats[key] - before[key] for key in stats}
    assert grown["num_device_alloc"] >= 1 and grown["num_device_free"] >= 0
    assert grown["allocation.all.current"] == grown["active.all.current"] == 4
    assert grown["allocated_bytes.all.current"] == 8 * MIB + 512 + 1024
    assert grown["requested_bytes.all.current"] == 8 * MIB + 1100
    assert "from small pool" in torch.cuda.memory_summary() and "Active" in torch.cuda.memory_summary(abbreviated=True)
    del inside, outside, tensor
    now = torch.cuda.memory_allocated()
    assert torch.cuda.max_memory_allocated() >= now + 8 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == now == before["allocated_bytes.all.current"]
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
    del pool
    fresh()


@case
def raw():
    """What other libraries allocate through PyTorch counts like tensors."""
    fresh()
    before, address = torch.cuda.memory_allocated(), torch.cuda.caching_allocator_alloc(3 * MIB)
    assert torch.cuda.memory_allocated() == before + 3 * MIB
    side = torch.cuda.Stream()
    second = torch.cuda.caching_allocator_alloc(1000, stream=side)
    assert torch.cuda.memory_allocated() == before + 3 * MIB + 1024
    for each in (address, second):
        torch.cuda.caching_allocator_delete(each)
    assert torch.cuda.memory_allocated() == before


@case
def settings():
    """Changed at run time: sizes are rounded by what holds now."""
    fresh()
    change = torch.cuda.memory._set_allocator_settings
    before = torch.cuda.memory_allocated()

    def grown(nbytes):
        tensor = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        return torch.cuda.memory_allocated() - before

    assert grown(9 * MIB + 1) == 9 * MIB + 512
    change("roundup_power2_divisions:4,max_split_size_mb:100")
    try:
        assert grown(9 * MIB + 1) == 10 * MIB
    finally:
        change("roundup_power2_divisions:1")
    assert grown(9 * MIB + 1) == 9 * MIB + 512
    try:
        change("no_such_setting:1")
        raise AssertionError("it was taken")
    except (RuntimeError, ValueError):
        pass


@case
def kinds_of_pools():
    """use_on_oom: a pool that is idle serves what the rest of the device cannot; no_split: a block has its segment."""
    fresh()
    most = int(torch.cuda.mem_get_info()[0] * 0.6)
    last = torch.cuda.MemPool(use_on_oom=True)
    with torch.cuda.use_mem_pool(last):
        a = torch.empty(most, dtype=torch.uint8, device="cuda")
    address = a.data_ptr()
    del a
    b = torch.empty(most, dtype=torch.uint8, device="cuda")
    assert b.data_ptr() == address
    del b, last
    fresh()
    whole = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(whole):
        parts = [torch.empty(12 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
    segments = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(whole.id)]
    assert len(segments) == 3 and all(len(s["blocks"]) == 1 for s in segments), segments
    del parts, whole
    fresh()


OWN = """
#include <dlfcn.h>
#include <sys/types.h>
static long count;
static int (*find(const char *name))(void *, size_t) { return (int (*)(void *, size_t))dlsym(RTLD_DEFAULT, name); }
extern "C" void *own_malloc(ssize_t n, int, void *) { void *p = nullptr; count++; return find("cudaMalloc")(&p, n) ? nullptr : p; }
extern "C" void own_free(void *p, ssize_t, int, void *) { find("cudaFree")(p, 0); }
extern "C" long own_count() { return count; }
"""

OWN_PROGRAM = """
import ctypes, sys, warnings
import torch
own = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "own_malloc", "own_free")
count = ctypes.CDLL(sys.argv[1]).own_count
def use():
    if "use" in sys.argv:
        import hipmm.torch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hipmm.torch.use()
if "after" in sys.argv: use()
if "pool" in sys.argv:
    pool = torch.cuda.MemPool(own.allocator())
    outside = torch.empty(1000, device="cuda")
    assert count() == 0
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(1000, device="cuda")
    assert count() == 1
    del inside, pool
else:
    torch.cuda.memory.change_current_allocator(own)
    if "before" in sys.argv: use()
    tensor = torch.empty(1000, device="cuda")
    assert count() == 1
    try:
        torch.cuda.memory.change_current_allocator(own)
        raise AssertionError("it was changed")
    except RuntimeError as error:
        assert "already initialized" in str(error), error
    del tensor
print("good")
"""


@case
def own_allocator():
    """An allocator that the program has, put in before and after hipmm's and into a pool, serves what it is for."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "own.cpp"), os.path.join(folder, "own.so")
        with open(source, "w") as file:
            file.write(OWN)
        subprocess.run(["c++", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
        for words in (["before"], ["after"], ["pool", "after"]):
            words += ["use"] if "hipmm.torch" in sys.modules and "HIPMM_RUN_HOOK" not in os.environ else []
            done = subprocess.run([sys.executable, "-c", OWN_PROGRAM, library, *words], capture_output=True, text=True)
            assert done.stdout == "good\n", (words, done.stdout, done.stderr)
            said = [line for line in done.stderr.splitlines() if line.startswith("hipmm: ")]
            print("   ", *words, *said)


@case
def without_cache():
    """A block goes back to where it is from, whatever the setting is by then."""
    before = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_enable(False)
    try:
        a = torch.empty(MIB, device="cuda")
    finally:
        torch.cuda.caching_allocator_enable(True)
    b = torch.empty(MIB, device="cuda")
    del a
    torch.cuda.caching_allocator_enable(False)
    try:
        del b
    finally:
        torch.cuda.caching_allocator_enable(True)
    assert torch.cuda.memory_allocated() == before


@case
def speed():
    for size in (1000, 3 * MIB):
        for _ in range(2):
            start = time.perf_counter()
            for _ in range(100000):
                torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(size))
            took = time.perf_counter() - start
        empty = time.perf_counter()
        for _ in range(100000):
            torch.empty(size, dtype=torch.uint8, device="cuda")
        print(f"    {size} bytes: {took * 1e4:.0f} ns raw, {(time.perf_counter() - empty) * 1e4:.0f} ns torch.empty")


@case
def transformer():
    """Captured at eleven sizes in one pool."""
    fresh()
    free, before = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda", dtype=torch.half).eval()
    model = torch.nn.TransformerEncoder(layer, 6).half().cuda().eval()
    pool, graphs = None, []
    with torch.no_grad():
        for rows in (64, 56, 48, 40, 32, 24, 16, 8, 4, 2, 1):
            x = torch.randn(rows, 256, 512, device="cuda", dtype=torch.half)
            model(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                y = model(x)
            pool = pool or graph.pool()
            graphs.append((graph, x, y))
    for graph, _, _ in graphs:
        graph.replay()
    torch.cuda.synchronize()
    print(f"    held {torch.cuda.memory_reserved() / MIB:.0f} MiB, peak {torch.cuda.max_memory_reserved() / MIB:.0f} MiB; "
          f"the device has {(free - torch.cuda.mem_get_info()[0]) / MIB:.0f} MiB less free, after {before / MIB:.0f} MiB")
    del graphs
    fresh()


def main():
    words = sys.argv[1:]
    if "--use" in words:
        words.remove("--use")
        import hipmm.torch

        hipmm.torch.use(bridge=True)
    skipped = set()
    if "--native" in words:
        at = words.index("--native")
        with open(words[at + 1]) as lines:
            skipped = {line.split()[1] for line in lines if line.startswith("FAIL ")}
        del words[at : at + 2]
    print("PyTorch", torch.__version__, torch.cuda.get_device_name(), torch.cuda.get_allocator_backend())
    if os.environ.get("HIPMM_TORCH") == "bridge" and "hipmm.torch" in sys.modules:
        print("current:", sys.modules["hipmm.torch"]._current)
    failures = 0
    for name in words or CASES:
        if name in skipped:
            print("skip", name, "which fails without hipmm too", flush=True)
            continue
        try:
            CASES[name]()
            print("ok  ", name, flush=True)
        except Exception:
            failures += 1
            print("FAIL", name, flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{failures} failures")
    return failures != 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
        sys.exit(main())
