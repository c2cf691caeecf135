#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A release, as a folder that a maintainer can publish. Run by `make release`, in a clone whose commit has passed .ci/run:
#
#   make release DRY_RUN=1                 leaves the folder, and the clone as it was
#   make release                           and the release's commit and its annotated tag in this clone; nothing is pushed
#
#   VERSION=X.Y.Z        the version, by default that of configure.ac
#   PARTS="tarball sbom" these parts only, of: tarball wheel debs sbom abi notes
#   KEY=NAME             the key of gpg that signs the tag and SHA256SUMS
#   FOLDER=PATH          where, by default release-X.Y.Z in the build folder
#   SUITES="bookworm"    the Debians of the packages, by default bookworm and trixie
#
# All is made in a temporary clone. So a release that fails leaves this clone as it was.
set -eu

# shellcheck disable=SC2046 # names; a hook of git sets them, and they name another clone
unset $(git rev-parse --local-env-vars 2>/dev/null)
unset CDPATH MAKEFLAGS MFLAGS MAKELEVEL HIPMM_CONFIG HIPMM_PLUGIN_PATH HIPMM_RUNTIME PYTHONPATH
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
called_in=$PWD
cd "$(dirname "$0")/../.."
clone=$PWD
parts=${PARTS:-tarball wheel debs sbom abi notes}
suites=${SUITES:-bookworm trixie}

fail() {
  echo "no release: $*" >&2
  exit 1
}

# wanted PART
wanted() {
  case " $parts " in
  *" $1 "*) return 0 ;;
  *) return 1 ;;
  esac
}

# ---- What must hold before ----

lacking=
# needs TOOL PACKAGE
needs() {
  command -v "$1" >/dev/null || lacking="$lacking $1 (Debian: $2)"
}

for part in $parts; do
  case $part in
  tarball | wheel | debs | sbom | abi | notes) ;;
  *) fail "PARTS names \"$part\"; the parts are tarball, wheel, debs, sbom, abi and notes" ;;
  esac
done
needs git git
needs python3 python3
needs sha256sum coreutils
for tool in autoconf automake libtoolize:libtool make pkg-config xz:xz-utils cc:gcc; do needs "${tool%%:*}" "${tool##*:}"; done
! wanted abi || { needs abidiff abigail-tools && needs abidw abigail-tools; }
! wanted sbom || needs readelf binutils
! wanted debs || needs debootstrap debootstrap
[ ! "${KEY-}" ] || needs gpg gnupg
[ ! "$lacking" ] || fail "these tools are missing:$lacking. Install them, or leave parts out (PARTS=\"notes tarball\")."

top=$(git rev-parse --show-toplevel 2>&1) || fail "a release has a commit and a tag, so it is made in a clone. git says of $clone: $top"
[ "$top" = "$(pwd -P)" ] || fail "$clone is no clone, but a folder in $top"
changes=$(git status --porcelain)
[ ! "$changes" ] || fail "the tree has changes; commit or remove them:
$changes"
git var GIT_COMMITTER_IDENT >/dev/null 2>&1 || fail "git does not know who you are; run: git config user.name NAME; git config user.email ADDRESS"
branch=$(git symbolic-ref -q --short HEAD) || [ "${DRY_RUN-}" ] || fail "HEAD is on no branch, which the commit could go to; run: git switch BRANCH"
old=$(python3 etc/release/version.py)
version=${VERSION:-$old}
unset VERSION # a command line of make exports it
echo "$version" | grep -qxE '(0|[1-9][0-9]*)(\.(0|[1-9][0-9]?)){2}' ||
  fail "\"$version\" is not a version; write three numbers with dots, such as 0.2.0, the last two below 100"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "the tag v$version is there already; name the next version: VERSION=X.Y.Z"
