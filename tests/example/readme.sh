#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The examples of RMM's README, in C (readme.c), on two software devices; and the log that one of them writes.
set -eu
: "${top_builddir:?}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2 HIPMM_LOG=warning
export HIPMM_RUNTIME HIPMM_SOFTWARE HIPMM_LOG

"$top_builddir/tests/example/readme" "$work/rmm.csv" 2>"$work/err" || {
  cat "$work/err"
  exit 1
}
[ ! -s "$work/err" ] || {
  cat "$work/err"
  echo "the examples leave something behind"
  exit 1
}
[ "$(head -n 1 "$work/rmm.csv")" = "Thread,Time,Action,Pointer,Size,Stream" ]
[ "$(grep -c ',allocate,.*,1000,' "$work/rmm.csv")" = 1 ]
[ "$(grep -c ',free,.*,1000,' "$work/rmm.csv")" = 1 ]

HIPMM_SOFTWARE=devices=1 "$top_builddir/tests/example/readme" "$work/rmm.csv"
