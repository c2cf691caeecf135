#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every function that the core looks for in a runtime is exported by nvidia.so. Run by `make check`.
set -eu

library=$top_builddir/plugins/runtimes/nvidia/.libs/nvidia.so
[ -e "$library" ] || { echo "the nvidia runtime was not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^ *{"\(hip[A-Z][A-Za-z0-9]*\)", &.*/\1/p; s/^ *X(\([A-Z][A-Za-z0-9]*\), .*/hip\1/p' "$top_srcdir/core/runtime/hip_table.c" | sort -u >"$work/wanted"
${NM:-nm} -D -P --defined-only "$library" | awk '{ print $1 }' | sort -u >"$work/exported"
[ "$(wc -l <"$work/wanted")" -gt 40 ] || { echo "found too few functions in core/runtime/hip_table.c"; exit 1; }
missing=$(comm -23 "$work/wanted" "$work/exported")
[ -z "$missing" ] || { echo "$library does not export:" $missing; exit 1; }
