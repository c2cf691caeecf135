#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two builds of one commit are equal byte for byte: the tarball, and what `make install` installs. The builds differ in folder,
# umask, locale, time zone, environment and number of jobs; the time zones are a day apart. Uncommitted changes are left out.
#
#   sh etc/release/reproducible.sh [FLAG OF CONFIGURE...]     CFLAGS are -g -O2, or those of the environment
#
# Run by `make reproducible`, before a release. diffoscope, where it is installed, explains a difference.
set -eu

# shellcheck disable=SC2046 # names; a hook of git sets them, and they name another clone
unset $(git rev-parse --local-env-vars 2>/dev/null)
unset CDPATH
cd "$(dirname "$0")/../.."
git rev-parse -q --verify HEAD >/dev/null 2>&1 || {
  echo "$PWD is no clone of hipmm with a commit, and builds of a commit are compared; clone the repository" >&2
  exit 1
}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ -z "$(git status --porcelain)" ] || echo "the commit $(git rev-parse --short HEAD) is compared, without the uncommitted changes"

# build SOURCE BUILD JOBS FLAG...: the environment and the umask are the caller's
build() {
  git clone -q . "$1" || return
  (
    set -e
    source=$1 build=$2 jobs=$3
    shift 3
    cd "$source"
    autoreconf -fi
    mkdir -p "$build"
    cd "$build"
    # A path in a file would be the path of the build: compilers map it, as in the builds of distributions.
    "$source/configure" -q "$@" CFLAGS="${CFLAGS--g -O2} -Werror=date-time -ffile-prefix-map=$source=. -ffile-prefix-map=$build=."
    make -j "$jobs"
    make dist
    make install DESTDIR="$build/installed"
  ) >"$2.log" 2>&1
  # A file with its mode, or where a link leads to. The mode of a folder is what the umask of the installer says.
  [ ! -d "$2/installed" ] ||
    (cd "$2/installed" && find . -type f -printf '%p %m\n' -o -type l -printf '%p -> %l\n' | LC_ALL=C sort) >"$2/list"
}

# finish PROCESS LOG
finish() {
  wait "$1" && return
  tail -n 40 "$2" >&2
  echo "the build failed; its last lines are above" >&2
  exit 1
}

one=$work/one-build
other=$work/objects.of/another
mkdir "${other%/*}"
CCACHE_DISABLE=1
export CCACHE_DISABLE
unset MAKEFLAGS MFLAGS MAKELEVEL SOURCE_DATE_EPOCH HIPMM_CONFIG HIPMM_PLUGIN_PATH HIPMM_RUNTIME
(umask 022 && TZ=Etc/GMT+12 LC_ALL=C && export TZ LC_ALL && build "$work/one" "$one" 2 "$@") &
first=$!
(umask 077 && TZ=Etc/GMT-14 LC_ALL=C.UTF-8 HOME=/nonexistent USER=other LANGUAGE=de && export TZ LC_ALL HOME USER LANGUAGE &&
  build "$work/another.name/deeper" "$other" 3 "$@") &
finish $! "$other.log"
finish $first "$one.log"

explain() {
  if command -v diffoscope >/dev/null; then
    diffoscope --text - --max-report-size 20000 "$1" "$2" || true
  else
    echo "  (diffoscope is not installed, which would tell the difference; Debian: diffoscope-minimal)"
  fi
}
bad=0
for tarball in "$one"/hipmm-*.tar.*; do
  name=${tarball##*/}
  if cmp "$tarball" "$other/$name"; then
    echo "$name: equal, $(sha256sum "$tarball" | cut -d ' ' -f 1)"
  else
    explain "$tarball" "$other/$name"
    bad=1
  fi
done
diff "$one/list" "$other/list" || { echo "the lists of installed files differ" && bad=1; }
sed -n 's/ [0-7]*$//p' "$one/list" | while read -r file; do
  cmp -s "$one/installed/$file" "$other/installed/$file" || echo "$file"
done >"$work/differ"
if [ -s "$work/differ" ]; then
  echo "of $(wc -l <"$one/list") installed files, these differ:"
  cat "$work/differ"
  head -n 3 "$work/differ" | while read -r file; do explain "$one/installed/$file" "$other/installed/$file"; done
  bad=1
else
  echo "$(wc -l <"$one/list") installed files: equal"
fi
exit $bad
