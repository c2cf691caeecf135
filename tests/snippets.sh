#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every block of code of every page does what the page says, with hipmm as `make install` leaves it, on the software
# device (snippets.py says how). Run by `make check`, which sets the variables in capitals and the two tops.
set -eu
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"
command -v python3 >/dev/null || skip "no python3 here"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "python3 is older than 3.10"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset MAKEFLAGS MFLAGS
"${MAKE:-make}" -C "$top_builddir" install DESTDIR="$root" >"$root/install.log" 2>&1 || {
  cat "$root/install.log"
  exit 1
}
folder() {
  echo "$root$(${PKG_CONFIG:-pkg-config} --variable="$1" "$(find "$root" -name hipmm.pc)")"
}
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name hipmm.pc)")
PKG_CONFIG_SYSROOT_DIR=$root
LD_LIBRARY_PATH=$(folder libdir)
PATH=$(dirname "$(find "$root" -path '*/bin/hipmm')"):$root/python/bin:$PATH
HIPMM_PLUGIN_PATH=$(dirname "$(find "$root" -name pool.so)")

# Python's package, with an extension that is linked to this hipmm, if Python's headers are here.
mkdir -p "$root/python/bin" "$root/python/hipmm/bin"
ln -s "$(command -v python3)" "$root/python/bin/python"
include=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
if [ -e "$include/Python.h" ]; then
  ln -s "$top_srcdir"/python/hipmm/* "$root/python/hipmm/"
  ln -s "$(command -v hipmm)" "$root/python/hipmm/bin/hipmm"
  # shellcheck disable=SC2086 # CC may be several words
  ${CC:-cc} -std=c11 -fPIC -fvisibility=hidden -D_GNU_SOURCE -shared -I"$top_srcdir/include" -I"$include" \
    -o "$root/python/hipmm/_hipmm.abi3.so" "$top_srcdir"/python/src/*.c -L"$LD_LIBRARY_PATH" -lhipmm
fi
for package in torch cupy numba cuda; do # stand-ins
  mkdir -p "$root/python/$package"
  printf 'import fakes\nfakes.install("%s")\n' $package >"$root/python/$package/__init__.py"
done
PYTHONPATH=$root/python:$top_srcdir/python/tests PYTHONDONTWRITEBYTECODE=1 PYTHONUTF8=1
export LD_LIBRARY_PATH PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR HIPMM_PLUGIN_PATH
export PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONUTF8
python3 "$top_srcdir/tests/snippets.py" "$top_srcdir" "$root" "$@"
