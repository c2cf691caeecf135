#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Programs of RMM 26, compiled with the compatible headers without a warning, and run on two software devices: with HIP's
# types as C++17 and C++20, by the library's own compiler and by clang 14, with hipmm's own cuda::mr; and with CUDA's types
# and CUDA's C++ library (CCCL) where both are found. nvcc compiles only. What a program must not do is a clear error.
#
# CCCL_INCLUDE names the folder of CCCL 3.3 or newer, RMM_INCLUDE that of RMM's headers, whose wheel has it in rapids/; CUDA's
# headers are in CUDA_HOME (/usr/local/cuda). rmm_thrust.cpp needs Thrust (THRUST_INCLUDE, else the system's or CUDA's).
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || { echo "the build without sanitizers looks at this"; exit 77; }
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
sources=$top_srcdir/tests/compat
compat=$top_srcdir/include/hipmm/compat
software=$top_builddir/plugins/runtimes/software/.libs/software.so
HIPMM_RUNTIME=$software HIPMM_SOFTWARE=devices=2,memory=1GiB,pageable_memory_access=true
export HIPMM_RUNTIME HIPMM_SOFTWARE CXX top_srcdir top_builddir
folders="-I$top_srcdir/include -I$compat/rmm26"
flags="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -DHIPMM_COMPAT_RMM=26 $folders"
libraries="$top_builddir/.libs/libhipmm.so -Wl,-rpath,$top_builddir/.libs -pthread"
hip="-D__HIP_PLATFORM_AMD__ ${HIP_CFLAGS-}"
cuda=${CUDA_HOME:-/usr/local/cuda}

. "$top_srcdir/tests/compat/common.sh"

# The first folder with a CCCL that is new enough.
cccl_folder() {
  for folder in "${CCCL_INCLUDE-}" "${RMM_INCLUDE:+$RMM_INCLUDE/rapids}" "$cuda/include/cccl" /usr/local/include /usr/include; do
    version=$(sed -n 's/^#define CCCL_VERSION \([0-9]*\).*/\1/p' "$folder/cuda/std/__cccl/version.h" 2>/dev/null)
    [ "${version:-0}" -lt 3003000 ] || { echo "$folder"; return; }
  done
}

# programs TITLE COMPILER STANDARD LIBRARY FLAG...: builds and runs both; the second calls the runtime, LIBRARY
programs() {
  title="$1, $2, $3" compiler=$2 standard=$3 runtime=$4
  shift 4
  build "$compiler" "$standard" rmm26_resources.cpp "$@" && run "resources, $title" .
  build "$compiler" "$standard" rmm26_readme.cpp "$@" "$runtime" -Wl,-rpath,"$(dirname "$runtime")" &&
    run "examples of the README, $title"
}
# shellcheck disable=SC2086 # lists of words
programs "HIP's types" "$CXX" c++17 "$software" $hip
# shellcheck disable=SC2086
! installed clang++-14 "programs of RMM 26, built with clang" || programs "HIP's types" clang++-14 c++20 "$software" $hip

cccl=$(cccl_folder)
if [ ! -e "$cuda/include/cuda_runtime_api.h" ]; then
  skip_part "CUDA's types in programs of RMM 26" "CUDA's headers are not in $cuda/include"
else
  # The software device by the names of CUDA's runtime.
  $CXX -std=c++17 -shared -fPIC -isystem "$cuda/include" "$top_srcdir/tests/cpp/rmm_cudart.cpp" -o "$work/libcudart.so" -ldl \
    >"$work/log" 2>&1 || { cat "$work/log"; fail "rmm_cudart.cpp"; }
  programs "CUDA's types" "$CXX" c++20 "$work/libcudart.so" -isystem "$cuda/include" -DHIPMM_COMPAT_OWN_CUDA_MR
  if [ -z "$cccl" ]; then
    skip_part "CCCL in programs of RMM 26" "no folder has CCCL 3.3 or newer (CCCL_INCLUDE)"
  else
    # CCCL compiles for long, so one standard has to do: RMM 26.8 needs C++20.
    programs "CUDA's types and CCCL" "$CXX" c++20 "$work/libcudart.so" -isystem "$cccl" -isystem "$cuda/include"
    ! installed "$cuda/bin/nvcc" "RMM 26's headers, read by nvcc" ||
      # shellcheck disable=SC2086
      "$cuda/bin/nvcc" -std=c++17 -x cu -DHIPMM_COMPAT_RMM=26 $folders -I"$cccl" -c "$sources/rmm26_resources.cpp" \
        -o "$work/object.o" >"$work/log" 2>&1 || { head -n 40 "$work/log"; fail "rmm26_resources.cpp does not compile with nvcc"; }
  fi
fi

# The program has the types of the runtime that Thrust's headers include.
thrust=$cccl
for folder in "${THRUST_INCLUDE-}" /usr/include /usr/local/include "$cuda/include/cccl"; do
  [ -z "$folder" ] || [ -n "$thrust" ] || [ ! -e "$folder/thrust/device_vector.h" ] || thrust=$folder
