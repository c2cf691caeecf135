#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds hipmm for aarch64 in build-aarch64, with Debian's cross compiler and its arm64 packages, and runs the tests of the core
# and of plugins under qemu-user. As root, in a chroot (tests/chroot.sh), for it adds the architecture. Run by .ci/run.
set -eu
cd "$(dirname "$0")/.."

# step COMMAND...: its output is shown if it fails
step() {
  "$@" >step.log 2>&1 || { tail -n 100 step.log; exit 1; }
}

step dpkg --add-architecture arm64
step apt-get update
step env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends make autoconf automake libtool pkg-config xz-utils \
  gcc-aarch64-linux-gnu qemu-user libc6-dev:arm64 libltdl-dev:arm64 libjansson-dev:arm64 libcmocka-dev:arm64 \
  libsqlite3-dev:arm64 libamdhip64-dev:arm64
step autoreconf -fi
mkdir -p build-aarch64
cd build-aarch64
step env PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig ../configure --host=aarch64-linux-gnu --enable-werror
step make -j "$(nproc)"
