#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The speed of the default stack in counts, which have no noise: calls of the HIP API, instructions, and how both grow.
# Callgrind counts the instructions of hipmm_allocate and hipmm_deallocate and of all that they call, between the two
# functions that begin and end bench's measured part.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
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

leave() {
  [ $failed = 0 ] || finish
  echo "$*, so instructions were not counted"
  exit 77
}
command -v valgrind >/dev/null || leave "valgrind is missing"
[ -z "${SANITIZER_FLAGS-}" ] || leave "this build has sanitizers"
case $(sed -n 's/^CFLAGS = / /p' "$top_builddir/Makefile") in
*\ -O[123s]*) ;;
*) leave "this build is not optimised" ;;
esac

# instructions NAME ARGUMENT...: of an operation, into the variable of that name
instructions() {
  name=$1
  shift
  valgrind --tool=callgrind --callgrind-out-file="$work/profile" --compress-strings=no --compress-pos=no \
    --zero-before=bench_calls_start --dump-before=bench_calls_stop \
    "$hipmm" bench --json --config "$config" --seconds 0.3 "$@" >"$work/out" 2>"$work/err" </dev/null || {
    fail "callgrind: $*"
    sed 's/^/  /' "$work/err"
  }
  found=$(awk '/^cfn=/ { name = $0; next }
    /^calls=/ {
      split($0, word, /[= ]/)
      getline
      if (name ~ /^cfn=hipmm_(de)?allocate$/) { calls += word[2]; cost += $2 }
    }
    END { if (calls > 0) printf "%.1f", cost / calls }' "$work/profile.1")
  [ -n "$found" ] || {
    fail "callgrind saw no operation of: $*"
    found=0
  }
  echo "$*: $found instructions an operation"
  eval "$name=\$found"
}

# at_most WHAT FOUND BOUND FACTOR
at_most() {
  awk -v found="$2" -v bound="$3" -v factor="$4" 'BEGIN { exit !(found > 0 && found <= bound * factor) }' ||
    fail "$1: $2 instructions an operation; at most $4 times $3 are allowed"
}

instructions pair --workload pair
at_most "pair" "$pair" "$pair_instructions" 1
instructions threads --workload pair --threads 2
at_most "two threads" "$threads" "$pair" "$threads_growth"
instructions few --workload random --live 1000
instructions many --workload random --live 10000
at_most "10,000 live blocks instead of 1,000" "$many" "$few" "$live_growth"

finish
