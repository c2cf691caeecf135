#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The plugins here on the software device, with tests/cpp/rmm_cudart.cpp in the place of CUDA's runtime: the conformance kit,
# and logs. RMM_SOURCE names a clone of RMM 26.x, of which what is needed is built, since the wheel has CUDA's runtime linked
# into it; pip gets CCCL's headers. TORCH names the folder torch of an installed or unpacked PyTorch with CUDA. Without both,
# and CUDA's headers, there is nothing to check: `make check` needs no network.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
[ -n "${RMM_SOURCE-}${TORCH-}" ] || { echo "neither RMM_SOURCE nor TORCH is set"; exit 77; }
[ -n "${CXX-}" ] || { echo "no C++ compiler was found"; exit 77; }
case ${SANITIZER_FLAGS-} in ?*) echo "the plugins have no sanitizer"; exit 77 ;; esac
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -e "$cuda/include/cuda_runtime_api.h" ] || { echo "CUDA's headers are not in $cuda/include"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
hipmm=$top_builddir/hipmm
mkdir "$work/plugins"
CUDART_RUNTIME=$top_builddir/plugins/runtimes/software/.libs/software.so
HIPMM_PLUGIN_PATH=$work/plugins:$top_builddir/plugins
HIPMM_RUNTIME=software
LD_LIBRARY_PATH=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CUDART_RUNTIME HIPMM_PLUGIN_PATH HIPMM_RUNTIME LD_LIBRARY_PATH

# The stand-in for CUDA's runtime is loaded first: an installed PyTorch finds NVIDIA's by an RPATH, which goes before
# LD_LIBRARY_PATH.
hipmm() {
  LD_PRELOAD=$work/lib/libcudart.so.13 "$hipmm" "$@"
}

fail() {
  echo "FAIL: $*"
  failed=1
}

# kit PLUGIN OPTIONS [CHECK...]: the checks that may fail, by the other library's fault
kit() {
  plugin=$1
  options=$2
  shift 2
  hipmm plugin test --options "$options" "$work/plugins/$plugin.so" >"$work/kit" 2>&1
  grep -q "^ok *create:" "$work/kit" || fail "$plugin $options: $(tail -n 1 "$work/kit")"
  for check; do sed -i "/^FAILED *$check:/d" "$work/kit"; done
  ! grep '^FAILED' "$work/kit" || fail "$plugin $options"
}

# number KEY FILE: of a JSON object that is printed one key a line
number() {
  sed -n "s/^ *\"$1\": \([0-9][0-9]*\).*/\1/p" "$2" | head -n 1
}

replay() {
  HIPMM_SOFTWARE=memory=64GiB hipmm replay "$@"
}

# logs STACK...: each log runs, and in the least budget too, which is between what it requests and what it holds without one
logs() {
  for stack; do
    echo "{\"stack\": [$stack]}" >"$work/graph.json"
    for log in resnet50_train gpt2_steps; do
      [ -e "$work/$log.csv" ] || xz -dc "$top_srcdir/tests/data/$log.csv.xz" >"$work/$log.csv"
      set -- --json --config "$work/graph.json" "$work/$log.csv"
      replay "$@" >"$work/plain" 2>&1 || { fail "$stack, $log" && cat "$work/plain" && continue; }
      replay --fit "$@" >"$work/fit" 2>&1 || { fail "$stack, $log, --fit" && cat "$work/fit" && continue; }
      requested=$(number peak_requested_bytes "$work/fit") needs=$(number needs_bytes "$work/fit")
      held=$(number peak_reserved_bytes "$work/plain")
      if [ "$requested" -gt "$needs" ] || [ "$needs" -gt "$held" ]; then
        fail "$stack, $log: requested $requested, the least budget $needs, held without one $held"
      fi
    done
  done
}

# streams STACK...: a log of several streams, which are destroyed before the stack is
streams() {
  for stack; do
    echo "{\"stack\": [$stack]}" >"$work/graph.json"
    xz -dc "$top_srcdir/tests/data/cupy_frames.csv.xz" | replay --config "$work/graph.json" - >"$work/plain" 2>&1 ||
      { fail "$stack, several streams" && cat "$work/plain"; }
    ! grep 'error:' "$work/plain" || fail "$stack, several streams: an error is logged"
  done
}

mkdir "$work/lib"
$CXX -std=c++17 -Wall -Wextra -Werror -shared -fPIC -isystem "$cuda/include" "$top_srcdir/tests/cpp/rmm_cudart.cpp" \
  -Wl,-soname,libcudart.so.13 -o "$work/lib/libcudart.so.13" -ldl || exit 1

# The wheel's folders, with RMM's headers and library of the clone.
# shellcheck disable=SC2016 # $ORIGIN is for the dynamic linker
build_rmm() {
  release=$(cut -d. -f1,2 "$RMM_SOURCE/VERSION" | sed 's/\.0*/./')
  python3 -m pip install -q --no-deps --target "$work/site" "librmm-cu13==$release.*" rapids-logger >"$work/log" 2>&1 || {
    echo "pip could not install librmm-cu13 $release: $(tail -n 1 "$work/log")"
    exit 77
  }
  cp -r "$RMM_SOURCE/cpp/include/rmm" "$work/site/librmm/include" || exit 1
  include=$work/site/librmm/include
  flags="-std=c++20 -O1 -DNDEBUG -w -fPIC -I$include -isystem $include/rapids -isystem $work/site/rapids_logger/include"
  flags="$flags -isystem $cuda/include -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE"
  mkdir "$work/objects"
  (cd "$RMM_SOURCE/cpp/src" && ls aligned.cpp cuda_device.cpp cuda_stream.cpp cuda_stream_view.cpp error.cpp logger.cpp \
    runtime_shutdown.cpp mr/arena_* mr/binning_* mr/cuda_async_view_* mr/cuda_memory_* mr/fixed_size_* mr/pool_* \
    mr/detail/arena_* mr/detail/binning_* mr/detail/fixed_size_* mr/detail/pool_*) |
    xargs -P "$(nproc)" -I FILE sh -c "$CXX $flags -c '$RMM_SOURCE/cpp/src/FILE' -o $work/objects/\$(basename FILE .cpp).o" ||
    exit 1
  $CXX -shared -o "$work/site/librmm/lib64/librmm.so" "$work"/objects/*.o "$work/lib/libcudart.so.13" \
    "$work/site/rapids_logger/lib64/librapids_logger.so" -Wl,-soname,librmm.so '-Wl,-rpath,$ORIGIN' -Wl,-z,defs || exit 1
  CUDART=$work/lib/libcudart.so.13 RMM_INCLUDE=$include \
    sh "$top_srcdir/tests/lab/gpu/allocators/allocators.sh" rmm "$work/plugins" || exit
}

# RMM's pool gives a block to a third stream without a wait for the work of the first, when the second has merged the first
# one's list of free blocks and freed nothing since. Neither class tells of a failure of a call in a free, or with events.
if [ -n "${RMM_SOURCE-}" ]; then
  build_rmm
  kit rmm '{"kind": "arena", "maximum_size": "64MiB"}'
  kit rmm '{"kind": "pool"}' streams threads 'HIP failures'
  kit rmm_async '{}' 'HIP failures'
  logs '{"type": "rmm", "kind": "pool"}, "device"' '{"type": "rmm", "kind": "arena"}, "device"' '"rmm_async"'
  streams '{"type": "rmm", "kind": "pool"}, "device"' '{"type": "rmm", "kind": "arena"}, "device"' '"rmm_async"'
fi

# PyTorch keeps its events when the kit makes the device anew between two programs of one process, and forgets an expandable
# segment whose addresses could not be reserved only in part.
if [ -n "${TORCH-}" ]; then
  sh "$top_srcdir/tests/lab/gpu/allocators/allocators.sh" torch "$work/plugins" || exit
  kit torch '{}' streams threads
  kit torch '{"expandable_segments": true}' streams threads 'HIP failures'
  logs '"torch"' '{"type": "torch", "expandable_segments": true}'
  streams '"torch"' '{"type": "torch", "expandable_segments": true}'
fi
exit $failed
