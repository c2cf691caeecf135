#!/bin/sh
# SPDX-License-Identifier: MIT
#
# doc/memory-order.md argues the order of each atomic variable: none is missing there, none is stale, and the orders are those
# of the code. A copy of the tree with a new variable, and one with another order, are noticed. Run by `make check`.
set -eu
: "${top_srcdir:?set it to the source folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
command -v python3 >/dev/null || skip "no python3 here"
cd "$top_srcdir"
python3 tests/atomics.py

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/core/base" "$work/plugins" "$work/tools" "$work/doc"
# says PATTERN CODE: the page, for a tree of this file alone, is wrong in that way
says() {
  printf '%s\n' "$2" >"$work/core/base/callers.c"
  (cd "$work" && python3 "$OLDPWD/tests/atomics.py") >"$work/out" && { echo "nothing is wrong with $2" && exit 1; }
  grep -q "$1" "$work/out" || { cat "$work/out" && echo "it does not say $1" && exit 1; }
}
cp doc/memory-order.md "$work/doc/"
says 'core/base/callers: the page lacks `fresh` (seq_cst)' 'int f(void) { return atomic_load(&a[b[1]]->fresh); }'
says 'core/base/callers: inside: the page says .*, the code relaxed' 'int f(void) { return __atomic_load_n(&c.inside, __ATOMIC_RELAXED); }'
says 'core/base/callers: the page has `refusals`, which is no atomic variable there' ''
