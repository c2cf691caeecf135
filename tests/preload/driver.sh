#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm run with a program that calls NVIDIA's driver, in all ways in which a program finds its functions. hipmm's runtime is
# `nvidia`, over the same driver: a stand-in over the software device.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
[ -e "$top_builddir/plugins/runtimes/nvidia/.libs/nvidia.so" ] || { echo "the nvidia runtime was not built"; exit 77; }
HIPMM_RUNTIME=nvidia
FAKE_SOFTWARE=$top_builddir/plugins/runtimes/software/.libs/software.so
LD_LIBRARY_PATH=$here/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HIPMM_RUNTIME FAKE_SOFTWARE LD_LIBRARY_PATH DRIVER_WAY

echo '{ "stack": ["device"] }' >device.json
echo '{ "stack": [{ "type": "pool", "growth": "segments" }, "device"] }' >pool.json
echo '{ "limit_physical": "64MiB", "stack": [{ "type": "pool", "growth": "segments" }, "device"] }' >physical.json
cat >limited.json <<'END'
{ "resources": {
    "memory": { "type": "device" }, "pool": { "type": "pool", "upstream": "memory", "growth": "segments" },
    "top": { "type": "limiting", "upstream": "pool", "limit": "4MiB" },
    "managed": { "type": "managed" }, "pinned": { "type": "pinned" } },
  "devices": { "default": "top" } }
END

for DRIVER_WAY in linked default opened asked asked-old; do
  case $DRIVER_WAY in
  linked | default) program=driver_linked ;;
  *) program=driver ;;
  esac
  for graph in device pool; do
    options="--config $graph.json"
    good memory
    silent
    reports cuMemAlloc_v2 10 0 0
    reports cuMemFree_v2 10 0 0
    reports cuMemAllocAsync 10 0 0
    reports cuMemAllocAsync_ptsz 10 0 0
    reports cuMemFreeAsync 10 0 0
    reports cuMemFreeAsync_ptsz 10 0 0
    reports cuStreamCreate 1 0 0
  done
  options='--config pool.json'
  good releases launch
  silent
  HIPMM_SOFTWARE=memory=64MiB good short hungry capture_short
  silent
  options='--config physical.json'
  HIPMM_SOFTWARE=memory=256MiB good past
  tells '^  device 0, created past hipmm (hipMemCreate, cuMemCreate)$'
  tells '^    peak requested   64 MiB (67108864 bytes)$'
  tells '^    left at exit     6 MiB (6291456 bytes) in 1 block$'
  tells '^  first failure: cuMemCreate: "limit_physical" lets this process hold 64 MiB of device 0; it holds 0 bytes, and 66 MiB more are wanted$'
  says_once '^hipmm: cuMemCreate: "limit_physical" lets this process hold 64 MiB of device 0; it holds'
  HIPMM_SOFTWARE=memory=256MiB good past_threads
done
options='--json --config physical.json'
HIPMM_SOFTWARE=memory=256MiB good past
tells '{"device":0,"kind":"past_hipmm","stack":null,"peak_requested_bytes":67108864,"live_bytes":6291456,"live_blocks":1,"peak_reserved_bytes":67108864}'

# What the program asks and does besides; the runtime's own functions are never served.
DRIVER_WAY=asked
program=driver
for graph in device pool; do
  options="--config $graph.json"
  good capture
  reports cuMemAllocAsync 2 1 0
  reports cuMemFreeAsync 3 1 1
  says_once '^hipmm: cuMemFreeAsync: 0x[0-9a-f]* was not allocated in the capture that is to free it$'
  good capture_forks
  silent
  reports cuMemAllocAsync 10 3 0
  reports cuMemFreeAsync 10 3 0
  good pools
  silent
  reports cuMemAllocFromPoolAsync 3 1 0
  good locations
  silent
  reports cuMemAllocFromPoolAsync 1 0 0
  reports cuMemAllocAsync 2 1 0
  good reset contexts threads
  silent
  reports cuMemAlloc_v2 204 4 0
