#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The programs of tests/example that give hipmm to another library compile strictly against stand-ins of the library's
# declarations (stand_in/) and do on the software device what they say. PEERS="NAME=FLAGS;…" compiles those named with the
# library itself instead, as a person does who has it. Run by `make check`.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"

root=$(cd "$top_srcdir" && pwd) library=$(cd "$top_builddir/.libs" && pwd)
HIPMM_PLUGIN_PATH=$(cd "$top_builddir/plugins" && pwd) HIPMM_RUNTIME=software
export HIPMM_PLUGIN_PATH HIPMM_RUNTIME
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{ "stack": ["statistics", "pool", "device"] }' >hipmm.json

# recipe NAME FIRST [SECOND]: the program prints a line FIRST, then SECOND if given, and that nothing is left
recipe() {
  source=$root/tests/example/$1
  flags=$(printf '%s' "${PEERS-}" | tr ';' '\n' | sed -n "s/^${1%.*}=//p")
  case $1 in
  *.c) compiler="${CC:-cc} -std=gnu11" ;;
  *)
    [ "${CXX-}" ] || { skip_part "$1" "no C++ compiler was found" && return; }
    compiler="$CXX -std=c++20"
    ;;
  esac
  # shellcheck disable=SC2086 # lists of words
  $compiler -Wall -Wextra ${flags:--Werror -I "$root/tests/doors/stand_in"} -I "$root/include" "$source" -o program \
    -L "$library" -lhipmm -Wl,-rpath,"$library" $flags
  ./program >out 2>err || { cat out err && echo "$1 fails" && exit 1; }
  shift
  for line in "$@" '0 bytes are left'; do
    grep -q "^$line" out || { cat out err && echo "it does not print $line" && exit 1; }
  done
  echo "${source##*/} works${flags:+ with the library itself}"
}
recipe ort_allocator.c 'a tensor has 40000 bytes'
recipe umpire_strategy.cpp 'Umpire has 40000 bytes of hipmm, and counts 40000' 'too large: .*32 TiB'
recipe kokkos_view.cpp 'a View has 8000 bytes of hipmm; element 999 is 1998' 'too large: .*32 TiB'
recipe ggml_buffer.c 'two tensors have 40[0-9]* bytes of hipmm; element 4999 is 4999' \
  '0 bytes are left; the other tensor began with 0'
recipe amrex_arena.cpp 'an Arena has 80000 bytes of hipmm, of the device' 'too large: .*32 TiB'
recipe petsc_vec.c 'a Vec has 40000 bytes of hipmm, and the norm 2500'
