#!/bin/sh
# SPDX-License-Identifier: MIT
#
# RMM's own C++ tests (cpp/tests of a clone of RMM 26.x, which is not part of hipmm) over hipmm: RMM is built from its source
# with rmm_over_hipmm.hpp in the place of its sources and sub-allocators of memory.
#
#   sh tests/cpp/rmm_own_tests.sh FOLDER [TEST...]                 on the software device
#   KEEP=BUNDLE/tests/lab/gpu/rmm_own sh tests/cpp/rmm_own_tests.sh FOLDER   builds for a GPU, with CUDA's runtime and nvcc
#
# TEST: the path of a file without its ending, such as device_uvector_tests or mr/mr_ref_pool_tests. Needs GoogleTest's
# libraries (libgtest-dev, libgmock-dev) and CUDA's headers. The headers of CCCL, and what RMM's own build makes, come from
# the wheel of the same release, which pip installs into $BUILD/rmm_own; a second call compiles only what changed.
set -eu

[ -d "${1-}/cpp/tests" ] || { sed -n 's/^# \{0,1\}//; 4,12p' "$0"; exit 2; }
top=$(cd "$(dirname "$0")/../.." && pwd)
rmm=$(cd "$1" && pwd)/cpp
shift
build=$(cd "${BUILD:-$top/build}" && pwd)
[ -e "$build/.libs/libhipmm.so" ] || { echo "$build has no libhipmm.so: run make there first" >&2; exit 2; }
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -e "$cuda/include/cuda_runtime_api.h" ] || { echo "CUDA's headers are not in $cuda/include" >&2; exit 2; }
device=software
[ -z "${KEEP-}" ] || device=gpu
work=$build/rmm_own

release=$(cut -d. -f1,2 "$rmm/../VERSION" | sed 's/\.0*/./')
packages=$work/packages-$release
if [ ! -d "$packages" ]; then
  python3 -m pip install -q --no-deps --target "$packages.new" "librmm-cu13==$release.*" rapids-logger
  mv "$packages.new" "$packages"
fi

# Headers in the place of RMM's: of the classes that rmm_over_hipmm.hpp has, and of policies for a device without kernels.
mkdir -p "$work/over/rmm/mr" "$work/on_host/rmm"
stand_in() {
  echo "#include <$2>" >"$work/new"
  cmp -s "$work/new" "$work/$1" || mv "$work/new" "$work/$1"
}
for class in cuda cuda_async cuda_async_managed managed pinned_host system pool arena fixed_size binning; do
  stand_in over/rmm/mr/${class}_memory_resource.hpp rmm_over_hipmm.hpp
done
stand_in on_host/rmm/exec_policy.hpp rmm_on_host.hpp

make -s -k -j "${JOBS:-$(nproc)}" -f "$top/tests/cpp/rmm_own_tests.mk" -C "$work" TOP="$top" BUILD="$build" RMM="$rmm" \
  CUDA="$cuda" PACKAGES="$packages" DEVICE=$device ONLY="$*"

if [ $device = gpu ]; then
  mkdir -p "$KEEP/lib"
  cp "$work"/gpu/bin/* "$KEEP"
  cp -L "$work"/gpu/lib/*.so "$packages/rapids_logger/lib64/librapids_logger.so" "$cuda/lib64/libcudart.so.13" "$KEEP/lib"
  strip "$KEEP"/*_tests "$KEEP"/lib/*
  exit
fi
HIPMM_RUNTIME=$build/plugins/runtimes/software/.libs/software.so
HIPMM_PLUGIN_PATH=$build/plugins
export HIPMM_RUNTIME HIPMM_PLUGIN_PATH
exec python3 -B "$top/tests/lab/gpu/rmm_own.py" "$work/software/bin"
