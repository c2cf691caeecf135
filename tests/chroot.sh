#!/bin/sh
# SPDX-License-Identifier: MIT
#
#   sh tests/chroot.sh SUITE [COMMAND [COMMAND OF A USER]]
#
# Makes a bare Debian (bookworm, trixie, ...), with nothing but what each Debian has, and removes it at the end. In it runs a
# command of the shell as root, in a clone of this tree in /root/hipmm with its uncommitted changes; and one as an ordinary
# user, in such a clone in ~/hipmm. Without a command it is a shell. The packages come from where this machine's own do.
# The folder that HIPMM_SHARE names is /mnt there. Needs root or sudo, debootstrap, git, and the right to mount.
#
# Mounts and processes are in namespaces of their own, which end with the command, however it ends: nothing of this machine
# is below the folder when it is removed.
set -eu

[ "${1-}" ] || { sed -n 's/^# \{0,1\}//; 4,12p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || exec sudo ${HIPMM_SHARE:+"HIPMM_SHARE=$HIPMM_SHARE"} sh "$0" "$@"

# The second time, in the namespaces
if [ "${HIPMM_CHROOT-}" ]; then
  trap 'exit 1' HUP INT TERM # which the first process of a namespace does not heed otherwise
  mount -t proc proc "$HIPMM_CHROOT/proc"
  mount --rbind /dev "$HIPMM_CHROOT/dev"
  mount -t tmpfs tmpfs "$HIPMM_CHROOT/dev/shm"
  [ ! "${HIPMM_SHARE-}" ] || mount --bind "$HIPMM_SHARE" "$HIPMM_CHROOT/mnt"
  # within USER HOME COMMAND
  within() {
    chroot --userspec="$1" "$HIPMM_CHROOT" /usr/bin/env -i "HOME=$2" "TERM=${TERM-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      sh -c "cd && cd hipmm && $3"
  }
  within root /root "${2-exec bash}"
  [ ! "${3-}" ] || within user /home/user "$3"
  exit
fi

cd "$(dirname "$0")/.."
command -v debootstrap >/dev/null || { echo "debootstrap is missing (Debian and Ubuntu: debootstrap)" >&2; exit 1; }
unshare --mount --pid --fork --mount-proc true || {
  echo "Nothing can be mounted here, which a chroot needs. A container has to be given CAP_SYS_ADMIN (docker run --privileged)." >&2
  exit 1
}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/hipmm-$1.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM
HIPMM_CHROOT=$work/root # a user in it must be able to read it, and may not read $work
export HIPMM_CHROOT

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
debootstrap --force-check-gpg --variant=minbase "$1" "$HIPMM_CHROOT" ${mirror:+"$mirror"} >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
echo force-unsafe-io >"$HIPMM_CHROOT/etc/dpkg/dpkg.cfg.d/unsafe-io" # nobody needs it after a crash
cp /etc/resolv.conf "$HIPMM_CHROOT/etc/"
# The authorities that this machine trusts besides: it may reach PyPI through a proxy.
[ ! -d /usr/local/share/ca-certificates ] || cp -r /usr/local/share/ca-certificates "$HIPMM_CHROOT/usr/local/share/"
git clone -q . "$HIPMM_CHROOT/root/hipmm"
git diff --quiet HEAD || git diff --binary HEAD | git -C "$HIPMM_CHROOT/root/hipmm" apply
chroot "$HIPMM_CHROOT" useradd --create-home user
cp -r "$HIPMM_CHROOT/root/hipmm" "$HIPMM_CHROOT/home/user/"
chroot "$HIPMM_CHROOT" chown -R user: /home/user/hipmm
unshare --mount --pid --fork --kill-child sh "$0" "$@"
