#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The C++ samples of a folder, such as a clone of RMM 26 or its documentation, with the compatible headers on two software
# devices.
#
#   sh tests/compat/rmm26_samples.sh FOLDER|FILE...
#
# FOLDER, or RMM_SOURCE, has Markdown, reStructuredText and programs; without it there is nothing to do. A sample is a block of
# C++ in a text, or a program: a .cpp file with main(). A block of statements becomes a function, and one of declarations a file.
# Of a block this is changed: lines that are dots alone, launches of kernels and what is between the comments "// 26.04" and
# "// 26.06" are left out, and {...} becomes the default stream. RMM's headers, the standard library's and HIP's are included,
# and Thrust's for a device without kernels, if samples name it and the compiler finds it (libthrust-dev). THRUST_INCLUDE names a
# folder of CUDA's Thrust: then CUDA's headers are in the place of HIP's. What samples leave undefined, such as `stream` and
# `size`, is defined. What neither compiles as a function nor as a file is listed as left out, with the compiler's first error;
# what compiles must run.
set -u
[ $# != 0 ] || set -- ${RMM_SOURCE:+"$RMM_SOURCE"}
[ $# != 0 ] || { echo "RMM_SOURCE names no folder with samples of RMM 26"; exit 77; }
: "${CXX=c++}" "${top_srcdir=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir=${BUILD:-$top_srcdir/build}}"
[ -n "$CXX" ] || { echo "no C++ compiler was found"; exit 77; }
[ -e "$top_builddir/.libs/libhipmm.so" ] || { echo "$top_builddir has no libhipmm.so: run make there first"; exit 1; }
for folder; do
  ! find "$folder" -path '*/mr/device/*' 2>/dev/null | grep -q . || { echo "$folder has samples of an older RMM"; exit 77; }
done
top_builddir=$(cd "$top_builddir" && pwd)
top_srcdir=$(cd "$top_srcdir" && pwd)

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
software=$top_builddir/plugins/runtimes/software/.libs
HIPMM_RUNTIME=$software/software.so HIPMM_SOFTWARE=devices=2,memory=1GiB,pageable_memory_access=true
HIPMM_PLUGIN_PATH=${HIPMM_PLUGIN_PATH-$top_builddir/plugins}
export HIPMM_RUNTIME HIPMM_SOFTWARE HIPMM_PLUGIN_PATH
compat=$top_srcdir/include/hipmm/compat
flags="-std=${STANDARD:-c++20} -w -DHIPMM_COMPAT_RMM=26 -I$top_srcdir/include -I$compat/rmm26"
flags="$flags -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP"
runtime=$software/software.so
if [ -n "${THRUST_INCLUDE-}" ]; then
  cuda=${CUDA_HOME:-/usr/local/cuda}
  runtime=$work/libcudart.so
  $CXX -std=c++17 -shared -fPIC -isystem "$cuda/include" "$top_srcdir/tests/cpp/rmm_cudart.cpp" -o "$runtime" -ldl || exit 1
  flags="$flags -isystem $THRUST_INCLUDE -isystem $cuda/include -DHIPMM_COMPAT_OWN_CUDA_MR"
else
  flags="$flags -D__HIP_PLATFORM_AMD__ ${HIP_CFLAGS-}"
fi
failed=0 ran=0 unchanged=0 left=0
# shellcheck disable=SC2086 # lists of words
grep -qrE 'thrust|device_vector|exec_policy' "$@" &&
  echo '#include <thrust/device_vector.h>' | $CXX $flags -x c++ -E - >"$work/log" 2>&1 && has_thrust=1 || has_thrust=

# What every block may use, and what is behind the names that samples leave undefined.
{
  (cd "$compat/rmm26" && find rmm -name '*.hpp' | sort) | while read -r header; do
    case $header in *thrust* | *device_vector* | *exec_policy*) [ "$has_thrust" ] || continue ;; esac
    echo "#include <$header>"
  done
  for header in cuda/memory_resource cuda/stream cuda/std/span algorithm cassert cstdint cstdio iostream memory string \
    utility vector; do
    echo "#include <$header>"
  done
  echo 'using rmm::cuda_device_id; using rmm::cuda_stream_view; using rmm::mr::set_per_device_resource;'
  echo 'inline const cuda::stream_ref stream{cudaStream_t{}}; inline const int N = 2;'
  echo 'inline const std::size_t size = 1024, pool_size = 1024, initial_size = 1024;'
  echo 'inline rmm::mr::cuda_memory_resource cuda_mr; inline int pointed, *p = &pointed;'
  echo 'namespace given {' # a sample may declare the names itself
  echo 'inline auto *get_some_resource() { static rmm::mr::limiting_resource_adaptor limited{cuda_mr, 1024}; return &limited; }'
  echo 'inline void downstream_function(cuda::stream_ref, rmm::device_async_resource_ref) {} } using namespace given;'
  echo 'using my_custom_resource = rmm::mr::cuda_memory_resource;'
} >"$work/prelude.hpp"

# The compiler reads it once. One that cannot reads it for each sample.
# shellcheck disable=SC2086 # lists of words
$CXX $flags -x c++-header "$work/prelude.hpp" -o "$work/prelude.hpp.gch" >"$work/log" 2>&1 || rm -f "$work/prelude.hpp.gch"

# blocks FILE: writes each block of C++ of a text to $work/block.N
blocks() {
  awk -v work="$work" '
    function begin() { file = work "/block." ++n; printf "" > file; inside = 1 }
    !inside && /^ *(\* *)?(```+|~~~+) *\{?(c\+\+|cpp|cuda|C\+\+)/ { fence = /^ *\*/ ? 2 : 1; begin(); next }
    !inside && /^\.\. (code-block|sourcecode|code):: *(c\+\+|cpp|cuda)/ { fence = 0; indented = 0; begin(); next }
    !inside && /[@\\]code\{\.?cpp\}/ { fence = 2; begin(); next }
    inside && fence && /^ *(\* *)?(```|~~~|[@\\]endcode)/ { inside = 0; close(file); next }
    inside && fence == 0 && /^[^ \t]/ { inside = 0; close(file) }
    inside { if (fence == 2) sub(/^ *\* ?/, ""); if (fence != 0 || !/^ *:[a-z-]+:/) print >> file }
  ' "$1"
}

compile() {
  # shellcheck disable=SC2086 # lists of words
  $CXX $flags -include "$work/prelude.hpp" "$work/sample.cpp" -o "$work/sample" "$top_builddir/.libs/libhipmm.so" \
    "$runtime" -Wl,-rpath,"$top_builddir/.libs:$(dirname "$runtime")" -pthread >"$work/log" 2>&1
}

# A block as a function: its includes before it.
as_function() {
  grep '^ *#' "$1" >"$work/sample.cpp"
  { echo 'int main()'; echo '{'; grep -v '^ *#' "$1"; echo '}'; } >>"$work/sample.cpp"
  compile
}
as_file() {
  cp "$1" "$work/sample.cpp"
  grep -q 'int main *(' "$1" || echo 'int main() { return 0; }' >>"$work/sample.cpp"
  compile
}

# sample NAME BLOCK
sample() {
  sed -e '/^\/\/ 26\.04/,/^\/\/ 26\.06/d' -e '/^ *\.\.\. *$/d' -e '/<<<.*>>>/d' \
    -e 's/{\.\.\.}/{cudaStream_t{cudaStreamDefault}}/g' "$2" >"$work/edited"
  if ! grep -q '[^[:space:]]' "$work/edited"; then
    left=$((left + 1))
    echo "$1: left out: for an older release"
    return
  elif ! as_file "$work/edited"; then
    ! grep -q 'int main *(' "$work/edited" || cp "$work/log" "$work/first"
    as_function "$work/edited" || {
      left=$((left + 1))
      echo "$1: left out: $(grep -m 1 'error:' "$work/log" | sed 's/.*error: //')"
      return
    }
  fi
  rm -rf "$work/here" && mkdir "$work/here"
  if (cd "$work/here" && timeout 120 "$work/sample" >"$work/log" 2>&1) ||
    { grep -q '^ *RMM_FAIL(' "$2" && grep -q 'what(): *RMM failure at' "$work/log"; }; then # it throws what it shows
    ran=$((ran + 1))
    if cmp -s "$2" "$work/edited"; then
      echo "$1: ran"
      unchanged=$((unchanged + 1))
    else
      echo "$1: ran, changed"
    fi
  else
    tail -n 5 "$work/log"
    cat "$work/sample.cpp"
    echo "FAIL: $1"
    failed=$((failed + 1))
  fi
}

for folder; do
  find "$folder" -type f \( -name '*.md' -o -name '*.rst' -o -name '*.cpp' -o -name '*.hpp' -o -name METADATA -o \
    -path "$folder" \) | sort >"$work/files"
  while read -r file; do
    case $file in
      *.cpp) ! grep -q 'int main *(' "$file" || sample "$file" "$file" ;;
      *)
        rm -f "$work"/block.*
        blocks "$file"
        n=1
        while [ -e "$work/block.$n" ]; do
          sample "$file, block $n" "$work/block.$n"
          n=$((n + 1))
        done
        ;;
    esac
  done <"$work/files"
done
echo "$ran samples ran, $unchanged of them unchanged, $left were left out, $failed failed"
[ $((ran + failed)) != 0 ] || { echo "no sample was found"; failed=1; }
exit $((failed != 0))
