#!/bin/sh
# SPDX-License-Identifier: MIT
#
# doc/rmm.md, the page for those who come from RMM: every name of hipmm in its tables exists, every type that hipmm has is
# on it, and its graph is a good one. python/tests/test_differences.py tests the table of Python.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_PLUGIN_PATH=$top_builddir/plugins
page=$top_srcdir/doc/rmm.md

# All that the types have, as TYPE and TYPE.NAME; and all types but the runtimes.
"$hipmm" describe | awk '/^Runtimes/ { exit } /^  [a-z]/ { print $1 }' >types
while read -r type; do
  echo "$type"
  "$hipmm" describe "$type" | awk -v type="$type" '/^  [a-z]/ { print type "." $1 }'
done <types >known

# named NAME: whether it is there. Names of RMM's are in the first column, which nobody can check, and some in the third.
named() {
  case $1 in
  "hipmm "*) "$hipmm" ${1#hipmm } --help >help.txt 2>&1 ;;
  hipmm.*) [ -f "$top_srcdir/python/hipmm/${1#hipmm.}.py" ] || [ -d "$top_srcdir/python/hipmm/${1#hipmm.}" ] ;;
  hipmm/*.h) [ -f "$top_srcdir/include/$1" ] ;;
  "struct "* | "enum "*) grep -q "^$1 {\|^$1;" "$top_srcdir"/include/hipmm/*.h ;;
  hipmm_*"()") grep -q "^  ${1%??};\$" "$top_srcdir/core/libhipmm.map" || grep -q "inline.* \**${1%??}(" "$top_srcdir/include/hipmm/vector.h" ;;
  HIPMM_LOG) grep -rq '"HIPMM_LOG"' "$top_srcdir/core" ;;
  HIPMM_*) grep -q "^#define $1 \|^ *$1 =\|{ *$1 =" "$top_srcdir"/include/hipmm/*.h ;;
  *) grep -Fqx "$1" known ;;
  esac
}

# names COLUMNS: what stands between backquotes in these columns, a name a line
names() {
  awk -F '|' -v columns="$1" '/^\| RMM in Python/ { python = 1 } /^$/ { python = 0 } /^\| / && !/^\| RMM / && !python {
    n = split(columns, wanted, " ")
    for (i = 1; i <= n; i++) {
      parts = split($(wanted[i]), part, "`")
      for (p = 2; p <= parts; p += 2) print part[p]
    }
  }' "$page" | sort -u
}

names 3 >ours
names 4 | grep '^hipmm\|^HIPMM_\|^struct \|^[a-z_]*\.[a-z_]*$' >>ours
[ "$(wc -l <ours)" -gt 100 ] || fail "only $(wc -l <ours) names were found on the page"
while read -r name; do
  named "$name" </dev/null || fail "doc/rmm.md: there is no $name"
done <ours

for name in hipmm_no_such "hipmm_no_such()" HIPMM_NO_SUCH "hipmm no_such" hipmm/no_such.h hipmm.no_such pool.no_such \
  "struct hipmm_no_such"; do
  named "$name" && fail "$name is taken to be there"
done

while read -r type; do
  grep -Fqx "$type" ours || fail "doc/rmm.md does not tell of the type $type"
done <types
[ "$(wc -l <types)" -gt 20 ] || fail "hipmm describe lists only $(wc -l <types) types"

awk '/^```json/ { inside = 1; next } /^```/ { inside = 0 } inside' "$page" >hipmm.json
run 0 check hipmm.json

finish
