# SPDX-License-Identifier: MIT
"""The steps of prove.py that run hipmm's own programs: the tests, data under work on streams, logs and the bench."""

import json
import sys
from pathlib import Path

from proof import mib, number

# The test programs that build stacks over a runtime of the caller's choice. Left out are tests that meet no device
# (tests/unit, tests/cmd, most of tests/unit, those of tests/unit/pool from inside), those over a fake driver
# (tests/runtimes/nvidia), those that count, order and fail calls as only the software device can (tests/runtimes/software, tests/fault,
# tests/unit/pool/test_order, tests/plugins/test_peers, test_sources), and tests/unit/test_torch, which looks into blocks from
# the host: PyTorch itself shows the same.
SUITE = [
    "tests/unit/test_buffer",
    "tests/unit/test_containers",
    "tests/unit/test_device_scope",
    "tests/unit/test_host_buffer",
    "tests/unit/test_stream",
    "tests/unit/test_stream_pool",
    "tests/unit/test_vector",
    "tests/devices/test_misuse",
    "tests/model/test_model",
    "tests/plugins/test_advise",
    "tests/plugins/test_aligned",
    "tests/plugins/test_arena",
    "tests/plugins/test_async",
    "tests/plugins/test_async_managed",
    "tests/plugins/test_async_view",
    "tests/plugins/test_behaviour",
    "tests/plugins/test_binning",
    "tests/plugins/test_callback",
    "tests/plugins/test_captures",
    "tests/plugins/test_failure_callback",
    "tests/plugins/test_fallback",
    "tests/plugins/test_fault",
    "tests/plugins/test_fixed_buffer",
    "tests/plugins/test_fixed_size",
    "tests/plugins/test_guard",
    "tests/plugins/test_hooks",
    "tests/plugins/test_limiting",
    "tests/plugins/test_logging",
    "tests/plugins/test_monotonic",
    "tests/plugins/test_pinned",
    "tests/plugins/test_pool",
    "tests/plugins/test_prefetch",
    "tests/plugins/test_recycled",
    "tests/plugins/test_reserving",
    "tests/plugins/test_served",
    "tests/plugins/test_share",
    "tests/plugins/test_span",
    "tests/plugins/test_span_cache",
    "tests/plugins/test_spilling",
    "tests/plugins/test_statistics",
    "tests/plugins/test_stream_reuse",
    "tests/plugins/test_sub_allocators",
    "tests/plugins/test_suspend",
    "tests/plugins/test_thread_safe",
    "tests/plugins/test_tracking",
    "tests/unit/pool/test_gate",
    "tests/unit/pool/test_growth",
    "tests/unit/pool/test_stress",
    "tests/unit/pool/test_threads",
]

# Without a GPU, a device whose memory the host cannot touch either.
CLOSED = {"HIPMM_SOFTWARE": "host_access=false,devices=1,memory=16GiB"}
ROOMY = {"HIPMM_SOFTWARE": "memory=64GiB"}  # for any of the logs


def suite(proof):
    for program in SUITE:
        name = program.rsplit("/", 1)[-1]
        if (proof.bundle / program).exists():
            closed = {} if proof.on_gpu else CLOSED
            proof.tap(name, proof.run([proof.bundle / program], 80, HIPMM_TEST_RUNS="1", **closed))
        else:
            proof.leave_out(name, "is not in the bundle")
    smoke = proof.bundle / "tests/runtimes/nvidia/gpu_smoke"
    if proof.runtime == "nvidia" and smoke.exists():
        done = proof.run([smoke, proof.bundle / "plugins/nvidia.so"], 60)
        proof.check("gpu_smoke", done.status == 0, done.last_words())
        proof.notes += [f"gpu_smoke: {line.strip()}" for line in done.out.splitlines()[-1:]]


# ---- Data


