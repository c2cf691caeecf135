#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sh tests/fuzz/fuzz.sh SECONDS [TARGET...]: builds the targets (environment, graph, log, option, plugin, share) with clang,
# libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer in build-fuzz/ (BUILD), and runs each for that long. What is
# found lies in BUILD/found/TARGET; the inputs that reached new code, in BUILD/inputs/TARGET, serve the next run. Ends with
# "N passed, N failed". To repeat a finding: BUILD/tests/fuzz/fuzz_TARGET FILE.
set -u
cd "$(dirname "$0")/../.." || exit 99
case ${1-} in
  '' | *[!0-9]*) sed -n '4,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
seconds=$1
shift
[ $# -gt 0 ] || set -- environment graph log option plugin share
build=${BUILD-build-fuzz}
CC=${CC-clang-14}
jobs=$(nproc)

# What clang needs for the fuzzer, and libFuzzer itself, which Debian has in libclang-rt-14-dev.
command -v "${CC##* }" >/dev/null || { echo "$CC is not installed (Debian: clang-14, libclang-rt-14-dev)"; exit 77; }
[ -x configure ] || autoreconf -fi >/dev/null 2>&1 || exit 99
mkdir -p "$build" && cd "$build" || exit 99
build=$PWD
if [ ! -f config.status ]; then
  ../configure -q CC="$CC" CXX=true CFLAGS="-g -O1 -fsanitize=fuzzer-no-link -fno-sanitize-recover=all" \
    --enable-sanitizers=address,undefined,float-cast-overflow \
    --enable-builtin-plugins >configure.log 2>&1 || { tail -n 20 configure.log; exit 99; }
fi
make -s -j "$jobs" FUZZ_LINK=-fsanitize=fuzzer FUZZ_DEFINE=-DHIPMM_FUZZ_WITH_LIBFUZZER \
  tests/fuzz/fuzz_environment tests/fuzz/fuzz_graph tests/fuzz/fuzz_log tests/fuzz/fuzz_option tests/fuzz/fuzz_plugin \
  tests/fuzz/fuzz_share plugins/runtimes/software/software.la >make.log 2>&1 || { tail -n 20 make.log; exit 99; }

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

passed=0 failed=0
for target; do
  mkdir -p "inputs/$target" "seeds/$target" "found/$target"
  seeds "$target" "seeds/$target"
  if [ "$target" = log ]; then most=200000; else most=16384; fi
  "tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=$most \
    -print_final_stats=1 -artifact_prefix="found/$target/" -verbosity=1 "inputs/$target" "seeds/$target" \
    "$top/tests/fuzz/corpus/$target" >"$target.log" 2>&1
  status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 edges, \2 features, \3 inputs/p' "$target.log" | tail -n 1)
  echo "$target: ${runs:-0} executions, ${edges:-no coverage}"
  if [ $status = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL: $target: exit status $status; $build/$target.log ends:"
    tail -n 40 "$target.log"
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
