#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Python files are Python. Run by `make check`.
set -eu

command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$top_srcdir"/etc/python/*.py "$top_srcdir"/tests/gpu/*.py; do
  cp "$file" "$work/"
  python3 -m py_compile "$work/${file##*/}"
done
