#!/bin/sh
# SPDX-License-Identifier: MIT
#
# page.sh FOLDER PAGE OUTPUT: makes a manual page of FOLDER/PAGE.in. Called by make, which sets the variables. HIPMM is a
# hipmm that runs here, or empty: then the page refers to the command instead.
set -eu
folder=$1 page=$2 output=$3
trap 'rm -f "$output.part" "$output.tmp"' EXIT
unset HIPMM_CONFIG HIPMM_RUNTIME HIPMM_LOG TERM
LC_ALL=C COLUMNS=9999
export LC_ALL COLUMNS
: >"$output.part"

commands() {
  [ "$HIPMM" ] || {
    printf '%s\n' '`hipmm \-\-help` lists the sub\-commands, `hipmm COMMAND \-\-help` the options of each.'
    return
  }
  "$HIPMM" --help >"$output.tmp"
  for command in $($AWK '/^  [a-z]/ { print $1 }' "$output.tmp"); do
    "$HIPMM" "$command" --help >"$output.tmp"
    $AWK -v name="$command" -f "$folder/roff.awk" -f "$folder/commands.awk" "$output.tmp"
  done
}

# A graph that adds no folder keeps ./hipmm.json out of it.
types() {
  [ "$HIPMM" ] || {
    printf '%s\n' '`hipmm describe` lists the types, `hipmm describe TYPE` the options of one.'
    return
  }
  echo '{"stack": ["device"]}' >"$output.tmp"
  for type in $TYPES; do
    type=${type##*/}
    "$HIPMM" describe --config "$output.tmp" --man "${type%.la}"
  done
}

# A source file as it stands, for a block of examples. Its licence line is not part of the example.
example() {
  $SED -e '/SPDX-License-Identifier/d' -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/" "$1"
}

case $page in
hipmm.1) commands >"$output.part" ;;
hipmm.json.5) types >"$output.part" ;;
hipmm-plugin.7) example "$folder/../../tests/example/forward.c" >"$output.part" ;;
esac

# roff PATH: its hyphens are not to be broken at
roff() {
  printf '%s\n' "$1" | $SED -e 's/[\\&|]/\\&/g' -e 's/-/\\\\-/g'
}
$SED -e "s|@VERSION@|$VERSION|g" -e "s|@PLUGINDIR@|$(roff "$PLUGINDIR")|g" -e "s|@SYSCONFDIR@|$(roff "$SYSCONFDIR")|g" \
  -e "s|@DOCDIR@|$(roff "$DOCDIR")|g" \
  -e "/^@generated@\$/{" -e "r $output.part" -e d -e '}' -e "/^@example@\$/{" -e "r $output.part" -e d -e '}' "$folder/$page.in" >"$output.tmp"
mv "$output.tmp" "$output"
