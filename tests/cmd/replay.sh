#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm replay: its counts, odd logs, and logs of real programs through a real stack.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG

# Times differ from run to run; all else must not.
without_times() {
  sed -e 's/\("ns_per_op[a-z_]*": \)[0-9.e+-]*/\1N/' -e 's/^\(  [a-z ]*pass\) *[0-9.]* ns/\1 N ns/' "$work/out" \
    >"$work/timeless"
  mv "$work/timeless" "$work/out"
}

# number NAME: the value of that name in the JSON printed
number() {
  sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "$work/out"
}

# is NAME VALUE
is() {
  [ "$(number "$1")" = "$2" ] || fail "$1 is $(number "$1") and not $2"
}

echo '{ "stack": ["plain"] }' >hipmm.json
run 1 replay --json --repeat 3 "$here/traces/odd.csv"
without_times
same replay-odd.json
run 1 replay --repeat 2 "$here/traces/odd.csv"
without_times
same replay-odd.txt

# The names are a promise to programs.
run 1 replay --json "$here/traces/odd.csv"
names=$(sed -n 's/^  "\([a-z_]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
[ "$names" = "events allocations frees failures unmatched_frees failed_rows overlaid other_sizes live_at_end peak_requested_bytes peak_reserved_bytes \
overhead ns_per_op ns_per_op_warm first_failure runtime " ] || fail "the names are: $names"
is ns_per_op_warm null
is runtime '"software"'

# Standard input, and a log that is packed.
"$hipmm" replay --json - <"$here/traces/odd.csv" >"$work/out" 2>"$work/err"
is events 10
echo packed | gzip >packed.csv.gz
run 1 replay packed.csv.gz
says 'packed.csv.gz: is gzip-compressed; pipe it: gzip -dc packed.csv.gz | hipmm replay -$'

# A malformed log is refused whole, with the line.
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,t,allocate,0x100,8,0x0\n1,t,free,0x100,eight,0x0\n' >malformed.csv
run 1 replay malformed.csv
says '^hipmm: malformed.csv:3: "eight" is no size'
run 1 replay --json malformed.csv
says 'malformed.csv:3: '
run 1 replay /nowhere.csv
says '^hipmm: /nowhere.csv: No such file or directory$'

# A log in which nothing happened has no time per operation.
echo 'Thread,Time,Action,Pointer,Size,Stream' >empty.csv
run 0 replay --json empty.csv
is events 0
is ns_per_op null
is overhead null
run 0 replay empty.csv

# Streams that cannot be made.
printf '%s\n' 'Thread,Time,Action,Pointer,Size,Stream' '1,t,allocate,0x100,8,0x10' '1,t,allocate,0x200,8,0x20' \
  '1,t,free,0x100,8,0x10' '1,t,free,0x200,8,0x20' >streams.csv
for nth in 1 2; do
  HIPMM_SOFTWARE=fail=hipStreamCreateWithFlags:$nth run 1 replay streams.csv
  says '^hipmm: hipStreamCreateWithFlags: hipErrorUnknown$'
done
echo '{ "stack": ["pool", "device"] }' >pool.json
HIPMM_SOFTWARE=fail=hipStreamCreateWithFlags:2 run 1 replay --fit --config pool.json streams.csv
grep -q 'the streams cannot be created' "$work/err" || fail 'replay --fit says nothing of its streams'

# An allocation of zero bytes has no memory, and its free is not unmatched.
printf '1,t,allocate,(nil),0,0x0\n1,t,allocate,0x0,0,0\n1,t,free,0,0,0x1\n1,t,free,(nil),0,0x2\n' >zero.csv
run 0 replay --json zero.csv
is allocations 2
is frees 2
is unmatched_frees 0
is live_at_end 0
is peak_requested_bytes 0

# The devices and the graphs that are asked for.
run 1 replay --device 7 "$here/traces/odd.csv"
says 'device 7'
HIPMM_SOFTWARE=devices=2 run 0 replay --json --device 1 zero.csv
run 1 replay --config "$here/graphs/bad.json" zero.csv
says 'graphs/bad.json:3:17: /resources/memory/type: unknown type "plian".*4 more errors; `hipmm check` lists all'

# Every pass begins with an empty stack: what the log leaves live does not add up.
printf '1,t,allocate,0x100,1048576,0x0\n1,t,allocate,0x200,1048576,0x7f00\n' >leaky.csv
run 0 replay --json --repeat 50 leaky.csv
is live_at_end 2
is peak_requested_bytes 2097152
is peak_reserved_bytes 2097152

# Each failing event counts once over all passes; the frees of failed allocations are skipped.
printf '1,t,allocate,0x100,4096,0x0\n1,t,allocate,0x200,9999999999999,0x0\n1,t,free,0x200,9999999999999,0x0\n' >large.csv
printf '1,t,allocate,0x300,8888888888888,0x0\n1,t,free,0x100,4096,0x0\n1,t,free,0x300,8888888888888,0x0\n' >>large.csv
run 1 replay --json --repeat 3 large.csv
is failures 2
is unmatched_frees 0
is live_at_end 0
is peak_requested_bytes 4096
prints '"line": 2,'
prints '"reason": "plain: .*9\.09 TiB'

# A graph whose resources would write over the log that is read is refused, before anything is opened for writing.
# keeps FILE STATUS ARGUMENT...: the command is refused, says why, and FILE has the same bytes
keeps() {
  file=$1
  cp "$file" before
  shift
  run "$@"
  says "$refusal is the log that is read, and would be overwritten; choose another graph (--config) or another file there\$"
  cmp -s before "$file" || fail "hipmm $*: $file is not what it was"
}
mkdir played
cp zero.csv played/log.csv
cd played || exit 99
echo '{ "stack": [{ "type": "logging", "file": "log.csv" }, "pool", "device"] }' >hipmm.json
ln log.csv other.csv
ln -s ../played/log.csv link.csv
refusal='^hipmm: hipmm.json: /stack/0/file: log.csv'
keeps log.csv 1 replay log.csv
keeps log.csv 1 replay --fit log.csv
keeps log.csv 1 replay other.csv
keeps log.csv 1 replay link.csv
keeps log.csv 1 plan ../zero.csv log.csv
keeps log.csv 1 bench --workload replay --seconds 0.01 --trace log.csv
echo '{ "stack": ["pool", "device"] }' >good.json
keeps log.csv 1 bench --workload replay --seconds 0.01 --trace log.csv --compare good.json hipmm.json
cp log.csv before
for command in "replay --json" plan; do
  # shellcheck disable=SC2086 # several words
  "$hipmm" $command - <log.csv >"$work/out" 2>"$work/err" && fail "hipmm $command - writes over its standard input"
  says "$refusal"
  cmp -s before log.csv || fail "hipmm $command: its standard input is not what it was"
done
echo '{ "resources": { "all": { "type": "recording", "file": "%d.rec", "upstream": "memory" }, "memory": { "type": "plain" } },
  "devices": { "default": "all" } }' >record.json
