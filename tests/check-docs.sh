#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the documents name is there: files and folders of the tree, links and their anchors, functions, structs, enums, constants
# and variables of hipmm, and the messages that doc/trouble.md quotes. Figures say when they were measured and, of an older pool,
# that they are. Run by `make check`.
set -eu

cd "${top_srcdir:?set it to the source folder}"
. tests/support/skip.sh
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

# A message is a list item that begins with "* `"; each "…" in it stands for any text. It must be in one string of the sources,
# where a string can continue in the next literal. Each warning and error of the log has an entry.
find core plugins m4 python/hipmm python/src tools etc/quickstart -type f -exec cat {} + |
  sed -z 's/\\"/\x01/g; s/"[[:space:]]*\(PRI[a-z]*[0-9]*\)\{0,1\}[[:space:]]*f\{0,1\}"//g; s/,\n *"/, "/g; s/\x01/"/g' >"$work/strings"
sed -n 's/^\* `\(.*\)`$/\1/p' doc/trouble.md >"$work/messages"
[ -s "$work/messages" ] || echo "doc/trouble.md quotes no message" >>"$work/bad"
while read -r message; do
  pattern=$(printf '%s\n' "$message" | sed 's/[][\.*^$]/\\&/g; s/^…//; s/…$//; s/…/.*/g')
  grep -qa -e "$pattern" "$work/strings" || echo "doc/trouble.md quotes what no source says: $message" >>"$work/bad"
  printf '%s\n' "$pattern" >>"$work/patterns"
done <"$work/messages"
grep -aE 'HIPMM_LOG_(WARNING|ERROR),.*"[^"]*[a-z]+ [a-z]+' "$work/strings" | grep -av -e '"%s", ' -f "$work/patterns" |
  sed 's/^ */doc\/trouble.md has no entry for /' >>"$work/bad" || true

# doc/performance.md: "`FILE`: `LINE`" quotes a bound that a test has; and each measurement is of this pool, or says otherwise.
grep -oE '`tests/cmd/[a-z_]*\.sh`: `[^`]*`' doc/performance.md | tr -d '`' | while IFS= read -r quoted; do
  grep -qxF -- "${quoted#*: }" "${quoted%%: *}" || echo "doc/performance.md quotes ${quoted#*: }, which ${quoted%%: *} lacks"
done >>"$work/bad"
pool=$(sh tests/lab/bench/pool_hash.sh)
grep '^Measured on .*runtime `' doc/performance.md | while IFS= read -r line; do
  case $line in
  *"pool \`$pool\`, of an older pool"*) echo "doc/performance.md: this measurement is of today's pool, and says otherwise: $line" ;;
  *"pool \`$pool\`"* | *", of an older pool"*) ;;
  *) echo "doc/performance.md: this measurement must say \", of an older pool\" (today's is $pool): $line" ;;
  esac
done >>"$work/bad"
! installed python3 "the tables of other allocators" || python3 -B tests/lab/bench/peers.py --check 2>>"$work/bad" || true

# doc/trust.md: each row of its table has a command and a day.
sed -n '/^| promise /,/^$/p' doc/trust.md | sed 1,2d | grep -v '`.* | .*20[0-9][0-9]-[01][0-9]-[0-3][0-9]' |
  sed 's/^/doc\/trust.md: this row has no command, or no day: /' >>"$work/bad" || true

# What is skipped is counted (tests/README.md): no script asks in silence whether a program is there.
find tests python/tests -name '*.sh' ! -name skip.sh ! -name check-docs.sh -exec grep -Hn 'command -v' {} + |
  grep -vE '\$\(command|\|\| *(skip|leave|leave_out|why=|\{ echo .*exit (1|77)|$)' |
  sed 's/$/: use skip() or installed() of tests\/support\/skip.sh/' >>"$work/bad" || true

# The site's navigation has each page of doc/.
for page in doc/*.md; do
  grep -qx -- "$page" etc/site/pages || echo "etc/site/pages lacks $page: put it where readers will look for it"
done >>"$work/bad"

grep -v '^#' etc/site/pages | sort | uniq -d | sed 's/^/etc\/site\/pages has this twice: /' >>"$work/bad"

# Of a clone: the subjects of commits, and whether what waits for the first release still does.
if is_clone . "the subjects of commits"; then
  git log --since=2026-11-28 --no-merges --format='%at %h %s' 2>/dev/null | awk '$1 >= 1795910400 { # 2026-11-29
    subject = substr($0, length($1 $2) + 3)
    if (length(subject) > 72) print "commit " $2 ": a subject has at most 72 characters (CONTRIBUTING.md): " subject
  }' >>"$work/bad"
  [ -z "$(git tag -l 'v*' 2>/dev/null)" ] ||
    grep -Hn 'There is no release' README.md doc/*.md | sed 's/$/: there is one/' >>"$work/bad"
fi

# doc/support.md is the table that CI takes its versions from.
! installed python3 "the table behind doc/support.md" || PYTHONDONTWRITEBYTECODE=1 python3 etc/release/support.py check >>"$work/bad" || true
# The figures of README.md's first table come from doc/performance.md.
sed -n '/^| NVIDIA /,/^$/p' README.md | grep -oE '[0-9.,]+ ns|[0-9]\.[0-9]{3}' | sed 's/ ns//' >"$work/figures"
[ -s "$work/figures" ] || echo "README.md has no figures in its first table" >>"$work/bad"
while read -r figure; do
  grep -qwF -- "$figure" doc/performance.md || echo "README.md has the figure $figure, doc/performance.md does not" >>"$work/bad"
done <"$work/figures"
cat "$work/bad"
[ ! -s "$work/bad" ]
