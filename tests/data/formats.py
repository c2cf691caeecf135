#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the logs of other tools beside this file, of one invented program each:

    python3 tests/data/formats.py

No such tool wrote them: the programs and their numbers are invented. The form is that of the tools, checked against

- Umpire: src/umpire/event/{event,json_file_store,event_json} and ResourceManager of 2020 to 2026, which print the lines; and the
  outputs in tests/integration/replay of releases 1.1 to 2022.03, tests of its own on machines with HIP and CUDA; and
  src/umpire/{Replay,Allocator,ResourceManager} of 2022.03;
- rocprofv3: source/docs/data/memory_allocation_trace.csv of rocprofiler-sdk, and generateCSV.cpp, which writes it;
- Nsight Systems: the schema of an export of 2024.6.2 (schema 3.16.1), and cupti_activity.h of CUDA 13 for what a stream is.
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
    """Umpire since 5, with UMPIRE_REPLAY=On: a pool of device memory and one of the host's."""
    time = EPOCH_US * 1000
    host, device, pool, near, replay = "0x5581d29f0e70", "0x5581d29f1b80", "0x5581d2a0b2c0", "0x5581d2a0c910", {"replay": "true"}
    lines = [{"category": "metadata", "name": "version", "numeric_args": {"major": 2024, "minor": 2, "patch": 1},
              "string_args": {"rc": ""}, "tags": {}, "timestamp": time}]

    def make(ref, name, **texts):
        return [{"introspection": 1, **({"arg1": 536870912} if texts else {})}, {"allocator_ref": ref, **texts},
                {"allocator_name": name, **replay}]

    quick, block = "N6umpire8strategy9QuickPoolE", hex(BASE)
    for name, numbers, texts, tags in [
        ("make_memory_resource", *make(host, "HOST")),
        ("make_memory_resource", *make(device, "DEVICE")),
        ("make_allocator", *make(pool, "pool", arg0="DEVICE", type=quick)),
        ("make_allocator", *make(near, "near", arg0="HOST", type=quick)),
        ("allocate", {"size": 4096}, {"allocator_ref": pool, "pointer": block}, replay),
        ("allocate", {"size": 65536}, {"allocator_ref": near, "pointer": "0x5581d3000010"}, replay),
        ("named_allocate", {"size": 1048576},
         {"allocator_ref": pool, "pointer": hex(BASE + 4096), "allocation_name": "grid"}, replay),
        ("deallocate", None, {"allocator_ref": pool, "pointer": block}, replay),
        ("release", {}, {"allocator_ref": pool}, replay),
        ("allocate", {"size": 512}, {"allocator_ref": pool, "pointer": block}, replay),
        ("deallocate", None, {"allocator_ref": near, "pointer": "0x5581d3000010"}, replay),
        ("deallocate", None, {"allocator_ref": pool, "pointer": hex(BASE + 4096)}, replay),
    ]:
        time += 1500
        lines.append({"category": "operation", "name": name, **({} if numbers is None else {"numeric_args": numbers}),
                      "string_args": texts, "tags": tags, "timestamp": time})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def old_umpire():
    """Umpire 1.1: requests and results, and what the program printed between them."""
    time = EPOCH_US * 1000
    text = "starting the solver\n"
    pool, near = '"allocator_ref": "0x108a8730"', '"allocator_ref": "0x719e10"'
    made = '"type":"N6umpire8strategy14DynamicPoolMapE", "with_introspection":true, "allocator_name":"pool", "args": [ "DEVICE" ]'

    def pointer(address):
        return f'{{ "memory_ptr": "{address:#x}" }}'

    for event, payload, result in [
        ("version", '"major":1, "minor":1, "patch":0, "rc": "d293986"', None),
        ("makeMemoryResource", '"name": "HOST"', '"0x719e10"'),
        ("makeMemoryResource", '"name": "DEVICE"', '"0x101d79a0"'),
        ("makeAllocator", made, None),
        ("makeAllocator", made, '{ "allocator_ref":"0x108a8730" }'),
        ("allocate", f'{near}, "size": 100', None),
        ("allocate", f'{near}, "size": 100', pointer(0x122BC50)),
        ("allocate", f'{pool}, "size": 4096', None),
        ("allocation_map_insert", f'"ptr": "{BASE:#x}", "record_ptr": "{BASE:#x}", "record_size": "4096", "record_strategy": "0x108a8730"', None),
        ("allocate", f'{pool}, "size": 4096', pointer(BASE)),
        ("allocate", f'{pool}, "size": {1 << 40}', None),
        ("allocate", f'{pool}, "size": 64', None),
        ("allocate", f'{pool}, "size": 64', pointer(BASE + 4096)),
        ("deallocate", f'{near}, "memory_ptr": "0x122bc50"', None),
        ("deallocate", f'{pool}, "memory_ptr": "{BASE:#x}"', None),
    ]:
        time += 1500
        text += f'{{ "kind":"replay", "uid":17755, "timestamp":{time}, "event": "{event}", "payload": {{ {payload} }}'
        text += (f', "result": {result}' if result else "") + " }\n"
    return text


