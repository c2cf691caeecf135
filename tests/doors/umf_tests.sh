#!/bin/sh
# SPDX-License-Identifier: MIT
#
# UMF's own fixtures of pools: over hipmm's pool, and over UMF's pools on hipmm's provider, on the software device.
#
#   sh tests/doors/umf_tests.sh FOLDER
#
# FOLDER, or UMF_SOURCE, is that of UMF's source, 1.2; without it there is nothing to do. It needs cmake, googletest (libgtest-dev)
# and libhwloc-dev. UMF is built as a static library, since its fixtures use functions that the shared one hides. What is known to
# differ is listed below, with the reason.
set -u
UMF_SOURCE=${1-${UMF_SOURCE-}}
[ -n "$UMF_SOURCE" ] || { echo "UMF_SOURCE names no folder with UMF's source"; exit 77; }
[ -e "$UMF_SOURCE/test/poolFixtures.hpp" ] || { echo "$UMF_SOURCE has no fixtures of UMF's pools"; exit 1; }
: "${CC:=cc}" "${CXX=c++}" "${top_srcdir=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir=${BUILD:-$top_srcdir/build}}"
[ -n "$CXX" ] || { echo "no C++ compiler was found"; exit 77; }
command -v cmake >/dev/null || { echo "cmake was not found"; exit 77; }
[ -e "$top_builddir/.libs/libhipmm.so" ] || { echo "$top_builddir has no libhipmm.so: run make there first"; exit 1; }
umf=$(cd "$UMF_SOURCE" && pwd) root=$(cd "$top_srcdir" && pwd) build=$(cd "$top_builddir" && pwd)
HIPMM_RUNTIME=software HIPMM_PLUGIN_PATH=$build/plugins HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_PLUGIN_PATH HIPMM_LOG
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

# Test, and why it differs.
cat >differs <<'END'
umfMultiPoolTest.memoryTracking/pool       umfPoolByPtr() and umfFree() know no memory of hipmm's pools
umfMultiPoolTest.memoryTracking/arena      the same
umfMultiPoolTest.memoryTracking/host_pool  the same
END

off() {
  for part; do echo "-DUMF_BUILD_$part=OFF"; done
}
# shellcheck disable=SC2046 # a list of words
{
  cmake -S "$umf" -B umf -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_CXX_COMPILER="${CXX%% *}" \
    $(off SHARED_LIBRARY TESTS EXAMPLES LEVEL_ZERO_PROVIDER CUDA_PROVIDER LIBUMF_POOL_JEMALLOC) && cmake --build umf --target umf
} >log 2>&1 || { tail -n 20 log; echo "FAIL: UMF does not build"; exit 1; }

include="-I$root/include -I$umf/include -I$umf/test -I$umf/test/common"
for folder in . base_alloc coarse utils; do include="$include -I$umf/src/$folder"; done
common=$umf/test/common
# shellcheck disable=SC2086 # lists of words
{
  $CC -w -D_GNU_SOURCE $include -c "$common"/pool_null.c "$common"/pool_trace.c "$common"/provider_null.c \
    "$common"/provider_trace.c "$common"/test_helpers.c "$common"/test_helpers_linux.c &&
    $CXX -std=c++17 -w $include "$root/tests/doors/umf_tests.cpp" "$umf/test/malloc_compliance_tests.cpp" ./*.o -o program \
      -L "$build/.libs" -lhipmm umf/lib/libumf.a umf/lib/libumf_*.a -lgtest_main -lgtest -lhwloc -ldl -lrt -pthread \
      -Wl,-rpath,"$build/.libs"
} >log 2>&1 || { head -n 20 log; echo "FAIL: the fixtures do not compile"; exit 1; }

timeout 300 ./program >log 2>&1
status=$?
[ $status -le 1 ] || { tail -n 20 log; echo "FAIL: exit status $status"; exit 1; }
failed=0
sed -n 's,^\[  FAILED  \] hipmm/\([^ ,]*\).*(.* ms)$,\1,p' log >failed
while read -r test; do
  why=$(awk -v name="$test" '$1 == name { $1 = ""; print }' differs)
  if [ -n "$why" ]; then
    echo "differs: $test$why"
  else
    echo "FAIL: $test"
    failed=1
  fi
done <failed
echo "$(grep -c '^\[       OK \]' log) of UMF's tests passed, $(grep -c '^\[  SKIPPED \].*ms)$' log) were skipped"
exit $failed
