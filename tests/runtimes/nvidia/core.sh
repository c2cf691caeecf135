#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The nvidia runtime through the core and the command: a driver that is found, one that is not, and one that is named
# wrongly in a graph. Run by `make check`.
set -eu

fake=$top_builddir/tests/runtimes/nvidia/.libs/fake_cuda.so
[ -e "$fake" ] || { echo "the nvidia runtime was not built"; exit 77; }
HIPMM_RUNTIME=nvidia
export HIPMM_RUNTIME
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# expect TEXT COMMAND...: TEXT must be in what the command prints, whatever its lines
expect() {
  text=$1
  shift
  "$@" >"$work/output" 2>&1 || :
  tr -s ' \n' '  ' <"$work/output" | grep -qF -- "$text" || { echo "\"$text\" is not in:"; cat "$work/output"; bad=1; }
}

expect 'nvidia with 2 devices' env HIPMM_NVIDIA="library=$fake" "$top_builddir/hipmm" show
expect 'libnothing.so.1: cannot open shared object file' \
  env HIPMM_NVIDIA=library=libnothing.so.1 "$top_builddir/hipmm" show
expect 'did you mean "library"' env HIPMM_NVIDIA=libary=x "$top_builddir/hipmm" show
# What `hipmm run` puts in front of a program is the runtime's library, by whatever functions the core calls it. The
# sanitizer's library comes after ours, and what the loader's memory is, nobody frees.
echo '{"stack": ["device"]}' >"$work/device.json"
expect '/nvidia.so .' env HIPMM_NVIDIA="library=$fake" ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 \
  "$top_builddir/hipmm" run --config "$work/device.json" -- sh -c 'echo "$LD_PRELOAD" .'
unset HIPMM_RUNTIME
echo '{"runtime": {"type": "nvidia", "library": "/dev/null"}, "stack": ["device"]}' >"$work/hipmm.json"
expect "NVIDIA's driver cannot be loaded: /dev/null" "$top_builddir/hipmm" show "$work/hipmm.json"
exit $bad
