#!/bin/sh
# SPDX-License-Identifier: MIT
#
# RMM's own C++ tests, of release 23.12, with the compatible headers on two software devices.
#
#   sh tests/compat/rmm_tests.sh FOLDER [TEST...]
#
# FOLDER, or RMM_SOURCE, is that of RMM's source; without it there is nothing to do. TEST: a file in its folder tests, such as
# mr/device/pool_mr_tests.cpp; without one, all. They need googletest (libgtest-dev, libgmock-dev); those in .cu files Thrust
# (libthrust-dev, or THRUST_INCLUDE), and those of the log spdlog with fmt (libspdlog-dev, or SPDLOG_FLAGS and SPDLOG_LIBS).
# What lacks a header is named as left out.
#
# The tests are changed in this: HIP's names of an attribute, and no headers of CUDA's C++ library. Left out are the tests of
# parts of RMM's arena. What is known to differ is listed below, with the reason.
set -u
RMM_SOURCE=${1-${RMM_SOURCE-}}
[ $# = 0 ] || shift
[ -n "$RMM_SOURCE" ] || { echo "RMM_SOURCE names no folder with RMM's source"; exit 77; }
[ -d "$RMM_SOURCE/tests/mr/device" ] || { echo "$RMM_SOURCE has no tests of RMM 23.12"; exit 1; }
: "${CXX=c++}" "${top_srcdir=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir=${BUILD:-$top_srcdir/build}}"
[ -n "$CXX" ] || { echo "no C++ compiler was found"; exit 77; }
[ -e "$top_builddir/.libs/libhipmm.so" ] || { echo "$top_builddir has no libhipmm.so: run make there first"; exit 1; }
top_builddir=$(cd "$top_builddir" && pwd)

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
passed=0
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2
export HIPMM_RUNTIME HIPMM_SOFTWARE
cp -r "$RMM_SOURCE/tests" "$RMM_SOURCE/benchmarks" "$work"
find "$work/tests" -type f -exec sed -i -e '/#include <cuda\//d' -e 's/attributes\.type/attributes.memoryType/g' \
  -e 's/cudaMemoryTypeManaged/hipMemoryTypeUnified/g' -e 's/rmm::detail::async_alloc::cuda/cuda/g' {} +
# A pool over memory that devices cannot access has the property all the same.
sed -i '/^static_assert(!cuda::has_property<rmm::mr::pool/,/;$/d' "$work/tests/mr/device/pool_mr_tests.cpp"
mkdir "$work/cuda" && echo '#include <rmm/cuda_runtime_api.h>' >"$work/cuda/cuda_runtime_api.h"

# Test, and why it differs.
cat >"$work/differs" <<'END'
AdaptorTest/3.Equality                          two logging adaptors write one file: refused
AlignedTest.BelowAlignmentThresholdPassthrough  addresses that are not aligned to 256: refused
AlignedTest.DefaultAllocationAlignmentPassthrough  addresses that are not aligned to 256: refused
PoolTest.ForceGrowth                            a pool takes at least 4 KiB from its upstream
TrackingTest.DeallocWrongBytes                  wrong frees are refused
TrackingTest.NegativeInnerTracking              wrong frees are refused
END

spdlog=${SPDLOG_FLAGS-$(${PKG_CONFIG:-pkg-config} --cflags spdlog 2>/dev/null)}
spdlog_libraries=${SPDLOG_LIBS-$(${PKG_CONFIG:-pkg-config} --libs spdlog 2>/dev/null)}
[ -z "$spdlog" ] || spdlog="-DHIPMM_COMPAT_SPDLOG $spdlog"
thrust=${THRUST_INCLUDE-/usr/include}
# The compilers search the system's folder last; named again it would hide the C library's headers from C++'s.
thrust_flags=
[ "$thrust" = /usr/include ] || thrust_flags="-isystem $thrust"
software=$top_builddir/plugins/runtimes/software/.libs
cd "$work/tests" || exit 99

# build SOURCE: a program at $work/program, and its messages in $work/log
build() {
  # shellcheck disable=SC2086 # lists of words
  $CXX -x c++ -std=c++17 -w -D__HIP_PLATFORM_AMD__ ${HIP_CFLAGS-} -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP $spdlog \
    -I"$work/cuda" -I"$work" -I"$work/tests" -I"$top_srcdir/include" -I"$top_srcdir/include/hipmm/compat" \
    $thrust_flags -c "$1" -o "$work/program.o" >"$work/log" 2>&1 || return 1
  # shellcheck disable=SC2086
  $CXX "$work/program.o" -o "$work/program" -lgmock_main -lgmock -lgtest $spdlog_libraries "$top_builddir/.libs/libhipmm.so" \
    "$software/software.so" -Wl,-rpath,"$top_builddir/.libs:$software" -pthread >>"$work/log" 2>&1
}

# missing SOURCE: what the test needs and this machine lacks
missing() {
  case $1 in
    *arena_mr_tests.cpp) echo "parts of RMM's arena" ;;
    mr/host/mr_ref_tests.cpp) echo "references to host memory" ;;
    *logger_tests.cpp | *tracking_mr_tests.cpp | *callback_mr_tests.cpp) [ -n "$spdlog" ] || echo "spdlog was not found" ;;
    *.cu) [ -e "$thrust/thrust/device_vector.h" ] || echo "Thrust was not found in $thrust" ;;
  esac
}

tests=$*
for source in ${tests:-*_tests.c* mr/*/*_tests.c*}; do
  why=$(missing "$source")
  [ -z "$why" ] || { echo "$source: left out: $why"; continue; }
  build "$source" || {
    head -n 20 "$work/log"
    echo "FAIL: $source does not compile"
    failed=$((failed + 1))
    continue
  }
  (cd "$work" && ./program >"$work/log" 2>&1)
  [ $? -le 1 ] || { tail -n 5 "$work/log"; echo "FAIL: $source crashed"; failed=$((failed + 1)); }
  ok=$(grep -c '^\[       OK \]' "$work/log")
  passed=$((passed + ok))
  echo "$source: $ok passed"
  sed -n 's/^\[  FAILED  \] \([^ ,]*\).*(.* ms)$/\1/p' "$work/log" >"$work/failed"
  while read -r test; do
    if grep -q "^$test " "$work/differs"; then
      echo "  differs: $(grep "^$test " "$work/differs")"
    else
      echo "FAIL: $test"
      failed=$((failed + 1))
    fi
  done <"$work/failed"
done
echo "$passed of RMM's tests passed"
exit $((failed != 0))
