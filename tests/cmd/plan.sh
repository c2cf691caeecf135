#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm plan: what programs need, what to shrink, and odd logs.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_LOG=error
export HIPMM_LOG

MiB=1048576
# row ACTION ADDRESS MIB: a row of a log
row() {
  echo "1,10:00:00.0,$1,0x$2,$(($3 * MiB)),0"
}
# Two peaks: 16 + 8 + 8 MiB at event 2, and 16 + 12 MiB at event 6.
{
  echo 'Thread,Time,Action,Pointer,Size,Stream'
  row allocate 10000000 16
  row allocate 20000000 8
  row allocate 30000000 8
  row free 20000000 8
  row free 30000000 8
  row allocate 50000000 6
  row allocate 40000000 6
} >small.csv

# ---- What to shrink ----

# Half of the 16 MiB: 24 of 32 remain at the first peak, 20 of 28 at the second. Without the blocks of 8 MiB the second
# peak stays.
run 0 plan --json small.csv
has needs_bytes 33554432
has logs.0.peak_requested_bytes 33554432
has logs.0.peak_event 2
has logs.0.by_size.0 "{\"blocks\": 1, \"bytes\": $((16 * MiB)), \"halved_saves_bytes\": $((8 * MiB)), \"gone_saves_bytes\": \
$((16 * MiB)), \"together_save_bytes\": $((16 * MiB)), \"size\": $((16 * MiB))}"
has logs.0.by_size.1 "{\"blocks\": 2, \"bytes\": $((16 * MiB)), \"halved_saves_bytes\": $((4 * MiB)), \"gone_saves_bytes\": \
$((4 * MiB)), \"together_save_bytes\": $((20 * MiB)), \"size\": $((8 * MiB))}"
has logs.0.by_stack '[]'
has device_memory_bytes $((2048 * MiB))
has logs.0.copies 64
has graph '"the default stack"'

# ---- Whether it fits ----

run 0 plan --device-memory 1000MiB small.csv
same plan-fits.txt
run 1 plan --device-memory 20MiB small.csv
same plan-too-large.txt
run 0 plan --device-memory 32MiB small.csv
prints 'fits on a device of 32 MiB with 0 bytes to spare\.'
run 1 plan --json --device-memory $((32 * MiB - 1)) small.csv
has fits false
has spare_bytes -1
has logs.0.copies 0

# Of a small log, the context of each process decides how many fit, and the log does not know it.
{
  echo 'Thread,Time,Action,Pointer,Size,Stream'
  echo '1,10:00:00.0,allocate,0x10000000,4096,0'
} >tiny.csv
run 0 plan --device-memory 16GiB tiny.csv
prints 'how many such processes fit depends'
grep -q 4194304 "$work/out" && fail "a number of processes is told that no device has room for"
run 0 plan --device-memory 16GiB --process-memory 500MiB tiny.csv
prints '; 32 such processes fit\.'

# Several processes, each with what it takes besides.
cp small.csv other.csv
run 1 plan --json --device-memory 100MiB --process-memory 20MiB small.csv other.csv
has needs_bytes $((104 * MiB))
has logs.0.needs_bytes $((52 * MiB))
has logs.1.copies 1
has sets 0
has process_memory_bytes $((20 * MiB))
run 0 plan --device-memory 250MiB --process-memory 20MiB small.csv other.csv
prints '^These 2 programs need 104 MiB together; they fit on a device of 250 MiB with 146 MiB to spare\.$'
prints '; 4 such processes fit\.$'
"$hipmm" plan --json - - <small.csv >"$work/out" 2>"$work/err" || fail "a log from a file as standard input"
has needs_bytes $((64 * MiB))
# shellcheck disable=SC2002 # a pipe is the point
cat small.csv | "$hipmm" plan - - >"$work/out" 2>"$work/err" || fail "a log from a pipe: $(cat "$work/err")"
prints '^standard input$'
prints '^These 2 programs need 64 MiB together'

# A graph, and one without a maximum.
echo '{ "stack": [{ "type": "pool", "growth": "segments" }, "device"] }' >segments.json
run 0 plan --json --config segments.json small.csv
has graph '"segments.json"'
echo '{ "stack": ["device"] }' >bare.json
run 1 plan --config bare.json small.csv
says '^hipmm: plan: small.csv: bare.json: the stack of device 0 has no resource with a "maximum_size", such as a pool: {'

# ---- Call stacks ----

echo '{ "stack": [{"type": "recording", "file": "made.record", "stacks": "all", "stack_sample": 0}, "pool", "device"] }' >hipmm.json
HIPMM_RUNTIME=software run 0 replay small.csv
rm hipmm.json
run 0 plan --json made.record
has logs.0.by_stack.0.bytes 33554432
has logs.0.by_stack.0.gone_saves_bytes 33554432
run 0 plan made.record
prints '32 MiB .* 3 blocks from '

# ---- Odd logs ----

echo 'Thread,Time,Action,Pointer,Size,Stream' >nothing.csv
run 1 plan nothing.csv
says '^hipmm: plan: nothing.csv: the log has no allocations$'
printf '%s\n' 'Thread,Time,Action,Pointer,Size,Stream' '1,t,allocate,(nil),0,0' >zero.csv
run 1 plan zero.csv
says '^hipmm: plan: zero.csv: the log needs no memory: all its allocations have zero bytes$'
: >empty.csv
run 1 plan small.csv empty.csv
says '^hipmm: empty.csv: is empty'
run 1 plan "$top_srcdir/README.md"
says 'a log begins with Thread,Time,Action'
printf '1,t,allocate,0x100,1048576,0x0\n1,t,allo' >truncated.csv
run 0 plan truncated.csv
grep -q '^hipmm: truncated.csv: the file is cut off: its last line is not whole$' "$work/err" || fail 'no word of the cut'
run 1 plan nowhere.csv
says '^hipmm: nowhere.csv: No such file or directory$'
printf '1,t,allocate,0x100,9999999999999,0x0\n' >huge.csv
run 1 plan huge.csv
says '^hipmm: plan: huge.csv: the log does not run here, whatever the maximum: line 1: '
"$hipmm" plan - <&- >"$work/out" 2>"$work/err" && fail "no standard input"
says '^hipmm: '
for size in 0 -1 16k '' x 99999999999GiB; do
  run 2 plan --device-memory "$size" small.csv
  says "^hipmm: plan: --device-memory \"$size\" is not a size; write \"16GiB\" or \"24GB\"$"
done
run 2 plan --process-memory much small.csv
says '^hipmm: plan: --process-memory "much" is not a size'
for width in 20 40 200; do
  COLUMNS=$width run 0 plan small.csv
done

# ---- A real program ----

xz -dc "$top_srcdir/tests/data/cupy_frames.csv.xz" >cupy_frames.csv || exit 99
run 0 plan --json --device-memory 16GiB cupy_frames.csv
has logs.0.peak_requested_bytes 985520330
[ "$(value logs.0.needs_bytes)" -lt 1040000000 ] || fail "cupy_frames needs $(value logs.0.needs_bytes)"
run 1 plan --device-memory 512MiB cupy_frames.csv
finish
