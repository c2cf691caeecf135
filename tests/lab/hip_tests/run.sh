#!/bin/sh
# SPDX-License-Identifier: MIT
#
# HIP's own tests (ROCm/hip-tests) on the software device, alone and under `hipmm run` over a pool. Nothing of them is
# in this tree: FOLDER is a checkout, of the release whose headers HIP_INCLUDE has (default: /opt/rocm/include).
#
#     sh tests/lab/hip_tests/run.sh FOLDER [alone|run|both] [FILTER...]
#
# FILTER: part of FOLDER/FILE:CASE, such as memory/hipMalloc: or Unit_hipMemcpy. Builds in build-hip-tests (BUILD):
# hipmm with those headers, and one host program for each file of tests, which takes minutes the first time. A
# kernel runs on the host, one thread after the other, through hipLaunchHostFunc (include/hip/hip_runtime.h); a test
# that needs more of a GPU is counted as "gpu". From the environment: JOBS; FOLDERS of catch/unit; LIMIT, the seconds of
# a case; GRAPH, that of `hipmm run`. Prints a table of results, and what did not pass; the outputs are in BUILD/out.
# Ends with "N passed, N missing, N explained, N failed": known.txt has the functions that are missing, and the explanations.
# After a change of convert.py, include/ or the checkout, remove BUILD first.
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$tests/../../.." && pwd)
[ -d "${1-}/catch/unit" ] || { sed -n '4,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
checkout=$(cd "$1" && pwd)
shift
mode=both
case ${1-} in alone | run | both) mode=$1; shift ;; esac
headers=${HIP_INCLUDE-/opt/rocm/include}
[ -f "$headers/hip/hip_runtime_api.h" ] || { echo "no hip/hip_runtime_api.h in $headers; set HIP_INCLUDE" >&2; exit 2; }
build=${BUILD-$top/build-hip-tests}
mkdir -p "$build/hipmm"
build=$(cd "$build" && pwd)

[ -x "$top/configure" ] || (cd "$top" && autoreconf -fi)
cd "$build/hipmm"
[ -f config.status ] || "$top/configure" -q HIP_CFLAGS="-I$headers -D__HIP_PLATFORM_AMD__"
make -s -j "${JOBS-$(nproc)}" >make.log 2>&1 || { tail -n 20 make.log; exit 1; }
status=0
python3 "$tests/build.py" "$checkout" "$headers" "$build" || status=1
for one in alone run; do
  case $mode in both | "$one") python3 "$tests/run.py" "$build" "$one" "$@" || status=1 ;; esac
done
exit $status
