#!/bin/sh
# SPDX-License-Identifier: MIT
#
# All C and C++ sources are as clang-format 14 and .clang-format write them; other versions differ and are not asked.
# `make check` runs it to compare, `make format` with --apply.
set -eu

cd "${top_srcdir:-$(dirname "$0")/..}"

formatter=
for candidate in clang-format-14 clang-format; do
  case $($candidate --version 2>/dev/null) in
  *"version 14."*) formatter=$candidate && break ;;
  esac
done
[ -n "$formatter" ] || { echo "clang-format 14 is not installed (Debian and Ubuntu: clang-format-14)"; exit 77; }

case ${1-} in
--apply) mode=-i ;;
*) mode='--dry-run --Werror' ;;
esac
find include core plugins tools python tests etc \( -name '*.[ch]' -o -name '*.[ch]pp' \) -exec $formatter $mode --style=file {} +
