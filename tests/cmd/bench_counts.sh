#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The speed of the default stack in counts, which have no noise: calls of the HIP API, instructions, and how both grow.
# Instructions are counted between the two functions that begin and end bench's measured part.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/cmd/counts.sh"
HIPMM_RUNTIME=software
HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG

# Operations in which one call of the HIP API is allowed, while the pool settles under random sizes.
operations_per_call=500
# Instructions that an operation of `pair` may take at most; and by how much other cases may exceed a plain one.
pair_instructions=150
live_growth=1.25
threads_growth=1.2

config=$top_srcdir/etc/hipmm.json

number() {
  sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "$work/out" | head -n 1
}

# ---- Calls of the HIP API ----

run 0 bench --json --config "$config" --workload pair --seconds 0.05
prints '^  "runtime_calls": {}$'

run 0 bench --json --config "$config" --workload random --seconds 0.1
ops=$(number ops)
echo "random: of $ops operations"
sed -n '/"runtime_calls": {/,/}/p' "$work/out" | sed -n 's/^ *"\(hip[A-Za-z]*\)": \([0-9]*\),*$/\1 \2/p' >"$work/calls"
sed 's/^/  /' "$work/calls"
while read -r name count; do
  [ $((count * operations_per_call)) -le "$ops" ] || fail "random: $count calls of $name in $ops operations"
done <"$work/calls"

# The counters work: without a pool every operation is a call.
echo '{ "stack": ["device"] }' >device.json
run 0 bench --json --config device.json --workload pair --seconds 0.02
ops=$(number ops)
[ "$(number hipMalloc)" -ge $((ops / 2)) ] || fail "device: $(number hipMalloc) calls of hipMalloc in $ops operations"

# ---- Instructions ----

needs_callgrind

# bench_instructions NAME ARGUMENT...
bench_instructions() {
  name=$1
  shift
  instructions "$name" bench_calls_start bench_calls_stop "$hipmm" bench --json --config "$config" --seconds 0.3 "$@"
}

bench_instructions pair --workload pair
at_most "pair" "$pair" "$pair_instructions" 1
bench_instructions threads --workload pair --threads 2
at_most "two threads" "$threads" "$pair" "$threads_growth"
bench_instructions few --workload random --live 1000
bench_instructions many --workload random --live 10000
at_most "10,000 live blocks instead of 1,000" "$many" "$few" "$live_growth"

finish