def integrity(proof):
    program = proof.bundle / "tests/devices/integrity"
    threads, seconds = (8, 1.5) if proof.on_gpu else (4, 0.5)
    figures = proof.table("data on 8 streams", ["stack", "allocations", "from another stream", "looks", "MiB looked at",
                                                "lost", "not ordered", "without waits"])
    names = proof.run([program, "--list"], 20).out.splitlines()
    proof.check("integrity --list", names, "says nothing")
    for i, line in enumerate(names):
        breaks, name = line[0] == "*" or (line[0] == "!" and not proof.on_gpu), line[2:]
        command = [program, "--row", i, "--threads", threads]
        done = proof.run([*command, "--seconds", seconds], 30)
        found = done.json() or {}
        proof.check(f"{name}: keeps data", done.status == 0 and found.get("looks", 0) > 100, done.last_words())
        noticed = "-"
        if breaks:
            broken = proof.run([*command, "--seconds", 3, "--break-waits"], 30)
            said = broken.json() or {}
            by_data = broken.status == 3 or said.get("failed")
            noticed = "noticed" if by_data and said.get("unordered") else "not noticed"
            proof.check(f"{name}: notices that nobody waits", noticed == "noticed", broken.last_words())
        figures.append([name, number(found.get("allocations"), 0), number(found.get("to_another_stream"), 0),
                        number(found.get("looks"), 0), mib(found.get("looked_bytes")), number(found.get("lost"), 0),
                        number(found.get("unordered"), 0), noticed])


# ---- Logs


def traces(proof):
    graphs = [("pool", proof.graph("pool", "device")),
              ("segments", proof.graph({"type": "pool", "growth": "segments"}, "device"))]
    figures = proof.table("logs, replayed three times", ["log", "pool", "requested MiB", "held MiB", "ratio",
                                                         "first ns", "later ns"])
    budgets = proof.table("the least budget of logs", ["log", "pool", "needed MiB", "ratio", "replays"])
    roomy = {} if proof.on_gpu else ROOMY
    logs = sorted((proof.bundle / "traces").glob("*.csv.xz"), key=lambda file: file.stat().st_size)
    proof.check("logs", logs, "there is none in the bundle")
    for log in logs:
        name, plain = log.name.removesuffix(".csv.xz"), proof.unpacked(log)
        for label, graph in graphs:
            done = proof.hipmm("replay", "--json", "--repeat", 3, "--config", graph, plain, limit=60, **roomy)
            found = done.json() or {}
            good = done.status == 0 and found.get("failures") == 0 and found.get("runtime") == proof.runtime
            proof.check(f"{name}, {label}", good, done.last_words())
            requested, held = found.get("peak_requested_bytes"), found.get("peak_reserved_bytes")
            figures.append([name, label, mib(requested), mib(held), number(found.get("overhead"), 3),
                            number(found.get("ns_per_op")), number(found.get("ns_per_op_warm"))])
            done = proof.hipmm("replay", "--json", "--fit", "--config", graph, plain, limit=120)
            fit = done.json() or {}
            good = done.status == 0 and requested and requested <= fit.get("needs_bytes", 0)
            proof.check(f"{name}, {label}: the least budget", good, done.last_words())
            budgets.append([name, label, mib(fit.get("needs_bytes")), number(fit.get("overhead"), 3),
                            number(fit.get("replays"), 0)])


def tune(proof):
    """The model of time beside this device: what `hipmm tune` chose, and the default stack, replayed here."""
    figures = proof.table("the graphs that `hipmm tune` chose, replayed here", [
        "log", "goal", "model ns", "of the default", "here ns", "of the default", "held MiB", "of the default"])
    stack = proof.graph("pool", "device")
    roomy = {} if proof.on_gpu else ROOMY
    for log in sorted((proof.bundle / "traces").glob("*.csv.xz"), key=lambda file: file.stat().st_size):
        name, plain = log.name.removesuffix(".csv.xz"), proof.unpacked(log)
        before = proof.hipmm("replay", "--json", "--config", stack, plain, limit=60, **roomy).json() or {}
        for goal in "both", "speed":
            done = proof.hipmm("tune", "--json", "--quick", "--seconds", 8, "--goal", goal, plain, limit=60)
            found = done.json() or {}
            if not proof.check(f"{name}, {goal}: tune", done.status == 0 and found, done.last_words()):
                continue
            winner = found["winner"]
            done = proof.hipmm("replay", "--json", "--config", proof.graph(*winner["graph"]["stack"]), plain, limit=60,
                               **roomy)
            after = done.json() or {}
            here, default = after.get("ns_per_op"), before.get("ns_per_op")
            proof.check(f"{name}, {goal}: replay", done.status == 0 and here and default, done.last_words())
            if proof.on_gpu and here and default and winner["driver_ns"] < found["default"]["driver_ns"] / 2:
                proof.check(f"{name}, {goal}: it is faster here too", here < default, f"{here} ns, by default {default}")
            figures.append([name, goal, number(winner["driver_ns"]), number(found["default"]["driver_ns"]), number(here),
                            number(default), mib(after.get("peak_reserved_bytes")), mib(before.get("peak_reserved_bytes"))])


