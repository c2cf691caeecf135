#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm convert: from each format into each, several logs into one, and what is refused.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG

# ---- A real program's log, there and back ----

xz -dc "$top_srcdir/tests/data/cupy_frames.csv.xz" | tr -d '\r' >log.csv || exit 99
run 0 convert log.csv -o log.record
says '^hipmm: 21692 rows$'
run 0 convert -q log.record --output back.csv
# RMM of that release wrote a colon before the microseconds. Where a row is earlier than the row before it, its place
# stays and its time does not.
sed 's/^\([0-9]*,..:..:..\):/\1./; s/,0x0$/,0/' log.csv >expected.csv
same_log() {
  cut -d, -f1,3-6 expected.csv >expected.columns
  cut -d, -f1,3-6 "$1" | cmp - expected.columns || fail "$1 is not what the log was"
  [ "$(diff "$1" expected.csv | grep -c '^>')" -lt 20 ] || fail "$1 has other times"
}
same_log back.csv
bytes=$(wc -c <log.record)
[ "$bytes" -le $((21692 * 16)) ] || fail "the record has $bytes bytes"
cat log.record | "$hipmm" convert - >piped.csv 2>err || fail "a record from a pipe is not read: $(cat err)"
same_log piped.csv

# What is recorded of a replay is what was played, also by the clock.
echo '{ "stack": [{"type": "recording", "file": "made.record"}, "pool", "device"] }' >hipmm.json
run 0 replay log.csv
run 0 convert made.record -o made.csv
cut -d, -f3,5 expected.csv >expected.columns
cut -d, -f3,5 made.csv | cmp - expected.columns || fail "other events were recorded"
seconds=$(date +%s)
time=$(sed -n '2s/^[0-9]*,\(..\):\(..\):\(..\).*/\1 * 3600 + \2 * 60 + \3/p' made.csv | sed 's/\b0\([0-9]\)/\1/g')
now=$(date +'%H * 3600 + %M * 60 + %S' | sed 's/\b0\([0-9]\)/\1/g')
[ $((($now - ($time) + 86400) % 86400)) -le 120 ] || fail "an event is of $time, and now it is $now ($seconds)"

# The result of a command is for whom the umask says.
(umask 022 && run 0 convert log.csv -o open.record && [ "$(stat -c %a open.record)" = 644 ]) || fail "the umask does not count"

# ---- Several logs ----

printf 'Thread,Time,Action,Pointer,Size,Stream\n1,10:00:01.000000,allocate,0x100,8,0\n1,10:00:03.000000,free,0x100,8,0\n' >a.csv
printf 'Thread,Time,Action,Pointer,Size,Stream\n2,10:00:02.000000,allocate,0x200,9,0x7\n' >a.csv.1
run 0 convert a.csv.1 a.csv
printf '%s\n' 'Thread,Time,Action,Pointer,Size,Stream' '1,10:00:01.000000,allocate,0x100,8,0' \
  '2,10:00:02.000000,allocate,0x200,9,0x7' '1,10:00:03.000000,free,0x100,8,0' | cmp - "$work/out" ||
  fail "two logs are not merged in order of time"

# A null pointer is the number that RMM's readers of all releases read.
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,10:00:01.000000,allocate failure,(nil),8,0\n' >nil.csv
run 0 convert nil.csv
prints '^1,10:00:01.000000,allocate failure,0x0,8,0$'

# ---- Logs of other tools ----

data=$top_srcdir/tests/data
for log in torch_snapshot.pickle torch_snapshot.json umpire.json umpire_1.1.json umpire_2022.03.json rocprofv3_memory_allocation_trace.csv nsys.sqlite; do
  [ $log != nsys.sqlite ] || ldd "$hipmm" | grep -q sqlite || continue
  process=
  [ $log != umpire_2022.03.json ] || process='--process 17755'
  run 0 convert $process "$data/$log" -o other.csv
  run 0 convert $process "$data/$log" -o other.record
  run 0 convert other.record -o again.csv
  cut -d, -f1,3-6 other.csv >other.columns
  cut -d, -f1,3-6 again.csv | cmp - other.columns || fail "the record of $log has other rows"
