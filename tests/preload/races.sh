#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm run --check-streams: what it finds in a HIP program, by the software device's own detector and by that of the
# preload object, as on a GPU; the exit status; and that programs that are right run as without it.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
program=program

echo '{ "stack": ["pool", "device"] }' >pool.json
echo '{ "stack": ["async"] }' >async.json
printf '{ "runtime": "%s", "stack": ["pool", "device"] }' "$here/.libs/libamdhip64.so" >path.json

# finds WORD TEXT SCENARIO: exit status 66, a report of this kind, a summary
finds() {
  timeout 60 "$hipmm" run $options --check-streams -- "$here/$program" "$3" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  { [ $got = 66 ] && [ "$(tail -n 1 "$work/out")" = good ] &&
    grep -q "^hipmm: race: $2.* of resource \"pool\"\$" "$work/err" &&
    grep -q '^  now: ' "$work/err" && grep -q '^  before: ' "$work/err" && grep -q '^ *#.* in main\|program' "$work/err" &&
    ! grep -A 1 '^  now: \|^  before: ' "$work/err" | grep -q '/preload\.so ' &&
    grep -q "^hipmm: races: 1 found, seen once: $1 1\$" "$work/err"; } || {
    fail "$3 under hipmm run $options --check-streams: exit status $got"
    sed 's/^/  /' "$work/out" "$work/err"
  }
}

for graph in pool path; do
  options="--config $graph.json"
  [ $graph = pool ] && HIPMM_RUNTIME=software || HIPMM_RUNTIME=$here/.libs/libamdhip64.so
  finds use_after_free 'work on memory that was freed: 20000 bytes' races_after_free
  finds free_in_use 'memory is freed on a stream' races_in_use
  finds free_in_use 'memory is freed on a stream' races_fork
  finds unordered_use "work that is not ordered after another stream's work on the same bytes: 100 bytes" races_unordered
  finds early_use 'work on a stream that is not ordered after the allocation' races_early
  finds past_end 'work past the end of a block: 10001 bytes at [0-9a-fx]*, offset 10000' races_past_end
  for scenario in races_free_twice races_free_first_twice races_free_async_twice; do
    finds double_free 'memory is freed a second time: 20000 bytes' $scenario
  done

  options="$options --check-streams"
  good races_none memory arguments reuse streams ordered threads pools pool_reuse
  silent
  HIPMM_SOFTWARE=devices=2 good pool_streams
  silent
done

# Each is in the report for programs; and without the option nothing is looked for.
HIPMM_RUNTIME=software
timeout 60 "$hipmm" run --config pool.json --check-streams --json --report="$work/report" -- "$here/$program" \
  races_past_end >"$work/out" 2>"$work/err"
tells '"races":\[{"kind":"past_end","text":"hipmm: race: work past the end'
options='--config pool.json'
good races_after_free races_in_use races_past_end
silent

# Without a graph the memory comes from a pool, so that work on freed memory shows.
echo '{ "stack": ["device"] }' >device.json
HIPMM_CONFIG= timeout 60 "$hipmm" run --check-streams -- "$here/$program" races_after_free >"$work/out" 2>"$work/err"
[ $? = 66 ] && grep -q 'no hipmm.json was found, so device memory comes from a pool (.*/check_streams.json)$' "$work/err" &&
  grep -q 'work on memory that was freed: 20000 bytes .* of resource "pool"$' "$work/err" ||
  fail "without a graph, work on freed memory is not told"
cp device.json hipmm.json
HIPMM_CONFIG= timeout 60 "$hipmm" run --check-streams -- "$here/$program" races_free_twice >"$work/out" 2>"$work/err"
[ $? = 66 ] && grep -q ' of resource "device"$' "$work/err" && ! grep -q check_streams.json "$work/err" ||
  fail "the pool takes the place of a graph that is there"
rm hipmm.json

# A second free of memory that the runtime has back, which refuses it.
for HIPMM_RUNTIME in software "$here/.libs/libamdhip64.so"; do
  timeout 60 "$hipmm" run --config device.json --check-streams -- "$here/$program" races_free_twice >"$work/out" \
    2>"$work/err"
  [ $? = 66 ] && grep -q 'memory is freed a second time: 20000 bytes.* of resource "device"$' "$work/err" ||
    fail "a second free of memory of $HIPMM_RUNTIME is not told"
done
HIPMM_RUNTIME=software

# A name of a file never controls the terminal.
odd=$work/$(printf 'red\033[31m')
cp "$here/$program" "$odd"
timeout 60 "$hipmm" run --config pool.json --check-streams -- "$odd" races_past_end >/dev/null 2>"$work/err"
[ $? = 66 ] && grep -q '^    #.* from .*/red?\[31m (+0x' "$work/err" && ! grep -q "$(printf '\033')" "$work/err" ||
  fail "a race in a file with an odd name is not told, or as the name stands"

# The program's own failure counts more than a race.
timeout 60 "$hipmm" run --config pool.json --check-streams -- "$here/$program" races_exit >/dev/null 2>&1
[ $? = 7 ] || fail "a race took the place of the program's exit status"
finish
