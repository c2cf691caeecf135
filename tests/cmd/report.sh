#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm report: the numbers of a small log, real logs, odd ones, and the page as a browser shows it, where there is one.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

# number PATH: a value of the JSON printed, as "peak.bytes"
number() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$work/out" "$1"
}

# is PATH VALUE
is() {
  [ "$(number "$1")" = "$2" ] || fail "$1 is $(number "$1") and not $2"
}

# ---- A log whose numbers one can count ----

cat >small.csv <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,10:00:00.000000,allocate,0x10000000,1048576,0
1,10:00:01.000000,allocate,0x10200000,3145728,0x7
2,10:00:02.000000,allocate,0x10600000,3145728,0x7
2,10:00:03.000000,free,0x10200000,3145728,0x7
1,10:00:04.000000,allocate failure,(nil),9999999,0
1,10:00:05.000000,free,0xdead0000,8,0
1,10:00:06.000000,allocate,0x10100000,100,0
END
run 0 report --json small.csv
is events 7
is allocations 4
is frees 1
is failures 1
is unmatched_frees 1
is duration_ns 6000000000
is peak.bytes 7340032
is peak.event 2
is peak.blocks 3
is peak.by_size.0 '{"blocks": 2, "bytes": 6291456, "size": 3145728}'
is peak.by_stream.0 '{"blocks": 2, "bytes": 6291456, "stream": "0x7"}'
is peak.by_thread.0 '{"blocks": 2, "bytes": 4194304, "thread": 1}'
is end.bytes 4194404
is end.blocks 3
is first_failure '{"event": 4, "time_ns": 4000000000, "bytes": 9999999, "live_bytes": 4194304}'
is fragmentation.peak_pages_bytes 10485760 # pages 0x80; 0x81, 0x82; 0x83, 0x84
is timeline.most '[1048576, 4194304, 7340032, 4194304, 4194304, 4194304, 4194404]'
is sizes.0 '{"log2": 6, "blocks": 1, "bytes": 100}'
is lifetimes '[{"log2": 1, "blocks": 1, "bytes": 3145728}]'
run 0 report small.csv
prints '^- At most 7 MiB are live at once: after event 2 (2 s) of 7 events, in 3 blocks.$'
prints '^- The largest part of the peak: 2 blocks of 3 MiB (86 %).$'
prints '^- At the end of the log 3 blocks with 4'
prints '^- 1 operation failed; the first, of 9.54 MiB, at event 4 (4 s).$'
same report-small.txt

# Logs together, and through a pipe.
head -4 small.csv >first.csv.1
sed '2,4d' small.csv >first.csv
run 0 report --json first.csv first.csv.1
is peak.bytes 7340032
is title '"first.csv and 1 more"'
"$hipmm" report --json - <small.csv >"$work/out" || fail "standard input is not read"
is peak.bytes 7340032

# ---- Pages ----

run 0 report small.csv -o page.html
[ ! -s "$work/out" ] || fail "the page and a text were written"
for part in '<title>' 'id="text-0"' 'id="column-from"' 'id="column-ranges"' 'requestDraw' '[^-]print-color-adjust: exact'; do
  grep -q -- "$part" page.html || fail "the page lacks $part"
done
! grep -qE '(src|href)=|https?:|@(style|script|data|title)@' page.html || fail "the page needs something else"
# column NAME N PAGE: the first numbers of a column, Exp-Golomb codes whose order is the first byte
column() {
  python3 - "$@" <<'END'
import base64, re, sys
name, n, page = sys.argv[1], int(sys.argv[2]), open(sys.argv[3]).read()
data = base64.b64decode(re.search('id="column-%s">([^<]*)<' % name, page).group(1))
bits = iter([byte >> i & 1 for byte in data[1:] for i in range(8)])
for _ in range(n):
    length = data[0]
    while not next(bits): length += 1
    print(sum(next(bits) << i for i in range(length)) + (1 << length) - (1 << data[0]), end=" ")
END
}
# are NAME NUMBERS PAGE
are() {
  found=$(column "$1" "$(echo "$2" | wc -w)" "$3")
  [ "$found" = "$2 " ] || fail "the column $1 is $found and not $2"
}
are from '0 1 1 4' page.html
are to '0 2 0 0' page.html
# Of two streams each has two blocks. Of four blocks three sizes are no table: how much larger each is than the least, of 100 bytes,
# in units of 4.
are stream '0 1 1 0' page.html
are stream-table '2 0 0 2' page.html
are bytes-table '0 2 25' page.html
are bytes '262119 786407 786407 0' page.html
# Four addresses are no table: how far each is above the least, in units of 1 MiB.
are address-table '0 20 256' page.html
are address '0 2 6 1' page.html
# Pages of 2 MiB after each event: one more, two more, two more, two fewer, …
are pages '1 2 2 2 0 0 0' page.html
are held 0 page.html

# A name that is HTML is a name.
cp small.csv '<script>alert(1)<b>&.csv'
run 0 report '<script>alert(1)<b>&.csv' -o odd.html
! grep -q '<script>alert' odd.html || fail "the name of a log became part of the page"

# ---- Real programs ----

for log in cupy_frames resnet50_train; do
  xz -dc "$top_srcdir/tests/data/$log.csv.xz" >$log.csv || exit 99