done
run 0 convert "$data/torch_snapshot.pickle" -o torch.record
says '^hipmm: .*torch_snapshot.pickle: 2 blocks were allocated before its events begin$'
says '^hipmm: 13 rows$'
run 0 report torch.record
prints 'forward from /home/user/model.py:41$'
run 0 convert torch.record -o made.pickle
run 0 convert made.pickle -o remade.csv
# The page's reader knows these operations alone, and adds up numbers of at most eight bytes.
python3 - made.pickle <<'END' || fail "https://pytorch.org/memory_viz cannot read what convert writes"
import pickle, pickletools, sys
known = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "BINUNICODE", "BINPUT", "BINGET", "LONG_BINPUT", "LONG_BINGET", "BININT", "BININT1",
         "BININT2", "LONG1", "SETITEMS", "APPEND", "APPENDS", "STOP"}
data = open(sys.argv[1], "rb").read()
for operation, value, place in pickletools.genops(data):
    assert operation.name in known, operation.name
    assert operation.name != "LONG1" or data[place + 1] <= 8, value
snapshot = pickle.loads(data)
assert snapshot["segments"] == [] and len(snapshot["device_traces"]) == 1, snapshot.keys()
assert {event["action"] for event in snapshot["device_traces"][0]} <= {"alloc", "free_requested", "free_completed", "oom"}
END
run 0 convert "$data/torch_snapshot.pickle" -o torch.csv
cmp torch.csv remade.csv || fail "a snapshot that was written is read with other rows"
run 0 report made.pickle
prints 'forward from /home/user/model.py:41$'
run 0 convert --format pytorch log.csv -o log.pickle
python3 - log.pickle <<'END' || fail "Python does not read the snapshot"
import pickle, sys
snapshot = pickle.load(open(sys.argv[1], "rb"))
[events] = snapshot["device_traces"]
assert snapshot["segments"] == [] and len(events) == 21692 + 21692 // 2, len(events)
assert {"action", "addr", "size", "stream", "time_us", "frames"} == set(events[0])
END
"$hipmm" convert - <"$data/torch_snapshot.pickle" >piped.csv 2>err || fail "a snapshot from a pipe is not read"
[ "$(wc -l <piped.csv)" = 14 ] || fail "a snapshot from a pipe has $(wc -l <piped.csv) lines"
cat "$data/torch_snapshot.json" "$data/torch_snapshot.json" >twice.json
run 1 convert twice.json
says '^hipmm: twice.json: is no valid JSON: line 2, column 1: '
head -c 1000 "$data/torch_snapshot.pickle" >cut.pickle
run 1 convert cut.pickle
says '^hipmm: cut.pickle: is cut off at byte [0-9]* of its pickle; nothing was read$'
# ends FILE MESSAGE: a file whose contents have no end, or as good as none, is refused soon
ends() {
  timeout 30 "$hipmm" convert "$1" >out 2>err </dev/null
  [ $? = 1 ] || fail "$1 is not refused within 30 s"
  grep -q "^hipmm: $1: $2" err || fail "$1: $(cat err)"
}

# Lists of one event, 200,000 times in a list that is 200,000 times in the list of devices; and a map in which each look is long.
python3 - <<'END'
import pickle
event = {"action": "none"}
for number in range(100000): event[number] = 0
for name, trace, devices in (("nested", [{"action": "none"}] * 200000, 200000), ("long", [event] * 100000, 1)):
    with open(name + ".pickle", "wb") as file: pickle.dump({"segments": [], "device_traces": [trace] * devices}, file, protocol=4)
END
ends nested.pickle "is damaged: its lists are in each other, and have more entries than it has bytes$"
# A pickle that names one frame, or one event, in many places needs no more memory than a small multiple of its bytes.
python3 - <<'END'
import pickle
frame = {"name": "n" * 300, "filename": "g" * 300, "line": 1}
events = [{"action": "alloc", "addr": i + 1, "size": 512, "stream": 0, "time_us": i,
           "frames": [{"name": str(i), "filename": "", "line": 1}] + [frame] * 127} for i in range(4000)]
one = {"action": "alloc", "addr": 1, "size": 512, "stream": 0, "time_us": 1, "frames": []}
values = {"stacks": [events], "events": [[one] * 600000], "lists": [[[] for _ in range(1000000)]],
          "nothing": [[None] * 1000000]}
for name, traces in values.items():
    with open(name + ".pickle", "wb") as file: pickle.dump({"segments": [], "device_traces": traces}, file, protocol=4)
