#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The tests of the Python package, over the software device: the package of the sources, with an extension that is linked
# to this build's libhipmm, in a virtual environment of the build folder with NumPy and pytest from PyPI. Run by
# `make check`. Arguments go to pytest. PYTHON=/usr/local/bin/python3.13 names another Python, EXTENSION_CFLAGS more flags
# for the extension.
set -eu

: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"

[ -z "${SANITIZER_FLAGS-}" ] || skip "python3 has no sanitizers"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"
python=${PYTHON-python3}
command -v "$python" >/dev/null || skip "no $python here"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "$python is older than 3.10"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$include/Python.h" ] || skip "Python's headers are missing (Debian and Ubuntu: python3-dev)"
mkdir -p "$top_builddir/python"
work=$(cd "$top_builddir/python" && pwd)

# ---- The virtual environment ----

venv=$work/venv-$("$python" -c 'import sys; print(sys.version.partition(" ")[0])')
packages="numpy pytest distributed" # what is missing of the last is for one test alone
if [ "$(cat "$venv/complete" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" || skip "$python makes no virtual environment (Debian and Ubuntu: python3-venv)"
  timeout 120 "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 1 numpy pytest ||
    skip "NumPy and pytest could not be had from PyPI"
  timeout 120 "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 1 distributed &&
    echo "$packages" >"$venv/complete"
fi

# ---- The package ----

package=$work/package/hipmm
rm -rf "$work/package"
mkdir -p "$package/bin"
ln -s "$top_srcdir"/python/hipmm/* "$package/"
ln -s "$top_builddir/hipmm" "$package/bin/hipmm"
# shellcheck disable=SC2086 # CC may be several words
${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror -fno-plt -fPIC -fvisibility=hidden -D_GNU_SOURCE -shared \
  -I"$top_srcdir/include" -I"$include" -o "$package/_hipmm.abi3.so" "$top_srcdir"/python/src/*.c \
  ${EXTENSION_CFLAGS-} -L"$top_builddir/.libs" -lhipmm -Wl,-rpath,"$(cd "$top_builddir" && pwd)/.libs"

# ---- The tests ----

unset HIPMM_CONFIG
PYTHONPATH=$(cd "$work/package" && pwd)
HIPMM_RUNTIME=software PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH HIPMM_RUNTIME PYTHONDONTWRITEBYTECODE
cd "$work"
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir "$top_srcdir/python/tests" \
  "$top_srcdir/python/tests" "$@"
