#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm/umf.h and the type `umf` with a stand-in of UMF, and with UMF itself if HIPMM_TEST_UMF names its folder, with include/ and
# lib/ in it; `pip` gets it from PyPI. A UMF that is too old, or is not there, is refused with a sentence. Run by `make check`.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"

root=$(cd "$top_srcdir" && pwd) build=$(cd "$top_builddir" && pwd)
HIPMM_PLUGIN_PATH=$build/plugins
export HIPMM_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
stand_in=$build/tests/doors/stand_in/.libs/umf.so

# works NAME LIBRARY FLAG...: the program does what it should with this UMF
works() {
  name=$1 library=$2
  shift 2
  for compiler in "${CC:-cc} -std=gnu11 -Wall -Wextra -Werror" "${CXX:-} -std=c++17 -Wall -Wextra -Werror"; do
    case $compiler in
    ' '*) skip_part "hipmm/umf.h in C++" "no C++ compiler was found" && continue ;;
    *c++*) echo '#include <hipmm/umf.h>' >header.cpp && $compiler -I "$root/include" "$@" -fsyntax-only -Wno-unused-function header.cpp ;;
    *)
      $compiler -g -I "$root/include" "$@" "$root/tests/doors/umf.c" -o program -L "$build/.libs" -lhipmm "$library" \
        -Wl,-rpath,"$build/.libs:${library%/*}"
      HIPMM_LOG=error HIPMM_UMF=$library ./program
      ;;
    esac
  done
  echo "hipmm works with $name"
}
works "the stand-in of UMF" "$stand_in" -I "$root/tests/doors/stand_in"
if [ "${HIPMM_TEST_UMF-}" = pip ]; then
  python3 -m venv env && env/bin/pip install -q --disable-pip-version-check --no-deps umf==1.2.0
  HIPMM_TEST_UMF=$work/env
fi
if [ "${HIPMM_TEST_UMF-}" ]; then
  works "the UMF in HIPMM_TEST_UMF" "$HIPMM_TEST_UMF/lib/libumf.so.1" -DREAL_UMF -isystem "$HIPMM_TEST_UMF/include"
else
  skip_part "UMF itself" "HIPMM_TEST_UMF names no folder"
fi

# ---- What is refused ----

# says PATTERN: building a stack of the type fails with this sentence
says() {
  HIPMM_RUNTIME=software "$build/hipmm" bench --workload pair --config graph.json >out 2>&1 && { echo "no error: $1" && exit 1; }
  grep -q "$1" out || { cat out && echo "it does not say $1" && exit 1; }
}
echo '{ "stack": ["umf"] }' >graph.json
HIPMM_UMF=$stand_in
export HIPMM_UMF
UMF_STAND_IN_VERSION=0.11 says 'is UMF 0.11, which is too old: hipmm needs UMF 1.x'
UMF_STAND_IN_VERSION=2.0 says 'is UMF 2.0, which is too new'
HIPMM_UMF=$work/missing.so says 'cannot open UMF: .*missing.so.*; install it, or name its library in HIPMM_UMF'
HIPMM_UMF=$build/.libs/libhipmm.so says 'is not UMF: it lacks umfGetCurrentVersion()'
echo 'int umfGetCurrentVersion(void); int umfGetCurrentVersion(void) { return 1 << 16; }' >part.c
${CC:-cc} -shared -fPIC part.c -o part.so
HIPMM_UMF=$work/part.so says 'part.so lacks umfMemoryProviderCreate(); install a complete UMF 1.x'
echo '#include <hipmm/umf.h>' >old.c
if ${CC:-cc} -fsyntax-only -DUMF_STAND_IN_MAJOR=0 -I "$root/include" -I "$root/tests/doors/stand_in" old.c 2>err ||
  ! grep -q 'hipmm/umf.h needs the headers of UMF 1.x' err; then
  cat err
  exit 1
fi
echo '{ "stack": [{ "type": "umf", "numa_mode": "bind", "numa_nodes": ["zero"] }] }' >graph.json
says 'graph.json: /stack/0/numa_nodes: umf: "zero" is not the number of a NUMA node; write "0"'
echo '{ "stack": [{ "type": "umf", "numa_mode": "interleave" }] }' >graph.json
says 'graph.json: /stack/0/numa_mode: umf: UMF refuses interleave with 0 NUMA nodes'
echo "other versions are refused with a sentence"