# ---- The bench


def host(proof, workload, threads, live=1000):
    library = proof.bundle / "lib/libmimalloc.so.2"
    preload = {"LD_PRELOAD": str(library)} if library.exists() else {}
    program = proof.bundle / "tests/lab/bench/host_malloc"
    done = proof.run([program, workload, threads, live, 64 << 20, 0.5], 20, **preload)
    return (done.json() or {}).get("ns_per_op")


def bench(proof):
    graph = proof.graph("pool", "device")
    beside = "mimalloc" if (proof.bundle / "lib/libmimalloc.so.2").exists() else "malloc"
    figures = proof.table("ns an operation", ["workload", "threads", "hipmm", beside, "ratio", "p50", "p99", "max"])
    for workload, threads in [("pair", 1), ("pair", 4), ("pair", 16), ("random", 1), ("random", 4), ("random", 16),
                              ("cross", 1)]:
        done = proof.hipmm("bench", "--json", "--workload", workload, "--threads", threads, "--seconds", "1s",
                           "--config", graph, limit=30)
        found = done.json() or {}
        good = done.status == 0 and found.get("failures") == 0
        proof.check(f"{workload}, {threads} threads", good, done.last_words())
        ours, theirs = found.get("ns_per_op"), None if workload == "cross" else host(proof, workload, threads)
        ratio = ours / theirs if ours and theirs else None
        figures.append([workload, str(threads), number(ours), number(theirs), number(ratio, 2),
                        number(found.get("p50_ns")), number(found.get("p99_ns")), number(found.get("max_ns"), 0)])


def growth(proof):
    """The plots of doc/performance.md, which need a machine that is idle and has many cores, but no GPU."""
    result = proof.bundle / "growth.json"
    beside = {"MIMALLOC": str(proof.bundle / "lib/libmimalloc.so.2")}
    beside = beside if Path(beside["MIMALLOC"]).exists() else {}
    done = proof.run([sys.executable, "-B", proof.bundle / "tests/lab/bench/growth.py", proof.bundle, "--json", result], 235,
                     HIPMM_RUNTIME="software", HIPMM_CONFIG=None, **beside)
    if proof.check("growth", done.status == 0, done.last_words()):
        proof.notes.append(f"{result}; in a clone: tests/lab/bench/growth.py --from FILE")


# ---- Pinned memory

# Of the time until a block of hipHostMalloc can be used.
FAST_START = 0.6


def pinned(proof):
    """tests/lab/gpu/pinned.c: blocks of hipHostMalloc beside blocks that hipmm maps."""
    sizes = ["1GiB", "16GiB", "60GiB"] if proof.on_gpu else ["64MiB"]
    figures = proof.table("pinned memory", ["", "GiB", "allocate, s", "first write, s", "free, s", "to the device, GiB/s"])
    gib = 1 << 30
    for size in sizes:
        done = proof.run([proof.bundle / "tests/lab/gpu/pinned", size], 110)
        if not proof.check(f"gives {size} of pinned memory in each way", done.status == 0, done.last_words()):
            continue
        rows = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
        for row in rows:
            figures.append([row["way"], number(row["bytes"] / gib), number(row["allocate_s"], 3), number(row["first_write_s"], 3),
                            number(row["free_s"], 3), number(row["to_device_bytes_per_s"] / gib)])
        usable = [row["allocate_s"] + row["first_write_s"] for row in rows]
        if proof.on_gpu and size != "1GiB":
            proof.check("mapped memory can be used sooner", usable[-1] <= FAST_START * usable[0], f"{rows}")


