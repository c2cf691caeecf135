#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every input of the corpora, and those of the tests that fuzz.sh adds to them, through its target, without libFuzzer.
: "${top_builddir:?set it to the build folder}" "${top_srcdir:?set it to the source folder}"
HIPMM_PLUGIN_PATH=$top_builddir/plugins
HIPMM_LOG=error
export HIPMM_PLUGIN_PATH HIPMM_LOG
unset HIPMM_CONFIG HIPMM_RUNTIME HIPMM_SOFTWARE
data=$top_srcdir/tests/data
failed=0
for target in environment graph log option peer plugin serve share; do
  set -- "$top_srcdir/tests/lab/fuzz/seeds/$target"/*
  case $target in
    graph) set -- "$@" "$top_srcdir"/tests/graphs/valid/*.json "$top_srcdir"/tests/graphs/invalid/*.json ;;
    log) set -- "$@" "$data"/torch_snapshot.* "$data"/umpire*.json "$data"/rocprofv3*.csv "$data"/nsys.sqlite ;;
  esac
  timeout 300 $TEST_LAUNCHER "$top_builddir/tests/lab/fuzz/fuzz_$target" "$@" || {
    echo "FAIL: fuzz_$target: exit status $?"
    failed=1
  }
done
exit $failed
