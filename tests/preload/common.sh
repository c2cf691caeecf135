#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the tests of `hipmm run` share; sourced after tests/cmd/common.sh.

here=$top_builddir/tests/preload
unset LD_PRELOAD HIPMM_RUN_REPORT HIPMM_RUN_STRICT HIPMM_RUN_DRIVER HIPMM_RUN_PID HIPMM_SOFTWARE
HIPMM_RUNTIME=software
export HIPMM_RUNTIME
# The sanitizer's library comes after preload.so in programs that are linked to it; and memory of the loader is never freed.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0
export ASAN_OPTIONS

# good SCENARIO...: each succeeds under `hipmm run $options`, its report in $work/report
good() {
  for scenario in "$@"; do
    rm -f "$work/report"
    # shellcheck disable=SC2086 # several words
    timeout 120 "$hipmm" run $options --report="$work/report" -- "$here/$program" "$scenario" \
      >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = 0 ] && [ "$(tail -n 1 "$work/out")" = good ] || {
      fail "$scenario under hipmm run $options: exit status $got"
      sed 's/^/  /' "$work/out" "$work/err"
    }
  done
}

# reports FUNCTION CALLS PASSED FAILED: a line of the report
reports() {
  grep -q "^  $1  *$2  *$3  *$4\$" "$work/report" || {
    fail "$scenario: the report lacks $1 $2 $3 $4"
    sed 's/^/  /' "$work/report"
  }
}

# tells PATTERN: a line of the report
tells() {
  grep -q -- "$1" "$work/report" || {
    fail "$scenario: the report lacks: $1"
    sed 's/^/  /' "$work/report"
  }
}

# says_once PATTERN: one line of standard error matches
says_once() {
  [ "$(grep -c -- "$1" "$work/err")" = 1 ] || {
    fail "$scenario: standard error has not one line: $1"
    sed 's/^/  /' "$work/err"
  }
}

# silent: standard error is empty
silent() {
  [ ! -s "$work/err" ] || {
    fail "$scenario: something is on standard error"
    sed 's/^/  /' "$work/err"
  }
}
options=
