#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds hipmm for aarch64 in build-aarch64, with Debian's cross compiler and its arm64 packages, replays a program, and runs
# tests of the core and the pool under qemu-user; the last line is "N passed, N failed". It adds the architecture, so it is for
# a chroot (tests/chroot.sh); as root. Run by .ci/run.
#
# Left out is what needs the kernel to run a program for aarch64 by itself: tests that start their own program again
# (run_again(), such as tests/unit/pool/test_order), scripts, and all that interposes (`hipmm run`, tests/preload). So is what
# takes minutes or much memory there: test_backing, test_free_index, test_held, all interleavings but those of `reserving`,
# sweeps over all types, random models.
set -eu
cd "$(dirname "$0")/.."

# step COMMAND...: its output is shown if it fails
step() {
  "$@" >step.log 2>&1 || { tail -n 100 step.log; exit 1; }
}

step dpkg --add-architecture arm64
step apt-get update
step env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends make autoconf automake libtool pkg-config \
  xz-utils gcc-aarch64-linux-gnu qemu-user libc6-dev:arm64 libltdl-dev:arm64 libjansson-dev:arm64 libcmocka-dev:arm64 \
  libsqlite3-dev:arm64 libamdhip64-dev:arm64
[ -x configure ] || step autoreconf -fi
mkdir -p build-aarch64
cd build-aarch64
step env PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig ../configure --host=aarch64-linux-gnu --enable-werror
step make -j "$(nproc)"

xz -dc ../tests/data/resnet50_train.csv.xz >trace.csv
HIPMM_PLUGIN_PATH=$PWD/plugins LD_LIBRARY_PATH=.libs HIPMM_RUNTIME=software \
  qemu-aarch64 hipmm replay --config ../etc/hipmm.json trace.csv | tee replay
grep -q '4,069,464,592 bytes' replay || { echo "the replay counts otherwise than on x86-64" && exit 1; }

tests=$(cd .. && ls tests/unit/pool/test_*.c | sed 's/\.c$//' | grep -vE '/test_(order|backing|free_index|held)$')
for name in block_map error host_memory keys log option registry resource stack stream text; do
  tests="$tests tests/unit/test_$name"
done
# Not test_stream_reuse and test_sub_allocators, which map so many addresses that qemu's records of them take 24 GiB.
tests="$tests tests/plugins/test_pool tests/plugins/test_arena tests/plugins/test_fixed_size tests/explore/test_interleave_reserving"
# shellcheck disable=SC2086 # a list of words
step make -j "$(nproc)" check-plugins $tests
HIPMM_TEST_RUNS=1 HIPMM_TEST_OPERATIONS=60 HIPMM_TEST_FAULTS=5 HIPMM_TEST_EMULATED=1
export HIPMM_TEST_RUNS HIPMM_TEST_OPERATIONS HIPMM_TEST_FAULTS HIPMM_TEST_EMULATED
status=0
make -j "$(nproc)" check-TESTS TESTS="$tests" LOG_COMPILER=qemu-aarch64 VERBOSE=1 >tests.log 2>&1 || status=$?
[ $status = 0 ] || grep -E -A 4 '^not ok|^(FAIL|ERROR):' tests.log | head -n 100
awk '/^# PASS:/ { passed = $3 } /^# (FAIL|XPASS|ERROR):/ { failed += $3 }
  END { print passed + 0 " passed, " failed + 0 " failed" }' test-suite.log
exit $status
