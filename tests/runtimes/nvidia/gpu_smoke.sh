#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The nvidia runtime on a real GPU, by hand: tests/runtimes/nvidia/gpu_smoke.sh [PATH/nvidia.so]. Needs a C compiler and a driver;
# the library can come from another machine. CUDART=PATH names CUDA's runtime, to check that the two get on.
# Ends with 0 (all well), 77 (no GPU here) or 1.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
library=${1-${top_builddir-$here/../../build}/plugins/runtimes/nvidia/.libs/nvidia.so}
[ -e "$library" ] || { echo "$library is not there; build it, or name it: $0 PATH/nvidia.so"; exit 1; }
[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || { echo "no NVIDIA GPU here"; exit 77; }
library=$(cd "$(dirname "$library")" && pwd)/$(basename "$library")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

${CC-cc} -std=gnu11 -O2 -D_GNU_SOURCE -o "$work/gpu_smoke" "$here"/gpu_*.c -lpthread -ldl
"$work/gpu_smoke" "$library"