done
run 1 report "$top_srcdir/tests/data/cupy_frames.csv.xz"
says 'cupy_frames.csv.xz: is xz-compressed; pipe it: xz -dc .*cupy_frames.csv.xz | hipmm report -$'
run 0 report --json cupy_frames.csv
is peak.bytes 985520330
is end.blocks 0
run 0 report --json resnet50_train.csv
is peak.bytes 4069464592
is end.blocks 3
cp "$work/out" training.json
# A line that joins the middles of the parts of the timeline lies nowhere below the live bytes; nor does the page's, in any view.
python3 - resnet50_train.csv "$work/out" <<'END' || fail "the pages of a training are fewer than its live bytes"
import csv, json, sys
pages, live, now = json.load(open(sys.argv[2]))["timeline"]["pages"], [], 0
for row in csv.DictReader(open(sys.argv[1])):
    now += {"allocate": 1, "free": -1}.get(row["Action"], 0) * int(row["Size"])
    live.append(now)
assert len(live) > 2 * len(pages)
for event, held in enumerate(live):
    at = max(0, min(len(pages) - 1, (event + 0.5) * len(pages) / len(live) - 0.5))
    left = min(int(at), len(pages) - 2)
    assert pages[left] + (pages[left + 1] - pages[left]) * (at - left) >= held, event
END
run 0 report resnet50_train.csv -o training.html
# A page of a million events has at most 5 MB; the curves have 100 kB at most, however long the log is.
bytes=$(($(wc -c <training.html) - $(wc -c <page.html)))
[ $bytes -le $((62287 * 5 + 100000)) ] || fail "the page of 62287 events has $bytes bytes more than that of 7"
! installed node "the lines that the page draws" || node "$here/page_lines.js" training.html >"$work/clean" || fail "$(cat "$work/clean")"
# Of a log with more blocks than a page has, the most and the least of each of 65536 parts are those of its events.
python3 - many.csv <<'END' || exit 99
import sys
with open(sys.argv[1], "w") as log:
    log.write("Thread,Time,Action,Pointer,Size,Stream\n")
    for i in range(1, 1000002):
        log.write("1,x,allocate,0x%x,%d,0\n" % (i << 12, 512 * (1 + i * i % 7)))
        if i % 3: log.write("1,x,free,0x%x,0,0\n" % (i << 12))
