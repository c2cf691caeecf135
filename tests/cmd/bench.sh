#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm bench: every workload runs and counts right, every option is checked, failures are reported. Times are not
# tested; bench_counts.sh tests counts, which have no noise.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG

# number NAME: the first value of that name in the JSON printed
number() {
  sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "$work/out" | head -n 1
}

# is NAME VALUE
is() {
  [ "$(number "$1")" = "$2" ] || fail "$1 is $(number "$1") and not $2"
}

# more_than NAME LEAST
more_than() {
  awk -v found="$(number "$1")" -v least="$2" 'BEGIN { exit !(found != "" && found > least) }' ||
    fail "$1 is $(number "$1") and not more than $2"
}

# calls NAME: of a HIP function in the measured part
calls() {
  found=$(sed -n '/"runtime_calls": {/,/}/p' "$work/out" | sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" | head -n 1)
  echo "${found:-0}"
}

quick="--seconds 0.01"
run 0 bench --help
prints '^Usage: hipmm bench --workload NAME \[--config FILE\]'
export COLUMNS=80
run 0 bench --help
unset COLUMNS
! grep -n '.\{81\}' "$work/out" || fail "bench --help is wider than the terminal"
echo '{ "stack": ["plain"] }' >plain.json
echo '{ "stack": ["device"] }' >device.json
echo '{ "stack": ["pool", "device"] }' >hipmm.json

# The names are a promise to programs.
promised="workload threads ops ns_per_op p50_ns p99_ns max_ns peak_requested_bytes peak_reserved_bytes overhead failures "
for workload in pair random cross "handoff --threads 4"; do
  # shellcheck disable=SC2086 # words are words
  run 0 bench --json $quick --workload $workload
  names=$(sed -n 's/^  "\([a-z0-9_]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
  [ "$names" = "${promised}runtime_calls " ] || fail "the names of $workload are: $names"
  is workload "\"${workload%% *}\""
  is failures 0
  more_than ops 511
  for name in ns_per_op p50_ns p99_ns max_ns peak_requested_bytes peak_reserved_bytes; do more_than $name 0; done
  awk -v a="$(number p50_ns)" -v b="$(number p99_ns)" -v c="$(number max_ns)" 'BEGIN { exit !(a <= b && b <= c) }' ||
    fail "$workload: the percentiles are in no order"
done
is threads 4

# Only what was allocated is live: nothing where every allocation fails. And what is live is reserved.
echo '{ "stack": [{ "type": "limiting", "limit": "1KiB" }, "device"] }' >limited.json
for workload in pair cross "handoff --threads 4"; do
  # shellcheck disable=SC2086 # words are words
  run 1 bench --json $quick --config limited.json --workload $workload
  is peak_requested_bytes 0
  # shellcheck disable=SC2086 # words are words
  run 0 bench --json $quick --config device.json --workload $workload
  [ "$(number peak_requested_bytes)" -le "$(number peak_reserved_bytes)" ] ||
    fail "$workload: $(number peak_requested_bytes) bytes are live, and $(number peak_reserved_bytes) reserved"
done

# A blank stands between the name of a function and the number of its calls.
# shellcheck disable=SC2086 # words are words
run 0 bench $quick --config device.json --workload pair
prints '^    hipThreadExchangeStreamCaptureMode  *[0-9]'
! grep -q '^    hip[A-Za-z]*[0-9]' "$work/out" || fail "a name and a number are glued together"

# What is counted: a source makes a call for each operation, whichever workload.
for workload in pair cross "random --dist uniform --max-size 64k" "handoff --streams 2"; do
  # shellcheck disable=SC2086 # words are words
  run 0 bench --json $quick --config device.json --workload $workload
  done_calls=$(($(calls hipMalloc) + $(calls hipFree)))
  # the operations that are timed singly are calls too, but not in ops
  [ "$done_calls" -ge "$(number ops)" ] || fail "$workload: $done_calls calls for $(number ops) operations"
done

# The peak of requested bytes.
run 0 bench --json $quick --workload pair --size 3k --threads 2
is peak_requested_bytes 6144
run 0 bench --json $quick --workload cross --size 1.5KiB --live 7 --streams 3
is peak_requested_bytes 10752
run 0 bench --json $quick --workload random --dist fixed --size 1000 --live 10
is peak_requested_bytes 10000
run 0 bench --json $quick --workload random --dist fixed --max-size 2KB --live 10 --streams 5
is peak_requested_bytes 20000
run 0 bench --json $quick --config device.json --workload random --dist uniform --min-size 4K --max-size 4k --live 3
is peak_requested_bytes 12288
is peak_reserved_bytes 12288
# of threads together: half of the blocks of each are live from the beginning
run 0 bench --json $quick --workload random --dist fixed --size 1024 --live 100 --threads 4
more_than peak_requested_bytes 204799
[ "$(number peak_requested_bytes)" -le 409600 ] || fail "more was live than may be"

# replay: cold and warm passes, and oddities of the log.
printf '1,t,allocate,0x100,4096,0x0\n1,t,allocate,0x200,8192,0x7f00\n1,t,free,0x100,4096,0x0\n' >leaky.csv
run 0 bench --json $quick --config device.json --workload replay --trace leaky.csv
names=$(sed -n 's/^  "\([a-z0-9_]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
[ "$names" = "${promised}runtime_calls ns_per_op_cold runtime_calls_cold " ] || fail "the names of replay are: $names"
is peak_requested_bytes 12288
is peak_reserved_bytes 12288
is failures 0
passes=$(($(number ops) / 3))
[ "$(calls hipMalloc)" = $((2 * passes)) ] || fail "replay: $(calls hipMalloc) calls of hipMalloc in $passes passes"
[ "$(sed -n '/"runtime_calls_cold"/,$ s/.*"hipMalloc": \([0-9]*\).*/\1/p' "$work/out")" = 2 ] || fail "replay: not 2 cold"
run 1 bench $quick --config plain.json --workload replay --trace "$here/traces/odd.csv"
prints '^  failures  *1$'
prints '^First failure: plain: '
echo 'Thread,Time,Action,Pointer,Size,Stream' >empty.csv
run 1 bench --workload replay --trace empty.csv
says '^hipmm: empty.csv: nothing to replay: the log has no event$'
run 1 bench --workload replay --trace nowhere.csv
says '^hipmm: nowhere.csv: No such file or directory$'

# Failures are counted and reported, and do not stop the run.
echo '{ "stack": [{ "type": "limiting", "limit": "64KiB" }, "device"] }' >limited.json
for workload in "pair --size 65k" "cross --live 2" "random --live 200" "handoff --size 1m" \
  "random --threads 2 --streams 2 --live 100000 --dist fixed --size 1g"; do
  # shellcheck disable=SC2086 # words are words
  run 1 bench $quick --json --config limited.json --workload $workload
  more_than failures 0
  # shellcheck disable=SC2086
  run 1 bench $quick --config limited.json --workload $workload
  prints '^First failure: .*limit'
done

# As text.
run 0 bench $quick --workload pair
prints '^pair, 1 thread, through hipmm.json on the runtime software$'
prints '^  mean  *[0-9.]* ns  an operation$'
prints '^  peak requested  *4 KiB  4,096 bytes$'
prints '^  failures  *0$'
run 0 bench $quick --workload cross --config device.json
prints '^    hipMalloc  *[0-9]*$'

# Several in turns.
run 0 bench $quick --workload pair --compare hipmm.json device.json
prints '^pair, 1 thread, 5 rounds in turns on the runtime software; '
prints '^  hipmm.json  *[0-9.]*  *1.00 '
prints '^  device.json  *[0-9.]*  *[0-9.]* '
longest=$(awk 'length > most { most = length } END { print most }' "$work/out")
[ "$longest" -le 80 ] || fail "a comparison is $longest columns wide"
mkdir -p a_folder_whose_name/leaves_no_room_for_the_figures_in_a_line
cp hipmm.json a_folder_whose_name/leaves_no_room_for_the_figures_in_a_line/hipmm.json
COLUMNS=80 run 0 bench $quick --workload pair --compare device.json a_folder_whose_name/*/hipmm.json
[ "$(awk 'length > most { most = length } END { print most }' "$work/out")" -le 80 ] || fail "a long name widens the table"
prints '^  a_folder_whose_name/leaves_no_room_for_the_figures_in_a_line/hipmm.json$'
run 0 bench $quick --workload random --threads 2 --json --compare device.json hipmm.json device.json
[ "$(grep -c '^ *"config": ' "$work/out")" = 3 ] || fail "not three configurations"
is rounds 5
is ratio 1.0
run 0 bench $quick --workload replay --trace leaky.csv --compare device.json hipmm.json
run 1 bench $quick --workload random --compare hipmm.json limited.json
prints '^First failure of limited.json: .*limit'
run 1 bench $quick --workload pair --compare hipmm.json nowhere.json
says '^hipmm: bench: nowhere.json: cannot be read'
run 1 bench $quick --workload pair --config nowhere.json
says '^hipmm: bench: nowhere.json: cannot be read'

# refuses PATTERN ARGUMENT...: wrong usage, with a message
refuses() {
  pattern=$1
  shift
  run 2 bench "$@"
  says "^hipmm: bench: $pattern"
}
refuses '--workload is missing; it is pair, random, cross, handoff or replay$'
refuses '--workload "pairs" is not known; did you mean "pair"?$' --workload pairs
refuses '--workload "x" is not known; it is pair, random, cross, handoff or replay$' --workload x
refuses '--dist "gauss" is not known; it is lognormal, uniform or fixed$' --workload random --dist gauss
for size in 0 -1 '' x 4q 2TiB 1k5 k 99999999999999999999; do
  refuses '--size ".*" is not a size from 1 byte to 1 TiB; ' --workload pair --size "$size"
  refuses '--min-size ' --workload random --min-size "$size"
  refuses '--max-size ' --workload random --max-size "$size"
done
refuses '--min-size is larger than --max-size$' --workload random --min-size 2k --max-size 1k
refuses '--min-size is larger than --max-size$' --workload random --max-size 255
for number in 0 -1 1.5 3x '' 99999999999999999999; do
  for option in live threads streams; do
    refuses "--$option \"$number\" is not a whole number from 1 to " --workload random --$option "$number"
  done
done
for seconds in 0 -1 '' x 1e3 1d 0.0001 86401 .; do
  refuses '--seconds ".*" is not a time from 0.001 to 86400; ' --workload pair --seconds "$seconds"
done
refuses '--threads must be even for handoff' --workload handoff --threads 3
refuses '--streams for handoff is 1 .* or 2' --workload handoff --streams 3
refuses '--trace is missing' --workload replay
refuses '--threads must be 1 for replay' --workload replay --trace leaky.csv --threads 2
refuses 'what is "hipmm.json"? A configuration goes with --config, several with --compare$' --workload pair hipmm.json
refuses '--compare needs files' --workload pair --compare
refuses '--compare takes its files without --config' --workload pair --config hipmm.json --compare device.json
refuses 'unknown option "--work"' --work pair

# Units of time, and options that another workload has.
run 0 bench --seconds 10ms --workload pair --live 3 --dist uniform
grep -q '^hipmm: bench: note: --live means nothing here to pair$' "$work/err" || fail "nothing is said of --live"
grep -q '^hipmm: bench: note: --dist means nothing here to pair$' "$work/err" || fail "nothing is said of --dist"

# `make figures` keeps the rows of logs that it does not have.
if installed python3 "rows that make figures keeps"; then
  python3 - "$top_srcdir/tests/lab/bench" <<'END' || fail "tests/lab/bench/measure.py"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import pathlib, measure
measure.DOCUMENT = pathlib.Path("page.md")
measure.DOCUMENT.write_text("a\n<!-- s: measured -->\n\n| log | ns |\n|---|--:|\n| one | 1 |\n| two | 2 |\n\n<!-- s: end -->\nz\n")
measure.write_section("s", measure.table(["log", "ns"], [["two", "3"], ["three", "4"]]), keeps_rows=True)
rows = [line for line in measure.DOCUMENT.read_text().splitlines() if line.startswith("| ")]
assert rows == ["| log | ns |", "| two | 3 |", "| three | 4 |", "| one | 1 |"], rows

# A measurement says whether its pool is older; a file of other allocators' figures that is none is refused.
on = {"date": "2026-11-29", "revision": "r", "pool": measure.pool_hash(), "processor": "p", "cores": 1, "load": 0.1,
      "runtime": "software", "beside": "glibc"}
assert "of an older pool" not in measure.sentence(on)
assert f"pool `{'0' * 12}`, of an older pool; " in measure.sentence({**on, "pool": "0" * 12})
import peers
pathlib.Path("wrong.json").write_text('{"date": "2026-11-29"}')
for wrong, why in (("wrong.json", "lacks revision"), ("page.md", "Expecting value"), ("nowhere", "No such file")):
    try: peers.load(wrong)
    except SystemExit as error: assert why in str(error), error
    else: raise SystemExit(f"{wrong} is taken")
kept = peers.load()
assert peers.json.loads(peers.dumps(kept)) == kept
fewer = {**kept, "least": {log: {"hipmm": 1.0} for log in kept["least"]}}
assert not list(peers.lost(kept, kept)) and len(list(peers.lost(kept, fewer))) == len(kept["least"]) >= 3
END
fi

finish
