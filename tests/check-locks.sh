#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/lab/locks/lock_ranks.h is the table of locks: each file of the core, the plugins and tools that takes a lock has a
# row there, each row is of a file that takes one, and the table in doc/locks.md says the same. `--apply` writes
# that table. A build with --enable-checks asserts the order itself. Run by `make check`.
set -eu

: "${top_srcdir:=.}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$top_srcdir"
ranks=tests/lab/locks/lock_ranks.h
page=doc/locks.md
bad=0

# ---- Files ----

takes='pthread_(mutex|rwlock)_(lock|timedlock|trylock|rdlock|wrlock)\(|pthread_once\(|pthread_cond_wait\(|lock_order_enter_program\('
find core plugins tools -name '*.[ch]' ! -path 'tools/command/*' ! -path core/base/lock_order.h |
  xargs grep -lE "$takes" | sort >"$work/takes"
sed -n 's/^  {"\([^"]*\)", .*/\1/p' "$ranks" | sort -u >"$work/rows"
[ "$(wc -l <"$work/rows")" -gt 50 ] || { echo "found too few rows in $ranks"; exit 1; }
comm -23 "$work/takes" "$work/rows" >"$work/missing"
[ ! -s "$work/missing" ] || { echo "these files take locks or call the program, and have no row in $ranks:"; cat "$work/missing"; bad=1; }
grep -vxFf "$work/takes" "$work/rows" | while read -r file; do
  grep -qE 'spin_lock|biased_lock' "$file" 2>/dev/null || echo "$ranks has a row for $file, which takes no lock"
done >"$work/surplus"
[ ! -s "$work/surplus" ] || { cat "$work/surplus"; bad=1; }

# ---- The table of the page ----

awk '
  /^  LOCK_[A-Z_]+,$/ { sub(/,/, ""); order[++n] = $1 }
  /^  \[LOCK_/ {
    rank = $1
    gsub(/[][]/, "", rank)
    split($0, part, "\"")
    name[rank] = part[2]
    protects[rank] = part[4]
  }
  /^  \{"/ && /LOCK_/ && !/LOCK_UNCHECKED/ {
    split($0, part, "\"")
    file = part[2]
    if (!match($0, /LOCK_[A-Z_]+, (0|LOCK_[A-Z_| ]+)\}/)) next
    rank = substr($0, RSTART, RLENGTH)
    sub(/,.*/, "", rank)
    if (seen[rank, file]++) next
    folder = short = file
    sub(/\/[^\/]*$/, "/", folder)
    sub(/.*\//, "", short)
    shown = folder == last[rank] ? short : file
    last[rank] = folder
    where[rank] = where[rank] (where[rank] ? ", " : "") "`" shown "`"
  }
  END {
    print "| # | lock | where | protects; held around |"
    print "|--:|---|---|---|"
    for (i = 1; i <= n; i++)
      print "| " i " | " name[order[i]] " | " where[order[i]] " | " protects[order[i]] " |"
  }' "$ranks" >"$work/table"
sed -n '/^| # | lock |/,/^$/p' "$page" | sed '/^$/d' >"$work/shown"
if [ "${1-}" = --apply ]; then
  awk -v table="$work/table" '
    /^\| # \| lock \|/ { while ((getline line < table) > 0) print line; skips = 1 }
    /^$/ { skips = 0 }
    !skips' "$page" >"$work/page"
  cat "$work/page" >"$page"
elif ! cmp -s "$work/table" "$work/shown"; then
  echo "the table of locks in $page is not that of $ranks; 'sh tests/check-locks.sh --apply' writes it:"
  diff "$work/shown" "$work/table" || :
  bad=1
fi
exit $bad
