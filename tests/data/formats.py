#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the logs of other tools beside this file, of one invented program each, as the tools' documents describe them:

    python3 tests/data/formats.py

They are hand-made: the pickles are Python's own, and the database is SQLite's own, but no tool wrote their contents.
"""
import json
import pathlib
import pickle
import sqlite3

HERE = pathlib.Path(__file__).parent
BASE = 0x7F2C40000000
EPOCH_US = 1763892000_000000  # 2025-11-23 10:00:00 UTC


def frames(*names):
    files = {"forward": ("model.py", 41), "step": ("train.py", 88), "main": ("train.py", 120), "load": ("data.py", 17)}
    return [{"filename": f"/home/user/{files[n][0]}", "line": files[n][1], "name": n} for n in names]


def snapshot():
    """torch.cuda.memory._snapshot() of 2.6: weights of before the history, two steps, a failed allocation, a block that
    lives on; a second device without events."""
    forward, load, main = frames("forward", "step", "main"), frames("load", "main"), frames("main")
    t = EPOCH_US
    trace = []

    def event(action, addr, size, stream=0, stack=None, **more):
        nonlocal t
        t += 250
        trace.append({"action": action, "addr": addr, "frames": stack or [], "size": size, "stream": stream, "time_us": t,
                      "compile_context": "N/A", **more})

    event("segment_alloc", BASE + 0x200000, 20971520, stack=forward)
    for step in range(2):
        event("alloc", BASE + 0x200000, 8388608, stack=forward)
        event("alloc", BASE + 0xA00000, 4194300, stream=94114, stack=load)
        event("free_requested", BASE + 0xA00000, 4194300, stream=94114, stack=main)
        event("free_requested", BASE + 0x200000, 8388608, stack=main)
        event("free_completed", BASE + 0x200000, 8388608, stack=main)
        event("free_completed", BASE + 0xA00000, 4194300, stream=94114, stack=main)
    event("free_requested", BASE + 0x100000, 1048000, stack=main)
    event("free_completed", BASE + 0x100000, 1048000, stack=main)
    event("oom", 0, 85899345920, stack=forward, device_free=1073741824)
    event("alloc", BASE + 0x200000, 16777216, stack=forward)
    event("snapshot", 0, 0)
    blocks = [
        {"address": BASE, "size": 1048576, "requested_size": 1000000, "state": "active_allocated", "frames": load},
        {"address": BASE + 0x100000, "size": 1048576, "requested_size": 0, "state": "inactive", "frames": []},
    ]
    big = [
        {"address": BASE + 0x200000, "size": 16777216, "requested_size": 16777216, "state": "active_allocated",
         "frames": forward},
        {"address": BASE + 0x1200000, "size": 4194304, "requested_size": 0, "state": "inactive", "frames": []},
    ]

    def segment(address, total, blocks):
        active = sum(b["size"] for b in blocks if b["state"] != "inactive")
        return {"device": 0, "address": address, "total_size": total, "allocated_size": active, "active_size": active,
                "requested_size": sum(b["requested_size"] for b in blocks), "stream": 0, "segment_type": "large",
                "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}

    return {"segments": [segment(BASE, 2097152, blocks), segment(BASE + 0x200000, 20971520, big)],
            "device_traces": [trace, []],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0, "expandable_segments": False},
            "external_annotations": []}


def umpire():
    """Umpire 2024.02 with UMPIRE_REPLAY=On."""
    time = EPOCH_US * 1000
    pool = "0x5581d2a0b2c0"
    lines = [{"category": "metadata", "name": "replay", "numeric_args": {"size": 0}, "string_args": {},
              "tags": {"replay": "true"}, "timestamp": time}]
    for name, numbers, texts in [
        ("version", {"major": 2024, "minor": 2, "patch": 1}, {"rc": ""}),
        ("make_memory_resource", {}, {"introspection": "true", "name": "DEVICE", "ref": "0x5581d29f0e70"}),
        ("make_allocator", {"arg0": 536870912}, {"allocator_name": "pool", "allocator_ref": pool, "type": "umpire::strategy::QuickPool"}),
        ("allocate", {"size": 4096}, {"allocator_ref": pool, "pointer": hex(BASE)}),
        ("named_allocate", {"size": 1048576}, {"allocator_ref": pool, "pointer": hex(BASE + 4096), "allocation_name": "grid"}),
        ("deallocate", None, {"allocator_ref": pool, "pointer": hex(BASE)}),
        ("release", {}, {"allocator_ref": pool}),
        ("allocate", {"size": 512}, {"allocator_ref": pool, "pointer": hex(BASE)}),
        ("deallocate", None, {"allocator_ref": pool, "pointer": hex(BASE + 4096)}),
    ]:
        time += 1500
        lines.append({"category": "operation", "name": name, **({} if numbers is None else {"numeric_args": numbers}),
                      "string_args": texts, "tags": {"replay": "true"}, "timestamp": time})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def old_umpire():
    """Umpire 0.3: requests and results, and what the program printed between them."""
    time = EPOCH_US * 1000
    text = "starting the solver\n"
    pool = {"allocator_ref": "0x108a8730"}
    for event, payload, result in [
        ("version", {"major": 0, "minor": 3, "patch": 3}, None),
        ("makeMemoryResource", {"name": "DEVICE"}, "0x101d79a0"),
        ("allocate", {**pool, "size": 4096}, None),
        ("allocate", {**pool, "size": 4096}, {"memory_ptr": hex(BASE)}),
        ("allocate", {**pool, "size": 1 << 40}, None),
        ("allocate", {**pool, "size": 64}, None),
        ("allocate", {**pool, "size": 64}, {"memory_ptr": hex(BASE + 4096)}),
        ("deallocate", {**pool, "memory_ptr": hex(BASE)}, None),
    ]:
        time += 1500
        line = {"kind": "replay", "uid": 27494, "timestamp": time, "event": event, "payload": payload}
        text += json.dumps({**line, **({"result": result} if result else {})}) + "\n"
    return text


def rocprof():
    """rocprofv3 --memory-allocation-trace --output-format csv, of ROCm 6.4."""
    rows = ['"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"']
    for i, (operation, agent, size, address) in enumerate([
        ("MEMORY_ALLOCATION_ALLOCATE", "Agent 4", 4194304, BASE), ("MEMORY_ALLOCATION_VMEM_ALLOCATE", "Agent 4", 2097152, BASE + 0x400000),
        ("MEMORY_ALLOCATION_FREE", "", 0, BASE), ("MEMORY_ALLOCATION_ALLOCATE", "Agent 4", 1024, BASE),
        ("MEMORY_ALLOCATION_VMEM_FREE", "", 0, BASE + 0x400000),
    ]):
        start = 816098791282238 + 90000 * i
        rows.append(f'"MEMORY_ALLOCATION","{operation}","{agent}",{size},"0x{address:016x}",{i + 1},{start},{start + 57417}')
    return "\n".join(rows) + "\n"


def nsys(path):
    """nsys profile --cuda-memory-usage=true, and nsys export --type sqlite, with the columns of schema 3.16."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 1024")
    database.executescript("""
        CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
        INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.1');
        CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
        CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (
            start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
            address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,
            memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, localMemoryPoolAddress INTEGER,
            localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER,
            importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER);
    """)
    database.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '', '')", (EPOCH_US * 1000,))
    for start, address, size, kind, operation in [
        (1000, BASE, 4194304, 2, 0), (2000, 0x204E00000, 65536, 1, 0), (3000, BASE + 0x400000, 2097152, 4, 0),
        (4000, BASE, 4194304, 2, 1), (5000, 0x204E00000, 65536, 1, 1), (6000, BASE, 1024, 2, 0),
    ]:
        database.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address, pc, bytes,"
                         " memKind, memoryOperationType, correlationId) VALUES (?, 282574488338432, 0, 1, ?, 0, ?, ?, ?, 0)",
                         (start, address, size, kind, operation))
    database.commit()
    database.close()


(HERE / "torch_snapshot.pickle").write_bytes(pickle.dumps(snapshot(), protocol=4))
(HERE / "torch_snapshot.json").write_text(json.dumps(snapshot()) + "\n")
(HERE / "umpire.json").write_text(umpire())
(HERE / "umpire_0.3.json").write_text(old_umpire())
(HERE / "rocprofv3_memory_allocation_trace.csv").write_text(rocprof())
nsys(HERE / "nsys.sqlite")
