#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the documents name is there: files and folders of the tree, links and their anchors, functions, structs, enums, constants
# and variables of hipmm. Run by `make check`.
set -eu

cd "${top_srcdir:?set it to the source folder}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find . -maxdepth 1 -name '[CRS]*.md' >"$work/pages"
find doc etc plugins python tests tools -name '*.md' >>"$work/pages"

find core include plugins python tests tools configure.ac -name '*.[achps]*' -exec cat {} + |
  grep -aoE 'hipmm_\w+|HIPMM_\w+' | sort -u >"$work/names"
echo HIPMM_MAJOR >>"$work/names" # in doc/abi.md, for a number

while read -r page; do
  # Links within the tree. An anchor is a heading in lower case, without marks.
  grep -oE '\]\([^):]+\)' "$page" | tr -d '()]' | while read -r link; do
    file=$page
    [ -z "${link%%#*}" ] || file=$(dirname "$page")/${link%%#*}
    [ -e "$file" ] || echo "$page links to $link, which is not there"
    [ "${link%%#*}" = "$link" ] || sed -n 's/^##* //p' "$file" | tr '[:upper:] ' '[:lower:]-' | sed 's/[^a-z0-9_-]//g' |
      grep -qx -- "${link#*#}" || echo "$page links to $link, which is no heading"
  done

  [ "$page" != ./CHANGELOG.md ] || continue # it names what went, too
  # Files, also by the beginning of their names: `tests/unit/test_text`, `tests/fault/functions_*.c`.
  grep -oE '(^|[ `(])(core|doc|etc|include|m4|plugins|python|tests|tools)/[A-Za-z0-9_./-]+' "$page" | tr -d ' `(' | sed 's/[.]$//' |
    sort -u | while read -r file; do
    ls -d "$file"* >"$work/found" 2>&1 || echo "$page names $file, which is not there"
  done
  grep -oE 'hipmm_[a-z_0-9]+\(|(struct|enum) hipmm_[a-z_]+|HIPMM_[A-Z_0-9]+' "$page" | sed 's/.* //; s/($//' | sort -u |
    grep -vxFf "$work/names" | sed "s|^|$page names |; s|$|, which is not there|" || true
done <"$work/pages" >"$work/bad"

# The site's navigation has each page of doc/.
for page in doc/*.md; do
  grep -qx -- "$page" etc/site/pages || echo "etc/site/pages lacks $page: put it where readers will look for it"
done >>"$work/bad"

# Of a clone: the subjects of commits, and whether what waits for the first release still does.
if [ -e .git ] && command -v git >/dev/null; then
  git log --since=2026-11-28 --no-merges --format='%at %h %s' 2>/dev/null | awk '$1 >= 1795910400 { # 2026-11-29
    subject = substr($0, length($1 $2) + 3)
    if (length(subject) > 72) print "commit " $2 ": a subject has at most 72 characters (CONTRIBUTING.md): " subject
  }' >>"$work/bad"
  [ -z "$(git tag -l 'v*' 2>/dev/null)" ] || ! grep -n 'There is no release yet' doc/abi.md ||
    echo "doc/abi.md speaks of a release that is there" >>"$work/bad"
fi
cat "$work/bad"
[ ! -s "$work/bad" ]