cp log.csv 1.rec
refusal='^hipmm: record.json: /resources/all/file: 1.rec'
HIPMM_SOFTWARE=devices=2 keeps 1.rec 1 replay --device 1 --config record.json 1.rec
HIPMM_SOFTWARE=devices=2 run 0 replay --config record.json 1.rec
echo '{ "stack": ["plain"], "report": "log.csv" }' >report.json
refusal='^hipmm: report.json: /report: log.csv'
keeps log.csv 1 replay --config report.json log.csv
echo '{ "stack": ["logging", "plain"] }' >rmm.json
refusal='^hipmm: rmm.json: RMM_LOG_FILE: log.csv'
RMM_LOG_FILE=log.csv keeps log.csv 1 replay --config rmm.json log.csv
# Old files of a log that is rotated are renamed, and the oldest is lost.
for i in 1 2 3; do cp log.csv turned.csv.$i; done
turns() {
  echo "{ \"stack\": [{ \"type\": \"$1\", \"file\": \"turned.csv\", $2 }, \"plain\"] }" >turns.json
}
turns logging '"rotate_size": "128KiB", "rotate_files": 2'
for i in 1 2; do
  cp turned.csv.$i before
  run 1 replay --config turns.json turned.csv.$i
  says "^hipmm: turns.json: /stack/0/file: turned.csv.$i is the log that is read, and would be renamed or overwritten when turned.csv is \
full (\"rotate_size\"); choose another graph (--config) or another file there\$"
  cmp -s before turned.csv.$i || fail "turned.csv.$i is not what it was"
done
turns recording '"rotate_size": "256KiB"'
run 1 replay --config turns.json turned.csv.1
run 0 replay --config turns.json turned.csv.2
turns logging '"rotate_files": 2' # nothing is rotated
run 0 replay --config turns.json turned.csv.1
# The debug log adds lines to its file.
for command in replay "replay --fit" plan "bench --workload replay --seconds 0.01 --trace"; do
  cp log.csv before
  # shellcheck disable=SC2086 # several words
  HIPMM_LOG=debug:log.csv run 1 $command log.csv
  says '^hipmm: HIPMM_LOG: log.csv is the log that is read, and would get lines of hipmm.s own; name another file there$'
  cmp -s before log.csv || fail "hipmm $command: lines of the debug log are in the log"