done
thrust_flags="-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP -fno-sanitize=null"
[ -n "$cccl" ] || thrust_flags="$thrust_flags -DHIPMM_COMPAT_OWN_CUDA_MR"
[ "$thrust" = /usr/include ] || thrust_flags="-isystem $thrust $thrust_flags"
[ ! -e "$cuda/include/cuda_runtime_api.h" ] || thrust_flags="$thrust_flags -isystem $cuda/include"
if [ -n "$thrust" ]; then
  # shellcheck disable=SC2086
  build "$CXX" c++17 rmm_thrust.cpp $thrust_flags && run Thrust .
else
  skip_part "Thrust in programs of RMM 26" "its headers were not found"
fi

# All headers in two files of one program, in both orders, and a file of a program of RMM 23.12, whose classes have other names
# for the linker.
headers() {
  (cd "$compat/rmm26" && find rmm -name '*.hpp') | $1 | while read -r header; do
    case $header in *thrust* | *device_vector* | *exec_policy*) [ -n "$thrust" ] || continue ;; esac
    echo "#include <$header>"
  done
}
headers sort >"$work/one.cpp"
headers 'sort -r' >"$work/two.cpp"
cat >>"$work/two.cpp" <<'END'
std::size_t bytes_of_23();
std::size_t bytes_of_26()
{
  rmm::device_buffer buffer{1000, rmm::cuda_stream_view{}};
  return sizeof buffer + buffer.size();
}
int main() { return bytes_of_26() == bytes_of_23(); }
END
cat >"$work/old.cpp" <<'END'
#include <rmm/device_buffer.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
std::size_t bytes_of_23()
{
  rmm::mr::cuda_memory_resource memory;
  rmm::mr::pool_memory_resource pool{&memory, std::size_t{1} << 20};
  rmm::device_buffer buffer{1000, rmm::cuda_stream_view{}, pool};
  return sizeof buffer + buffer.size();
}
END
# shellcheck disable=SC2086
{
  $CXX -std=c++17 -Wall -Wextra -Werror -I"$top_srcdir/include" -I"$compat" -c "$work/old.cpp" -o "$work/old.o" &&
    $CXX -std=c++17 $flags $thrust_flags "$work/one.cpp" "$work/two.cpp" "$work/old.o" -o "$work/program" $libraries
} >"$work/log" 2>&1 && run "files of both releases" || { head -n 40 "$work/log"; fail "two files with all headers"; }

# refused TEXT FLAG... -- SOURCE: the compiler's errors begin with this text, and there are at most two
refused() {
  text=$1
  shift
  printf '%b' "$wrong" >"$work/wrong.cpp"
  # shellcheck disable=SC2086
  if $CXX -std=c++17 $hip "$@" -fsyntax-only "$work/wrong.cpp" >"$work/log" 2>&1; then
    fail "was compiled: $wrong"
  elif [ "$(grep -c 'error:' "$work/log")" -gt 2 ] || ! grep 'error:' "$work/log" | head -n 1 | grep -q "$text"; then
    head -n 20 "$work/log"
    fail "is not refused with \"$text\": $wrong"
  fi
}
wrong='#include <rmm/mr/pool_memory_resource.hpp>\n#include <rmm/mr/device/pool_memory_resource.hpp>\n'
# shellcheck disable=SC2086
{
  refused 'of RMM 23.12; a program for RMM 26' -DHIPMM_COMPAT_RMM=26 $folders -I"$compat"
  refused 'compile with -DHIPMM_COMPAT_RMM=26' $folders
  refused 'HIPMM_COMPAT_RMM is 23' -DHIPMM_COMPAT_RMM=25 $folders
  refused "RMM's own headers were included before" -DHIPMM_COMPAT_RMM=26 -DRMM_VERSION_MAJOR=26 $folders
}
mkdir -p "$work/old/cuda/std"
echo 'typedef struct CUstream_st *cudaStream_t;' >"$work/old/cuda_runtime_api.h"
echo '#define CCCL_VERSION 3002001' >"$work/old/cuda/std/version"
hip=
# shellcheck disable=SC2086
refused 'need CCCL 3.3 or newer' -DHIPMM_COMPAT_RMM=26 $folders -I"$work/old"

# They compile for a minute.
if [ -z "${RMM_INCLUDE-}" ]; then
  skip_part "samples of RMM 26's documentation" "RMM_INCLUDE names no folder with RMM's headers"
else
  sh "$sources/rmm26_samples.sh" "$sources/rmm26_samples.txt" >"$work/samples" || fail "samples"
  tail -n 1 "$work/samples"
  grep -q ', 0 were left out' "$work/samples" || { grep -v ': ran' "$work/samples"; fail "samples are left out"; }
fi
exit $((failed != 0))