last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || last=
[ ! "$last" ] || [ "$(printf '%s\n' "${last#v}" "$version" | sort -V | tail -n 1)" = "$version" ] ||
  fail "the version $version is older than the last tag, $last"
! grep -q "^## $version - " CHANGELOG.md || fail "CHANGELOG.md has a section of $version with its date already"
# section NAME: of the changelog, without its heading
section() {
  awk -v heading="## $1" '/^## / { inside = $0 == heading; next } inside' CHANGELOG.md
}
section Unreleased | grep -q '^- ' || fail "CHANGELOG.md has no entry in \"## Unreleased\"; write there what users will see"
[ ! "${KEY-}" ] || gpg --list-secret-keys "$KEY" >/dev/null 2>&1 || fail "gpg has no secret key \"$KEY\"; gpg --list-secret-keys lists yours"
[ "$(id -u)" = 0 ] || ! wanted debs || sudo -n true 2>/dev/null || fail "the Debian packages are made in chroots, as root; run this as root, or leave out the part debs (PARTS)"

case ${FOLDER:=release-$version} in
/*) folder=$FOLDER ;;
*) folder=$called_in/$FOLDER ;;
esac
mkdir -p "$folder" 2>/dev/null || fail "the folder $folder cannot be made"
[ ! "$(ls -A "$folder")" ] || fail "the folder $folder is not empty; remove it, or name another: FOLDER=PATH"

# ---- The commit and the tag, in a temporary clone ----

work=$(mktemp -d) || fail "no temporary folder can be made; set TMPDIR to a folder with room"
trap 'rm -rf "$work"; rmdir "$folder" 2>/dev/null || true' EXIT # the folder, if nothing came into it
trap 'exit 1' HUP INT TERM
case $work in
*[[:space:]]*) fail "Automake cannot build in a folder with a space in its path: $work; set TMPDIR to another" ;;
esac
result=$work/result # all files, until the last step has passed
mkdir "$result"
began=$(date +%s)

# step WORDS COMMAND...: a failure shows the end of the output, and is the end
step() {
  words=$1
  shift
  since=$(date +%s)
  printf '%-45s' "$words"
  set +e
  (set -e && "$@") >"$work/log" 2>&1 </dev/null
  status=$?
  set -e
  if [ $status = 0 ]; then
    echo "done ($(($(date +%s) - since)) s)"
  else
    echo failed
    [ -s "$work/log" ] || fail "\"$words\" failed without a word; is there room in ${TMPDIR:-/tmp}?"
    tail -n 40 "$work/log" >&2
    cp "$work/log" "$folder.log" 2>/dev/null || true
    fail "\"$words\" failed; its last lines are above, all of them are in $folder.log. This clone is as it was."
  fi
}

prepare() {
  git clone -q "$clone" "$work/hipmm"
  cd "$work/hipmm"
  for name in user.name user.email; do # of the clone; the user's own are found here, too
    value=$(git -C "$clone" config --local $name) && git config $name "$value"
  done
  python3 etc/release/version.py set "$version" "$date"
  # The entries get the version and the date. A section of this version without a date was never released: it joins.
  awk -v version="$version" -v date="$date" '$0 == "## " version { next }
    $0 == "## Unreleased" { print; print ""; $0 = "## " version " - " date }
    { print }' CHANGELOG.md >"$work/changelog"
  cat "$work/changelog" >CHANGELOG.md
}
date=$(date -u +%Y-%m-%d)
step "setting the version, cutting the changelog" prepare
cd "$work/hipmm"
export top_srcdir="$PWD" top_builddir="$PWD/build"

# abi: what differs from the last release, which must not break programs unless the major version says so
abi() {
  if [ "$last" ]; then
    git show "$last:tests/abi/surface.abi" >"$work/baseline.abi"
    echo "hipmm $version beside $last, by abidiff:"
  else
    cp tests/abi/surface.abi "$work/baseline.abi"
    echo "There is no release before $version. This is the difference from the baseline in tests/abi, by abidiff:"
  fi >"$result/abi.txt"
  status=0
  sh tests/abi/check-abi.sh --report "$work/baseline.abi" >>"$result/abi.txt" || status=$?
  cat "$result/abi.txt"
  [ $status = 0 ] || [ "${last%%.*}" != "v${version%%.*}" ] || {
    echo "hipmm $version breaks programs that were built for $last; undo what abi.txt lists, or make a new major version"
    return 1
  }
  sh tests/abi/check-abi.sh --renew
}
! wanted abi || step "comparing the ABI" abi

tag() {
  git commit -q -a -m "release: $version"
  printf 'hipmm %s\n\n%s\n' "$version" "$(section "$version - $date")" >"$work/tag"
  if [ "${KEY-}" ]; then sign="-s -u"; else sign=-a; fi
  # shellcheck disable=SC2086 # one word or two
  git tag $sign ${KEY:+"$KEY"} --cleanup=verbatim -F "$work/tag" "v$version"
  git bundle create "$result/hipmm-$version.bundle" "v$version" "^$(git rev-parse HEAD^)"
}
step "committing, tagging v$version" tag
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# ---- The parts ----

out=
# without PART SENTENCE: what the README says of a part that is not there
without() {
  out="$out
- **$1**: $2"
}
for part in tarball wheel debs sbom abi notes; do
  wanted $part || without $part "left out by PARTS."
done

configure() {
  autoreconf -fi
  mkdir build
  cd build
  ../configure CFLAGS="-g -O2 -ffile-prefix-map=$work/hipmm=."
}
{ ! wanted tarball && ! wanted sbom; } || step "configuring" configure

tarball() {
  make -C build dist
  cp build/hipmm-*.tar.* "$result/"
}
! wanted tarball || step "making the tarball" tarball

# wheel: into a folder of its own, which python/wheel.sh clears
wheel() {
  sh python/wheel.sh --release "$work/wheels"
  cp "$work"/wheels/* "$result/"
}
! wanted wheel || step "making the wheels" wheel

debs() {
  for suite in $suites; do
    mkdir "$work/$suite"
    sh etc/packaging/debs.sh "$suite" "$work/$suite"
    cp -r "$work/$suite" "$result/"
  done
}
! wanted debs || step "making the Debian packages" debs

sbom() {
  make -C build -j "$(getconf _NPROCESSORS_ONLN)"
  make -C build install DESTDIR="$work/installed"
  find "$result" -maxdepth 1 -type f \( -name '*.tar.*' -o -name '*.whl' \) | LC_ALL=C sort >"$work/files"
  xargs -d '\n' python3 etc/release/sbom.py "$work/installed" "$SOURCE_DATE_EPOCH" <"$work/files" >"$result/hipmm-$version.cdx.json"
}
! wanted sbom || step "building, for the SBOM" sbom
! wanted notes || section "$version - $date" | sed '1{/^$/d}' >"$result/notes.md"

# ---- What a maintainer needs to know, and the checksums ----

remote=$(git -C "$clone" config "branch.$branch.remote") || remote=origin
publish() {
  [ ! "${DRY_RUN-}" ] || cat <<END
# A dry run left the clone as it was: these two bring the commit and the tag there.
git fetch '$folder/hipmm-$version.bundle' tag v$version
git merge --ff-only v$version
END
  echo "git push $remote ${branch:-HEAD} v$version"
  ! ls "$result"/*.whl >/dev/null 2>&1 || echo "twine upload '$folder'/*.whl '$folder'/hipmm-$version.tar.gz"
  echo "# On the page of the release at the project's host: the text of notes.md, and all files of the folder."
}
signature="SHA256SUMS has no signature, since no key was named (KEY=NAME)."
[ ! "${KEY-}" ] || signature="SHA256SUMS.asc is the signature by the key $KEY; \`gpg --verify SHA256SUMS.asc\` checks it, \`sha256sum -c SHA256SUMS\` the files."
{
  cat <<END
# hipmm $version

Made on $date by \`make release\` of the commit $(git rev-parse HEAD)${DRY_RUN:+, in a dry run}.

| file | what |
|---|---|
END
  (cd "$result" && find . -type f ! -name README.md | sed 's|^\./||' | LC_ALL=C sort) | while read -r file; do
    case $file in
    *.deb) what="a package for Debian ${file%%/*}" ;;
    */*) what="of the packages for Debian ${file%%/*}" ;;
    *.tar.xz) what="the sources, ready for configure" ;;
    *.tar.gz) what="the sources, for pip" ;;
    *.whl) what="the Python package, for pip" ;;
    *.cdx.json) what="SBOM: dependencies, licences and hashes, as CycloneDX" ;;
    *.bundle) what="the release's commit and tag, for \`git fetch\`" ;;
    abi.txt) what="what changed in the ABI, by abidiff" ;;
    notes.md) what="the release notes" ;;
    *) what="" ;;
    esac
    echo "| $file | $what |"
  done
  printf '\n%s\n' "$signature"
  [ ! "$out" ] || printf '\nThis is not here:\n%s\n' "$out"
  printf '\nTo publish it:\n\n```sh\n%s\n```\n' "$(publish)"
} >"$result/README.md"
(cd "$result" && find . -type f | sed 's|^\./||' | LC_ALL=C sort | xargs -d '\n' sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$result/"
[ ! "${KEY-}" ] || step "signing" gpg --batch --yes --local-user "$KEY" --armor --detach-sign "$result/SHA256SUMS"

cp -r "$result/." "$folder/" || fail "the folder $folder cannot be written; this clone is as it was"
[ "${DRY_RUN-}" ] || {
  cd "$clone"
  git fetch -q "$work/hipmm" HEAD && git merge -q --ff-only FETCH_HEAD && git fetch -q "$work/hipmm" "refs/tags/v$version:refs/tags/v$version" ||
    fail "this clone has changed meanwhile; remove $folder, and try again"
}
echo
echo "hipmm $version is in $folder after $(($(date +%s) - began)) s; its README.md lists the files.$out"
echo "To publish it:"
publish
