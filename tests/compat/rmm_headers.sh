#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Programs of RMM 23.12, compiled with the compatible headers without a warning, and run on two software devices: by the
# library's own compiler as C++17, by clang 14 as C++20. A program takes HIP's types with __HIP_PLATFORM_AMD__, otherwise those
# of the runtime whose headers are found. g++ as C++20 and nvcc compile only.
#
# rmm_thrust.cpp needs Thrust's headers: THRUST_INCLUDE names their folder, unless they are among the system's or CUDA's.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || { echo "the build without sanitizers looks at this"; exit 77; }
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2,memory=1GiB
export HIPMM_RUNTIME HIPMM_SOFTWARE
sources=$top_srcdir/tests/compat
software=$top_builddir/plugins/runtimes/software/.libs
flags="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I$top_srcdir/include -I$top_srcdir/include/hipmm/compat ${SANITIZER_FLAGS-}"
libraries="$top_builddir/.libs/libhipmm.so -Wl,-rpath,$top_builddir/.libs -pthread"
hip="-D__HIP_PLATFORM_AMD__ ${HIP_CFLAGS-}"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

. "$top_srcdir/tests/compat/common.sh"

thrust_folder() {
  for folder in "${THRUST_INCLUDE-}" /usr/include /usr/local/include "$(dirname "$nvcc")/../include/cccl"; do
    [ -n "$folder" ] && [ -e "$folder/thrust/device_vector.h" ] && echo "$folder" && return
  done
}
thrust=$(thrust_folder)
[ -n "$thrust" ] || echo "Thrust's headers were not found"
# The compilers search the system's folder last; named again it would hide the C library's headers from C++'s.
thrust_flags=
[ -z "$thrust" ] || thrust_flags="-isystem $thrust -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP"
[ "$thrust" != /usr/include ] || thrust_flags=-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP
# Thrust's own device_reference (detail/reference.h) binds a reference to null, which a sanitizer build would tell.
[ -z "$thrust" ] || thrust_flags="$thrust_flags -fno-sanitize=null"

echo '{ "stack": ["statistics", "pool", "device"] }' >"$work/hipmm.json"

# programs COMPILER STANDARD: builds and runs all
programs() {
  title="$1, $2"
  build "$1" "$2" rmm_resources.cpp && run "resources, $title" .
  # shellcheck disable=SC2086 # lists of words
  build "$1" "$2" rmm_containers.cpp $hip -DSPDLOG_ACTIVE_LEVEL=SPDLOG_LEVEL_DEBUG &&
    run "containers, $title" &&
    HIPMM_CONFIG=$work/hipmm.json run "containers over a graph, $title" graph
  # shellcheck disable=SC2086 # the program calls HIP's functions, which the software device has
  build "$1" "$2" rmm_readme.cpp $hip "$software/software.so" -Wl,-rpath,"$software" && run "examples of READMEs, $title"
  [ -z "$thrust" ] || {
    build "$1" "$2" rmm_thrust.cpp $thrust_flags &&
      run "Thrust, $title" .
  }
}
programs "$CXX" c++17
build "$CXX" c++17 ../cpp/rmm_resources.cpp && run "hipmm/rmm.hpp over these headers"
for source in rmm_resources.cpp rmm_containers.cpp; do
  # shellcheck disable=SC2086
  $CXX -std=c++20 $flags -fsyntax-only "$sources/$source" >"$work/log" 2>&1 ||
    { head -n 40 "$work/log"; fail "$source does not compile as C++20"; }
done
# A program has the sanitizers of the library's own compiler alone.
[ -n "${SANITIZER_FLAGS-}" ] || ! installed clang++-14 "programs of RMM, built with clang" || programs clang++-14 c++20

if installed "$nvcc" "RMM's headers, read by nvcc"; then
  for source in rmm_resources.cpp rmm_thrust.cpp; do
    "$nvcc" -std=c++17 -x cu -I"$top_srcdir/include" -I"$top_srcdir/include/hipmm/compat" -c "$sources/$source" \
      -o "$work/object.o" >"$work/log" 2>&1 || { head -n 40 "$work/log"; fail "$source does not compile with nvcc"; }
  done
fi

# All headers in two files of one program, in both orders: each includes what it needs, and defines nothing twice.
for file in one two; do
  [ $file = one ] && order='sort' || order='sort -r'
  (cd "$top_srcdir/include/hipmm/compat" && find rmm -name '*.hpp') | $order | while read -r header; do
    case $header in *thrust* | *device_vector* | *exec_policy*) [ -n "$thrust" ] || continue ;; esac
    echo "#include <$header>"
  done >"$work/$file.cpp"
done
echo 'int main() { return 0; }' >>"$work/two.cpp"
# shellcheck disable=SC2086
$CXX -std=c++17 $flags $thrust_flags "$work/one.cpp" \
  "$work/two.cpp" -o "$work/program" $libraries >"$work/log" 2>&1 || { head -n 40 "$work/log"; fail "two files with all headers"; }
exit $((failed != 0))
