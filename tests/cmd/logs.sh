#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Logs of several processes, devices and kinds of memory: every command keeps them apart, or asks which one is meant.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG
echo '{ "stack": ["pool", "device"] }' >hipmm.json

# ---- Processes: two ranks with equal addresses ----

header='Thread,Time,Action,Pointer,Size,Stream'
printf '%s\n' $header 1,10:00:00.000001,allocate,0x1000,1000,0 1,10:00:00.000005,free,0x1000,1000,0 >a.csv
printf '%s\n' $header 2,10:00:00.000002,allocate,0x1000,5000,0 2,10:00:00.000004,free,0x1000,5000,0 >b.csv
run 0 report a.csv b.csv
prints '^a.csv and 1 more: a.csv$'
prints '^a.csv and 1 more: b.csv$'
prints '^- At most 1000 bytes are live'
prints '^- At most 4.88 KiB are live'
run 0 report --json a.csv b.csv
has memories.0.peak.bytes 1000
has memories.1.peak.bytes 5000
has memories.1.overlaid 0
has memories.1.log '"b.csv"'
run 0 report --json --process 2 a.csv b.csv
has peak.bytes 5000
run 1 report --process 3 a.csv b.csv
says '^hipmm: report: a.csv has no such memory; choose --process 1 or --process 2$'
run 2 report --process two a.csv
says '^hipmm: report: --process "two" is no number of a process$'
run 2 report --device gpu a.csv
says "^hipmm: report: --device \"gpu\" is neither a device's number, such as 0, nor managed, nor host$"
run 1 convert a.csv b.csv -o both.csv
says '^hipmm: convert: a.csv and b.csv are address spaces of their own, and one log has one: choose one with --process 1 or --process 2$'
says '^hipmm: convert: "both.csv" was not written$'
[ ! -e both.csv ] || fail "a refused convert leaves a log in part"
(umask 022 && echo old >kept.csv && chmod 640 kept.csv && ln -s kept.csv link.csv)
run 1 convert a.csv b.csv -o link.csv
[ "$(cat kept.csv)" = old ] || fail "a refused convert changes a file that was there"
run 0 convert --process 1 a.csv b.csv -o link.csv
{ [ "$(wc -l <kept.csv)" = 3 ] && [ -L link.csv ] && [ "$(stat -c %a kept.csv)" = 640 ]; } || fail "a file is not replaced"
[ "$(echo kept.csv*)" = kept.csv ] || fail "a temporary file is left"
run 0 convert --process 2 a.csv b.csv -o both.csv
[ "$(wc -l <both.csv)" = 3 ] || fail "another process than the second was converted"
run 0 plan --json a.csv b.csv
has logs.0.peak_requested_bytes 1000
has logs.1.peak_requested_bytes 5000

# Two hosts can have one number of a process.
printf '{"event":"allocate","uid":5,"payload":{"size":8},"result":{"memory_ptr":"0x100"}}\n' >host1.json
cp host1.json host2.json
run 1 convert host1.json host2.json -o both.csv
says ': choose one with host1.json alone or host2.json alone$'
run 0 report --json host1.json host2.json
has memories.1.overlaid 0

# A log that was rotated is one: its process goes on.
mv b.csv b.csv.0
printf '%s\n' $header 2,10:00:00.000003,free,0x1000,1000,0 >a.csv.1
run 0 report --json a.csv.1 a.csv b.csv.0
has memories.0.frees 1
has memories.0.unmatched_frees 1
has memories.1.peak.bytes 5000

# Ranks that write logs of one name into folders of their own.
mkdir rank0 rank1
cp a.csv rank0/log.csv
cp a.csv.1 rank0/log.csv.1
cp a.csv rank1/log.csv
run 0 report rank0/log.csv rank1/log.csv
prints ': rank1/log.csv$'
run 1 convert ./rank0/log.csv rank0/log.csv.1 rank1/log.csv -o both.csv
says '^hipmm: convert: ./rank0/log.csv and rank1/log.csv are address spaces'

# ---- Devices ----

python3 - <<'END' || exit 99
import json
def event(action, address, size, time):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": [{"name": "f%d" % size, "filename": "a.py", "line": 1}]}
MiB = 1 << 20
traces = [[event("alloc", 4096, 100 * MiB, 1), event("free_requested", 4096, 100 * MiB, 4)], [],
          [event("alloc", 4096, 60 * MiB, 2), event("free_requested", 4096, 60 * MiB, 3)]]
json.dump({"device_traces": traces, "segments": []}, open("two.json", "w"))
END
run 0 report --json two.json
has memories.0.peak.bytes $((100 << 20))
has memories.1.peak.bytes $((60 << 20))
has memories.1.device 2
has memories.1.memory '"device"'
run 0 report --device 2 two.json
prints '^- At most 60 MiB are live'
run 0 report two.json -o two.html
grep -q 'id="summary-1"' two.html && grep -q 'id="column-from-1"' two.html || fail "the page has one device"
run 1 report --device 1 two.json
says '^hipmm: report: two.json has no such memory; choose --device 0 or --device 2$'
for fit in '' --fit; do
  run 1 replay $fit two.json
  says '^hipmm: replay: device 0 and device 2 are address spaces of their own, and one is played: choose one with --device 0 or --device 2$'
  run 0 replay --json $fit --device 2 two.json
  has peak_requested_bytes $((60 << 20))
  run 0 replay --json $fit --device 0 two.json
  has peak_requested_bytes $((100 << 20))
