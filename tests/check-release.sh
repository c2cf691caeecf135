#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What a release relies on. The version has one place, configure.ac: each copy in the tree agrees, and so does all that is built
# and tells it; a copy that differs is noticed, as is one that nobody knows. doc/support.md, CI and the table agree. `make
# release` refuses what it must, and leaves what it says. Run by `make check`.
set -eu

: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
command -v python3 >/dev/null || skip "python3 is missing"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "python3 is older than 3.10"
# shellcheck disable=SC2046 # names; a hook of git sets them, and they name another clone
unset $(git rev-parse --local-env-vars 2>/dev/null)
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
for file in hipmm hipmm-cpp hipmm-rmm hipmm-rmm26; do
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
if python3 -c 'import setuptools' 2>"$work/error"; then
  is "the Python distribution" "$(cd "$top_srcdir" && python3 -c 'import re, runpy, sys
sys.argv = ["setup.py", "--version"]
runpy.run_path("setup.py", run_name="__main__")' 2>"$work/error" | tail -n 1)"
else
  skip_part "the version of the Python distribution" "setuptools is missing"
fi

# ---- The SBOM knows each library that a file of the build is linked to ----

if [ -e "$top_builddir/.libs/libhipmm.so" ] && [ ! "${SANITIZER_FLAGS-}" ] && installed readelf "the SBOM" &&
  is_clone "$top_srcdir" "the SBOM"; then
  for folder in .libs plugins tools; do
    python3 "$top_srcdir/etc/release/sbom.py" "$top_builddir/$folder" 1 >"$work/$folder.json" || bad=1
  done
  grep -q '"jansson"' "$work/.libs.json" && grep -q '"timestamp": "1970-01-01T00:00:01Z"' "$work/.libs.json" ||
    fail "the SBOM lacks jansson or the time"
  ! python3 "$top_srcdir/etc/release/sbom.py" "$top_srcdir/etc" 1 2>"$work/said" || fail "a folder without programs has an SBOM"
fi

# ---- That a difference is noticed ----

installed git "whether mistakes are noticed, and make release" || exit $bad
copy=$work/tree
mkdir -p "$copy/include/hipmm" "$copy/etc/release" "$copy/tools/rust" "$copy/doc"
for file in configure.ac CITATION.cff tools/rust/Cargo.toml include/hipmm/version.h etc/release/version.py; do
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
git init -q -b main "$copy"
git -C "$copy" add -A
python3 "$copy/etc/release/version.py" check || fail "the copy of the tree is refused"
noticed include/hipmm/version.h 's/\(_MAJOR\) [0-9]*$/\1 98/'
noticed include/hipmm/version.h 's/\(_MINOR\) [0-9]*$/\1 98/'
noticed include/hipmm/version.h 's/\(_PATCH\) [0-9]*$/\1 98/'
noticed include/hipmm/version.h '/_PATCH [0-9]/d'
noticed CITATION.cff 's/^version: .*/version: 98.0.0/'
noticed tools/rust/Cargo.toml 's/^version = .*/version = "98.0.0"/'
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

# ---- The table of what hipmm works with ----

for file in etc/release/support.py etc/release/support.tsv doc/support.md pyproject.toml m4/cuda.m4 m4/hip_headers.m4 \
  python/hipmm/bridge/torch.cpp python/hipmm/bridge/rmm.cpp .ci/run .github/workflows/ci.yml; do
  mkdir -p "$copy/$(dirname $file)"
  [ ! -f "$top_srcdir/$file" ] || cat "$top_srcdir/$file" >"$copy/$file"
