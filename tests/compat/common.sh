# SPDX-License-Identifier: MIT
#
# What the scripts that build programs of RMM share; sourced. They set `sources`, `flags`, `libraries` and `work`, and count in
# `failed`.

fail() {
  echo "FAIL: $*"
  failed=$((failed + 1))
}

# build COMPILER STANDARD SOURCE ARGUMENT...: a program at $work/program
build() {
  compiler=$1 standard=$2 source=$3
  shift 3
  # shellcheck disable=SC2086,SC2154 # lists of words, which the script has set
  $compiler -std="$standard" $flags "$sources/$source" -o "$work/program" "$@" $libraries >"$work/log" 2>&1 && return
  head -n 40 "$work/log"
  fail "$source does not compile with $compiler -std=$standard $*"
  return 1
}

# run NAME ARGUMENT...: the program in a folder of its own
run() {
  name=$1
  shift
  rm -rf "$work/here" && mkdir "$work/here"
  echo "== $name"
  (cd "$work/here" && RMM_DEBUG_LOG_FILE=debug.txt "$work/program" "$@") || fail "$name"
}