done
run 1 plan two.json
says '^hipmm: plan: device 0 and device 2 are address spaces of their own, and a plan is for one device: choose one with'
run 0 plan --json --device 2 two.json
has needs_bytes $((60 << 20))
run 0 tune --json --quick --seconds 2 two.json
has logs 2
run 0 tune --json --quick --seconds 2 --device 2 two.json
has logs 1
run 1 bench --workload replay --trace two.json
says '^hipmm: bench: device 0 and device 2 are address spaces of their own, and one is played: choose one with `hipmm convert` and --device 0'
run 1 convert two.json -o one.csv
says '^hipmm: convert: device 0 and device 2 are address spaces of their own, and one log has one: choose one with --device 0 or --device 2$'
# All that can be chosen is listed, also what comes late in the log.
run 1 convert a.csv two.json -o one.csv
says ': choose one with --process 2 --device 0, --process 2 --device 2 or --process 1 --device 0$'
run 0 convert two.json -o all.pickle
run 0 report --json all.pickle
has memories.0.peak.bytes $((100 << 20))
has memories.1.device 2
has memories.1.peak.by_stack.0.name '"f62914560 from a.py:1"'

# A log of one device is played through the stack of any.
run 0 convert --device 2 two.json -o one.record
run 0 replay one.record
HIPMM_SOFTWARE=devices=2 run 0 replay --json --device 1 one.record
has peak_requested_bytes $((60 << 20))

# ---- Kinds of memory ----

cat >kinds.csv <<'END'
"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 0",32212254720,"0x00007f0000000000",1,1000,1100
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 4",2147483648,"0x00007e0000000000",2,2000,2100
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_FREE","null",0,"0x0000000000000000",3,2500,2600
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_FREE","null",0,"0x00007e0000000000",4,3000,3100
END
run 0 report --json kinds.csv
has memories.0.memory '"host"'
has memories.0.peak.bytes $((30 << 30))
has memories.0.end.bytes $((30 << 30))
has memories.1.peak.bytes $((2 << 30))
has memories.1.unmatched_frees 0
run 0 plan --json --device-memory 16GiB kinds.csv
has logs.0.peak_requested_bytes $((2 << 30))
run 0 replay kinds.csv
grep -q '^hipmm: left out: host memory (--device host takes it)$' "$work/err" || fail "host memory was left out without a word"
run 0 convert kinds.csv -o kinds.record
grep -q '^hipmm: left out: host memory (--device host takes it)$' "$work/err" || fail "host memory was not converted, without a word"
run 0 report --json kinds.record
has peak.bytes $((2 << 30))
run 0 report --json --device host kinds.csv
has peak.bytes $((30 << 30))
grep -v 'Agent 4\|0x00007e' kinds.csv >host.csv
run 1 replay host.csv
says '^hipmm: replay: host.csv has host memory alone; choose it with --device host$'
run 1 convert host.csv -o host.record
says '^hipmm: convert: host.csv has host memory alone; choose it with --device host$'
run 1 bench --workload replay --trace host.csv
says 'host memory alone; choose it with `hipmm convert` and --device host$'
run 0 bench --workload replay --trace kinds.csv
grep -q 'left out: host memory (`hipmm convert` and --device host take it)$' "$work/err" || fail "bench has no --device"
run 0 replay --json --fit --device host host.csv
has peak_requested_bytes $((30 << 30))

# ---- Databases ----

ldd "$hipmm" | grep -q sqlite && python3 -c 'import sqlite3' 2>/dev/null || finish
python3 - <<'END' || exit 99
import json, sqlite3
nsys = sqlite3.connect("nsys.sqlite")
nsys.execute("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, address, bytes, memKind, memoryOperationType)")
rows = [(100, 11 << 24, 0, 4096, 10, 2, 0), (200, 12 << 24, 1, 4096, 20, 2, 0), (300, 11 << 24, 0, 4096, 10, 2, 1),
        (400, 12 << 24, 1, 4096, 20, 2, 1), (500, 12 << 24, 1, 4096, 7, 4, 0), (600, 12 << 24, 1, 8192, 7, 1, 0)]
