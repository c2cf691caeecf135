#!/bin/sh
# SPDX-License-Identifier: MIT
#
# RMM's own C++ tests, of release 23.12, with the compatible headers on two software devices. RMM_SOURCE names the folder of
# RMM's source; without it there is nothing to do. They need googletest; those in .cu files Thrust (THRUST_INCLUDE, or the
# system's), and those of the log spdlog with fmt (SPDLOG_FLAGS and SPDLOG_LIBS, unless pkg-config knows them).
#
# The tests are changed in this: HIP's names of an attribute, and no headers of CUDA's C++ library. Left out are the tests of
# parts of RMM's arena. What is known to differ is listed below, with the reason.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
[ -n "${RMM_SOURCE-}" ] || { echo "RMM_SOURCE names no folder with RMM's source"; exit 77; }
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }
[ -d "$RMM_SOURCE/tests/mr/device" ] || { echo "$RMM_SOURCE has no tests of RMM 23.12"; exit 1; }

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
software=$top_builddir/plugins/runtimes/software/.libs
cd "$work/tests" || exit 99

# build SOURCE: a program at $work/program, and its messages in $work/log
build() {
  # shellcheck disable=SC2086 # lists of words
  $CXX -x c++ -std=c++17 -w -D__HIP_PLATFORM_AMD__ ${HIP_CFLAGS-} -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP $spdlog \
    -I"$work/cuda" -I"$work" -I"$work/tests" -I"$top_srcdir/include" -I"$top_srcdir/include/hipmm/compat" -isystem "$thrust" \
    -c "$1" -o "$work/program.o" >"$work/log" 2>&1 || return 1
  # shellcheck disable=SC2086
  $CXX "$work/program.o" -o "$work/program" -lgmock_main -lgmock -lgtest $spdlog_libraries "$top_builddir/.libs/libhipmm.so" \
    "$software/software.so" -Wl,-rpath,"$top_builddir/.libs:$software" -pthread >>"$work/log" 2>&1
}

for source in *_tests.c* mr/*/*_tests.c*; do
  case $source in
    *arena_mr_tests.cpp | mr/host/mr_ref_tests.cpp) continue ;; # parts of RMM's arena; references to host memory
    *logger_tests.cpp | *tracking_mr_tests.cpp | *callback_mr_tests.cpp) [ -n "$spdlog" ] || continue ;;
    *.cu) [ -e "$thrust/thrust/device_vector.h" ] || continue ;;
  esac
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