done
# Names of types are no files, and another log may be written.
cp log.csv pool
run 0 replay --config good.json pool
run 0 replay 1.rec
cmp -s log.csv 1.rec && fail "the logging adaptor did not write"
cd ..

# What a log lacks is told by all commands that read it, once, and not with --quiet.
xz -dc "$top_srcdir/tests/data/cupy_frames.csv.xz" | head -4000 >frames.csv
echo '{ "stack": [{ "type": "recording", "file": "whole.record" }, "pool", "device"] }' >record.json
run 0 replay --config record.json frames.csv
size=$(wc -c <whole.record)
head -c $((size - 1000)) whole.record >cut.record
echo '{ "stack": ["pool", "device"] }' >pool.json
for command in "replay --config pool.json" "replay --json --config pool.json" "replay --fit --config pool.json" "plan --config pool.json" report \
  "bench --config pool.json --seconds 0.01 --workload replay --trace"; do
  # shellcheck disable=SC2086 # several words
  run 0 $command cut.record
  [ "$(grep -c '^hipmm: cut.record: the file is cut off: its last block is not whole$' "$work/err")" = 1 ] ||
    fail "hipmm $command does not tell once that the log is cut off: $(cat "$work/err")"
  # shellcheck disable=SC2086 # several words
  run 0 --quiet $command cut.record
  [ ! -s "$work/err" ] || fail "hipmm --quiet $command tells that the log is cut off"
done
"$hipmm" plan --config pool.json - <cut.record >"$work/out" 2>"$work/err" || fail "a record that is cut off as standard input"
[ "$(grep -c '^hipmm: standard input: the file is cut off: ' "$work/err")" = 1 ] || fail "hipmm plan -: $(cat "$work/err")"

# --fit: what the graph, the log and the card can lack.
echo '{ "stack": ["plain"] }' >bare.json
run 1 replay --fit --config bare.json leaky.csv
says '^hipmm: replay: --fit: bare.json: the stack of device 0 has no resource with a "maximum_size", such as a pool: {'
echo '{ "stack": [{ "type": "pool", "maximum_size": "1KiB", "initial_size": 512 }, "device"] }' >pooled.json
run 1 replay --fit --config pooled.json empty.csv
says '^hipmm: replay: --fit: the log has no allocations$'
run 1 replay --fit --config pooled.json large.csv
says '^hipmm: replay: --fit: the log does not run here, whatever the maximum: line 2: .*pool: cannot allocate 9.09 TiB'
run 1 replay --fit --config pooled.json malformed.csv
says '^hipmm: malformed.csv:3: "eight" is no size'
printf '1,t,allocate,0x100,1048576,0x0\n1,t,allo' >truncated.csv
run 0 replay --fit --config pooled.json truncated.csv
grep -q '^hipmm: truncated.csv: the file is cut off: its last line is not whole$' "$work/err" || fail 'no word of the cut'
HIPMM_SOFTWARE=memory=1MiB run 1 replay --fit --config pooled.json leaky.csv
says 'does not run here, whatever the maximum: line 1: '
echo '{ "stack": [{ "type": "pool", "maximum_size": "1KiB" }, { "type": "limiting", "limit": "1MiB" }, "device"] }' >limited.json
run 1 replay --fit --config limited.json leaky.csv
says 'whatever the maximum: line 2: limiting: '
run 1 replay --fit --config "$here/graphs/bad.json" leaky.csv
says 'graphs/bad.json:3:17: /resources/memory/type: unknown type "plian"'
run 2 replay --card 16GiB leaky.csv
says '^hipmm: replay: --card is the card of --fit, which is not given$'
for size in 0 -1 16k '' x 99999999999GiB; do
  run 2 replay --fit --card "$size" --config pooled.json leaky.csv
  says "^hipmm: replay: --card \"$size\" is not a size; write \"16GiB\" or \"24GB\"$"
done
run 0 replay --fit --config pooled.json leaky.csv
prints '^  peak requested  *2 MiB  2,097,152 bytes$'
prints '^  needed  *2 MiB  2,097,152 bytes$'
prints '^This program needs 2 MiB; it fits on a 2 GiB card with 2.00 GiB to spare\.$'
prints '^The least for pool: "maximum_size": 2097152$'
run 1 replay --fit --card 1MiB --config pooled.json leaky.csv
prints '^This program needs 2 MiB; it does not fit on a 1 MiB card: 1 MiB are missing\.$'