nsys.executemany("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?,?,?,?,?,?,?)", rows)
nsys.commit()
rocpd = sqlite3.connect("rocpd.db")
for host, pid in (("a", 5), ("b", 5)):
    rocpd.executescript(f"""
CREATE TABLE rocpd_memory_allocate_{host} (id INTEGER PRIMARY KEY, nid, pid, tid, agent_id, type, level, start, end, address, size, stream_id);
CREATE TABLE rocpd_info_agent_{host} (id INTEGER PRIMARY KEY, type, type_index);
CREATE TABLE rocpd_info_process_{host} (id INTEGER PRIMARY KEY, pid);
INSERT INTO rocpd_info_agent_{host} VALUES (1, 'CPU', 0), (2, 'GPU', 0), (3, 'GPU', 1);
INSERT INTO rocpd_info_process_{host} VALUES (1, {pid});
INSERT INTO rocpd_memory_allocate_{host} VALUES (1, 1, 1, 9, 3, 'ALLOC', 'REAL', 100, 200, 4096, 64, NULL),
  (2, 1, 1, 9, 1, 'ALLOC', 'REAL', 300, 400, 8192, 32, NULL), (3, 1, 1, 9, NULL, 'FREE', 'REAL', 500, 600, 4096, 0, NULL),
  (4, 1, 1, 9, 3, 'ALLOC', 'SCRATCH', 700, 800, 4096, 9, NULL), (5, 1, 1, 9, 3, 'REALLOC', 'REAL', 900, 950, 4096, 9, NULL);""")
rocpd.commit()
torch = sqlite3.connect("torch.db")
frames = json.dumps([{"name": "forward", "filename": "a.py", "line": 3}])
torch.executescript("""CREATE TABLE device_traces (id INTEGER PRIMARY KEY, device, action, addr, size, stream, time_us, frames);
CREATE TABLE segments (id INTEGER PRIMARY KEY, address, total_size);
CREATE TABLE blocks (id INTEGER PRIMARY KEY, segment_id, addr, size, requested_size, state, frames);
INSERT INTO blocks VALUES (1, 1, 4096, 512, 500, 'active_allocated', NULL), (2, 1, 8192, 512, 300, 'active_allocated', NULL),
  (3, 1, 12288, 512, 0, 'inactive', NULL);""")
torch.executemany("INSERT INTO device_traces (device, action, addr, size, stream, time_us, frames) VALUES (?,?,?,?,?,?,?)",
                  [(0, "free_requested", 16384, 700, 0, 1, None), (0, "free_completed", 16384, 700, 0, 1, None),
                   (0, "alloc", 8192, 300, 7, 2, frames), (0, "oom", 0, 99, 0, 3, None), (1, "alloc", 8192, 5, 0, 4, None)])
torch.commit()
END
run 0 report --json nsys.sqlite
grep -q 'left out: 1 event of memory that is neither device nor managed memory$' "$work/err" || fail "pinned memory was taken"
has memories.0.process 11
has memories.0.peak.bytes 10
has memories.1.peak.bytes 20
has memories.1.overlaid 0
has memories.2.memory '"managed"'
run 0 plan --json nsys.sqlite
has logs.0.peak_requested_bytes 10
has logs.1.peak_requested_bytes 20
has logs.1.by_size.0.bytes 20
run 0 report --json --process 12 --device 1 nsys.sqlite
has peak.bytes 20
run 0 report --json rocpd.db
has memories.0.peak.bytes 64
has memories.0.device 1
has memories.0.end.bytes 0
has memories.0.unmatched_frees 0
grep -q 'left out: 4 events of scratch memory' "$work/err" || fail "scratch memory was taken"
[ "$(value memories | grep -o '"peak"' | wc -l)" = 4 ] || fail "two hosts with one process number were mixed"
run 1 replay rocpd.db
says ': process 5 and process 5 of host 2 are .*: choose one with --process 5 or --process 4294967301$'
python3 -c 'import sqlite3
database = sqlite3.connect("nsys.sqlite")
database.execute("DELETE FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 2")
database.commit()'
run 1 replay nsys.sqlite
says 'has managed memory alone; choose it with --device managed$'
run 1 convert host.csv nsys.sqlite -o both.csv
says "^hipmm: convert: nsys.sqlite has no memory of a device; choose --process 12 --device managed or --process 1 --device host$"
run 0 report --json torch.db
has memories.0.peak.bytes 1200
has memories.0.end.bytes 800
has memories.0.failures 1
has memories.0.peak.blocks 2
has memories.1.peak.bytes 5
run 0 convert --device 0 torch.db -o torch.csv
run 0 report torch.db
prints 'forward from a.py:3$'

# More processes than one question of SQLite takes: what is left is told.
python3 -c 'import sqlite3
database = sqlite3.connect("many.db")
for pid in range(1, 403):
    database.execute(f"CREATE TABLE rocpd_memory_allocate_{pid} (pid, tid, agent_id, type, level, start, end, address, size, stream_id)")
    database.execute(f"INSERT INTO rocpd_memory_allocate_{pid} VALUES ({pid}, 9, 0, \"ALLOC\", \"REAL\", 1, 2, 4096, 64, NULL)")
database.commit()' || exit 99
run 0 convert --process 1 many.db -o many.csv
says 'many.db: left out: all of 2 processes, which are too many for one reading$'

# A database in which a table has other columns, or is damaged, is refused.
python3 -c 'import sqlite3
database = sqlite3.connect("other.db")
database.execute("CREATE TABLE rocpd_memory_allocate_x (address)")
database.commit()' || exit 99
run 1 report other.db
says '^hipmm: other.db: is a database of another release of its program: no such column: event'
head -c 5000 torch.db >cut.db
run 1 report cut.db
grep -q '^hipmm: cut.db: ' "$work/err" || fail "a database that is cut off is read"
finish
