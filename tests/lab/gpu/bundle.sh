#!/bin/sh
# SPDX-License-Identifier: MIT
#
# bundle.sh: collects what prove.sh needs on a machine that has a GPU and nothing of ours.
#
#     sh tests/lab/gpu/bundle.sh FOLDER [BUILD [TRACE…]]
#
# BUILD is where configure ran, by default build. TRACE: more logs to replay than those in tests/data. `make gpu-bundle
# BUNDLE=FOLDER TRACES="…"` does the same; it builds first, and names what it built in `programs`, `libraries` and
# `plugins`.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 FOLDER [BUILD [TRACE...]]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
build=$(cd "${2:-build}" && pwd) || exit 1
source=$(cd "$(dirname "$0")/../../.." && pwd)
shift
[ $# -eq 0 ] || shift
if [ -z "${plugins-}" ]; then
  exec "${MAKE-make}" -s -C "$build" gpu-bundle BUNDLE="$folder" TRACES="$*"
fi
if [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/tests/lab/gpu/prove.py" ]; then
  echo "bundle.sh: $folder holds something else; name an empty folder" >&2
  exit 1
fi
rm -rf "${folder:?}"/*

# built FILE: where libtool put the real one
built() {
  real=$build/$(dirname "$1")/.libs/$(basename "$1")
  [ -e "$real" ] || real=$build/$1
  echo "$real"
}

# carry FROM TO: without debug information, as far as that can be had
carry() {
  mkdir -p "$folder/$(dirname "$2")"
  cp -L "$1" "$folder/$2"
  case $(head -c 4 "$1" | tail -c 3) in
  ELF) strip -g "$folder/$2" 2>/dev/null || : ;;
  esac
}

for program in hipmm tests/lab/bench/host_malloc tests/lab/bench/metadata $programs; do carry "$(built "$program")" "$program"; done
for plugin in $plugins; do
  stem=$(basename "$plugin" .la)
  carry "$build/$(dirname "$plugin")/.libs/$stem.so" "plugins/$stem.so"
done
for library in $libraries; do
  stem=$(dirname "$library")/.libs/$(basename "$library" .la).so
  [ ! -e "$build/$stem" ] || carry "$build/$stem" "$stem"
done
for object in "$build"/tools/preload/.libs/*.so; do
  [ ! -e "$object" ] || carry "$object" "plugins/preload/$(basename "$object")"
done
carry "$source/tools/preload/sitecustomize.py" plugins/preload/python/sitecustomize.py
# By the name that programs load: links do not survive every way of copying, and two files would be two libraries.
for library in "$build"/.libs/lib*.so; do carry "$library" "lib/$(basename "$library").0"; done

# What programs are linked with, but for the C library, which the other machine's own programs need as it is.
for program in "$folder/hipmm" "$folder"/tests/*/test_* "$folder"/lib/*.so.0; do
  ldd "$program" 2>/dev/null | sed -n 's|.* => \(/.*/lib[^ /]*\) .*|\1|p'
done | sort -u | while read -r file; do
  case $(basename "$file") in
  libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libgcc_s.so.* | libhipmm*) ;;
  *) carry "$file" "lib/$(basename "$file")" ;;
  esac
done
for file in "${MIMALLOC-}" /usr/lib/*/libmimalloc.so.2 /usr/lib*/libmimalloc.so.2; do
  [ ! -e "$file" ] || { carry "$file" lib/libmimalloc.so.2 && break; }
done

# The checks of the runtime alone, which need no library of ours.
${CC-cc} -std=gnu11 -O2 -D_GNU_SOURCE -o "$folder/tests/runtimes/nvidia/gpu_smoke" "$source"/tests/runtimes/nvidia/gpu_*.c -lpthread -ldl

for file in "$source"/tests/data/*.csv.xz "$@"; do
  case $file in
  *.csv.xz) carry "$file" "traces/$(basename "$file")" ;;
  *) mkdir -p "$folder/traces" && xz -c "$file" >"$folder/traces/$(basename "$file").xz" ;;
  esac
done
for file in etc/hipmm.json tests/lab/gpu/*.py tests/lab/gpu/suites.sh tests/lab/gpu/*.[ch] tests/lab/gpu/*.cu tests/lab/gpu/allocators/*.sh \
  tests/lab/gpu/allocators/*.[ch]pp include/hipmm/*.h tests/lab/bench/*.py; do
  for found in "$source"/$file; do carry "$found" "$(dirname "$file")/$(basename "$found")"; done
done
carry "$source/tests/lab/gpu/prove.sh" prove.sh

# RMM's allocators, to be measured beside hipmm's, where RMM_INCLUDE says where RMM is; PyTorch's is built where the GPU is.
status=0
said=$(sh "$source/tests/lab/gpu/allocators/allocators.sh" rmm "$folder/allocators" 2>&1) || status=$?
case $status in
0) ;;
77) echo "bundle.sh: without RMM's allocators: $said" ;;
*) echo "$said" >&2 && exit 1 ;;
esac

# The Python package, for any CPython from 3.10 on.
include=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
(cd "$source/python" && find hipmm tests -name '*.py' -o -name '*.sh' -o -path 'hipmm/bridge/*' -type f) | while read -r file; do
  carry "$source/python/$file" "python/$file"
done
${CC-cc} -std=gnu11 -O2 -fno-plt -fPIC -fvisibility=hidden -D_GNU_SOURCE -shared -I"$source/include" -I"$include" \
  -o "$folder/python/hipmm/_hipmm.abi3.so" "$source"/python/src/*.c -L"$build/.libs" -lhipmm "-Wl,-rpath,\$ORIGIN/../../lib" ||
  { echo "bundle.sh: the Python extension needs Python's headers (Debian and Ubuntu: python3-dev)" >&2; exit 1; }
{
  git -C "$source" log -1 --format='%h %s' 2>/dev/null || echo 'not from a repository'
  "$folder/hipmm" --version 2>/dev/null || :
  echo "pool $(sh "$source/tests/lab/bench/pool_hash.sh")"
} >"$folder/version"

kib=$(du -sk "$folder" | cut -f1)
echo "$folder: $kib KiB; there: sh prove.sh"
