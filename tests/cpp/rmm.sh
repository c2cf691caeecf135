#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm/rmm.hpp against the real RMM: rmm_resources.cpp is compiled, and, where RMM's library is found, run on the software
# device; tests/lab/gpu/rmm_containers.cpp and rmm_readme.cpp are built where RMM is of 26.x, for a machine with a GPU (KEEP=FOLDER
# copies them there with their libraries). What needs no GPU of the examples in RMM's README runs here.
#
# RMM_INCLUDE names the folder that has rmm/; `pip` installs librmm-cu13 from PyPI into a temporary folder, where pip and
# the network allow it. Without RMM_INCLUDE, or CUDA's headers, there is nothing to check: `make check` needs no network.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -n "${RMM_INCLUDE-}" ] || { echo "RMM_INCLUDE names no folder with RMM's headers"; exit 77; }
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }
case ${SANITIZER_FLAGS-} in ?*) echo "the programs have no sanitizer"; exit 77 ;; esac
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -e "$cuda/include/cuda_runtime_api.h" ] || { echo "CUDA's headers are not in $cuda/include"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
if [ "$RMM_INCLUDE" = pip ]; then
  python3 -m pip install -q --no-deps --target "$work/pip" 'librmm-cu13>=26.8' rapids-logger >"$work/log" 2>&1 || {
    cat "$work/log"
    echo "pip could not install librmm-cu13"
    exit 77
  }
  RMM_INCLUDE=$work/pip/librmm/include
fi
packages=$(dirname "$(dirname "$RMM_INCLUDE")") # site-packages, if RMM is a wheel

# Headers of CCCL come with RMM's wheel; those of CUDA serve older releases.
folders="-isystem $RMM_INCLUDE -isystem $packages/rapids_logger/include"
for folder in "$RMM_INCLUDE/rapids" "$cuda/include/cccl" "$cuda/include"; do
  [ ! -d "$folder" ] || folders="$folders -isystem $folder"
done
flags="-std=c++17 -pthread -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I$top_srcdir/include $folders"
flags="$flags -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE"
libraries="$packages/librmm/lib64/librmm.so $packages/rapids_logger/lib64/librapids_logger.so"

# build SOURCE OUTPUT ARGUMENT...: messages go to the log, and are shown if it fails
build() {
  source=$top_srcdir/tests/$1
  output=$2
  shift 2
  # shellcheck disable=SC2086 # lists of words
  $CXX $flags "$source" -o "$output" "$@" >"$work/log" 2>&1 || {
    head -n 40 "$work/log"
    echo "FAIL: $source"
    failed=1
    return 1
  }
}

# shellcheck disable=SC2016,SC2086 # $ORIGIN is for the dynamic linker
if [ -e "$packages/librmm/lib64/librmm.so" ]; then
  # RMM's library does not say where the logger's is, so the program must need both, also with a linker that drops one.
  libraries="-Wl,--no-as-needed $libraries $top_builddir/.libs/libhipmm.so -L$cuda/lib64 -lcudart_static -ldl -lrt"
  where="-Wl,-rpath,$packages/librmm/lib64:$packages/rapids_logger/lib64:$top_builddir/.libs"
  build cpp/rmm_resources.cpp "$work/resources" $libraries "$where" &&
    { HIPMM_RUNTIME=software "$work/resources" || failed=1; }
  # RMM's containers need C++20 since 26.10, which deprecates names that its README has.
  for program in rmm_readme rmm_containers; do
    build lab/gpu/$program.cpp "$work/$program" -std=c++20 -Wno-deprecated-declarations $libraries \
      "$where"':$ORIGIN:$ORIGIN/../../../lib' || continue
    [ -z "${KEEP-}" ] || { mkdir -p "$KEEP" && cp "$work/$program" "$KEEP"; } || failed=1
  done
  [ -z "${KEEP-}" ] || cp "$packages"/librmm/lib64/librmm.so "$packages"/rapids_logger/lib64/librapids_logger.so "$KEEP" ||
    failed=1
  (cd "$work" && HIPMM_RUNTIME=software ./rmm_readme resources) || failed=1
else
  skip_part "running programs of RMM" "RMM's library is not beside its headers"
  build cpp/rmm_resources.cpp "$work/object" -c
fi
exit $failed