END
python3 - "$hipmm" <<'END' || fail "a pickle takes too much memory"
import resource, subprocess, sys
for name in "stacks", "events", "lists", "nothing":
    done = subprocess.run([sys.argv[1], "report", "--json", name + ".pickle"], capture_output=True, check=False)
    assert done.returncode in (0, 1), (name, done)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert used < 120000, (name, used)
END
timeout 30 "$hipmm" convert long.pickle >out 2>err </dev/null || fail "long.pickle is not read within 30 s: $(cat err)"
if ! ldd "$hipmm" | grep -q sqlite || ! python3 -c 'import sqlite3' 2>/dev/null; then
  skip_part "databases that are made to harm" "hipmm was built without SQLite, or python3 has none"
else
  python3 - "$data/nsys.sqlite" <<'END'
import shutil, sqlite3, sys
endless = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT n AS utcEpochNs, n AS " \
    "globalTid, n AS correlationId, n as start, n as address FROM numbers WHERE n < 0"
for name in ("TARGET_INFO_SESSION_START_TIME", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUDA_GPU_MEMORY_USAGE_EVENTS"):
    shutil.copy(sys.argv[1], name + ".sqlite")
    database = sqlite3.connect(name + ".sqlite")
    database.execute("DROP TABLE IF EXISTS " + name)
    database.execute("CREATE VIEW %s AS %s" % (name, endless))
    database.commit()
END
  ends CUDA_GPU_MEMORY_USAGE_EVENTS.sqlite 'has no table CUDA_GPU_MEMORY_USAGE_EVENTS'
  for view in TARGET_INFO_SESSION_START_TIME CUPTI_ACTIVITY_KIND_RUNTIME; do
    timeout 30 "$hipmm" convert $view.sqlite >out 2>err </dev/null || fail "a view without an end is read: $(cat err)"
  done
  python3 -c 'import sqlite3, sys
database = sqlite3.connect("umpire.db")
database.execute("CREATE TABLE EVENTS (EVENT JSON)")
database.executemany("INSERT INTO EVENTS VALUES (?)", [[line] for line in open(sys.argv[1])])
database.commit()' "$data/umpire.json"
  run 1 convert umpire.db
  says "^hipmm: umpire.db: is a database of Umpire; its events can be read as text: sqlite3 FILE 'SELECT EVENT FROM EVENTS' | hipmm "
fi
if ldd "$hipmm" | grep -q sqlite; then
  cat "$data/nsys.sqlite" | "$hipmm" convert - 2>err && fail "a database from a pipe is read"
  grep -q 'is a SQLite file, which cannot be read from a pipe; name the file' err || fail "a database from a pipe: $(cat err)"
fi
echo '{"stack": ["pool", "device"]}' >hipmm.json
run 0 replay "$data/torch_snapshot.json"

# A real snapshot: all of its events and the frames that tell of the program, through a record and back.
xz -dc "$data/torch_mlp.pickle.xz" >mlp.pickle || exit 99
run 0 convert mlp.pickle -o mlp.record
says '^hipmm: 142 rows$'
run 0 convert mlp.record -o mlp.made.pickle
python3 - mlp.pickle mlp.made.pickle mlp.json <<'END' || fail "a real snapshot is not what it was"
import json, pickle, re, sys
real, made = (pickle.load(open(name, "rb")) for name in sys.argv[1:3])
events = [[e for e in s["device_traces"][0] if e["action"] in ("alloc", "free_requested", "free_completed")] for s in (real, made)]
assert [len(e) for e in events] == [205, 205], [len(e) for e in events]
keys = ("action", "addr", "size", "stream", "time_us")
for ours in events: ours.sort(key=lambda e: (e["action"], e["time_us"], e["addr"]))
for one, other in zip(*events):
    assert one["time_us"] - 10 <= other["time_us"] <= one["time_us"] + 10 if one["action"] == "free_completed" else \
        [one[key] for key in keys] == [other[key] for key in keys], (one, other)
noise = re.compile(r"torch::unwind|torch::CapturedTraceback|.*gather_with_cpp|_start|__libc_|__clone|_?Py[A-Za-z]*_")
def frames(event): return [(f["name"][:300], f["filename"], f["line"]) for f in event["frames"] if not noise.match(f["name"])]
for one, other in zip(*events):
    if one["action"] == "alloc": assert frames(one) == frames(other) != [], (frames(one), frames(other))
json.dump(real, open(sys.argv[3], "w"))
END
run 0 convert mlp.json -o mlp.json.csv
run 0 convert mlp.pickle -o mlp.csv
cmp mlp.csv mlp.json.csv || fail "the JSON of a real snapshot has other rows than the pickle"

# A real log of Umpire: what its program counted, through a record and back.
xz -dc "$data/umpire_2024.07.json.xz" >umpire.json || exit 99
run 0 convert umpire.json -o umpire.record
says '^hipmm: umpire.json: left out: 34 events of host memory, 2 releases of a pool.s idle memory$'
says '^hipmm: 559 rows$'
for log in umpire.json umpire.record; do
  run 0 report --json $log
  python3 - "$work/out" <<'END' || fail "the report of $log differs from what its program counted"
import json, sys
report = json.load(open(sys.argv[1]))
assert [report[key] for key in ("allocations", "frees", "requested_bytes")] == [281, 277, 17024558], report
assert report["peak"]["bytes"] == 7208192, report["peak"]
assert [report["end"][key] for key in ("bytes", "blocks")] == [301036, 4], report["end"]
assert report["unmatched_frees"] == report["overlaid"] == report["failures"] == 0, report
END
done
head -c 40960 umpire.json >cut.json
run 0 convert cut.json -o cut.csv
says '^hipmm: cut.json: the file is cut off: its last line is not whole; left out: [0-9]* events of host memory$'
[ "$(wc -l <cut.csv)" -gt 150 ] || fail "only $(wc -l <cut.csv) lines of a log of Umpire that is cut off were read"

# ---- For other tools ----

# What the rows say, beside what each tool is told.
cat >other_tools.py <<'END'
import collections, csv, json, sys

rows, live, peak_of = sys.argv[1:4], {}, {}
now = peak = allocated = count = 0
for row in csv.DictReader(open(sys.argv[1])):
    if row["Action"] == "allocate":
        live[row["Pointer"]] = int(row["Size"])
        now, allocated, count = now + int(row["Size"]), allocated + int(row["Size"]), count + 1
    elif row["Action"] == "free":
        now -= live.pop(row["Pointer"], 0)
    if now > peak:
        peak, peak_of = now, dict(live)

events = json.load(open(sys.argv[2]))["traceEvents"]
opened, shown, last = {}, [], 0.0
for event in events:
    assert {"ph", "pid", "tid", "ts", "name"} <= set(event) and event["ts"] >= last, event
    last = event["ts"]
    if event["ph"] == "b":
        assert event["id"] not in opened, event
        opened[event["id"]] = event
    elif event["ph"] == "e":
        begun = opened.pop(event["id"])
        assert (begun["name"], begun["cat"]) == (event["name"], event["cat"]), event
    elif event["ph"] == "C":
        shown.append(event["args"]["bytes"])
        assert shown[-1] == sum(each["args"]["bytes"] for each in opened.values()) or len(shown) > 300, event
    else:
        assert event["ph"] == "i" and event["s"] == "p", event
assert max(shown) == peak and shown[-1] == now, (max(shown), peak, shown[-1], now)
assert sorted(each["args"]["bytes"] for each in opened.values()) == sorted(live.values())


def fields(data):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            at, value = at + value, data[at:at + value]
            assert len(value) == len(value) and at <= len(data)
        else:
            assert tag & 7 == 0, tag
        yield tag >> 3, value


def packed(data):
    return [value for _, value in fields(b"".join(b"\x08" + each for each in split(data)))]


def split(data):
    start = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[start:i + 1]
            start = i + 1


profile = collections.defaultdict(list)
for field, value in fields(open(sys.argv[3], "rb").read()):
    profile[field].append(value)
strings = [text.decode() for text in profile[6]]
types = [strings[dict(fields(each))[1]] for each in profile[1]]
assert types == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "peak_objects", "peak_space"], types
assert strings[0] == "" and strings[profile[14][0]] == "peak_space"
functions = {dict(fields(each))[1]: strings[dict(fields(each))[2]] for each in profile[5]}
locations = {dict(fields(each))[1]: functions[dict(fields(dict(fields(each))[4]))[1]] for each in profile[4]}
assert len(functions) == len(profile[5]) and len(locations) == len(profile[4])
samples = [dict(fields(each)) for each in profile[2]]
sums = [sum(column) for column in zip(*(packed(each[2]) for each in samples))]
assert sums == [count, allocated, len(live), now, len(peak_of), peak], (sums, count, allocated, now, peak)
print("; ".join(sorted("<".join(locations[one] for one in packed(each[1])) for each in samples)))
END
for log in log.csv "$data/torch_snapshot.pickle"; do
  run 0 convert "$log" -o told.csv
  run 0 convert "$log" -o told.trace.json
  run 0 convert "$log" -o told.pprof
  python3 other_tools.py told.csv told.trace.json told.pprof >stacks || fail "$log: another tool is told something else"
