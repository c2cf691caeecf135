#!/bin/sh
# SPDX-License-Identifier: MIT
#
#   sh etc/packaging/debs.sh bookworm|trixie FOLDER [TARBALL]
#
# Builds the Debian packages of this clone's commit, or of a distribution that `make dist` made, and leaves them in the folder.
# It builds them twice, without network, in a bare chroot; both builds must be equal to the byte, and lintian must find no
# error and no warning. It then installs them in another bare chroot, as a user does, runs the README's programs and the
# command, and removes the packages; nothing may stay. From the environment: DEB_BUILD_OPTIONS ("nocheck" leaves out hipmm's
# own tests); CUDA_PATH, a folder whose include/ has CUDA's headers, for packages with the runtime for NVIDIA's GPUs; and what
# debian/prepare.sh takes. Needs what tests/chroot.sh needs.
set -eu

# setting NAME VALUE: a line that a shell reads
setting() {
  printf "export %s='%s'\n" "$1" "$(printf %s "$2" | sed "s/'/'\\\\''/g")"
}

# on_host: the part on this machine
on_host() {
  suite=$1 tarball=
  [ ! "${3-}" ] || tarball=$(realpath -e "$3")
  ! ls "$2"/*.deb >/dev/null 2>&1 || { echo "$2 has packages already; name a folder without" >&2; exit 1; }
  mkdir -p "$2"
  mkdir "$2/input" || { echo "$2/input is made and removed by this script, and is there already; name another folder" >&2; exit 1; }
  HIPMM_SHARE=$(cd "$2" && pwd)
  export HIPMM_SHARE
  trap 'rm -rf "$HIPMM_SHARE/input"' EXIT
  trap 'exit 1' HUP INT TERM
  [ ! "${CUDA_PATH-}" ] || cp -rL "$CUDA_PATH/include" "$HIPMM_SHARE/input/include"
  cd "$(dirname "$0")/../.."
  git rev-parse HEAD >/dev/null 2>&1 || {
    echo "$PWD is no clone of git; in a source folder, etc/packaging/debian/prepare.sh makes debian/" >&2
    exit 1
  }
  version=$(sed -n 's/^AC_INIT(\[hipmm], \[\([^]]*\)].*/\1/p' configure.ac)
  if [ "$tarball" ]; then
    version=${tarball##*/hipmm-} version=${version%.tar.xz}
    cp "$tarball" "$HIPMM_SHARE/input/hipmm_$version.orig.tar.xz"
  else
    commit=$(git -c user.name=hipmm -c user.email=hipmm stash create) # with what is not committed
    git archive --prefix="hipmm-$version/" "${commit:-HEAD}" | xz -T1 >"$HIPMM_SHARE/input/hipmm_$version.orig.tar.xz"
  fi
  {
    setting DEBFULLNAME "${DEBFULLNAME:-$(git log -1 --format=%an)}"
    setting DEBEMAIL "${DEBEMAIL:-$(git log -1 --format=%ae)}"
    setting HOMEPAGE "${HOMEPAGE-}"
    setting DEB_BUILD_OPTIONS "${DEB_BUILD_OPTIONS-}"
    setting DEB_BUILD_PROFILES "${CUDA_PATH:+pkg.hipmm.nvidia}"
    setting CUDA_PATH /mnt/input
    [ ! "${SOURCE_DATE_EPOCH-}" ] || setting SOURCE_DATE_EPOCH "$SOURCE_DATE_EPOCH"
  } >"$HIPMM_SHARE/input/environment"
  sh tests/chroot.sh "$suite" 'sh etc/packaging/debs.sh --build'
  sh tests/chroot.sh "$suite" 'sh etc/packaging/debs.sh --try'
  echo "the packages are in $HIPMM_SHARE"
}

install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/tmp/apt.log 2>&1 || {
    cat /tmp/apt.log
    exit 1
  }
}

