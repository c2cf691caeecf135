#!/bin/sh
# SPDX-License-Identifier: MIT
#
# RMM's own C++ tests, of release 23.12 or 26.08, with the compatible headers on two software devices.
#
#   sh tests/compat/rmm_tests.sh FOLDER [TEST...]
#
# FOLDER, or RMM_SOURCE, is that of RMM's source; without it there is nothing to do. TEST: a file in its folder tests, such as
# mr/device/pool_mr_tests.cpp; without one, all. They need googletest (libgtest-dev, libgmock-dev); those in .cu files, and
# some others of 26, Thrust (libthrust-dev, or THRUST_INCLUDE), and those of the log of 23.12 spdlog with fmt (libspdlog-dev,
# or SPDLOG_FLAGS and SPDLOG_LIBS). What lacks a header is named as left out.
#
# The tests are changed in this: HIP 5's name of an attribute, and in 23.12 no headers of CUDA's C++ library; in 26 a loop over
# two lists in the place of CUDA's zip iterator, one of the host in the place of the one kernel, and hipmm's name of the table of
# current resources. Left out are the tests of parts of RMM's arena. What is known to differ is listed below, with the reason.
set -u
RMM_SOURCE=${1-${RMM_SOURCE-}}
[ $# = 0 ] || shift
[ -n "$RMM_SOURCE" ] || { echo "RMM_SOURCE names no folder with RMM's source"; exit 77; }
if [ -d "$RMM_SOURCE/cpp/tests/mr" ]; then
  release=26 RMM_SOURCE=$RMM_SOURCE/cpp
else
  release=23
  [ -d "$RMM_SOURCE/tests/mr/device" ] || { echo "$RMM_SOURCE has no tests of RMM 23.12 or 26"; exit 1; }
fi
: "${CXX=c++}" "${top_srcdir=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir=${BUILD:-$top_srcdir/build}}"
[ -n "$CXX" ] || { echo "no C++ compiler was found"; exit 77; }
[ -e "$top_builddir/.libs/libhipmm.so" ] || { echo "$top_builddir has no libhipmm.so: run make there first"; exit 1; }
top_builddir=$(cd "$top_builddir" && pwd)

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
passed=0
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2,pageable_memory_access=true
export HIPMM_RUNTIME HIPMM_SOFTWARE
hip="-D__HIP_PLATFORM_AMD__ ${HIP_CFLAGS-}"
cp -r "$RMM_SOURCE/tests" "$RMM_SOURCE/benchmarks" "$work"

# edit EXPRESSION...: sed, in all files of the tests
edit() {
  find "$work/tests" -type f -exec sed -i "$@" {} +
}
mkdir -p "$work/cuda"
# shellcheck disable=SC2086 # a list of words
if echo '#include <hip/hip_runtime_api.h>' | $CXX $hip -x c++ -E - | grep -c 'memoryType;' >/dev/null; then
  edit -e 's/\(attr[a-z]*[0-9]*\)\.type/\1.memoryType/g'
  HIPMM_SOFTWARE=$HIPMM_SOFTWARE,hip=5.2
  hip="$hip -DhipDeviceAttributeMemoryPoolSupportedHandleTypes=hipDeviceAttributeMemoryPoolsSupported" # a file handle's bit
fi
if [ $release = 26 ]; then
  flags="-std=c++20 -DHIPMM_COMPAT_RMM=26 -I$top_srcdir/include/hipmm/compat/rmm26"
  mkdir -p "$work/cuda/rmm/detail"
  cp "$RMM_SOURCE/include/rmm/detail/runtime_capabilities.hpp" "$work/cuda/rmm/detail"
  touch "$work/cuda/driver_types.h"
  echo '#include <hipmm/compat/detail/runtime.hpp>' >"$work/cuda/cuda_runtime_api.h"
  sed -i -e '/<cuda.iterator>/d' -e '/^  auto begin =$/,/^}$/{/auto \|zip_iterator/{/zipped/!d}' \
    -e 's/std::for_each(.*/for (std::size_t i = 0; i < expected_events.size(); i++) {/' \
    -e 's/auto \[expected, actual\] = zipped;/auto const \&expected = expected_events[i], \&actual = actual_events.at(i);/' \
    -e 's/^  });/  }/' -e '}' "$work/tests/logger_tests.cpp"
  edit -e '/^__global__/,/^}/d' -e 's/touch_memory_kernel<<<.*>>>(.*);/touch_on_cpu(ptr, size);/' \
    -e 's/detail::get_ref_map()/detail::all_current()/'
else
  flags="-std=c++17 -I$top_srcdir/include/hipmm/compat"
  edit -e '/#include <cuda\//d' -e 's/rmm::detail::async_alloc::cuda/cuda/g'
  # A pool over memory that devices cannot access has the property all the same.
  sed -i '/^static_assert(!cuda::has_property<rmm::mr::pool/,/;$/d' "$work/tests/mr/device/pool_mr_tests.cpp"
  echo '#include <rmm/cuda_runtime_api.h>' >"$work/cuda/cuda_runtime_api.h"
fi

# Test, and why it differs.
cat >"$work/differs" <<'END'
AdaptorTest/3.Equality                          two logging adaptors write one file: refused
CcclAdaptorTest/5.Equality                      two logging adaptors write one file: refused
AlignedTest.BelowAlignmentThresholdPassthrough  addresses that are not aligned to 256: refused
AlignedTest.DefaultAllocationAlignmentPassthrough  addresses that are not aligned to 256: refused
FailureCallbackTest.ForwardsAlignment           an address that is not aligned to the 512 asked for: refused
BinningTest.ZeroByteAllocationsUseBinResource   an allocation of no bytes reaches no other resource
CallbackTest.TestCallbacksAreInvoked            a null pointer is no block: out of memory
AsyncManagedMRTest.EqualityWithSamePool         each object has a pool of its own
AsyncManagedMRTest.AllocatedPointerIsManaged    HIP 5 has no type of managed memory
AsyncManagedMRTest.MultipleAllocationsAreManaged  HIP 5 has no type of managed memory
PoolTest.ForceGrowth                            a pool takes at least 4 KiB from its upstream
PoolMemoryResourceTest.GetUpstreamResource      over the pool of 1 KiB that MultidevicePool leaves current, so run alone
PoolMemoryResourceTest.AllocateDeallocate       over the pool of 1 KiB that MultidevicePool leaves current, so run alone
PoolMemoryResourceTest.SharedOwnership          over the pool of 1 KiB that MultidevicePool leaves current, so run alone
PoolMemoryResourceTest.Equality                 over the pool of 1 KiB that MultidevicePool leaves current, so run alone
PoolMemoryResourceTest.PoolSize                 over the pool of 1 KiB that MultidevicePool leaves current, so run alone
SystemResourceAllocationTests/mr_ref_allocation_test.AllocateDefault/System  HIP does not know pageable memory's address
SystemResourceAllocationTests/mr_ref_allocation_test.AllocateDefaultStream/System  the same
SystemResourceAllocationTests/mr_ref_allocation_test.AllocateOnStream/System  the same
SystemResourceTests/mr_ref_test.SetCurrentDeviceResourceRef/System  the same
TrackingTest.DeallocWrongBytes                  wrong frees are refused
TrackingTest.NegativeInnerTracking              wrong frees are refused
TrackingTest.UntrackedDeallocationDoesNotUnderflowAllocatedBytes  wrong frees are refused
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
  $CXX -x c++ $flags -w $hip -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP $spdlog \
    -I"$work/cuda" -I"$work" -I"$work/tests" -I"$top_srcdir/include" $thrust_flags -c "$1" \
    -o "$work/program.o" >"$work/log" 2>&1 || return 1
  # shellcheck disable=SC2086
  $CXX "$work/program.o" -o "$work/program" -lgmock_main -lgmock -lgtest $spdlog_libraries "$top_builddir/.libs/libhipmm.so" \
    "$software/software.so" -Wl,-rpath,"$top_builddir/.libs:$software" -pthread >>"$work/log" 2>&1
}

