#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the plugins that make other libraries' allocators types of hipmm, to be measured beside hipmm's own by the step
# `allocators` of prove.sh:
#
#     sh allocators.sh rmm FOLDER      rmm.so and rmm_async.so, with RMM's libraries in FOLDER/lib
#     sh allocators.sh torch FOLDER    torch.so, over the PyTorch in the folder TORCH, or that python3 has
#
# RMM_INCLUDE names the folder that has rmm/; `pip` installs librmm-cu13 from PyPI into a temporary folder, where pip and the
# network allow it. CUDART: the library to link in the place of CUDA's static runtime. Ends with 77, and the reason, where
# something is missing.
set -u

[ $# -eq 2 ] || { sed -n 's/^# \{0,1\}//; 4,13p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../../.." && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
: "${CXX:=g++}"

leave_out() {
  echo "$1"
  exit 77
}

command -v "${CXX##* }" >/dev/null || leave_out "no C++ compiler was found"
[ -e "$cuda/include/cuda_runtime_api.h" ] || leave_out "CUDA's headers are not in $cuda/include"

# As the libraries themselves are built, whose templates are compiled here.
flags="-std=c++20 -O3 -DNDEBUG -fPIC -shared -fvisibility=hidden -pthread -Wall -Wextra -Wno-missing-field-initializers"
flags="$flags -Werror -I$top/include"

# build NAME ARGUMENT...
build() {
  name=$1
  shift
  # shellcheck disable=SC2086 # lists of words
  $CXX $flags "$here/$name.cpp" -o "$folder/$name.so" "$@" -isystem "$cuda/include" || exit 1
}

# shellcheck disable=SC2016 # $ORIGIN is for the dynamic linker
build_rmm() {
  include=${RMM_INCLUDE-}
  [ -n "$include" ] || leave_out "RMM_INCLUDE names no folder with RMM's headers"
  if [ "$include" = pip ]; then
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    python3 -m pip install -q --no-deps --target "$work/pip" 'librmm-cu13>=26.8' rapids-logger >"$work/log" 2>&1 ||
      leave_out "pip could not install librmm-cu13: $(tail -n 1 "$work/log")"
    include=$work/pip/librmm/include
  fi
  packages=$(dirname "$(dirname "$include")") # site-packages, if RMM is a wheel
  rmm=$packages/librmm/lib64/librmm.so
  logger=$packages/rapids_logger/lib64/librapids_logger.so
  for library in "$rmm" "$logger"; do [ -e "$library" ] || leave_out "$library is not beside RMM's headers"; done
  cudart=${CUDART:-$cuda/lib64/libcudart_static.a}
  [ -e "$cudart" ] || leave_out "CUDA's runtime, $cudart, is not there"
  flags="$flags -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE -isystem $include -isystem $include/rapids"
  flags="$flags -isystem $packages/rapids_logger/include"
  for plugin in rmm rmm_async; do
    build $plugin "$rmm" "$logger" "$cudart" -ldl -lrt -Wl,-z,defs '-Wl,-rpath,$ORIGIN/lib'
    strip -g "$folder/$plugin.so"
  done
  mkdir -p "$folder/lib"
  cp -L "$rmm" "$logger" "$folder/lib"
  cat "$packages/librmm/VERSION" >"$folder/rmm_version" 2>/dev/null || rm -f "$folder/rmm_version"
}

build_torch() {
  find='import importlib.util as i; print(i.find_spec("torch").submodule_search_locations[0])'
  torch=${TORCH:-$(cd / && python3 -c "$find" 2>/dev/null)}
  [ -n "$torch" ] || leave_out "python3 has no PyTorch"
  [ -e "$torch/lib/libc10_cuda.so" ] || leave_out "PyTorch is built without CUDA"
  [ -e "$torch/include/c10/cuda/CUDACachingAllocator.h" ] || leave_out "PyTorch's headers are not in $torch/include"
  build torch -isystem "$torch/include" -L"$torch/lib" -lc10_cuda -lc10 "-Wl,-rpath,$torch/lib"
}

case $1 in
rmm) build_rmm ;;
torch) build_torch ;;
*) exec sh "$0" ;;
esac
