#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The C++ headers: the test programs of this folder, compiled as C++17 and C++20 with each compiler that is found, without
# a warning, and run on two software devices. nvcc compiles them only, and thrust.cpp, for which a host compiler suffices
# where it finds Thrust's headers.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
unset HIPMM_CONFIG
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2
export HIPMM_RUNTIME HIPMM_SOFTWARE

fail() {
  echo "FAIL: $*"
  failed=$((failed + 1))
}

# build COMPILER STANDARD SOURCE: a program at $work/program, and its messages in $work/log
build() {
  # shellcheck disable=SC2086 # a compiler may have arguments
  $1 -std="$2" ${SANITIZER_FLAGS-} -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$top_srcdir/include" "$3" -o "$work/program" \
    "$top_builddir/.libs/libhipmm.so" -Wl,-rpath,"$top_builddir/.libs" >"$work/log" 2>&1
}

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

for source in "$top_srcdir"/tests/cpp/test_*.cpp; do
  name=$(basename "$source")
  for compiler in "$CXX" clang++-14; do
    # A program has the sanitizers of the library's own compiler alone.
    [ "$compiler" = "$CXX" ] || { [ -z "${SANITIZER_FLAGS-}" ] && installed "$compiler" "$name, built with clang"; } || continue
    for standard in c++17 c++20; do
      build "$compiler" $standard "$source" || {
        cat "$work/log"
        fail "$name does not compile with $compiler -std=$standard"
        continue
      }
      echo "== $name, $compiler, $standard"
      "$work/program" || fail "$name, built with $compiler -std=$standard"
    done
  done
  installed "$nvcc" "$name, compiled by nvcc" || continue
  "$nvcc" -std=c++17 -x cu -I"$top_srcdir/include" -c "$source" -o "$work/object.o" >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "$name does not compile with nvcc"
  }
done

thrust=$top_srcdir/tests/cpp/thrust.cpp
if installed "$nvcc" "thrust.cpp, compiled by nvcc"; then
  "$nvcc" -std=c++17 -x cu -I"$top_srcdir/include" -c "$thrust" -o "$work/object.o" >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "thrust.cpp does not compile with nvcc"
  }
fi
cuda=$(dirname "$nvcc")/../include
if [ -d "$cuda/cccl/thrust" ]; then
  build "$CXX -c -isystem $cuda/cccl -isystem $cuda" c++17 "$thrust" || {
    cat "$work/log"
    fail "thrust.cpp does not compile with $CXX"
  }
else
  skip_part thrust.cpp "Thrust's headers were not found"
fi
exit $((failed != 0))