END
run 0 report many.csv -o many.html
for name in most least pages; do column $name $((2 * 65536 + 2)) many.html >many.$name; done
python3 - many.csv <<'END' || fail "the parts of a long log"
import csv, sys
def levels(name):
    numbers = [int(word) for word in open("many." + name).read().split()]
    event = level = 0
    for step, change in zip(numbers[2::2], numbers[3::2]):
        event, level = event + step, level + (-(change // 2) if change % 2 else change // 2)
        yield event, level << numbers[1]
sizes, live, now, places, pages = {}, [], 0, {}, []
for row in csv.DictReader(open(sys.argv[1])):
    place, change = int(row["Pointer"], 16) >> 21, 1 if row["Action"] == "allocate" else -1
    if change > 0: sizes[row["Pointer"]] = int(row["Size"])
    now += change * (sizes[row["Pointer"]] if change > 0 else sizes.pop(row["Pointer"]))
    places[place] = places.get(place, 0) + change
    if not places[place]: del places[place]
    live.append(now), pages.append(len(places) << 21)
parts = [range(-(-i * len(live) // 65536), -(-(i + 1) * len(live) // 65536)) for i in range(65536)]
for name, values, choose in ("most", live, max), ("least", live, min), ("pages", pages, max):
    assert list(levels(name)) == [(part.start, choose(values[part.start:part.stop])) for part in parts], name
END
if installed node "the lines of a long log"; then
  node "$here/page_lines.js" many.html >"$work/clean" && grep -q ' blocks of those that the page has$' "$work/clean" || fail "$(cat "$work/clean")"
fi
rm many.*
# What differs at the peak of a training, counted by another program.
python3 - resnet50_train.csv training.json <<'END' || fail "the rises of a training"
import csv, json, sys
live, sizes, count = [], {}, []
for row in csv.DictReader(open(sys.argv[1])):
    if row["Action"] == "allocate": sizes[row["Pointer"]] = int(row["Size"])
    elif row["Action"] == "free": sizes.pop(row["Pointer"], None)
    now = (live[-1] if live else 0) + (int(row["Size"]) if row["Action"] == "allocate" else -int(row["Size"]))
    live.append(now), count.append(len(sizes))
peak = max(live)
tops, state, best = [], 1, (live[0], 0)
for event, now in enumerate(live + [0]):
    if state * now > state * best[0]: best = (now, event)
    elif state * (best[0] - now) > peak / 20:
        if state == 1: tops.append(best)
        state, best = -state, (now, event)
middle = sorted(tops)[len(tops) // 2]
sentence = "Memory rises and falls %d times, and half of the rises stay below %.2f GiB. The peak is %.1f times as high, " \
    "with %d blocks where the middle one has %d: mostly larger blocks." % (
        len(tops), middle[0] / 2**30, peak / middle[0], count[live.index(peak)], count[middle[1]])
assert sentence in json.load(open(sys.argv[2]))["findings"], sentence
END
HIPMM_RUNTIME=software HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG
echo '{ "stack": [{"type": "recording", "file": "made.record", "stacks": "all"}, "pool", "device"] }' >hipmm.json
run 0 replay --json cupy_frames.csv
held=$(number peak_reserved_bytes)
run 0 report --json made.record
is peak.bytes 985520330
is held.peak_bytes "$held"
is held.end_bytes "$held"
[ "$(number peak.by_stack | wc -c)" -gt 20 ] || fail "the call stacks are not there"
for width in 20 40 200; do
  COLUMNS=$width "$hipmm" report cupy_frames.csv >"$work/out" || fail "no text of $width columns"
done

xz -dc "$top_srcdir/tests/data/torch_mlp.pickle.xz" >mlp.pickle || exit 99
COLUMNS=80 "$hipmm" report mlp.pickle >"$work/out"
python3 -c 'import sys
for line in open(sys.argv[1], encoding="utf-8"): assert len(line.rstrip("\n")) <= 80, line' "$work/out" ||
  fail "a line with a call stack is longer than a terminal of 80 columns"
COLUMNS=40 "$hipmm" report cupy_frames.csv >"$work/out"
python3 -c 'import sys
for line in open(sys.argv[1], encoding="utf-8"): assert len(line.rstrip("\n")) <= 40, line' "$work/out" ||
  fail "a line is longer than a terminal of 40 columns"

# Stacks whose numbers differ by 65536 are two; equal stacks of two logs are one.
python3 - <<'END' || exit 99
import json
events = [{"action": "alloc", "addr": 4096 * i, "size": 1, "stream": 0, "time_us": i,
           "frames": [{"name": f"f{i}", "filename": "a.py", "line": i}]} for i in range(1, 65539)]
for i in 0, 65536: events[i]["size"] = 4096
json.dump({"device_traces": [events]}, open("stacks.json", "w"))
for name, address in ("one.json", 4096), ("one.json.1", 8192):
    json.dump({"device_traces": [[dict(events[i], addr=address + 65536 * i) for i in ((0, 1) if name == "one.json" else (1, 0))]]},
              open(name, "w"))
END
run 0 report --json stacks.json
is peak.by_stack.0.bytes 4096
is peak.by_stack.1.bytes 4096
run 0 report one.json one.json.1
prints ' 8 KiB .* 2 blocks  f1 from a.py:1$'

# What a foreign log has in its texts is text, in every form.
python3 - <<'END' || exit 99
import struct
text = b"  #0 in </script><script>document.title = 'pwned'</script><img src=x onerror=alert(1)> from \xff\xe2\x80\xa8\"'`&amp;\\u003c\n"
event = struct.pack("<HIIII", 0x8000 | 1 | 1 << 1, 1, len(text), 0, 0)[:-8] + text
event += struct.pack("<HBBBI", 1 | 1 << 3 | 1 << 4 | 1 << 7 | 1 << 10 | 1 << 14, 1, 2, 8, 1)
head = b"hipmm record 1\n\0" + struct.pack("<IIQQQQQqIi", 0x01020304, 65536, 0, 0, 0, 0, 10**9, 0, 1, 0)
block = struct.pack("<IIQQQQ", 0x4B4C4252, 1, 0, 0, 0, 1) + bytes(24) + event
open("evil.record", "wb").write(head.ljust(65536, b"\0") + block.ljust(65536, b"\0"))
END
run 0 report evil.record -o evil.html --text
prints 'script>.* from '
[ "$(grep -ci '<script' evil.html)" = "$(grep -ci '<script' page.html)" ] || fail "a stack became part of the page"
! grep -q '<img' evil.html || fail "a stack became part of the page"
run 0 report --json evil.record
is peak.bytes 8

# A training on a GPU, with PyTorch's frames of C++ and Python: the figures are those of the snapshot's own events, and each
# stack is called by the lines of Python, or by the function that autograd derived.
run 0 report --json mlp.pickle
python3 - mlp.pickle "$work/out" <<'END' || fail "the report of a real snapshot differs from its events"
import json, pickle, sys
snapshot, report = pickle.load(open(sys.argv[1], "rb")), json.load(open(sys.argv[2]))
live, streams, peak, n, first = {}, {}, 0, 0, None
for event in [e for trace in snapshot["device_traces"] for e in trace if e["action"] in ("alloc", "free_requested")]:
    if event["action"] == "alloc": live[event["addr"]] = event
    else: del live[event["addr"]]
    now, n = sum(e["size"] for e in live.values()), n + 1
    if now > peak: peak, blocks, at, streams = now, len(live), n - 1, {e["stream"] for e in live.values()}
assert (n, peak, blocks, at) == (142, 73374468, 18, 139), (n, peak, blocks, at)
assert report["events"] == n and report["unmatched_frees"] == report["overlaid"] == report["failures"] == 0
assert [report["peak"][key] for key in ("bytes", "blocks", "event")] == [peak, blocks, at], report["peak"]
assert {int(s["stream"], 0) for s in report["peak"]["by_stream"]} == streams and len(streams) == 2
assert report["end"]["bytes"] == now and report["end"]["blocks"] == len(live) == 16
kept = {b["address"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
assert kept == set(live)
names = [stack["name"] for stack in report["peak"]["by_stack"]]
assert names[:2] == ["forward from torch/nn/modules/linear.py:134 ← <module> from /tmp/snap.py:7",
                     "AddmmBackward0::apply"], names
assert "_init_group from torch/optim/adam.py:178 ← <module> from /tmp/snap.py:7" in names, names
END
COLUMNS=200 run 0 report mlp.pickle -o mlp.html --text
prints ' 32 MiB .* 1 block   forward from torch/nn/modules/linear.py:134 ← <module> from /tmp/snap.py:7$'
! grep -q 'unwind\|_PyEval' mlp.html "$work/out" || fail "frames of the stack's own taking, or of the interpreter, are shown"

# ---- What an allocator holds ----

# The same figures by another program, from the events; the segments at the end lack none here.
run 0 report --json mlp.pickle -o mlp.html
python3 - mlp.pickle "$work/out" <<'END' || fail "what PyTorch held is not what its segments sum to"
import json, pickle, sys
snapshot, report = pickle.load(open(sys.argv[1], "rb")), json.load(open(sys.argv[2]))
held = live = most = 0
levels, pinned, segments, blocks = [], [], {}, {}
for event in snapshot["device_traces"][0]:
    if event["action"] == "segment_alloc": segments[event["addr"]] = event["size"]
    if event["action"] == "segment_free": del segments[event["addr"]]
    if event["action"] == "alloc": blocks[event["addr"]] = event["size"]
    if event["action"] == "free_requested": del blocks[event["addr"]]
    if event["action"] in ("alloc", "free_requested"):
        inside = {a: [size for b, size in blocks.items() if a <= b < a + bytes] for a, bytes in segments.items()}
        pins = {a: segments[a] - sum(sizes) for a, sizes in inside.items() if sizes and 2 * sum(sizes) < segments[a]}
        pinned.append((sum(pins.values()), sorted(pins.values(), reverse=True)))
    held += {"segment_alloc": event["size"], "segment_free": -event["size"]}.get(event["action"], 0)
    live += {"alloc": event["size"], "free_requested": -event["size"]}.get(event["action"], 0)
    if event["action"] in ("alloc", "free_requested"): levels.append((held - live, held))
    most = max(most, held)
told = report["held"]
ends = [block for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"]
assert told["rounded_bytes"] == sum(block["size"] - block["requested_size"] for block in ends) > 0, told
assert told["peak_bytes"] == told["end_bytes"] == most == held == sum(s["total_size"] for s in snapshot["segments"]), told
assert (told["worst_bytes"] - told["worst_live_bytes"], told["worst_bytes"]) == max(levels), told
most = max(idle for idle, _ in pinned)
table = told["tables"][1]
assert table["heading"].endswith(f"after event {[idle for idle, _ in pinned].index(most)}"), table["heading"]
assert most and [row[1] - row[2] for row in table["rows"]] == pinned[[idle for idle, _ in pinned].index(most)][1][:12], table
assert [column["name"] for column in table["columns"]][-1] == "taken by", table
for row in table["rows"]: # the segment was taken in the history
    taken, = (event["frames"] for event in snapshot["device_traces"][0] if event["action"] == "segment_alloc" and event["addr"] == int(row[0], 16))
    assert row[6] in [f"{frame['name']} from {frame['filename']}:{frame['line']}" for frame in taken], row
assert report["timeline"]["held"] == [level for _, level in levels]
notes = [note["name"] for note in snapshot["external_annotations"] if note["stage"] == "START"]
assert [mark["name"] for mark in report["marks"]] == notes and len(notes) == 6
assert all(mark["event"] <= mark["end"] for mark in report["marks"])
END
! installed node "the lines of what is held" || node "$here/page_lines.js" mlp.html >"$work/clean" || fail "$(cat "$work/clean")"

# hipmm's own records, of a pool with segments and of one that maps chunks: a block of 1 MiB takes the place of one of 60.
cat >pins.csv <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,00:00:00:000000,allocate,0x10000000,62914560,0x0
1,00:00:00:000001,allocate,0x20000000,20971520,0x0
1,00:00:00:000002,free,0x10000000,62914560,0x0
1,00:00:00:000003,allocate,0x30000000,1048576,0x0
1,00:00:00:000004,free,0x20000000,20971520,0x0
END
for growth in segments mapped; do
  echo '{ "stack": [{"type": "recording", "file": "pins.record"}, {"type": "pool", "growth": "'$growth'"}, "device"] }' >pins.json
  run 0 replay --config pins.json pins.csv
  run 0 report --json pins.record -o pins.html
  python3 - "$work/out" pins.html $growth <<'END' || fail "what pins $growth is wrong"
import json, re, sys
held = json.load(open(sys.argv[1]))["held"]
table = held["tables"][1]
holder = {"segments": "device", "mapped": "pool"}[sys.argv[3]]
assert [row[:2] for row in held["tables"][0]["rows"]] == [[holder, held["peak_bytes"]]], held
assert [column["name"] for column in table["columns"]] == ["segment", "size", "live", "blocks", "resource", "its largest block"], table
(address, size, live, blocks, name, largest), = table["rows"]
assert name == holder, table
assert table["heading"].endswith("after event 3") and (live, blocks) == (1 << 20, 1) and largest == "1 MiB since event 3", table
assert 2 << 20 < size <= held["peak_bytes"] and int(address, 16) % 4096 == 0, table
assert not re.search('id="column-segments">AAE=<', open(sys.argv[2]).read()), "the map has no grey areas"
END
done

# Segments of 8 and 10 MiB were there before the history, 10 are mapped beside the second in it; 20 are of a private pool, and freed;
# of 30 the middle is unmapped. One block pins the mapped part, and nothing the others. So do three ranks, two of which fail.
python3 - <<'END' || exit 99
import json, os
MB, time = 1 << 20, 10**15
def event(action, address, megabytes, step, **more):
    global time
    time += 1000
    return {"action": action, "device_free" if action == "oom" else "addr": address * MB, "size": megabytes * MB, "stream": 0,
            "time_us": time, "user_metadata": step, **more}
def trace(rank, wait):
    global time
    events = [event("alloc", 116, 2, "step 0"), event("segment_map", 110, 10, "step 0"), event("alloc", 112, 1, "step 0"),
            event("segment_alloc", 200, 20, "step 1", segment_pool_id=[1, 0]), event("alloc", 200, 20, "step 1"),
            event("free_requested", 200, 20, "step 1"), event("segment_free", 200, 20, "step 1"),
            event("segment_map", 300, 30, ""), event("segment_unmap", 310, 10, "")]
    if rank: events.append(event("alloc", 16, rank, ""))
    time += wait or 0
    if wait is not None: events.append(event("oom", 9 + rank, 64, "step 1"))
    return events + [event("free_requested", 116, 2, "step 2")]
def segment(address, megabytes):
    return {"device": 0, "address": address * MB, "total_size": megabytes * MB, "segment_pool_id": [0, 0], "stream": 0, "blocks": []}
segments = [segment(16, 8), segment(100, 20), segment(300, 10), segment(320, 10)]
json.dump({"device_traces": [trace(0, None)], "segments": segments}, open("segments.json", "w"))
os.mkdir("job")
for rank, wait in (2, 50000), (10, 0), (1, None):
    time += 10**9 # the clock of another host
    json.dump({"device_traces": [trace(rank, wait)], "segments": segments}, open(f"job/rank{rank}.json", "w"))
END
run 0 report --json segments.json
is held.peak_bytes 60817408
is held.peak_event 4
is held.end_bytes 50331648
is timeline.held '[18874368, 29360128, 50331648, 50331648, 60817408]'
is held.tables.0.rows.0.1 60817408
is held.tables.0.rows.1.0 '"private (1, 0)"'
is held.tables.0.rows.1.3 0
is held.tables.1.rows '[["0x6e00000", 10485760, 1048576, 1, "shared", "1 MiB since event 1"]]'
is marks '[{"name": "step 0", "event": 0, "end": 2}, {"name": "step 1", "event": 2, "end": 4}, {"name": "step 2", "event": 4, "end": null}]'
run 0 report segments.json -o segments.html --text
prints '^- Most is pinned after event 4: of 5 segments 1 is less than half live, and keeps 9 MiB idle; 4 have'
prints '^  no live block (38 MiB, which can be given back).$'
prints '^  are held, 25 MiB (52 %) of them idle.$'
# Seven steps in units of 2 MiB: the events between them, and the differences.
are held '7 21 0 8 0 10 1 10 1 20 2 21 0 30 0 11' segments.html

# Blocks that are freed and wait for other streams: those of which the next event of a block finds no end.
python3 - <<'END' || exit 99
import json, random
random.seed(7)
events, live, waiting, levels = [], {}, {}, []
def add(action, block, sizes):
    events.append({"action": action, "addr": 4096 * block, "size": sizes[block], "stream": 0, "time_us": 10**15 + len(events)})
for step in range(900):
    for block in [block for block in waiting if random.random() < 0.3 or step == 899]:
        add("free_completed", block, waiting)
        del waiting[block]
    if events: levels.append(sum(waiting.values())) # after the last event
    block = random.randrange(1, 200)
    if block in live:
        add("free_requested", block, live)
        waiting[block] = live.pop(block)
        if random.random() < 0.8:
            add("free_completed", block, waiting)
            del waiting[block]
    elif block not in waiting:
        live[block] = random.randrange(1, 4096)
        add("alloc", block, live)
    else: # no event
        levels.pop()
events.insert(0, {"action": "segment_alloc", "addr": 0, "size": 1 << 20, "stream": 0, "time_us": 10**15})
events.insert(0, {"action": "free_completed", "addr": 4096, "size": 1, "stream": 0, "time_us": 10**15}) # of before the history
segment = {"address": 0, "total_size": 1 << 20, "blocks": []}
json.dump({"device_traces": [events], "segments": [segment]}, open("waits.json", "w"))
json.dump([max(levels), levels.index(max(levels))], open("levels.json", "w"))
END
run 0 report --json waits.json
python3 - "$work/out" levels.json <<'END' || fail "what waits for other streams is wrong"
import json, sys
report, (most, event) = (json.load(open(name)) for name in sys.argv[1:])
assert most > 4096 and report["held"]["waiting_peak_bytes"] == most, (report["held"], most, event)
sentence, = (text for text in report["findings"] if "wait for other streams" in text)
assert sentence.endswith(f"after event {event}."), (sentence, event)
END
run 0 report --json segments.json
is held.waiting_peak_bytes 0

# Pools that the segments at the end tell, or the event of a release; names that are long or no UTF-8; and a step with many others
# in it.
python3 - <<'END' || exit 99
import pickle
MB, time = 1 << 20, 10**15
def event(action, address, time_us, metadata="", **more):
    return {"action": action, "addr": address * MB, "size": 20 * MB, "stream": 0, "time_us": time + time_us, "user_metadata": metadata, **more}
def note(stage, name, time_us): return {"stage": stage, "name": name, "device": 0, "time_us": time + time_us}
events = [event("segment_alloc", 100, 0), event("alloc", 100, 10, "XX"), event("free_requested", 100, 20, "é" * 450),
          event("segment_free", 200, 30, segment_pool_id=(0, 3)), event("alloc", 100, 40)]
notes = [note("START", "outer", 5), *(note(stage, "inner", 22) for i in range(2100) for stage in ("START", "END")), note("END", "outer", 25)]
segment = {"address": 100 * MB, "total_size": 20 * MB, "segment_pool_id": (2, 0), "stream": 0, "blocks": []}
snapshot = {"device_traces": [events], "segments": [segment], "external_annotations": notes}
open("named.pickle", "wb").write(pickle.dumps(snapshot, 4).replace(b"XX", b"\xff\xfe"))
END
run 0 report --text named.pickle -o named.html
prints '^- Of 2103 steps of the program the report has the first 2000.$'
run 0 report --json named.pickle
is held.tables.0.rows '[["private (0, 3)", 20971520, 0, 0, "\u2588\u2588\u2588"], ["private (2, 0)", 20971520, 0, 20971520, "\u2588\u2588\u2588"]]'
is marks.0 '{"name": "outer", "event": 0, "end": 2}'
is marks.1 '{"name": "??", "event": 0, "end": 1}'
is marks.2.end 2
! grep -q '"end": null' "$work/out" || fail "a step has no end"

# ---- Jobs ----

mkdir job/folder
mkfifo job/fifo # which nobody writes
touch job/.hidden job/old.html
run 0 report --json job
is title '"rank1.json and 2 more"'
is job.imbalance 1.0
is job.first_failure 2
is job.members.2.name '"rank10.json"'
is memories.1.first_failure.live_bytes 5242880
run 0 report job -o job.html --text
prints '^- 2 of 3 fail. The first is rank10.json, 0.01 s after its first event. Times count from the first'
prints '^- The device was asked 1 time for its free memory: at least 11 MiB were left, at event 5.'
[ "$(grep -c '<svg' job.html)" = 3 ] && [ "$(grep -o '<path class="held"' job.html | wc -l)" = 3 ] || fail "the small plots of a job"
grep -q 'href="#text-2"' job.html && grep -q 'id="text-2"' job.html || fail "the plot of a memory leads nowhere"
mkdir empty
run 1 report empty
says '^hipmm: report: empty: the folder has no logs$'

# A snapshot of 20 MB takes at most three times as much memory.
python3 - <<'END' || exit 99
import pickle
frames = [[{"filename": "/home/user/train.py", "line": i, "name": f"f{i}"}] for i in range(100)]
events = [{"action": ("alloc", "free_requested", "free_completed")[i % 3], "addr": (1 << 40) + (i // 3 << 12), "size": 512 + i % 999,
           "stream": 0, "time_us": 10**15 + i, "compile_context": "N/A", "user_metadata": "", "frames": frames[i % 100]}
          for i in range(270000)]
segments = [{"address": 1 << 40, "total_size": 4096, "blocks": [{"size": 4096, "state": "inactive"}]} for i in range(1000)]
pickle.dump({"segments": segments, "device_traces": [events]}, open("large.pickle", "wb"))
END
python3 - "$hipmm" <<'END' || fail "the memory of a report of a large snapshot"
import os, resource, subprocess, sys
subprocess.run([sys.argv[1], "report", "--json", "large.pickle"], stdout=subprocess.DEVNULL, check=True)
used, size = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, os.path.getsize("large.pickle")
assert size > 18e6 and (os.environ.get("SANITIZER_FLAGS") or used < 3 * size), (used, size)
END
# Numbers that no device has, and times that no clock gives.
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.0,allocate,0xffffffffffffff00,18446744073709551615,0\n1,10:00:01.0,allocate,0x100,9223372036854775808,0xffffffffffffffff\n1,10:00:02.0,allocate,0xfffffffffffff000,281474976710656,0\n1,10:00:03.0,allocate failure,0x0,18446744073709551615,0\n' >huge.csv
run 0 report huge.csv -o huge.html --json
is peak.bytes 281474976710656
is requested_bytes 281474976710656
is first_failure.bytes 1.84467e+19
run 0 report huge.csv
prints '2 allocations of more than 256 TiB count as no memory: no device has that much.$'
prints 'the first, of 16.00 EiB,'

# ---- Clocks of several logs ----

run 0 report --json small.csv made.record
grep -q '^hipmm: small.csv has times of the day and made.record of the calendar: how their rows follow' "$work/err" ||
  fail "the clocks differ: $(cat "$work/err")"
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,x,allocate,0x900,8,0\n' >timeless.csv
run 0 report --json small.csv timeless.csv
grep -q '^hipmm: timeless.csv has no times: its rows come before those of other logs$' "$work/err" ||
  fail "no times: $(cat "$work/err")"

# ---- Two logs beside each other ----

# The second version of a program has one block of 4 MiB more at its peak, one of 3 MiB less, and its first block later.
cat >later.csv <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,10:00:01.000000,allocate,0x10200000,4194304,0x7
2,10:00:02.000000,allocate,0x10600000,3145728,0x7
1,10:00:03.000000,allocate,0x10000000,1048576,0
1,10:00:04.000000,free,0x10000000,1048576,0
END
run 0 report --json --compare small.csv later.csv
is title '"later.csv beside small.csv"'
is tables.0.rows '[["live at the peak", 7340032, 8388608, "1 MiB more (14.3 %)"], ["in pages of 2 MiB, at most", 10485760, 10485760, "the same"], ["not freed at the end", 4194404, 7340032, "3.00 MiB more (75 %)"], ["allocated in all", 7340132, 8388608, "1023.90 KiB more (14.3 %)"]]'
is tables.1.rows '[["4 MiB to 8 MiB", 0, 0, 4194304, 1, "appeared"], ["2 MiB to 4 MiB", 6291456, 2, 3145728, 1, "3 MiB less (50 %)"]]'
prints 'In small.csv 1 operation failed; the first, of 9.54 MiB, at event 4 of 7.'
run 0 report --json --compare later.csv small.csv
is tables.1.rows '[["4 MiB to 8 MiB", 4194304, 1, 0, 0, "gone"], ["2 MiB to 4 MiB", 3145728, 1, 6291456, 2, "3 MiB more (100 %)"]]'
# A call stack stays the same where only lines moved; that of the larger block is another function now.
sed 's/"line": 17, "name": "load"/"line": 19, "name": "load"/g; s/"name": "forward"/"name": "forward_all"/g; s/: 1000000\b/: 2000000/g' \
  "$top_srcdir/tests/data/torch_snapshot.json" >edited.json
run 0 report --json --compare "$top_srcdir/tests/data/torch_snapshot.json" edited.json
python3 - "$work/out" <<'END' || fail "the call stacks of two logs are compared wrongly"
import json, sys
tables = json.load(open(sys.argv[1]))["tables"]
assert [table["heading"] for table in tables] == ["Figures", "Live at the peak, by call stack", "Live at the peak, by size",
                                                  "Allocated in all, by call stack", "Allocated in all, by size"], tables
rows = {row[0]: row[1:] for row in tables[1]["rows"]}
assert rows == {"forward from /home/user/model.py:41": [16777216, 1, 0, 0, "gone"],
                "forward_all from /home/user/model.py:41": [0, 0, 16777216, 1, "appeared"],
                "load from /home/user/data.py:19": [1000000, 1, 2000000, 1, "976.56 KiB more (100 %)"]}, rows
END
run 0 report --compare "$top_srcdir/tests/data/torch_snapshot.json" edited.json -o compared.html
grep -q '<td class="name">forward_all from /home/user/model.py:41</td>' compared.html || fail "the page lacks a call stack"
run 0 report --compare small.csv small.csv
prints '^- At most 7 MiB are live at once in small.csv, and 7 MiB in small.csv: the same.$'
run 2 report --compare small.csv
says '^hipmm: report: --compare takes two logs, the one before and the one after, and not 1$'
head -n 1 small.csv >none.csv
run 1 report --compare none.csv small.csv
says '^hipmm: report: --compare: none.csv has no rows of that memory$'
printf '[%s, %s]' "$(cat "$top_srcdir/tests/data/torch_snapshot.json")" "$(cat edited.json)" >both.json
run 1 report --compare both.json small.csv
says '^hipmm: report: --compare: both.json has the memory of 2 processes, devices or kinds; choose one with --device or --process$'

# ---- Snapshots and reports of processes ----

cat >snapshot.json <<'END'
{"version": "1.2.3", "runtime": "software", "stacks": [{"device": 0, "source": "<b>x", "top": "devices/0/pool",
 "held_bytes": 8388608, "peak_held_bytes": 9437184, "resources": [
 {"name": "pool", "type": "pool", "path": "devices/0/pool", "values": {}, "memory": {
  "live": {"bytes": 1048576, "blocks": 1}, "free": {"bytes": 6291456, "blocks": 2}, "pending": {"bytes": 0, "blocks": 0},
  "cached": {"bytes": 1048576, "blocks": 4}, "largest_free_bytes": 4194304, "fragmentation": 0.333,
  "blockers": [{"joined_bytes": 6291456, "below_bytes": 4194304, "above_bytes": 2097152, "n_blocks": 1,
                "blocks": [{"address": "0x400000", "bytes": 1048576, "state": "live", "stream": "0x0"}]}],
  "streams": [{"stream": "0x0", "live": {"bytes": 1048576, "blocks": 1}, "pending": {"bytes": 0, "blocks": 0},
               "cached": {"bytes": 1048576, "blocks": 4}}]}},
 {"name": "device", "type": "device", "path": null, "held": {"bytes": 8388608, "blocks": 1}}]}]}
END
run 0 report snapshot.json -o snapshot.html --text
prints '^- The stack of devices/0/pool holds 8 MiB of device 0, and held at most 9 MiB.$'
prints '^- devices/0/pool has 1 MiB in 1 live block, and 7 MiB that no block uses.$'
prints '^- Its free memory is fragmented: the largest free block has 4 MiB (33 % less).$'
prints '^- In devices/0/pool 1 block from 0x400000 on keeps 6 MiB of free memory apart.$'
prints '^  devices/0/pool  pool .* 1 MiB   *6 MiB'
prints '^- A snapshot is of one moment'
grep -q '&lt;b&gt;x' snapshot.html && ! grep -q '<b>x\|http\|@data@' snapshot.html || fail "the page of a snapshot"
"$hipmm" report --json - <snapshot.json >"$work/out" || fail "a snapshot from standard input"
is tables.0.rows '[[0, "<b>x", "devices/0/pool", 8388608, 9437184]]'
is tables.3.rows.0 '["devices/0/pool", "0x400000", "0x0", 1, 6291456]'
sed 's/"memory":/"suspended": true, &/' snapshot.json >asleep.json
run 0 report asleep.json
prints ' is suspended: its [0-9]* live blocks* of .* have no memory until it resumes\.$'
! grep -q 'that no block uses' "$work/out" || fail "free memory of a suspended resource: $(cat "$work/out")"
COLUMNS=40 "$hipmm" report snapshot.json >"$work/out"
prints '^    held: 8 MiB$'
run 1 convert snapshot.json
grep -q '^hipmm: snapshot.json: is a snapshot of hipmm, which has no events: `hipmm report` alone shows it$' "$work/err" ||
  fail "convert of a snapshot: $(cat "$work/err")"
# A list of them, and a file whose last one is not whole.
{ printf '[' && cat snapshot.json && printf ', ' && cat snapshot.json && printf ']'; } >list.json
"$hipmm" report --json list.json >"$work/clean" || fail "a list of snapshots"
"$hipmm" report --json snapshot.json snapshot.json | sed 's/"snapshot.json and 1 more"/"list.json"/' | cmp - "$work/clean" ||
  fail "a list of snapshots is something else than its parts"
{ cat snapshot.json && head -c 40 snapshot.json; } >cut.json
"$hipmm" report --json cut.json >"$work/clean" 2>"$work/err" || fail "a file that is cut off: $(cat "$work/err")"
grep -q '^hipmm: cut.json: the file is cut off: the last of its reports is not whole$' "$work/err" || fail "no word of the cut"
"$hipmm" report --json snapshot.json | sed 's/"snapshot.json"/"cut.json"/' | cmp - "$work/clean" || fail "what is whole is not read"
run 2 report --device 0 snapshot.json
says '^hipmm: report: --device and --process choose from logs; snapshot.json is the state of a process$'
run 2 report --device 0 small.csv snapshot.json
says '; snapshot.json is the state of a process$'
run 1 report snapshot.json small.csv
says '^hipmm: report: of the 2 files 1 is no log but a snapshot or the report of a process; report these apart$'
cat >run.json <<'END'
{"program":"train","process":7,"host":"h","runtime":"software","moment":"exit","signal":null,"functions":{"hipMalloc":{"calls":3,"passed":0,"failed":1}},"memory":[{"device":0,"kind":"device","peak_requested_bytes":4194304,"live_bytes":1024,"live_blocks":1,"peak_reserved_bytes":6291456}],"resources":[],"first_failure":"no memory"}
{"program":"eval","process":8,"runtime":"software","memory":[]}
END
run 0 report run.json
prints '^- train (process 7) had at most 4 MiB of device memory at once on device 0.$'
prints '^- The first failure of train (process 7): no memory$'
prints '^  hipMalloc  *3  *0  *1$'
prints '^- The report of a process has sums'
head -c 300 run.json >cut.json
run 1 report cut.json
says '^hipmm: cut.json: is no valid JSON: line 1: '
printf '{"runtime": 1, "process": "x", "memory": 3}' >other.json
run 1 report other.json
says '^hipmm: other.json: line 1 is neither a snapshot of hipmm nor a report of a process$'

by_keys job.html
by_keys mlp.html
by_keys compared.html

# A browser draws it.
if installed chromium "the page, drawn by a browser"; then
  run 0 report made.record -o drawn.html
  if timeout 60 chromium --headless=new --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom \
    "file://$work/drawn.html" >dom 2>dom.err; then
    timeout 60 chromium --headless=new --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom \
      "file://$work/evil.html" >evil.dom 2>dom.err
    grep -q 'record</title>\|evil.record' evil.dom && ! grep -q '<title>pwned' evil.dom || fail "a stack was run"
    for text in '940 MiB in 151 blocks' 'At most 939.87 MiB are live at once' '(no call stack recorded)' 'id="flame"'; do
      grep -q -- "$text" dom || fail "the drawn page lacks: $text"
    done
  else
    echo "chromium does not run here"
  fi
fi

# ---- Odd logs ----

echo 'Thread,Time,Action,Pointer,Size,Stream' >nothing.csv
run 0 report nothing.csv -o nothing.html --text
prints '^The log has no events.$'
run 0 report --json nothing.csv
is events 0
: >empty.csv
run 1 report empty.csv
says '^hipmm: empty.csv: is empty'
run 1 report "$top_srcdir/README.md"
says 'a log begins with Thread,Time,Action'
cp small.csv before
run 2 report small.csv -o small.csv
says '^hipmm: report: "small.csv" is an input too; write another file$'
cmp -s before small.csv || fail "the page took the place of its log"
run 1 report small.csv -o none/page.html
says '^hipmm: report: cannot write "none/page.html": No such file or directory$'
run 0 report small.csv -o small.html
run 0 report small.csv -o -
[ ! -e ./- ] || fail "a file is called -"
cmp -s small.html "$work/out" || fail "standard output is not the page"
for other in --text --json; do
  run 2 report $other small.csv -o -
  says "^hipmm: report: --output - and $other both write to standard output; name a file for one\$"
done
run 2 report --text --json small.csv
says '^hipmm: report: --text and --json are two answers; ask for one$'
if [ -c /dev/full ]; then
  run 1 report small.csv -o /dev/full
  says '^hipmm: report: cannot write "/dev/full": No space left on device$'
  run 1 report snapshot.json -o /dev/full
  says '^hipmm: report: cannot write "/dev/full": No space left on device$'
  "$hipmm" report small.csv >/dev/full 2>"$work/err" && fail "a full disk is passed over in silence"
fi
# A clock that steps back, and addresses that are used twice.
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,10:00:05.0,allocate,0x100,8,0\n1,10:00:01.0,allocate,0x100,16,0\n1,x,free,0x100,16,0\n' >steps.csv
run 0 report --json steps.csv
is overlaid 1
is peak.bytes 16
is end.bytes 0
run 0 report steps.csv
prints '^- Allocations at the address of a block that the log has not freed: 1; such a block counts as'
# Addresses that cover all there are, with more gaps of each size than a page shows.
python3 - >gaps.csv <<'END'
print("Thread,Time,Action,Pointer,Size,Stream")
at, n = 0, 4200
def put(step):
    global at
    for _ in range(n):
        if at < 2**64: print("1,10:00:00.0,allocate,0x%x,1,0" % at)
        at += step
for power in range(21, 52, 2): put(2**power + 2**22)
at = 2**64 - 2**53
put(2**40)
END
timeout 60 "$hipmm" report gaps.csv -o gaps.html >out 2>err </dev/null || fail "no page of gaps.csv within a minute: $(cat err)"

# A clock that goes back 200,000 times.
awk 'BEGIN {
  print "Thread,Time,Action,Pointer,Size,Stream"
  for (i = 0; i < 200000; i++) printf "1,%02d:00:00.0,allocate,0x%x,1,0\n", i % 2 ? 1 : 23, 4096 * i + 4096
}' >back.csv
run 0 report --json back.csv
[ "$(number duration_ns)" -gt 0 ] || fail "the days of a log are $(number duration_ns) ns"
finish