done
options='--config pool.json'
good ask contexts
silent
reports cuMemAlloc_v2 4 1 0
reports cuMemFree_v2 3 1 0
reports cuMemFreeAsync 3 2 0
reports cuMemAllocAsync 2 2 0
reports cuStreamCreate 1 0 0
good share
silent
reports cuIpcOpenMemHandle_v2 1 0 0
reports cuIpcCloseMemHandle 1 0 0
echo '{ "stack": [{ "type": "device", "peers": [{ "device": 0 }, { "device": 1 }] }] }' >peers.json
for graph in device pool peers; do
  options="--config $graph.json"
  HIPMM_SOFTWARE=devices=2 good devices
  says_once '^hipmm: cuDevicePrimaryCtxReset_v2: hipmm serves 2 devices, so the memory of this one stays until the program ends$'
  reports cuMemAlloc_v2 2 0 0
  reports cuMemAllocAsync 1 0 0
  HIPMM_SOFTWARE=devices=2 good peers
  silent
done
options='--config limited.json'
good kinds
reports cuMemAllocPitch_v2 2 1 0
reports cuMemAllocManaged 2 1 0
reports cuMemHostAlloc 1 0 0
reports cuMemAllocHost_v2 1 0 0
reports cuMemFreeHost 2 0 0
reports cuMemGetInfo_v2 1 0 0
good wrong
reports cuMemAlloc_v2 6 4 1
reports cuMemFree_v2 5 3 1
says_once '^hipmm: cuMemFree_v2: 0x[0-9a-f]* was freed before$'

# A CUDA runtime over the driver. Linked into the program, its calls of the driver are served. As a shared library, its own
# functions are, and of the driver's only what it calls besides: an allocation is served and counted once.
options='--config pool.json'
program=over/static
good memory
silent
reports cuMemAlloc_v2 5 0 0
reports cuMemAllocPitch_v2 5 0 0
reports cuMemAllocAsync 5 0 0
reports cuMemAllocAsync_ptsz 5 0 0
reports cuMemFree_v2 16 1 0
reports cuMemFreeAsync 5 0 0
reports cuMemGetInfo_v2 1 0 0
good reset
silent
program=over/shared
LD_LIBRARY_PATH=$here/over/.libs:$LD_LIBRARY_PATH
good memory
silent
reports cudaMalloc 5 0 0
reports cudaMallocAsync 5 0 0
reports cudaMallocAsync_ptsz 5 0 0
reports cudaFree 16 1 0
reports cudaFreeAsync 5 0 0
reports cuMemAllocPitch_v2 5 0 0
grep -q 'cuMemAlloc_v2\|cuMemAllocAsync\|cuMemFree' "$work/report" && fail "what the runtime calls itself is counted"
good reset
silent

# The program that prove.py runs on a GPU.
# shellcheck disable=SC2086 # several words
if ${CC:-cc} ${SANITIZER_FLAGS-} -std=gnu11 -O2 -pthread -D_GNU_SOURCE -o proof "$top_srcdir/tests/lab/gpu/driver.c" -ldl; then
  for way in asked dlsym; do
    ./proof $way >plain 2>"$work/err" || fail "tests/lab/gpu/driver.c by itself: $(cat "$work/err")"
    "$hipmm" run --strict --config pool.json --report=report -- ./proof $way >served 2>"$work/err" ||
      fail "tests/lab/gpu/driver.c under hipmm run: $(cat "$work/err")"
    cmp -s plain served || fail "tests/lab/gpu/driver.c says $(cat served) and not $(cat plain)"
    grep -q '^  cuMemAlloc_v2 *210 *8 *1$' report || fail "tests/lab/gpu/driver.c: $(cat report)"
  done
fi

# Without the driver: what is linked or looked up is the driver's own.
options='--no-driver --config pool.json'
good memory
silent
reports cudaMalloc 5 0 0
grep -q cuMemAllocPitch "$work/report" && fail "the driver is served with --no-driver"
program=over/static
good memory
silent
tells '^  no call came through hipmm: '
program=driver_linked
DRIVER_WAY=linked
good memory
reports cuMemAlloc_v2 10 10 0
silent

# A program that uses hipmm itself is not disturbed, and hipmm's calls are not served.
run 0 run --config pool.json --report=report -- "$hipmm" bench --workload pair --config device.json
grep -q '^  no call came through hipmm: ' report || fail "hipmm's own calls are served: $(cat report)"
finish
