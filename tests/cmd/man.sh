#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The manual pages: they document every sub-command, type and variable, and roff accepts them. `plugins` is the list of
# plugins that were built.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
: "${plugins:?set it to the list of plugins}"
pages=$top_builddir/doc/man
HIPMM_PLUGIN_PATH=$top_builddir/plugins

# section PAGE NAME: the subsection of that name, without its heading
section() {
  awk -v heading=".SS $2" '/^\.S[HS]/ { inside = $0 == heading; next } inside' "$1"
}

# has TEXT WHAT: a text is in $work/section
has() {
  grep -qF -- "$1" "$work/section" || fail "the manual lacks $2"
}

# reads FILE: roff prints no warning, and the file is ASCII
reads() {
  [ -s "$1" ] || fail "$1 is missing or empty"
  ! grep -n '[^ -~]' "$1" || fail "$1 is not ASCII"
  ! grep -n '@[A-Z]*@\|@generated@' "$1" || fail "$1 is not filled in"
  installed groff "whether groff reads $1" || return 0
  groff -man -Tutf8 -ww "$1" >"$work/page" 2>"$work/warnings" || fail "groff cannot read $1"
  [ ! -s "$work/warnings" ] || {
    fail "groff warns of $1"
    sed 's/^/  /' "$work/warnings"
  }
  [ -s "$work/page" ] || fail "groff makes nothing of $1"
}

for page in hipmm.1 hipmm.json.5 hipmm-plugin.7; do reads "$pages/$page"; done

# Section 3 has a page, or a link to one, for each function that libhipmm exports, and for each that a header defines inline. The
# first comment of umf.h, which needs UMF's headers, is all its documentation.
pages3=$pages/man3
cat "$top_srcdir/core/libhipmm.map" "$top_srcdir"/include/hipmm/[!u]*.h | grep -oE '^ +hipmm_\w+;|^(HIPMM_MUST_CHECK )?static inline .*\(' |
  grep -oE 'hipmm_\w+[;(]$' | tr -d ';(' | sort -u >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 200 ] || fail "the map and the headers name few functions"
while read -r name; do
  page=$pages3/$name.3
  [ -s "$page" ] || { fail "there is no page of $name" && continue; }
  link=$(sed -n 's/^\.so man3\///p' "$page")
  page=$pages3/${link:-$name.3}
  grep -q "^[^.]*$name\b.* .- ." "$page" || fail "$page does not name $name"
  grep -q "$name(" "$page" || fail "$page does not declare $name"
done <"$work/functions"
grep -L '^\.so ' "$pages3"/*.3 | xargs cat >"$work/all.3"
reads "$work/all.3"

# hipmm.1 has the sub-commands of the usage, in their order, with all options.
run 0 --help
awk '/^  [a-z]/ { print $1 }' "$work/out" >"$work/commands"
[ -s "$work/commands" ] || fail "hipmm --help lists no command"
sed -n 's/^\.SS //p' "$pages/hipmm.1" | diff "$work/commands" - || fail "hipmm.1 has other commands than hipmm --help"
while read -r command; do
  run 0 "$command" --help
  section "$pages/hipmm.1" "$command" >"$work/section"
  for option in $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' "$work/out"); do
    has ".B $(echo "$option" | sed 's/-/\\-/g')" "$option of hipmm $command"
  done
done <"$work/commands"
# HIPMM_RUN_* are between `hipmm run` and what it starts.
for variable in $(sed -n 's/.*environment_get("\([A-Z_]*\)").*/\1/p' "$top_srcdir"/core/*.c "$top_srcdir"/core/*/*.c | grep -v ^HIPMM_RUN_); do
  grep -q "^\.B $variable\$" "$pages/hipmm.1" || fail "hipmm.1 lacks the environment variable $variable"
done

# hipmm.json.5 has every type that was built, with every option, field, value and action.
for plugin in $plugins; do
  type=${plugin##*/} type=${type%.la}
  echo "$type" >>"$work/types"
  run 0 describe --json "$type"
  section "$pages/hipmm.json.5" "$type" >"$work/section"
  [ -s "$work/section" ] || fail "hipmm.json.5 lacks the type $type"
  for name in $(sed -n 's/^ *"name": "\(.*\)",*$/\1/p' "$work/out"); do
    grep -q "^.fB\([a-z_]*\[\]\.\)*$name.fR" "$work/section" || fail "hipmm.json.5 lacks $name of $type"
    echo "$name" >>"$work/names"
  done
done
[ "$(wc -l <"$work/names")" -gt "$(wc -l <"$work/types")" ] || fail "hipmm describe --json names no options"
section "$pages/hipmm.json.5" pool >"$work/section"
has '\fBmaximum_size\fR (bytes or %; default unlimited; at least initial_size, or unlimited' "how large a pool may be"
section "$pages/hipmm.json.5" binning >"$work/section"
has '\fBbins[].size\fR (bytes; required; 1 to 1024GiB' "the size of a bin"
for key in '$schema' version runtime plugin_path report current_device resources devices stack; do
  grep -q "^\.B $key\$" "$pages/hipmm.json.5" || fail "hipmm.json.5 lacks the key $key"
done

# Other plugins get a page in the same way; so do all at once.
HIPMM_PLUGIN_PATH=$top_builddir/tests/cmd/.libs:$top_builddir/plugins
run 0 describe --man sample
prints '^\.SS sample$'
prints '^Whether it talks, in d\\\[u00E9]cibels \\\[u2013] at 20 \\\[u00B0]C\.$' # letters that are not ASCII
prints '^.fBseparator.fR (string; default \\(dq\\(rsu0009\\(dq)$' # a tab
printf '.TH SAMPLE 5\n.SH TYPES\n' | cat - "$work/out" >"$work/sample.5"
reads "$work/sample.5"
run 0 describe --man
for type in sample $(cat "$work/types"); do prints "^\.SS $type\$"; done
run 2 describe --man --json pool
says '^hipmm: describe: --json and --man exclude each other$'

# Where no hipmm runs, as when cross-compiling, the pages refer to the command.
for page in hipmm.1 hipmm.json.5; do
  HIPMM='' AWK=awk SED=sed VERSION=1 PLUGINDIR='/a-b/c&d' SYSCONFDIR=/etc DOCDIR=/doc TYPES=$plugins \
    sh "$top_srcdir/doc/man/page.sh" "$top_srcdir/doc/man" $page "$work/$page" || fail "page.sh needs a hipmm for $page"
  reads "$work/$page"
  ! grep -q '^\.SS pool' "$work/$page" || fail "$page has words of a command that is not there"
done
grep -qF '/a\-b/c&d' "$work/hipmm.1" || fail "hipmm.1 does not say where plugins are"

finish
