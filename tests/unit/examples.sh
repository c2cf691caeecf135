#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The example program at the top of each public header that has one compiles as it stands there, as C and as C++ where
# there is a compiler, and does what it says. Run by `make check`, which sets the variables in capitals and the two tops.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"

library=$top_builddir/.libs
[ -e "$library/libhipmm.so" ] || { echo "no shared library was built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
HIPMM_RUNTIME=software
export LD_LIBRARY_PATH HIPMM_RUNTIME
cd "$work"

# example HEADER: the first lines of its comment that are indented by five
example() {
  awk '/^ \*     / { print substr($0, 8); seen = 1; next } seen { exit }' "$top_srcdir/include/hipmm/$1"
}

# run NAME WANTED COMPILER...: compiles NAME.source strictly, runs it, compares what it prints
run() {
  name=$1 wanted=$2
  shift 2
  # shellcheck disable=SC2086 # a list of words
  "$@" -Wall -Wextra -Werror -I "$top_srcdir/include" "$name.source" -x none -o "$name" -L "$library" -lhipmm \
    ${SANITIZER_FLAGS-}
  printed=$("./$name") || { echo "the example of $name.h ends with $?"; exit 1; }
  [ "$printed" = "$wanted" ] || { echo "the example of $name.h prints \"$printed\", not \"$wanted\""; exit 1; }
}

for name in stream buffer vector; do
  example "$name.h" >"$name.source"
  grep -q 'int main' "$name.source" || { echo "$name.h has no example"; exit 1; }
  case $name in
  buffer) wanted='hello in 1000 bytes' ;;
  vector) wanted='3 of 1000' ;;
  *) wanted= ;;
  esac
  run "$name" "$wanted" ${CC:-cc} -std=gnu11 -x c
  if [ -n "${CXX-}" ]; then
    run "$name" "$wanted" $CXX -std=c++17 -x c++
  else
    skip_part "the example of $name.h as C++" "no C++ compiler was found"
  fi
  echo "the example of $name.h works"
done
