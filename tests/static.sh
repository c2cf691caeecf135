#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Static analysis: clang-tidy 14, as .clang-tidy says, and cppcheck find nothing in core, plugins, tools and python/src,
# and the patches of tests/lab/mutation apply.
# Run by .ci/run; `make check` does not need the tools. The nvidia runtime is looked at where CUDA's headers are.
set -eu
cd "$(dirname "$0")/.."

for tool in clang-tidy-14 cppcheck; do
  command -v $tool >/dev/null || { echo "$tool is not installed (Debian: clang-tidy-14, cppcheck)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(getconf _NPROCESSORS_ONLN)
cuda=${CUDA_HOME:-/usr/local/cuda}/include
printf '#define %s\n' 'PACKAGE_VERSION "0"' 'HIPMM_NVIDIA "no: missing"' >"$work/config.h"
: >"$work/functions.inc" # which make writes for tools/preload/frameworks.c

python=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null || :)
find core plugins tools python/src -name '*.c' | sort >"$work/sources"
[ -f "$python/Python.h" ] || sed -i '\|^python/src/|d' "$work/sources"
[ -f "$cuda/cuda.h" ] || sed -i '\|^plugins/runtimes/nvidia/|d' "$work/sources"
set -- -D_GNU_SOURCE -D__HIP_PLATFORM_AMD__ '-DHIPMM_PLUGIN_DIR=""' '-DHIPMM_SYSCONFDIR=""' '-DHIPMM_PLUGIN_ABI_TEXT=""' \
  "-I$PWD/include" "-I$work"

printf '%s\n' -std=gnu11 "$@" "-I$cuda" -isystem "$python" >"$work/compile_flags.txt"
tidy=0
xargs -P "$jobs" -n 8 clang-tidy-14 --quiet -p "$work" <"$work/sources" >"$work/tidy" 2>"$work/errors" || tidy=$?
grep -A 3 -E '(error|warning): ' "$work/tidy" >"$work/found" || true
[ $tidy = 0 ] || [ -s "$work/found" ] || { cat "$work/errors"; echo "clang-tidy-14 ended with $tidy"; } >>"$work/found"

# What cppcheck 2.10 does not follow: output parameters that are set on success alone, and lists of macros.
cppcheck --quiet -j "$jobs" --std=c11 --enable=warning,performance,portability --inline-suppr --suppress=uninitvar \
  --suppress=uninitStructMember --suppress=preprocessorErrorDirective '-Djson_object_foreach(object,key,value)=for(;;)' "$@" core plugins tools python/src \
  >>"$work/found" 2>&1 || echo "cppcheck ended with $?" >>"$work/found"

# The defects that tests/lab/mutation/defects.py puts back still apply.
for defect in tests/lab/mutation/defects/*.patch; do
  git apply --check "$defect" >>"$work/found" 2>&1 || true
done

[ ! -s "$work/found" ] || { cat "$work/found"; exit 1; }
for folder in plugins/runtimes/nvidia python/src; do
  grep -q "^$folder/" "$work/sources" || echo "$folder was left out: it needs headers that are not here"
done
echo "static analysis of $(wc -l <"$work/sources") files: nothing found"
