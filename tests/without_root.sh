#!/bin/sh
# SPDX-License-Identifier: MIT
#
# README.md's installation without root, by its own lines, and its program by its compile line. It installs into the home
# folder. Run by .ci/run as an ordinary user of a bare Debian, in a fresh clone.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What the paragraph has between `…`: commands, and an argument of the compiler
awk 'BEGIN { RS = "" } /^Without root/' README.md | tr '\n' ' ' | grep -o '`[^`]*`' | tr -d '`' >"$work/said"
commands=$(grep -E '^([A-Z_]+=|make |export )' "$work/said" || :)
argument=$(grep '^-Wl,' "$work/said" || :)
compile=$(grep '^cc program.c ' README.md || :)
case "$commands" in
*etc/quickstart*"make "*install*PKG_CONFIG_PATH=*) ;;
*) echo 'README.md has no paragraph "Without root" with commands between `…`' && exit 1 ;;
esac
sed -n '/^## Embed it/,/^```$/p' README.md | sed '1,/^```c$/d; /^```$/d' >"$work/program.c"
cp etc/hipmm.json "$work"

echo "$commands"
eval "$commands"
cd "$work"
echo "$compile $argument"
eval "$compile $argument"
HIPMM_RUNTIME=software ./program
