#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sh tests/lab/fuzz/fuzz.sh SECONDS [TARGET...]: builds the targets (environment, graph, log, option, peer, plugin, serve,
# share) with clang, libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer in build-fuzz/ (BUILD; CFLAGS is -g -O1 if
# the environment has none), and runs each for that long, as many at a time as there are processors. What is found lies in
# BUILD/found/TARGET; the inputs that reached new code, in BUILD/inputs/TARGET, serve the next run. Ends with "N passed,
# N failed". To repeat a finding: BUILD/tests/lab/fuzz/fuzz_TARGET FILE. ENGINE=afl in the environment: the same with AFL++
# (Debian: afl++), in build-fuzz-afl/.
set -u
cd "$(dirname "$0")/../../.." || exit 99
case ${1-} in
  '' | *[!0-9]*) sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
seconds=$1
shift
[ $# -gt 0 ] || set -- environment graph log option peer plugin serve share
engine=${ENGINE-libfuzzer}
jobs=$(nproc)

# What clang needs for libFuzzer, Debian has in libclang-rt-14-dev. AFL++'s compiler brings a driver for libFuzzer's targets.
case $engine in
  libfuzzer) build=${BUILD-build-fuzz} CC=${CC-clang-14} flags="-fsanitize=fuzzer-no-link -fno-sanitize-recover=all" ;;
  afl) build=${BUILD-build-fuzz-afl} CC=${CC-afl-clang-fast} flags=-fno-sanitize-recover=all ;;
  *) echo "ENGINE=$engine is neither libfuzzer nor afl" >&2; exit 2 ;;
esac
command -v "${CC##* }" >/dev/null ||
  { echo "$CC is not installed (Debian: clang-14, libclang-rt-14-dev; afl++)"; exit 77; }
[ -x configure ] || autoreconf -fi >/dev/null 2>&1 || exit 99
mkdir -p "$build" && cd "$build" || exit 99
build=$PWD
if [ ! -f config.status ]; then
  ../configure -q CC="$CC" CXX=true CFLAGS="${CFLAGS--g -O1} $flags" --enable-sanitizers=address,undefined,float-cast-overflow \
    --enable-builtin-plugins >configure.log 2>&1 || { tail -n 20 configure.log; exit 99; }
fi
make -s -j "$jobs" FUZZ_LINK=-fsanitize=fuzzer FUZZ_DEFINE=-DHIPMM_FUZZ_WITH_LIBFUZZER \
  tests/lab/fuzz/fuzz_environment tests/lab/fuzz/fuzz_graph tests/lab/fuzz/fuzz_log tests/lab/fuzz/fuzz_option tests/lab/fuzz/fuzz_peer tests/lab/fuzz/fuzz_plugin tests/lab/fuzz/fuzz_serve \
  tests/lab/fuzz/fuzz_share plugins/runtimes/software/software.la >make.log 2>&1 || { tail -n 20 make.log; exit 99; }

HIPMM_PLUGIN_PATH=$build/plugins HIPMM_LOG=off
ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export HIPMM_PLUGIN_PATH HIPMM_LOG ASAN_OPTIONS UBSAN_OPTIONS
unset HIPMM_CONFIG HIPMM_RUNTIME HIPMM_SOFTWARE
top=$(cd .. && pwd)

# The tests' own files are seeds too.
seeds() {
  case $1 in
    graph) for kind in valid invalid; do
      for file in "$top/tests/graphs/$kind"/*.json; do cp "$file" "$2/$kind-${file##*/}"; done
    done ;;
    log) cp "$top"/tests/data/torch_snapshot.* "$top"/tests/data/umpire*.json "$top"/tests/data/rocprofv3*.csv \
      "$top"/tests/data/nsys.sqlite "$2" ;;
  esac
}

# fuzz_with_ENGINE TARGET: sets `status`, and prints a line of what was done
fuzz_with_libfuzzer() {
  if [ "$1" = log ]; then most=200000; else most=16384; fi
  leaks=1
  [ "$1" != peer ] || leaks=0 # the search for leaks dies of the thread behind the socket
  ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=$leaks \
    "tests/lab/fuzz/fuzz_$1" -detect_leaks=$leaks -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=$most \
    -print_final_stats=1 -artifact_prefix="found/$1/" -verbosity=1 "inputs/$1" "seeds/$1" "$top/tests/lab/fuzz/seeds/$1" \
    >"$1.log" 2>&1
  status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$1.log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 edges, \2 features, \3 inputs/p' "$1.log" | tail -n 1)
  echo "$1: ${runs:-0} executions, ${edges:-no coverage}"
}

# AFL++ takes no leak for a finding: LeakSanitizer looks when a process ends. It goes on after a finding, too.
fuzz_with_afl() {
  cp -n "$top/tests/lab/fuzz/seeds/$1"/* "seeds/$1"
  from="seeds/$1"
  [ ! -d "inputs/$1/default/queue" ] || from=-
  ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0:allocator_may_return_null=1 AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 \
    AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_FORKSRV_INIT_TMOUT=60000 AFL_IGNORE_PROBLEMS=1 \
    afl-fuzz -i "$from" -o "inputs/$1" -V "$seconds" -m none -t 20000 "tests/lab/fuzz/fuzz_$1" >"$1.log" 2>&1
  status=$?
  for kind in crashes hangs; do
    for file in "inputs/$1/default/$kind"/id*; do
      [ ! -f "$file" ] || { cp "$file" "found/$1/$kind-${file##*/}"; status=1; }
    done
  done
  runs=$(sed -n 's/^execs_done *: *//p' "inputs/$1/default/fuzzer_stats")
  edges=$(sed -n 's/^edges_found *: *//p' "inputs/$1/default/fuzzer_stats")
  echo "$1: ${runs:-0} executions, ${edges:-0} edges, $(ls "inputs/$1/default/queue" | wc -l) inputs"
}

# fuzz TARGET: prints what was done; fails if something was found
fuzz() {
  mkdir -p "inputs/$1" "seeds/$1" "found/$1"
  seeds "$1" "seeds/$1"
  "fuzz_with_$engine" "$1"
  [ $status != 0 ] || return 0
  echo "FAIL: $1: exit status $status; $build/$1.log ends:"
  tail -n 40 "$1.log"
  return 1
}

# As many targets at a time as there are processors; each takes as long as the others.
passed=0 failed=0
while [ $# -gt 0 ]; do
  now= processes=
  while [ $# -gt 0 ] && [ "$(echo "$now" | wc -w)" -lt "$jobs" ]; do
    fuzz "$1" >"$1.result" &
    now="$now $1" processes="$processes $!"
    shift
  done
  for process in $processes; do
    if wait "$process"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done
  for target in $now; do cat "$target.result"; done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
