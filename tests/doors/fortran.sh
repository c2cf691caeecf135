#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Fortran module compiles without a warning as Fortran 2018, a program over it does what it should on the software device,
# and an error without stat= ends the program with hipmm's message. Its constants are those of the C header. Run by `make check`.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"
command -v gfortran >/dev/null || skip "gfortran is missing"

root=$(cd "$top_srcdir" && pwd) library=$(cd "$top_builddir/.libs" && pwd)
HIPMM_PLUGIN_PATH=$(cd "$top_builddir/plugins" && pwd)
export HIPMM_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

headers=$root/include/hipmm
gfortran -std=f2018 -Wall -Wextra -Wno-compare-reals -Werror -g -fcheck=all -I "$headers" "$headers/hipmm.f90" \
  "$root/tests/doors/fortran.f90" -o program -L "$library" -lhipmm -Wl,-rpath,"$library"
status=0
./program >out 2>err || status=$?
[ "$(cat out)" = good ] && [ $status = 1 ] && grep -q '^hipmm: .*initiali' err || {
  cat out err
  echo "the program ends with $status"
  exit 1
}
echo "arrays, counters and errors work"

# values FILE: NAME=VALUE of each status
values() {
  grep -o 'HIPMM_\(OK\|E_[A-Z_]*\) = -\{0,1\}[0-9]*' "$1" | tr -d ' ' | sort
}
values "$root/include/hipmm/hipmm.h" >c
values "$root/include/hipmm/hipmm.f90" >f
[ "$(wc -l <c)" -gt 10 ] && diff c f || {
  echo "hipmm.f90 and hipmm.h have other statuses"
  exit 1
}
echo "the statuses are those of hipmm.h"