# build FOLDER VARIABLE=VALUE...: the packages, in a folder that this makes, without network, as an ordinary user
build() {
  folder=$1
  shift
  runuser -u user -- mkdir -p "$folder"
  cp /mnt/input/*.orig.tar.xz "$folder"
  runuser -u user -- tar -xf "$folder"/*.orig.tar.xz -C "$folder"
  cd "$folder"/hipmm-*/
  runuser -u user -- sh etc/packaging/debian/prepare.sh
  DEBIAN_FRONTEND=noninteractive apt-get build-dep -qq -y --no-install-recommends ./ >/tmp/apt.log 2>&1 ||
    { cat /tmp/apt.log; exit 1; }
  unshare --net runuser -u user -- env "$@" dpkg-buildpackage -Jauto -us -uc >"$folder/build.log" 2>&1 || {
    grep -E -A 4 '^not ok|^(FAIL|XPASS|ERROR):|error:|[*][*][*]' "$folder/build.log" | head -n 100
    tail -n 40 "$folder/build.log"
    exit 1
  }
}

# in_first_chroot: builds, compares and checks
in_first_chroot() {
  # shellcheck source=/dev/null
  . /mnt/input/environment
  apt-get update -qq
  install dpkg-dev debhelper lintian
  first=/home/user/packages second=/home/user/another/place
  build $first TZ=UTC
  # What may differ between machines does
  (umask 002 && build $second TZ=Asia/Kathmandu LC_ALL=C.UTF-8 USER=another DEB_BUILD_OPTIONS="nocheck parallel=3")
  cd $first
  for file in *.deb *.dsc *.debian.tar.xz; do
    cmp "$file" "$second/$file" || {
      install diffoscope-minimal
      diffoscope "$file" "$second/$file" | head -n 200
      exit 1
    }
  done
  set -- ./*.deb
  echo "two builds are equal: $# packages and their source"
  runuser -u user -- lintian --fail-on error,warning ./*.changes
  echo "lintian has no errors and no warnings"
  cp ./*.deb ./*.dsc ./*.tar.xz ./*.changes ./*.buildinfo ./build.log /mnt/
}

# files: all but what apt and dpkg keep for themselves
files() {
  find / -xdev \( -path /tmp -o -path /root -o -path /home -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \
    -o -path /var/lib/dpkg -o -path /etc/ld.so.cache -o -path /dev -o -path /run \) -prune -o -print | sort
}

# in_second_chroot: what a user does
in_second_chroot() {
  apt-get update -qq
  install gcc libc6-dev pkgconf cmake make man-db python3 libjansson4 libltdl7 libsqlite3-0
  files >/tmp/before
  cp /mnt/*.deb /tmp/
  rm -f /tmp/*-dbgsym*
  install /tmp/*.deb
  for test in c-program python-program run; do
    echo "== debian/tests/$test"
    mkdir "/tmp/$test"
    AUTOPKGTEST_TMP=/tmp/$test sh etc/packaging/debian/tests/$test
  done
  for page in hipmm hipmm.json hipmm-plugin; do
    man -P cat $page >/tmp/page
    grep -q '^NAME' /tmp/page
    echo "man $page: $(wc -l </tmp/page) lines"
  done

  # shellcheck disable=SC2046 # a list
  apt-get purge -qq -y $(dpkg-query -W -f '${Package}\n' '*hipmm*' 'librmm-compat*') >/tmp/apt.log
  files | diff /tmp/before - || { echo "apt purge leaves these files" >&2; exit 1; }
  echo "apt purge leaves nothing"
  install /tmp/libhipmm0_*.deb
  (cd /tmp/c-program && ./program)
  echo "libhipmm0 alone serves a program"
}

case ${1-} in
--build | --try) [ -f /mnt/input/environment ] || { echo "$1 is for the chroots that this script makes" >&2; exit 2; } ;;
esac
case ${1-} in
--build) in_first_chroot ;;
--try) in_second_chroot ;;
*)
  case ${1-}:${2-} in
  bookworm:?* | trixie:?*) on_host "$@" ;;
  *) sed -n 's/^# \{0,1\}//; 4,12p' "$0" >&2 && exit 2 ;;
  esac
  ;;
esac
