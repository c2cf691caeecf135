#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Python files are Python; and those of etc/python serve what their framework asks for, over the software device, with
# a framework and a driver that stand in for the real ones. Run by `make check`.
set -eu

command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
here=$top_srcdir/tests/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$top_srcdir"/etc/python/*.py "$top_srcdir"/tests/gpu/*.py "$here"/*.py; do
  cp "$file" "$work/"
  python3 -m py_compile "$work/${file##*/}"
done

HIPMM_LIBRARY=$top_builddir/.libs/libhipmm.so
[ -e "$HIPMM_LIBRARY" ] || { echo "no shared library was built"; exit 77; }
[ -z "${SANITIZER_FLAGS-}" ] || { echo "python3 has no sanitizers"; exit 77; }
HIPMM_CONFIG=$work/hipmm.json
echo '{"runtime": "software", "stack": ["pool", "device"]}' >"$HIPMM_CONFIG"
PYTHONPATH=$top_srcdir/etc/python:$here
LD_LIBRARY_PATH=$top_builddir/tests/python/.libs${LD_LIBRARY_PATH+:$LD_LIBRARY_PATH}
export HIPMM_LIBRARY HIPMM_CONFIG PYTHONPATH LD_LIBRARY_PATH
cd "$work"
for framework in torch cupy numba; do
  echo "$framework:"
  python3 -B "$here/test_$framework.py"
done