# ---- Sleep and wake

# Of the bandwidth of a plain copy. What is saved needs host memory, which is cleared and pinned meanwhile.
SAVES, RESTORES = 0.5, 0.8
SAVES_TO_KEPT, RESTORES_KEPT = 0.8, 0.95


def sleep(proof):
    """tests/lab/gpu/sleep.c: what it says of itself, and two processes by turns."""
    program = proof.bundle / "tests/lab/gpu/sleep"
    roomy = {} if proof.on_gpu else {"HIPMM_SOFTWARE": "memory=2GiB"}
    done = proof.run([program, "60GiB" if proof.on_gpu else "300MiB"], 90, **roomy)
    found = done.json()
    if not proof.check("sleeps and wakes, with its data and its graph", done.status == 0 and found, done.last_words()):
        return
    proof.check("the device has the memory free", found["freed_bytes"] >= 0.95 * found["held_bytes"], f"{found}")
    saved, gib = found["saved_bytes"], 1 << 30
    save = saved / max(found["save_s"], 1e-9)
    restore = saved / max(found["restore_s"], 1e-9)
    if proof.on_gpu:
        proof.check("saves at 50 % of a plain copy's speed", save >= SAVES * found["to_host_bytes_per_s"], f"{found}")
        proof.check("restores at 80 % of a plain copy's speed", restore >= RESTORES * found["to_device_bytes_per_s"], f"{found}")
    figures = proof.table(f"sleep and wake of {saved / gib:.1f} GiB", ["", "seconds", "GiB/s", "a plain copy, GiB/s"])
    figures.append(["suspend", number(found["suspend_s"], 3), number(saved / found["suspend_s"] / gib), ""])
    figures.append(["  save", number(found["save_s"], 3), number(save / gib),
                    number(found["to_host_bytes_per_s"] / gib)])
    first = max(found["first_save_s"], 1e-9)
    figures.append(["  save, the first time", number(first, 3), number(saved / first / gib), ""])
    figures.append(["  give back", number(found["give_back_s"], 3), "", ""])
    figures.append(["resume", number(found["resume_s"], 3), number(saved / found["resume_s"] / gib), ""])
    figures.append(["  obtain", number(found["obtain_s"], 3), "", ""])
    figures.append(["  restore", number(found["restore_s"], 3), number(restore / gib),
                    number(found["to_device_bytes_per_s"] / gib)])
    figures.append(["suspend, discard", number(found["discard_s"], 3), "", ""])
    figures.append(["resume, discarded", number(found["resume_empty_s"], 3), "", ""])
    done = proof.run([program, "60GiB" if proof.on_gpu else "300MiB", "pinned_kept"], 90, **roomy)
    kept = done.json()
    if proof.check("keeps the pinned memory for the next sleep", done.status == 0 and kept, done.last_words()):
        save, restore = (kept["saved_bytes"] / max(kept[name], 1e-9) for name in ("save_s", "restore_s"))
        for name, speed, plain in ("save", save, kept["to_host_bytes_per_s"]), ("restore", restore, kept["to_device_bytes_per_s"]):
            figures.append([f"  {name}, kept", number(kept[f"{name}_s"], 3), number(speed / gib), number(plain / gib)])
        if proof.on_gpu:
            proof.check("saves at 80 % of a plain copy's speed", save >= SAVES_TO_KEPT * kept["to_host_bytes_per_s"], f"{kept}")
            proof.check("restores at 95 %", restore >= RESTORES_KEPT * kept["to_device_bytes_per_s"], f"{kept}")
    done = proof.run([program, "--turns", 60 if proof.on_gpu else 20], 90, **roomy)
    proof.check("two processes use the device by turns", done.status == 0, done.last_words())