# missing SOURCE: what the test needs and this machine lacks
missing() {
  case $release/$1 in
    *arena_mr_tests.cpp) echo "parts of RMM's arena" ;;
    23/mr/host/mr_ref_tests.cpp) echo "references to host memory" ;;
    23/*logger_tests.cpp | *device/tracking_mr_tests.cpp | *device/callback_mr_tests.cpp)
      [ -n "$spdlog" ] || echo "spdlog was not found"
      ;;
    26/mr/hwdecompress_tests.cpp) echo "the hardware's decompression engine" ;;
    26/mr/cuda_async_view_mr_tests.cpp) echo "RMM does not build it: it calls allocate() without a stream" ;;
    *.cu | 26/mr/resource_ref_conversion_tests.cpp)
      [ -e "$thrust/thrust/device_vector.h" ] || echo "Thrust was not found in $thrust"
      ;;
  esac
}

tests=$*
for source in ${tests:-*_test.c* *_tests.c* mr/*_tests.c* mr/*/*_tests.c*}; do
  [ -e "$source" ] || continue # of the other release
  why=$(missing "$source")
  [ -z "$why" ] || { echo "$source: left out: $why"; continue; }
  build "$source" || {
    head -n 20 "$work/log"
    echo "FAIL: $source does not compile"
    failed=$((failed + 1))
    continue
  }
  (cd "$work" && timeout 300 ./program >"$work/log" 2>&1)
  status=$?
  ok=$(grep -c '^\[       OK \]' "$work/log")
  sed -n 's/^\[  FAILED  \] \([^ ,]*\).*(.* ms)$/\1/p' "$work/log" >"$work/failed"
  if [ $status != 0 ] && ! { [ $status = 1 ] && [ -s "$work/failed" ]; }; then
    tail -n 5 "$work/log"
    echo "FAIL: $source: exit status $status"
    failed=$((failed + 1))
  fi
  grep -q '^\[==========\]' "$work/log" || ok=$((status == 0)) # a program without googletest
  passed=$((passed + ok))
  skipped=$(grep -c '^\[  SKIPPED \].*(.* ms)' "$work/log")
  echo "$source: $ok passed, $skipped skipped"
  while read -r test; do
    why=$(awk -v name="$test" '$1 == name { $1 = ""; print }' "$work/differs")
    case $why in
      *' run alone')
        if (cd "$work" && ./program --gtest_filter="$test" >"$work/log" 2>&1 </dev/null); then
          passed=$((passed + 1))
          echo "  passed: $test$why"
          continue
        fi
        ;;
      ?*)
        echo "  differs: $test$why"
        continue
        ;;
    esac
    echo "FAIL: $test"
    failed=$((failed + 1))
  done <"$work/failed"
done
echo "$passed of RMM's tests passed"
exit $((failed != 0))
