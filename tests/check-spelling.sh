#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The words of the documents are British English, or in tests/words.txt. Code, links, identifiers and abbreviations in capitals
# are no words. Run by `make check`. `sh tests/check-spelling.sh --apply` writes the list anew: read what it adds.
set -eu

cd "${top_srcdir:-$(dirname "$0")/..}"
. tests/support/skip.sh
command -v aspell >/dev/null && aspell dump dicts | grep -qx en_GB ||
  skip "aspell or its English dictionary is missing (Debian and Ubuntu: aspell aspell-en)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C.UTF-8
export LC_ALL

find . -maxdepth 1 -name '[CRS]*.md' >"$work/pages"
find doc etc plugins python tests tools -name '*.md' >>"$work/pages"

# A word a line: blocks of code, code within a text, comments, links and identifiers are left out.
while read -r page; do
  awk '
    /^ *```/ { inside = !inside; next }
    !inside { text = text $0 "\n" }
    END {
      gsub(/<!--([^-]|-[^-]|--[^>])*-->/, "", text)
      n = split(text, parts, "`")
      for (i = 1; i <= n; i += 2) printf "%s ", parts[i]
    }' "$page" | sed -E 's/\]\([^)]*\)/ /g; s/[^ ]* ?…( ?[^ |]+){0,2}/ /g; s/[][("—–|*…,;!?]/ /g; s/\)/ /g' | tr -s ' ' '\n' |
    sed -E "s/^['‘]+//; s/[.:'’]+\$//; s/['’]s?\$//; /[^[:alpha:]'’-]/d" | tr -- '-' '\n' |
    grep -Ev '^[[:upper:]]+s?$|[[:lower:]][[:upper:]]' | sed "s|\$| $page|" || true
done <"$work/pages" | sort -u >"$work/words"
cut -d' ' -f1 "$work/words" | sort -u | aspell list --lang=en_GB --encoding=utf-8 | sort -u >"$work/unknown"
[ "$(wc -l <"$work/words")" -gt 1000 ] || { echo "the pages have few words" && exit 1; }

if [ "${1-}" = --apply ]; then
  cp "$work/unknown" tests/words.txt
  exit
fi
comm -23 "$work/unknown" tests/words.txt | while read -r word; do
  echo "$(sed -n "s/^$word //p" "$work/words" | tr '\n' ' '): \"$word\": correct it, or add it to tests/words.txt"
done >"$work/bad"
comm -13 "$work/unknown" tests/words.txt | sed 's|.*|tests/words.txt: no page has "&"|' >>"$work/bad"
cat "$work/bad"
[ ! -s "$work/bad" ]