done
python3 "$copy/etc/release/support.py" check || bad=1
# differs FILE SED: the check fails after such a change
differs() {
  [ -f "$copy/$1" ] || return 0 # CI, in a distribution
  cp "$copy/$1" "$work/kept"
  sed -i "$2" "$copy/$1"
  ! cmp -s "$copy/$1" "$work/kept" || fail "$2 changes nothing in $1"
  ! python3 "$copy/etc/release/support.py" check >"$work/said" 2>&1 || fail "support.py does not notice $2 in $1"
  cp "$work/kept" "$copy/$1"
}
differs doc/support.md 's/| Debian 13 | each change |/| Debian 13 | by hand |/'
differs etc/release/support.tsv 's/clang 14\tci/clang 15\tci/'
differs etc/release/support.tsv '/\tclang 14\t/d'
differs etc/release/support.tsv 's/\tchroot trixie\t/\tchroots trixie\t/'
differs etc/release/support.tsv 's/\thand\t2[0-9-]*/\thand\tlast week/'
differs pyproject.toml 's/>=3\.10"/>=3.9"/'
differs python/hipmm/bridge/torch.cpp 's/to 2\.15;/to 2.16;/'
differs .ci/run 's/(table clang)/(echo 14)/'
differs .github/workflows/ci.yml 's/debian:12/debian:13/'

# ---- make release, with the parts that need no build ----

for tool in autoconf automake libtoolize make pkg-config xz cc; do
  installed $tool "make release" || exit $bad
done
GIT_AUTHOR_NAME=Author GIT_AUTHOR_EMAIL=author@example.org GIT_COMMITTER_NAME=Author GIT_COMMITTER_EMAIL=author@example.org
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
mkdir -p "$copy/tests/abi" "$copy/tests/support" "$copy/core"
for file in etc/release/release.sh core/libhipmm.map tests/abi/check-abi.sh tests/abi/surface.abi tests/abi/additions.abignore \
  tests/abi/layout.awk tests/support/skip.sh; do
  cat "$top_srcdir/$file" >"$copy/$file"
done
for header in "$top_srcdir"/include/hipmm/*.h; do cat "$header" >"$copy/include/hipmm/${header##*/}"; done
python3 "$copy/etc/release/version.py" set 1.4.3
printf '# Changelog\n\n## Unreleased\n\n### Added\n- A first `thing`, of 50 %%.\n\n## 1.4.3\n\nIt begins.\n\n## 0.9.0 - 2020-01-01\n\n- Old.\n' \
  >"$copy/CHANGELOG.md"
cd "$copy"
commit() {
  git add -A && git commit -q -m "$1"
}
commit 'first'
out="$work/a folder" # a path with a space

# release NAME=VALUE...
release() {
  rm -rf "$out"
  env PARTS=notes FOLDER="$out" "$@" sh etc/release/release.sh >"$work/said" 2>&1
}
# refuses WORDS NAME=VALUE...: and leaves no folder, commit or tag
refuses() {
  words=$1
  shift
  before=$(git rev-parse HEAD && git tag)
  ! release "$@" || fail "made in spite of: $words"
  grep -q "^no release: .*$words" "$work/said" || { fail "does not say \"$words\":" && cat "$work/said"; }
  [ "$(git rev-parse HEAD && git tag)" = "$before" ] || fail "a refusal leaves a commit or a tag: $words"
}

refuses 'PARTS names "wheels"' PARTS="notes wheels" DRY_RUN=1
refuses 'is not a version' VERSION=1.4 DRY_RUN=1
refuses 'gpg has no secret key\|gpg (Debian' KEY=nobody@nowhere DRY_RUN=1
mkdir -p "$work/tools"
for tool in sh env git python3 sed awk grep sort ls mkdir dirname id mktemp rm cat tail date printf; do
  ln -sf "$(command -v $tool)" "$work/tools/$tool"
done
refuses 'these tools are missing:.*sha256sum (Debian: coreutils).*autoconf (Debian: autoconf)' PATH="$work/tools" DRY_RUN=1
echo change >>doc/page.md
refuses 'the tree has changes' DRY_RUN=1
git checkout -q doc/page.md
touch forgotten
refuses 'the tree has changes' DRY_RUN=1
rm forgotten
mkdir -p "$work/full" && touch "$work/full/file"
refuses 'is not empty' FOLDER="$work/full" DRY_RUN=1
refuses 'cannot be made' FOLDER=/proc/none DRY_RUN=1