def umpire_of_threads():
    """Umpire 2022.03: two threads of a process, whose requests and results come between each other, a failed allocation that
    is tried again, a move() with the line that is no JSON, and two ranks that print into one file."""
    time = EPOCH_US * 1000
    text = ""
    pool, host = '"allocator_ref": "0x108a8730"', '"allocator_ref": "0x719e10"'
    made = '"type":"N6umpire8strategy9QuickPoolE", "with_introspection":true, "allocator_name":"pool", "args": [ "DEVICE" ]'

    def pointer(address, key="memory_ptr"):
        return f'{{ "{key}": "{address:#x}" }}'

    def request(size, ref=pool, name=""):
        return f'{ref}, "size": {size}' + (f', "name": "{name}"' if name else "")

    first, other = 17755, 17756
    for process, event, payload, result in [
        (first, "version", '"major": 2022, "minor": 3, "patch": 1, "rc": ""', None),
        (first, "makeMemoryResource", '"name": "HOST" ', '"0x719e10"'),
        (other, "makeMemoryResource", '"name": "HOST" ', '"0x719e10"'),
        (first, "makeMemoryResource", '"name": "DEVICE" ', '"0x101d79a0"'),
        (first, "makeAllocator", made, None),
        (first, "makeAllocator", made, '{ "allocator_ref":"0x108a8730" }'),
        (first, "mpi", '"rank":0, "size":2', None),
        (first, "allocate", request(4096), None),
        (first, "allocate", request(1 << 20, name="grid"), None),
        (other, "allocate", request(512), None),
        (first, "allocate", request(1 << 20, name="grid"), pointer(BASE + 4096)),
        (other, "allocate", request(512), pointer(BASE)),
        (first, "allocate", request(4096), pointer(BASE)),
        (first, "allocate", request(1 << 40), None),
        (first, "release", pool, None),
        (first, "allocate", request(1 << 40), None),
        (first, "allocate", request(1 << 40), pointer(BASE + (1 << 30))),
        (first, "move", f'" "ptr": "{BASE:#x}", {host}', None),
        (first, "allocate", request(4096, host), None),
        (first, "allocate", request(4096, host), pointer(0x122BC50)),
        (first, "deallocate", f'{pool}, "memory_ptr": "{BASE:#x}"', None),
        (first, "move", f'"ptr": "{BASE:#x}", "allocator": "0x719e10"', pointer(0x122BC50, "ptr")),
        (first, "deallocate", f'{pool}, "memory_ptr": "{BASE + 4096:#x}"', None),
    ]:
        time += 1500
        payload = payload if payload.startswith('" ') else " " + payload
        text += f'{{ "kind":"replay", "uid":{process}, "timestamp":{time}, "event": "{event}", "payload": {{{payload} }}'
        text += (f', "result": {result}' if result else "") + " }\n"
    return text


def rocprof():
    """rocprofv3 --memory-allocation-trace --output-format csv, of ROCm 6.4."""
    rows = ['"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"']
    for i, (operation, agent, size, address) in enumerate([
        ("MEMORY_ALLOCATION_ALLOCATE", "Agent 4", 4194304, BASE), ("MEMORY_ALLOCATION_VMEM_ALLOCATE", "Agent 4", 2097152, BASE + 0x400000),
        ("MEMORY_ALLOCATION_ALLOCATE", "Agent 0", 65536, 0x7F2B00000000),
        ("MEMORY_ALLOCATION_FREE", "", 0, BASE), ("MEMORY_ALLOCATION_ALLOCATE", "Agent 4", 1024, BASE),
        ("MEMORY_ALLOCATION_VMEM_FREE", "", 0, BASE + 0x400000),
    ]):
        start = 816098791282238 + 90000 * i
        rows.append(f'"MEMORY_ALLOCATION","{operation}","{agent}",{size},"0x{address:016x}",{i + 1},{start},{start + 57417}')
    return "\n".join(rows) + "\n"


def nsys(path):
    """nsys profile --cuda-memory-usage=true, and nsys export --type sqlite, of schema 3.16.1. What is allocated without a
    stream has the number of none."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 1024")
    database.executescript("""
        CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
        INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.6.2.225');
        INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.1');
        CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
        CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
        INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'),
            (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'),
            (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static');
        CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
        INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'),
            (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');
        CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (
            start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
            address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,
            memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, streamId INTEGER,
            localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER,
            localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER);
    """)
    database.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '', '')", (EPOCH_US * 1000,))
    none = 0xFFFFFFFF
    for start, address, size, kind, operation, stream in [
        (1000, BASE, 4194304, 2, 0, none), (2000, 0x204E00000, 65536, 1, 0, none), (3000, BASE + 0x400000, 2097152, 4, 0, none),
        (4000, BASE, 4194304, 2, 1, none), (5000, 0x204E00000, 65536, 1, 1, none), (6000, BASE, 1024, 2, 0, 13),
    ]:
        database.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address, pc, bytes,"
                         " memKind, memoryOperationType, correlationId, streamId)"
                         " VALUES (?, 282574488338432, 0, 1, ?, 0, ?, ?, ?, 0, ?)",
                         (start, address, size, kind, operation, stream))
    database.commit()
    database.close()


(HERE / "torch_snapshot.pickle").write_bytes(pickle.dumps(snapshot(), protocol=4))
(HERE / "torch_snapshot.json").write_text(json.dumps(snapshot()) + "\n")
(HERE / "umpire.json").write_text(umpire())
(HERE / "umpire_1.1.json").write_text(old_umpire())
(HERE / "umpire_2022.03.json").write_text(umpire_of_threads())
(HERE / "rocprofv3_memory_allocation_trace.csv").write_text(rocprof())
nsys(HERE / "nsys.sqlite")
