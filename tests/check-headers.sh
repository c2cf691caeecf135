#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each installed header must compile alone, as C11 (C++ headers not) and as C++17, without a warning and without any other header of ours
# before it; and twice in one file. Run by `make check`.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# compile LANGUAGE COMPILER...: the file that includes $header twice
compile() {
  language=$1
  shift
  "$@" -x "$language" -I "$top_srcdir/include" -Wall -Wextra -Wshadow -Wundef -Wconversion -pedantic -Werror \
    -fsyntax-only "$work/twice" || { echo "$header: not clean with $*"; bad=1; }
}

[ -n "$headers" ] || { echo "no headers to check"; exit 1; }
for header in $headers; do
  header=${header#include/}
  printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$work/twice"
  case $header in
  *.hpp) ;;
  *) compile c ${CC:-cc} -std=c11 -Wstrict-prototypes ;;
  esac
  case $CXX in
  '') echo "$header: no C++ compiler, not checked as C++" ;;
  *) compile c++ $CXX -std=c++17 ;;
  esac
done

exit $bad