before=$(git rev-parse HEAD)
release DRY_RUN=1 VERSION=1.5.0 || { fail "no dry run" && cat "$work/said"; }
[ "$(git rev-parse HEAD && git tag && git status --porcelain)" = "$before" ] || fail "a dry run changes the clone"
(cd "$out" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS is wrong"
grep -qx -- '- A first `thing`, of 50 %.' "$out/notes.md" || { fail "the notes are not those of the changelog" && cat "$out/notes.md"; }
! grep -q 'Old\|^## ' "$out/notes.md" || fail "the notes have other sections"
grep -q '^- \*\*tarball\*\*: left out by PARTS\.$' "$out/README.md" || fail "the README does not say what is left out"
grep -q 'no signature' "$out/README.md" || fail "the README does not say that there is no signature"
git bundle verify -q "$out/hipmm-1.5.0.bundle" 2>"$work/said" || { fail "the bundle does not fit the clone" && cat "$work/said"; }
git fetch -q --no-tags "$out/hipmm-1.5.0.bundle" v1.5.0
[ "$(git show FETCH_HEAD:etc/release/version.py | wc -l)" -gt 50 ] || fail "the bundle has no tree"

release VERSION=1.4.3 || { fail "no release" && cat "$work/said"; }
[ "$(git cat-file -t v1.4.3)" = tag ] || fail "the tag is not annotated"
git cat-file tag v1.4.3 | grep -qx '### Added' || fail "the tag's message lacks the headings of the notes"
[ "$(git rev-parse 'v1.4.3^{commit}')" = "$(git rev-parse HEAD)" ] && [ "$(git rev-parse HEAD^)" = "$before" ] ||
  fail "the tag is not the commit after $before"
[ -z "$(git status --porcelain)" ] || fail "a release leaves changes"
grep -qx "## 1.4.3 - $(date -u +%Y-%m-%d)" CHANGELOG.md || fail "the changelog is not cut"
! grep -qx '## 1.4.3' CHANGELOG.md || fail "the section without a date stays"
python3 etc/release/version.py check || fail "the release's versions differ"
refuses 'the tag v1.4.3 is there already'
refuses 'has no entry in "## Unreleased"' VERSION=1.5.0
sed -i 's/^## Unreleased$/&\n\n- Another thing./' CHANGELOG.md && commit 'another'
refuses 'is older than the last tag' VERSION=1.4.2
git checkout -q --detach
refuses 'on no branch' VERSION=1.5.0
git checkout -q main

if installed gpg "signatures"; then
  GNUPGHOME=$work/gnupg # a key that is made for this test
  export GNUPGHOME
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-gen-key 'Key <key@example.org>' default default never 2>"$work/said" || cat "$work/said"
  release VERSION=1.4.4 KEY=key@example.org || { fail "no signed release" && cat "$work/said"; }
  gpg --quiet --verify "$out/SHA256SUMS.asc" "$out/SHA256SUMS" 2>"$work/said" || { fail "the signature is wrong" && cat "$work/said"; }
  git tag -v v1.4.4 >"$work/said" 2>&1 || { fail "the tag is not signed" && cat "$work/said"; }
  gpgconf --kill gpg-agent
  sed -i 's/^## Unreleased$/&\n\n- A third thing./' CHANGELOG.md && commit 'third'
fi

if installed abidiff "the ABI of a release" && [ "$(uname -m)" = x86_64 ]; then
  sed -i 's/size_t keep_bytes/uint32_t keep_bytes/' include/hipmm/*.h && commit 'a break'
  refuses '"comparing the ABI" failed' PARTS=abi VERSION=1.5.0
  grep -q 'breaks programs that were built for v1.4.' "$work/said" || { fail "a break is not named" && cat "$work/said"; }
  release PARTS=abi VERSION=2.0.0 || { fail "no major release" && cat "$work/said"; }
  ! git diff --quiet HEAD^ HEAD -- tests/abi/surface.abi || fail "the baseline is not renewed"
  grep -q 'keep_bytes\|uint32_t\|parameter' "$out/abi.txt" || fail "abi.txt does not say what changed"
fi
exit $bad
