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

# ---- Several logs ----

printf 'Thread,Time,Action,Pointer,Size,Stream\n1,10:00:01.000000,allocate,0x100,8,0\n1,10:00:03.000000,free,0x100,8,0\n' >a.csv
printf 'Thread,Time,Action,Pointer,Size,Stream\n2,10:00:02.000000,allocate,0x200,9,0x7\n' >b.csv
run 0 convert a.csv b.csv
printf '%s\n' 'Thread,Time,Action,Pointer,Size,Stream' '1,10:00:01.000000,allocate,0x100,8,0' \
  '2,10:00:02.000000,allocate,0x200,9,0x7' '1,10:00:03.000000,free,0x100,8,0' | cmp - "$work/out" ||
  fail "two logs are not merged in order of time"

# ---- What is refused ----

run 2 convert
says '^hipmm: convert: LOG… is missing'
run 2 convert a.csv -o a.csv
says '^hipmm: convert: "a.csv" is also read; write another file$'
[ "$(wc -l <a.csv)" = 3 ] || fail "the input was written over"
run 2 convert a.csv --format xml
says '^hipmm: convert: --format "xml" is not csv or record$'
run 1 convert none.csv
says '^hipmm: none.csv: No such file or directory$'
run 1 convert a.csv -o none/x.csv
says '^hipmm: convert: cannot write "none/x.csv": No such file or directory$'
run 2 convert -z a.csv
says '^hipmm: convert: unknown option "-z"'
head -c 100 log.record >head.record
run 1 convert head.record
says '^hipmm: head.record: is cut off before the end of its head; nothing can be read$'
head -c 100000 log.record >cut.record
"$hipmm" convert cut.record >out 2>err || fail "a record that is cut off is refused"
grep -q '^hipmm: cut.record: the file is cut off: its last block is not whole$' err || fail "the cut is not told: $(cat err)"
[ "$(wc -l <out)" -gt 1000 ] || fail "only $(wc -l <out) rows of a record that is cut off were read"
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,t,allocate,0x100,8,0x0\n1,t,free,0x100,eight,0x0\n' >malformed.csv
run 1 convert malformed.csv -o x.record
says '^hipmm: malformed.csv:3: "eight" is no size'
if [ -c /dev/full ]; then
  run 1 convert log.csv -o /dev/full
  says '^hipmm: convert: cannot write "/dev/full": No space left on device$'
fi
finish
