#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What doc/abi.md promises of libhipmm.so and its headers:
#   - the soname bears the major version, and the symbols are in nodes of this major version;
#   - every public struct is in layout.c;
#   - no function, type or member of the baseline, surface.abi, has gone or changed; abidiff of libabigail compares.
# Run by `make check`, where the comparison is left out without abidiff, and by `make check-abi` and .ci/run, where it must
# be made. `make abi-baseline` (--renew) writes the baseline and layout.c from the headers: in the commit that means to change
# the ABI, and after additions. A release renews it too, and reports what differs from the release before (--report BASELINE).
set -eu

: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
here=$top_srcdir/tests/abi
library=$top_builddir/.libs/libhipmm.so
[ -e "$library" ] || case ${1-} in
--re*) ;; # they read headers only
*) echo "no shared library was built" && exit 77 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

fail() {
  echo "$*"
  bad=1
}

# ---- The baseline ----

structs() {
  cat "$top_srcdir"/include/hipmm/*.h | sed -n 's/^struct \(hipmm_[a-z_]*\) {.*/\1/p' | sort -u
}

# surface OBJECT INCLUDE: an object with a variable for each public function and struct. abidiff compares what the symbols
# of an object refer to; the library itself would show the insides of opaque structs too.
surface() {
  {
    for header in "$2"/hipmm/*.h; do
      case $header in */umf.h) ;; *) echo "#include <hipmm/${header##*/}>" ;; esac # inline functions over UMF's headers
    done
    sed -n 's/^  \(hipmm_[a-z0-9_]*\);/__typeof__(\1) *const function_\1 = \1;/p' "$top_srcdir/core/libhipmm.map"
    structs | sed 's/.*/const struct & *struct_&;/'
  } >"$work/surface.c"
  # The names of files in the object are the same wherever it is built.
  ${CC:-cc} -std=gnu11 -g -O0 -shared -fPIC -ffile-prefix-map="$work=." -ffile-prefix-map="$2=include" -I "$2" -o "$1" \
    "$work/surface.c"
}

# differ OBJECT [BASELINE]: what abidiff says; additions, also at the end of a struct that may grow, are compatible
differ() {
  abidiff --no-added-syms --suppressions "$here/additions.abignore" "${2-$here/surface.abi}" "$1"
}

# changed SED: compares the headers after such a change
changed() {
  rm -rf "$work/changed"
  cp -r "$top_srcdir/include" "$work/changed"
  chmod -R u+w "$work/changed"
  sed -i "$1" "$work/changed/hipmm/"*.h
  surface "$work/changed.so" "$work/changed"
  differ "$work/changed.so" >/dev/null
}

why=
command -v abidiff >/dev/null || why="abidiff is missing (Debian: abigail-tools)"
[ "$(uname -m)" = x86_64 ] || why="the baseline is of x86_64"
[ -n "$why" ] || surface "$work/surface.so" "$top_srcdir/include"
if [ "${1-}" = --renew ]; then
  [ -z "$why" ] || { echo "$why"; exit 1; }
  abidw --type-id-style hash --no-parameter-names --no-write-default-sizes --no-show-locs --no-comp-dir-path --no-corpus-path --no-elf-needed --out-file "$here/surface.abi" "$work/surface.so"
  growing=$(sed -n 's/^  name_regexp = //p' "$here/additions.abignore")
  ${READELF:-readelf} -W --debug-dump=info "$work/surface.so" | ${AWK:-awk} -v growing="$growing" \
    -v headers="$(cd "$top_srcdir/include/hipmm" && echo *.h | sed "s/ umf.h//")" -f "$here/layout.awk" | cat -s >"$here/layout.c"
  echo "written: tests/abi/surface.abi and layout.c; read their difference before committing them"
  exit 0
fi

if [ "${1-}" = --report ]; then
  [ -z "$why" ] || { echo "$why"; exit 1; }
  abidiff "$2" "$work/surface.so" || true # additions too
  differ "$work/surface.so" "$2" >"$work/difference"
  exit
fi

if [ -z "$why" ]; then
  differ "$work/surface.so" >"$work/difference" || {
    cat "$work/difference"
    fail "the ABI differs from tests/abi/surface.abi; undo that, or, if it is meant: make abi-baseline (doc/abi.md)"
  }
  # That the comparison sees what it must, and lets additions pass.
  ! changed 's/^  const char \*runtime; .*/  void *extra; &/' || fail "abidiff does not notice a member that has moved"
  ! changed 's/size_t keep_bytes/uint32_t keep_bytes/' || fail "abidiff does not notice an argument of another type"
  ! changed 's/HIPMM_E_LIMIT = -31/HIPMM_E_LIMIT = -32/' || fail "abidiff does not notice a number of another value"
  changed 's/^  void \*handle;$/& void *extra;/' || fail "abidiff refuses a member at the end"
  changed 's/^  HIPMM_ROLE_RUNTIME,/& HIPMM_ROLE_NEW,/' || fail "abidiff refuses a further number"
else
  [ "${1-}" != --strict ] || fail "$why"
  skip_part "the comparison of the ABI with its baseline" "$why"
fi

# ---- Names ----

major=$(sed -n 's/^#define HIPMM_VERSION_MAJOR *//p' "$top_srcdir/include/hipmm/version.h")
minor=$(sed -n 's/^#define HIPMM_VERSION_MINOR *//p' "$top_srcdir/include/hipmm/version.h")
soname=$(${READELF:-readelf} -dW "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$soname" = "libhipmm.so.$major" ] || fail "the soname is $soname, and the major version $major"
${NM:-nm} -D --defined-only "$library" | sed -n 's/.* A \(HIPMM_[0-9.]*\).*/\1/p' >"$work/nodes"
while read -r node; do
  number=${node#HIPMM_}
  [ "${number%%.*}" = "$major" ] && [ "${number#*.}" -le "$minor" ] ||
    fail "the symbol node $node is not of a version up to $major.$minor"
done <"$work/nodes"
[ -s "$work/nodes" ] || ! ${READELF:-readelf} -VW "$library" | grep -q HIPMM_ || fail "no symbol node was found"

structs >"$work/structs"
while read -r name; do
  grep -q "(${name}, [0-9]*);" "$here/layout.c" || fail "struct $name is not in tests/abi/layout.c"
done <"$work/structs"
[ "$(wc -l <"$work/structs")" -gt 20 ] || fail "found too few structs"

exit $bad
