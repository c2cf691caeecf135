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
  good releases
  silent
done

# What the program asks and does besides; the runtime's own functions are never served.
DRIVER_WAY=asked
program=driver
for graph in device pool; do
  options="--config $graph.json"
  good capture
  reports cuMemAllocAsync 2 1 0
  reports cuMemFreeAsync 3 1 1
  says_once '^hipmm: cuMemFreeAsync: 0x[0-9a-f]* was not allocated in the capture that is to free it$'
  good pools
  silent
  reports cuMemAllocFromPoolAsync 3 1 0
  good reset contexts threads
  silent
  reports cuMemAlloc_v2 204 4 0
done
options='--config pool.json'
good ask contexts
silent
reports cuMemAlloc_v2 3 1 0
reports cuMemFree_v2 3 1 0
reports cuMemAllocAsync 2 2 0
reports cuStreamCreate 1 0 0
options='--config limited.json'
good kinds
reports cuMemAllocPitch_v2 2 1 0
reports cuMemAllocManaged 1 0 0
reports cuMemHostAlloc 1 0 0
reports cuMemAllocHost_v2 1 0 0
reports cuMemFreeHost 2 0 0
reports cuMemGetInfo_v2 1 0 0
good wrong
reports cuMemAlloc_v2 6 4 1
reports cuMemFree_v2 5 3 1
says_once '^hipmm: cuMemFree_v2: 0x[0-9a-f]* was freed before$'
finish
