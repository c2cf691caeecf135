#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The version has one place, configure.ac: each copy in the tree agrees, and so does all that is built and tells it. A copy that
# differs is noticed, as is one that nobody knows, and setting another version changes all. Run by `make check`.
set -eu

: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
bad=0

fail() {
  echo "$*"
  bad=1
}

# is WHAT VERSION
is() {
  [ "$2" = "$version" ] || fail "$1 tells \"$2\", and configure.ac $version"
}

python3 "$top_srcdir/etc/release/version.py" check || bad=1
version=$(python3 "$top_srcdir/etc/release/version.py")

# ---- What is built ----

is "hipmm --version" "$("$top_builddir/hipmm" --version | sed -n '1s/^hipmm \([^ ,]*\).*/\1/p')"
for file in hipmm hipmm-cpp hipmm-rmm; do
  is $file.pc "$(sed -n 's/^Version: //p' "$top_builddir/$file.pc")"
done
is hipmmConfigVersion.cmake "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$top_builddir/etc/cmake/hipmmConfigVersion.cmake")"
for page in "$top_builddir"/doc/man/*.[1-9]; do
  is "${page##*/}" "$(sed -n 's/^\.TH .*"hipmm \([^"]*\)".*/\1/p' "$page")"
done
cat >"$work/version.c" <<'END'
#include <hipmm/version.h>
#include <stdio.h>
int main(void)
{
  printf("%d.%d.%d\n", HIPMM_VERSION / 10000, HIPMM_VERSION / 100 % 100, HIPMM_VERSION % 100);
}
END
${CC:-cc} -I "$top_srcdir/include" -o "$work/version" "$work/version.c"
is HIPMM_VERSION "$("$work/version")"
! python3 -c 'import setuptools' 2>"$work/error" ||
  is "the Python distribution" "$(cd "$top_srcdir" && python3 -c 'import re, runpy, sys
sys.argv = ["setup.py", "--version"]
runpy.run_path("setup.py", run_name="__main__")' 2>"$work/error" | tail -n 1)"

# ---- That a difference is noticed ----

copy=$work/tree
mkdir -p "$copy/include/hipmm" "$copy/etc/release" "$copy/doc"
for file in configure.ac CITATION.cff include/hipmm/version.h etc/release/version.py; do
  cat "$top_srcdir/$file" >"$copy/$file"
done

# noticed FILE SED: the check of the copy fails after such a change, and names the file
noticed() {
  cp "$copy/$1" "$work/kept"
  sed -i "$2" "$copy/$1"
  ! python3 "$copy/etc/release/version.py" check >"$work/said" || fail "not noticed: $1 after $2"
  grep -q "^$1:" "$work/said" || { fail "$1 after $2 is not named:"; cat "$work/said"; }
  cp "$work/kept" "$copy/$1"
}

# Text that belongs to no copy: another program's version, and versions that begin or end like this one
echo "python-$version.1 1$version $version.2.3 ${version}rc1, rmm 23.12.0, hipmm-$version.tar.xz" >"$copy/doc/page.md"
python3 "$copy/etc/release/version.py" check || fail "the copy of the tree is refused"
noticed include/hipmm/version.h 's/\(_MAJOR\) [0-9]*$/\1 98/'
noticed include/hipmm/version.h 's/\(_MINOR\) [0-9]*$/\1 98/'
noticed include/hipmm/version.h 's/\(_PATCH\) [0-9]*$/\1 98/'
noticed include/hipmm/version.h '/_PATCH [0-9]/d'
noticed CITATION.cff 's/^version: .*/version: 98.0.0/'
noticed doc/page.md 's/hipmm-[0-9.]*\.tar/hipmm-98.0.0.tar/'
noticed doc/page.md 's/hipmm-[0-9.]*\.tar/libhipmm0_98.0.0-1_amd64.deb/'
noticed doc/page.md 's/hipmm-[0-9.]*\.tar/hipmm==98.0.0/'
noticed doc/page.md "s/rmm .*/the release is $version./"
for wrong in 1 1.2 1.2.3.4 01.2.3 1.2.100 v1.2.3 '' '1.2.3
'; do
  ! python3 "$copy/etc/release/version.py" set "$wrong" 2>"$work/said" || fail "the version \"$wrong\" is accepted"
done

python3 "$copy/etc/release/version.py" set 7.8.9 2030-01-02
python3 "$copy/etc/release/version.py" set 7.8.9 2031-02-03
python3 "$copy/etc/release/version.py" check || fail "not all copies are changed"
[ "$(python3 "$copy/etc/release/version.py")" = 7.8.9 ] || fail "configure.ac is not changed"
grep -q 'hipmm-7\.8\.9\.tar' "$copy/doc/page.md" || fail "the name of the tarball is not changed"
[ "$(grep -c '^date-released: 2031-02-03$' "$copy/CITATION.cff")" = "$(grep -c '^date-released' "$copy/CITATION.cff")" ] &&
  grep -q '^date-released' "$copy/CITATION.cff" || fail "the date is not changed"
exit $bad
