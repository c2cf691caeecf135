#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Programs of RMM 0.12's C interface, compiled with the compatible headers and run on two software devices; their log, read
# by column; and a graph that replaces their options.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || { echo "the build without sanitizers looks at this"; exit 77; }
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2,memory=256MiB
export HIPMM_RUNTIME HIPMM_SOFTWARE
flags="-Wall -Wextra -Wpedantic -Wconversion -Werror -I$top_srcdir/include -I$top_srcdir/include/hipmm/compat ${SANITIZER_FLAGS-}"
libraries="$top_builddir/.libs/librmm_compat.so $top_builddir/.libs/libhipmm.so -Wl,-rpath,$top_builddir/.libs -pthread"

fail() {
  echo "FAIL: $*"
  failed=$((failed + 1))
}

# shellcheck disable=SC2086 # lists of words
{
  $CXX -std=c++14 $flags "$top_srcdir/tests/compat/old_program.cpp" -o "$work/cpp" $libraries || exit 1
  ${CC:-cc} -std=c11 $flags "$top_srcdir/tests/compat/old_program.c" -o "$work/c" $libraries || exit 1
}

"$work/cpp" "$work/log.csv" || fail "the C++ program"
"$work/c" || fail "the C program: $?"

[ "$(head -n 1 "$work/log.csv")" = "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,Elapsed,Location" ] ||
  fail "the log's columns"
awk -F, '
  NR == 1 { next }
  { count[$1]++ }
  NF != 12 || $2 != 0 || $3 !~ /^0x[0-9a-f]+$/ || $4 != 0 || $9 !~ /^[0-9]+\.[0-9]+$/ { print; bad = 1 }
  $11 - ($10 - $9) > 1e-6 || $9 + 0 > $10 + 0 || $12 !~ /old_program\.cpp:[0-9]+$/ { print; bad = 1 }
  $1 == "Alloc" && $5 != 100 && $5 != 4096 || $1 == "Free" && $5 != 0 { print; bad = 1 }
  $8 < 0 || $8 > 5 { print; bad = 1 }
  END {
    if (count["Alloc"] != 201 || count["Free"] != 200 || count["Realloc"] != 1) {
      print count["Alloc"], count["Free"], count["Realloc"]
      bad = 1
    }
    exit bad
  }' "$work/log.csv" || fail "the log's rows"

# The graph in place of the options: the C program asks for a pool, and gets what the file says.
echo '{ "stack": ["logging", "device"] }' >"$work/hipmm.json"
RMM_LOG_FILE=$work/replaced.csv HIPMM_CONFIG=$work/hipmm.json "$work/c" || fail "the C program over a graph"
grep -q ',allocate,.*,1000,' "$work"/replaced*.csv || fail "the graph did not replace the options"

# Thrust, where it is found: compiled only, since it needs a GPU.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
cuda=$(dirname "$nvcc")/../include
thrust=$top_srcdir/tests/compat/old_thrust.cpp
if [ ! -d "$cuda/cccl/thrust" ]; then
  skip_part "an old program of Thrust" "its headers were not found"
else
  # shellcheck disable=SC2086
  $CXX -std=c++17 $flags -isystem "$cuda/cccl" -isystem "$cuda" -c "$thrust" -o "$work/thrust.o" || fail "Thrust"
fi
if installed "$nvcc" "an old program, built by nvcc"; then
  "$nvcc" -std=c++17 -x cu -I"$top_srcdir/include" -I"$top_srcdir/include/hipmm/compat" -c "$thrust" \
    -o "$work/thrust.o" >"$work/nvcc.log" 2>&1 || { cat "$work/nvcc.log"; fail "Thrust with nvcc"; }
fi

exit $((failed != 0))
