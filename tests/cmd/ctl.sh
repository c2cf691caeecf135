#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `hipmm ctl` with a program (controlled.c) in another process: reads, sets, limits, trims, writes profiles, and asks to
# suspend; a process that is not there, does not answer, ends meanwhile, or belongs to another part of hipmm.
. "$top_srcdir/tests/cmd/common.sh"

mkdir -m 700 "$work/run"
XDG_RUNTIME_DIR=$work/run
HIPMM_RUNTIME=software
export XDG_RUNTIME_DIR HIPMM_RUNTIME
program=$top_builddir/tests/cmd/controlled
mkfifo line

# start GRAPH: runs the program; its standard input is descriptor 5, and it has said that it is ready
start() {
  echo "$1" >hipmm.json
  : >said
  HIPMM_CONFIG=$work/hipmm.json "$program" -u train.py <line >said &
  one=$!
  exec 5>line
  tries=0
  until grep -q ready said || [ $tries = 200 ]; do sleep 0.05 && tries=$((tries + 1)); done
  grep -q ready said || fail "the program does not start: $(cat said)"
}

# end: the program ends by itself, and has done all well
end() {
  exec 5>&-
  wait $one || fail "the program failed: $(cat said)"
  [ -z "$(ls "$XDG_RUNTIME_DIR/hipmm" 2>/dev/null)" ] || fail "a socket is left"
}

# safe_point: the program comes to its next one
safe_point() {
  before=$(wc -l <said)
  echo >&5
  tries=0
  until [ "$(wc -l <said)" -gt "$before" ] || [ $tries = 200 ]; do sleep 0.02 && tries=$((tries + 1)); done
}

# ---- Nobody answers ----

run 1 ctl 1 status
says 'cannot be used for sockets: No such file\|"control": true'
start '{"stack": ["pool", "device"]}'
run 1 ctl $one status
says '"control": true\|No such file'
end

echo '{"control": true, "stack": ["device"]}' >hipmm.json
"$program" </dev/null >said 2>err || fail "the program failed: $(cat said err)"
grep -q 'a graph that was only found (.*hipmm.json) does not allow' err || fail "a found graph opens a socket: $(cat err)"
HIPMM_CONTROL=0 "$program" </dev/null >said 2>err || fail "the program failed: $(cat said err)"
grep -q 'does not allow' err && fail "HIPMM_CONTROL=0 warns: $(cat err)"

# ---- What is read and set ----

start '{"control": true, "stack": [{"type": "limiting", "limit": "64MiB"}, {"type": "tracking", "stacks": "all", "stack_sample": 0}, "pool", "device"]}'
run 0 ctl $one list
prints '^devices/0$'
prints '^devices/0/pool  pool$'
run 0 ctl controlled list devices/0/limiting
run 0 ctl train.py list devices/0/limiting
prints '^devices/0/limiting/limit = .*(settable)$'
run 0 ctl $one get devices/0/tracking/outstanding_bytes
prints '^1048576$'
run 0 ctl $one limit 2MiB
run 0 ctl $one get devices/0/limiting/limit
prints '^"2MiB"$'
run 0 ctl $one get devices/0/pool/maximum_size
grep -q 2MiB out && fail "the pool was limited too"
run 0 ctl $one limit devices/0/pool 64MiB
run 0 ctl $one get devices/0/pool/maximum_size
prints '^"64MiB"$'
run 0 ctl $one set devices/0/limiting/limit 50%
run 1 ctl $one set devices/0/limiting/limit 2MiBB
says "ctl: process $one: .*devices/0/limiting.*2MiBB"
run 1 ctl $one set devices/0/poool/maximum_size 1GiB
says 'did you mean "pool"'
run 1 ctl $one set devices/0/pool/growth segments
says 'cannot be set while it is in use'
run 1 ctl $one limit devices/0/tracking 1GiB
says 'put `limiting` on top'
run 0 ctl $one status
prints "^ *$one   devices/0/pool "
run 0 ctl $one status --json
/usr/bin/python3 - out <<'END' || fail "the status as JSON is not right"
import json, sys
state = json.load(open(sys.argv[1]))
assert state["version"] and state["runtime"] == "software" and state["stacks"][0]["top"] == "devices/0/limiting"
rows = {row["path"]: row for row in state["process"]["resources"]}
assert rows["devices/0/pool"]["reserved_bytes"] >= 4 << 20
END

