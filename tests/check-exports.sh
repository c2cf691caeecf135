#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What libhipmm exports is one list in three places, which must agree: the functions of its headers, the symbol map, and
# the symbols of the library as built. A plugin exports its descriptor alone (a runtime also the HIP API and functions
# named hipmm_TYPE_, to steer it) and imports
# nothing from libhipmm. Nor does the library ask for room in the static block of thread-local storage, where a program
# that opens it late, as Python does, may have none left; of plugins each may have a few words. Run by `make check`.
set -eu

library=$top_builddir/.libs/libhipmm.so
[ -e "$library" ] || { echo "no shared library was built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# symbols FILE OPTION...: names of dynamic symbols, without version
symbols() {
  file=$1
  shift
  ${NM:-nm} -D -P "$@" "$file" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u
}

# differ TITLE FILE TITLE FILE: complains about each line that only one of two sorted lists has
differ() {
  comm -3 "$2" "$4" >"$work/difference"
  [ -s "$work/difference" ] || return 0
  echo "in $1 only (left) or in $3 only (right):"
  cat "$work/difference"
  bad=1
}

# A function that the header declares: a name before a parenthesis in a statement that is neither inline nor a typedef.
for header in $headers; do
  case $header in *.h) echo "#include <${header#include/}>" ;; esac
done |
  ${CC:-cc} -E -P -I "$top_srcdir/include" -x c - |
  awk '{ text = text " " $0 } END {
    gsub(/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)/, "", text)
    while (gsub(/\{[^{}]*\}/, ";", text)) {}
    count = split(text, statement, ";")
    for (i = 1; i <= count; i++)
      if (statement[i] !~ /(^| )(inline|typedef) / && match(statement[i], /hipmm_[a-z0-9_]+ *\(/))
        print substr(statement[i], RSTART, RLENGTH)
  }' | tr -d ' (' | sort -u >"$work/header"
sed 's:/\*.*\*/::; s/#.*//' "$top_srcdir/core/libhipmm.map" | grep -o 'hipmm_[a-z0-9_]*' | sort -u >"$work/map"
symbols "$library" --defined-only >"$work/library"

[ -s "$work/header" ] || { echo "found no function in the headers"; exit 1; }
differ "the headers" "$work/header" libhipmm.map "$work/map"
differ libhipmm.map "$work/map" "$library" "$work/library"

# static_bytes OBJECT: of thread-local storage that must lie in the static block
static_bytes() {
  readelf=${READELF:-readelf}
  if $readelf -dW "$1" | grep -q STATIC_TLS; then $readelf -lW "$1" | awk '$1 == "TLS" { print $6 }'; else echo 0; fi
}

# room OBJECT BYTES: complains about an object that takes more
room() {
  bytes=$(($(static_bytes "$1")))
  [ "$bytes" -le "$2" ] || { echo "$1 needs $bytes bytes of the static block of thread-local storage, not $2"; bad=1; }
}

room "$library" 0

for plugin in $plugins; do
  stem=${plugin##*/}
  stem=${stem%.la}
  object=$top_builddir/${plugin%/*}/.libs/$stem.so
  wrong=$(symbols "$object" --defined-only | grep -vx "${stem}_LTX_hipmm_plugin" | grep -v -e '^hip[A-Z]' -e "^hipmm_${stem}_" || :)
  symbols "$object" --defined-only | grep -qx "${stem}_LTX_hipmm_plugin" || wrong="$wrong (no descriptor)"
  [ -z "$wrong" ] || { echo "$object exports more or less than its descriptor: "$wrong; bad=1; }
  wrong=$(symbols "$object" --undefined-only | grep '^hipmm_' || :)
  [ -z "$wrong" ] || { echo "$object leans on libhipmm for: "$wrong; bad=1; }
  room "$object" 16
done

exit $bad