# Real programs, through the stack that is recommended to a newcomer.
installed xz "the logs of real programs" || finish
for log in resnet50_train cupy_frames; do xz -dc "$top_srcdir/tests/data/$log.csv.xz" >$log.csv || exit 99; done
run 0 replay --json --repeat 2 --config "$top_srcdir/etc/hipmm.json" resnet50_train.csv
is events 62287
is failures 0
is unmatched_frees 0
is live_at_end 3
is peak_requested_bytes 4069464592
for scheduler in threads stepped,seed=1 stepped,seed=2; do
  HIPMM_SOFTWARE=scheduler=$scheduler run 0 replay --json --config "$top_srcdir/etc/hipmm.json" cupy_frames.csv
  is events 21692
  is failures 0
  is live_at_end 0
  is peak_requested_bytes 985520330
done

# The least budget: near what is measured, enough, and the least. The names are a promise to programs.
# fits LOG GRAPH MOST: --fit needs at most MOST times what the log requests
fits() {
  run 0 replay --fit --json --config "$2" "$1.csv"
  [ ! -s "$work/err" ] || fail "--fit of $1 says: $(cat "$work/err")"
  number overhead | awk -v most="$3" '{ exit !($1 >= 1 && $1 <= most) }' ||
    fail "--fit: $1 through $2 needs $(number overhead), not at most $3"
}
# pool BYTES: a pool with that maximum
pool() {
  echo "{ \"stack\": [{ \"type\": \"pool\", \"maximum_size\": $1 }, \"device\"] }" >least.json
}
fits resnet50_train "$top_srcdir/etc/hipmm.json" 1.0055
names=$(sed -n 's/^ *"\([a-z_]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
[ "$names" = "needs_bytes peak_requested_bytes overhead pools name maximum_size replays card_bytes spare_bytes fits \
runtime " ] || fail "the names of --fit are: $names"
is peak_requested_bytes 4069464592
is card_bytes 4294967296
is fits true
least=$(number maximum_size)
pool "$least"
run 0 replay --config least.json resnet50_train.csv
pool $((least - least / 1000))
run 1 replay --config least.json resnet50_train.csv
fits cupy_frames "$top_srcdir/etc/hipmm.json" 1.053
echo '{ "stack": [{ "type": "pool", "growth": "segments", "initial_size": "50%" }, "device"] }' >segments.json
fits cupy_frames segments.json 1.17
echo '{ "stack": ["arena", "device"] }' >arena.json
fits cupy_frames arena.json 1.2

# Several resources: each has its least, and the device's memory is counted once. Plugin folders are those of the file.
mkdir -p elsewhere/plugins
cat >elsewhere/two.json <<'END'
{ "plugin_path": "plugins",
  "resources": { "memory": { "type": "device" }, "weights": { "type": "pool", "upstream": "memory" },
    "small": { "type": "pool", "upstream": "memory", "maximum_size": 1000 },
    "big": { "type": "arena", "upstream": "memory", "arena_size": "1GiB" },
    "bins": { "type": "binning", "upstream": "big", "bins": [{ "size": "1MiB", "resource": "small" }] } },
  "devices": { "default": "bins" } }
END
fits cupy_frames elsewhere/two.json 1.615
[ "$(number maximum_size | wc -l)" = 2 ] || fail "--fit has not two maxima"
needs=$(number needs_bytes)
sum=$(number maximum_size | awk '{ sum += $1 } END { print sum }')
[ "$needs" -le "$sum" ] || fail "--fit needs $needs bytes, more than the maxima of $sum bytes"
if installed script "progress and widths on a terminal"; then
  TERM=xterm script -qec "'$hipmm' replay --fit --config '$top_srcdir/etc/hipmm.json' resnet50_train.csv" /dev/null \
    >"$work/out" </dev/null
  grep -q 'fit  .*%' "$work/out" || fail "--fit shows no progress on a terminal"
fi

# Through the other sub-allocators, one of which may not grow, as RMM's arena.
echo '{ "stack": ["arena", "device"] }' >arena.json
echo '{ "stack": [{ "type": "binning", "min_size_exponent": 10, "max_size_exponent": 20 }, "pool", "device"] }' >binning.json
echo '{ "stack": [{ "type": "arena", "arena_size": "6GiB", "maximum_size": "6GiB" }, "device"] }' >capped.json
for stack in arena binning capped; do
  HIPMM_SOFTWARE=memory=16GiB run 0 replay --json --repeat 2 --config $stack.json resnet50_train.csv
  is failures 0
  is unmatched_frees 0
  is live_at_end 3
  HIPMM_SOFTWARE=memory=16GiB,scheduler=stepped,seed=3 run 0 replay --json --config $stack.json cupy_frames.csv
  is failures 0
  is live_at_end 0
done

finish