# ---- Trim ----

safe_point
before_trim=$(tail -1 said)
run 0 ctl $one trim devices/0/pool
safe_point
[ "$(tail -1 said | cut -d' ' -f2)" -lt "${before_trim#held }" ] || fail "trim gave nothing back: $(cat said)"

# ---- Profiles ----

run 0 ctl $one profile -o heap.pprof
grep -q 'cmd/.*controlled' heap.pprof || fail "the profile lacks the program's frames"
run 0 ctl $one profile devices/0/tracking -o heap.csv
[ "$(grep -c allocate, heap.csv)" = 1 ] || fail "the log of live blocks is not one row: $(cat heap.csv)"
run 1 ctl $one profile devices/0/pool -o none.pprof
says '"stacks": "python"'

# ---- Suspend and resume: the program does it ----

run 1 ctl $one resume --timeout 0
says 'has not replied within 0 seconds'
"$hipmm" ctl $one suspend 2>err & # while resume is asked for too: each has its reply
asked=$!
sleep 0.2
safe_point
wait $asked || fail "suspend: $(cat err)"
tail -1 said | grep -qx 'held 0' || fail "suspended memory is held: $(tail -1 said)"
safe_point
grep -q 'content is lost' said && fail "the content is lost"
tail -1 said | grep -qx 'held 0' && fail "the program did not resume"
"$hipmm" ctl $one resume 2>err & # it is not suspended, and the program says so
asked=$!
sleep 0.2
safe_point
wait $asked && fail "resume of what is not suspended succeeded"
grep -q 'is not suspended' err || fail "resume gives no reason: $(cat err)"

# ---- A process that stops, and that ends during a request ----

"$hipmm" ctl $one suspend 2>err &
asked=$!
sleep 0.2
kill -9 $one
wait $asked && fail "a process that was killed has replied"
grep -q "process $one" err || fail "nothing tells of the process's end: $(cat err)"
exec 5>&-
wait $one
run 1 ctl $one status

# ---- Records, and two processes of one name ----

start '{"control": true, "stack": [{"type": "recording", "file": "log.record", "stacks": "all", "stack_sample": 0}, {"type": "pool", "exportable": true}, "device"]}'
first=$one
run 0 ctl $one profile -o heap.pprof
grep -q 'cmd/.*controlled' heap.pprof || fail "the profile of a record lacks the program's frames"
: >said2
records='{"type": "recording", "file": "a.record"}, {"type": "recording", "file": "b.record"}'
HIPMM_CONTROL=1 HIPMM_CONFIG="{\"stack\": [$records, \"device\"]}" "$program" <line >said2 5>&- &
two=$!
tries=0
until grep -q ready said2 || [ $tries = 200 ]; do sleep 0.05 && tries=$((tries + 1)); done
run 1 ctl controlled status
says "several processes are called \"controlled\".*$first"
run 1 ctl $two profile -o none.pprof
says 'devices/0/recording and devices/0/recording.2 know who allocates; name one'
run 1 ctl $two profile devices/0/recording.2 -o none.pprof
says '2 of its open files may be the record'
run 1 ctl $two suspend --timeout 0
exec 5>&-
wait $first $two
run 1 ctl controlled status
says 'no process that answers is called "controlled"'

# ---- Wrong use ----

run 2 ctl 1
run 2 ctl 1 stat
says 'did you mean "status"'
run 2 ctl 1 set a
says 'usage: hipmm ctl PROCESS set PATH VALUE'
run 1 ctl $$ trim "$(printf 'devices/%05000d' 0)"
XDG_RUNTIME_DIR='' run 1 ctl 1 status
says 'XDG_RUNTIME_DIR, which is not set'
finish