done
[ "$(cat stacks)" = "[no call stack]; forward<step<main; load<main" ] || fail "pprof's call stacks are $(cat stacks)"
"$hipmm" convert --format pprof log.csv >/dev/full 2>err && fail "a profile on a full disk is no failure"
if installed go "pprof itself"; then
  HOME=$work go tool pprof -top told.pprof >top 2>err || fail "pprof does not read the profile: $(cat err)"
  grep -q '^ *16384kB 94.37% .* forward$' top || fail "pprof shows $(cat top)"
fi

# ---- What is refused ----

run 2 convert
says '^hipmm: convert: LOG… is missing'
run 2 convert a.csv -o a.csv
says '^hipmm: convert: "a.csv" is an input too; write another file$'
[ "$(wc -l <a.csv)" = 3 ] || fail "the input was written over"
cp a.csv b.csv
"$hipmm" convert a.csv >>a.csv 2>"$work/err" && fail "a log is converted into itself"
grep -q '^hipmm: convert: standard output is an input too; write another file$' "$work/err" ||
  fail "a log as standard output: $(cat "$work/err")"
cmp -s a.csv b.csv || fail "the input got rows of its own"
run 2 convert a.csv --format xml
says '^hipmm: convert: --format "xml" is not csv, record, pytorch, chrome or pprof$'
run 2 convert a.csv --format nsys
says '^hipmm: convert: --format "nsys" can be read and not written; write csv, record, pytorch, chrome or pprof$'
run 2 convert a.csv -o a.sqlite
says '^hipmm: convert: logs whose names end in .sqlite can be read and not written; end the name in .csv, .record, .pickle'
run 0 convert a.csv -o a.json --format record
run 1 convert none.csv
says '^hipmm: none.csv: No such file or directory$'
run 1 convert a.csv -o none/x.csv
says '^hipmm: convert: cannot write "none/x.csv": No such file or directory$'
run 2 convert -z a.csv
says '^hipmm: convert: unknown option "-z"'
head -c 100 log.record >head.record
run 1 convert head.record
says '^hipmm: head.record: is cut off before the end of its head; nothing can be read$'
{ printf 'hipmm record 5\n' && tail -c +16 log.record; } >later.record
run 1 convert later.record
says '^hipmm: later.record: is a record in a format that this hipmm does not know; use the command of the hipmm that wrote it$'
head -c 100000 log.record >cut.record
"$hipmm" convert cut.record >out 2>err || fail "a record that is cut off is refused"
grep -q '^hipmm: cut.record: the file is cut off: its last block is not whole$' err || fail "the cut is not told: $(cat err)"
[ "$(wc -l <out)" -gt 1000 ] || fail "only $(wc -l <out) rows of a record that is cut off were read"
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,t,allocate,0x100,8,0x0\n1,t,free,0x100,eight,0x0\n' >malformed.csv
run 1 convert malformed.csv -o x.record
says '^hipmm: malformed.csv:3: "eight" is no size'
{ "$hipmm" convert log.csv 2>err; echo $? >status; } | head -n 2 >first_rows # who has enough: no message, and the program ends
{ [ "$(cat status)" = 1 ] && [ "$(wc -l <first_rows)" = 2 ] && [ ! -s err ]; } || fail "convert | head: $(cat status err)"
if [ -c /dev/full ]; then
  : >"$work/out"
  "$hipmm" convert log.csv >/dev/full 2>"$work/err" && fail "a full disk is no failure"
  says '^hipmm: convert: cannot write "standard output": No space left on device$'
  run 1 convert log.csv -o /dev/full
  says '^hipmm: convert: cannot write "/dev/full": No space left on device$'
fi
finish
