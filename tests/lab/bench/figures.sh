#!/bin/sh
# SPDX-License-Identifier: MIT
#
# figures.sh: measures the tables of doc/performance.md and writes them there, and to standard output.
#
#     sh tests/lab/bench/figures.sh [BUILD [TRACE…]]
#
# BUILD is where configure ran, by default build. TRACE: more logs to replay than the three in tests/data, as .csv or
# .csv.xz.
# HIPMM_RUNTIME=nvidia (or amd) measures on the GPU; the default is the software device. MIMALLOC names the library to
# compare with where the system has none. `make -C BUILD figures` builds what this needs and runs it.
set -eu

source=$(cd "$(dirname "$0")/../../.." && pwd)
build=${1:-build}
[ $# -eq 0 ] || shift
for program in hipmm tests/lab/bench/host_malloc; do
  if [ ! -x "$build/$program" ]; then
    echo "figures.sh: $build/$program is not built; make -C $build figures builds it" >&2
    exit 1
  fi
done
exec python3 -B "$source/tests/lab/bench/figures.py" "$build" "$source/tests/data/resnet50_train.csv.xz" \
  "$source/tests/data/gpt2_steps.csv.xz" "$source/tests/data/cupy_frames.csv.xz" "$@"
