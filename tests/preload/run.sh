#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm run: a HIP program over the software device, each function that is hooked, each mistake that a program can make.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
program=program

echo '{ "stack": ["device"] }' >device.json
echo '{ "stack": ["pool", "device"] }' >pool.json
echo '{ "stack": [{ "type": "pool", "growth": "segments" }, "device"] }' >segments.json
echo '{ "stack": ["async"] }' >async.json

# The report, to the letter.
options='--config pool.json'
good leak
silent
sed "s/process [0-9]*/process N/; s|$work/|FOLDER/|" "$work/report" >"$work/clean"
cat >"$work/wanted" <<'END'
hipmm: report of program, process N, runtime software
  graph FOLDER/pool.json
  function                            calls    passed on       failed
  hipMalloc                               3            0            0
  device 0, device memory
    peak requested   4.00 MiB (4197376 bytes)
    peak reserved    6 MiB (6291456 bytes)
    driver alone     8 MiB (8388608 bytes)
    left at exit     4.00 MiB (4197376 bytes) in 3 blocks
  in these figures
    passed on        calls that hipmm left to the runtime
    failed           calls that hipmm answered with an error
    peak requested   the most that the program had allocated at one time
    peak reserved    the most that hipmm held from the runtime at one time, to serve the program
    driver alone     an estimate of the most that the driver would have taken without hipmm, if a block of 1 MiB
                     or more takes units of 2 MiB of its own, and smaller ones multiples of 512 bytes out of
                     units that they share
    left at exit     what the program has not freed
END
diff -u "$work/wanted" "$work/clean" || fail "the report is another one"

# Data, over each kind of stack, with streams that run late in any order, and with threads.
good pool_locations
silent
reports hipMallocFromPoolAsync 2 1 0
reports hipMallocAsync 2 0 0
reports hipFreeAsync 4 1 0

for graph in device pool segments async; do
  options="--config $graph.json"
  for seed in 1 2; do
    HIPMM_SOFTWARE=scheduler=stepped,seed=$seed
    export HIPMM_SOFTWARE
    good reuse ordered streams
  done
  unset HIPMM_SOFTWARE
  good memory arguments reuse streams threads
  silent
  reports hipMalloc 160 0 0
  reports hipFree 160 0 0
  reports hipMallocAsync 160 0 0
  reports hipFreeAsync 160 0 0
  reports hipStreamCreateWithFlags 4 0 0
  reports hipStreamDestroy 4 0 0
  tells '^    left at exit     0 bytes$'
done

# Calls that hipmm does not serve keep HIP's answers.
options='--config pool.json'
good arguments
silent
reports hipMalloc 2 2 0
reports hipExtMallocWithFlags 1 1 0
reports hipFree 2 2 0
reports hipFreeAsync 1 1 0
reports hipMallocFromPoolAsync 1 1 0
good host
reports hipHostMalloc 1 1 0
reports hipMallocManaged 1 1 0

# Freed twice: refused, and the pool's memory stays.
options='--config segments.json'
good wrong
reports hipFree 5 2 1
reports hipFreeAsync 3 1 1
says_once '^hipmm: hipFree: 0x[0-9a-f]* was freed before$'
tells '^  first failure: hipFree: 0x[0-9a-f]* was freed before$'
options='--config pool.json'
good wrong

# Out of memory, and the last error.
echo '{ "stack": [{ "type": "limiting", "limit": "4MiB" }, "pool", "device"] }' >limited.json
options='--config limited.json'
good shortage
silent
reports hipMalloc 5 0 3
reports hipMallocAsync 1 0 1
tells '^  first failure: hipMalloc of 5 MiB: limiting: cannot allocate 5 MiB'

# Out of memory in calls that hipmm does not serve.
options='--config pool.json'
files=$(ulimit -S -f)
ulimit -S -f 500000 # blocks of 512 or 1024 bytes: enough for the device
HIPMM_SOFTWARE=memory=64MiB good shortage_of_runtime
silent
ulimit -S -f "$files"
calls=
for call in StreamCreate StreamCreateWithPriority EventCreate HostRegister MemPoolCreate MemCreate MemMap MemSetAccess \
  GraphInstantiate GraphLaunch; do
  calls="$calls${calls:+;}hip$call:1:hipErrorOutOfMemory"
done
options='--config segments.json'
HIPMM_SOFTWARE="fail=$calls" good repeats
silent

# A limit for what hipmm and the program itself take together.
echo '{ "limit_physical": "16MiB", "stack": ["pool", "device"] }' >physical.json
options='--config physical.json'
good past
says_once '^hipmm: hipMemCreate: "limit_physical" lets this process hold 16 MiB of device 0; it holds 10 MiB, and 8 MiB more are wanted$'
tells '^  device 0, created past hipmm (hipMemCreate, cuMemCreate)$'
tells '^    peak requested   16 MiB'

# Frees during a capture.
echo '{ "stack": [{ "type": "pool", "maximum_size": "1MiB", "growth": "segments" }, "device"] }' >limited.json
options='--config limited.json'
HIPMM_SOFTWARE=fail=hipDeviceSynchronize:1:hipErrorStreamCaptureUnsupported good deferred
silent
reports hipFree 3 0 0
tells '^    left at exit     0 bytes$'

# Free and total memory.
HIPMM_SOFTWARE=memory=64MiB
export HIPMM_SOFTWARE
echo '{ "stack": [{ "type": "limiting", "limit": "16MiB" }, "pool", "device"] }' >limited.json
good info
echo '{ "stack": ["statistics", { "type": "pool", "maximum_size": "16MiB" }, "device"] }' >limited.json
good info
echo '{ "stack": [{ "type": "limiting", "limit": "16MiB" }, { "type": "limiting", "limit": "63MiB" }, "device"] }' >limited.json
good info
cat >limited.json <<'END'
{ "resources": {
    "memory": { "type": "device" },
    "pool": { "type": "pool", "upstream": "memory", "maximum_size": "16MiB" },
    "bins": { "type": "binning", "upstream": "pool", "bins": [ { "size": "64KiB" } ] } },
  "devices": { "default": "bins" } }
END
good info
echo '{ "stack": [{ "type": "limiting", "limit": "25%" }, "device"] }' >limited.json
good info
options='--config physical.json'
good info
options='--config async.json'
good info_released
unset HIPMM_SOFTWARE
options='--config pool.json'
good ranges
reports hipMemGetAddressRange 3 1 0
reports hipMemPtrGetInfo 1 0 0

# Managed and pinned memory, where the graph has them.
cat >kinds.json <<'END'
{ "resources": {
    "memory": { "type": "device" }, "pool": { "type": "pool", "upstream": "memory" },
    "moving": { "type": "managed" }, "managed": { "type": "pool", "upstream": "moving" },
    "pinned": { "type": "pinned" } },
  "devices": { "default": "pool" } }
END
options='--config kinds.json'
good kinds
reports hipMallocManaged 1 0 0
reports hipHostMalloc 2 1 0
reports hipHostFree 4 1 2
says_once '^hipmm: hipFree: 0x[0-9a-f]* is memory of another kind and stays allocated$'
tells '^  device 0, managed memory$'
tells '^  device 0, pinned memory$'
good host
reports hipMallocManaged 1 0 0
reports hipHostMalloc 1 0 0
reports hipHostAlloc 1 0 0
reports hipMallocHost 1 0 0
good host_flags
reports hipExtHostAlloc 4 1 0
reports hipHostFree 4 1 0
good host
grep -q warning "$work/err" && fail "a resource that is used is called unused"
cat >kinds.json <<'END'
{ "resources": { "memory": { "type": "device" }, "managed": { "type": "pool", "upstream": "memory" } },
  "devices": { "default": "memory" } }
END
good host
reports hipMallocManaged 1 1 0
echo '{ "stack": ["pool", "managed"] }' >kinds.json
good host memory
good host
reports hipMallocManaged 1 0 0
tells 'counted with device memory$'

# Other processes.
options='--config pool.json'
good share
[ "$(head -n 1 "$work/out")" = refused ] || fail "a part of mapped memory is shared"
says_once '^hipmm: hipIpcGetMemHandle: pool: 0x[0-9a-f]* lies in memory that was not mapped for other processes; write "exportable"'
options='--config segments.json'
good share
[ "$(head -n 1 "$work/out")" = shared ] || fail "a part of an allocation is not shared"
silent
good share_parts
says_once '^hipmm: hipIpcOpenMemHandle: process [0-9]*, which made the handle, has ended, or belongs to another user or '
reports hipIpcGetMemHandle 10 0 1
reports hipIpcOpenMemHandle 11 0 5
reports hipIpcCloseMemHandle 7 1 0
good share_mapped
says_once '^hipmm: hipIpcGetMemHandle: 0x[0-9a-f]* is mapped memory, for which HIP has no such handles; '
reports hipIpcGetMemHandle 3 1 2
good share_closed
says_once '^hipmm: hipIpcOpenMemHandle: process [0-9]*, which made the handle, has ended, or belongs to another user or '
good share_reopened
says_once '^hipmm: hipIpcGetMemHandle: the record of a handle: Function not implemented$'
good share_ended
says_once '^hipmm: hipIpcOpenMemHandle: process [0-9]*, which made the handle, has ended, or belongs to another user or '
options='--config device.json'
good share
[ "$(head -n 1 "$work/out")" = shared ] || fail "a whole allocation is not shared"
silent
options='--config pool.json'
good pools
reports hipMallocFromPoolAsync 3 1 0
reports hipMemPoolExportPointer 2 1 1

options='--config device.json'
HIPMM_SOFTWARE=devices=2 good pool_streams
silent
reports hipMallocFromPoolAsync 8 0 0
reports hipFreeAsync 8 0 0
options='--config pool.json'
HIPMM_SOFTWARE=devices=2 good pool_streams
silent
reports hipMallocFromPoolAsync 8 0 0

for graph in pool segments; do
  options="--config $graph.json"
  good pool_reserved
  silent
done
for graph in device pool segments async; do
  options="--config $graph.json"
  HIPMM_SOFTWARE=devices=2 good pool_access
  silent
  reports hipMallocFromPoolAsync 4 0 0
done
options='--config pool.json'
good pool_usage
silent
reports hipMallocFromPoolAsync 2 0 0
reports hipMallocAsync 5 1 0
reports hipFreeAsync 5 1 0

for graph in device pool segments async; do
  options="--config $graph.json"
  good pool_limits pool_reuse
  silent
  reports hipMallocAsync 3 1 0
  reports hipMallocFromPoolAsync 1 1 0
done
for graph in pool segments; do
  options="--config $graph.json"
  good pool_trim
  silent
  reports hipMallocFromPoolAsync 2 0 0
done

# Functions by their names, and attributes of pointers.
options='--config pool.json'
good proc_address opened
silent
reports hipMalloc 1 0 0
reports hipFree 1 0 0
good proc_address
reports hipMalloc 1 0 0
for graph in device pool segments; do
  options="--config $graph.json"
  good attributes
  silent
done
reports hipPointerGetAttribute 15 5 0
reports hipPointerGetAttributes 3 2 0
reports hipDrvPointerGetAttributes 3 2 0
for graph in device pool segments; do
  options="--config $graph.json"
  good package
  silent
done

# PyTorch's stack maps memory on several devices, and hipMalloc's memory is then the runtime's, in whose order copies are.
options='--config pool.json'
HIPMM_LOG=info HIPMM_SOFTWARE=devices=2 good package_devices
grep -q 'growth mapped' "$work/err" || fail "$scenario: the memory is not mapped"
reports hipMalloc 4 4 0
options='--config segments.json'
HIPMM_SOFTWARE=devices=2 good package_devices
silent
reports hipMalloc 4 0 0
options='--config pool.json'

# Devices.
good reset
silent
reports hipDeviceReset 3 0 0
HIPMM_SOFTWARE=devices=2 good devices
says_once '^hipmm: hipDeviceReset: hipmm serves 2 devices, '
tells '^  device 1, device memory$'
echo '{ "stack": ["pool", { "type": "device", "peers": [{ "device": 0 }, { "device": 1 }] }] }' >peers.json
echo '{ "stack": [{ "type": "device", "peers": [{ "device": 0 }, { "device": 1 }] }] }' >plain_peers.json
for graph in pool device async peers plain_peers; do
  options="--config $graph.json"
  HIPMM_SOFTWARE=devices=2 good peers
  silent
done
for graph in peers plain_peers; do
  options="--config $graph.json"
  HIPMM_SOFTWARE=devices=2 good peers_given peers_early
  silent
done
for graph in device plain_peers; do
  options="--config $graph.json"
  HIPMM_SOFTWARE=devices=2 good peers_reset
done
options='--config pool.json'
HIPMM_SOFTWARE=devices=3,memory=64MiB good first
silent
tells '^  device 2, device memory$'

# The settings hold from the first call on, also where that call is not hooked, and without hipmm.
HIPMM_SOFTWARE=devices=3,memory=64MiB good registered reserved
silent
reports hipMalloc 1 0 0
cat >configured.json <<'END'
{ "runtime": { "type": "software", "devices": 3, "memory": "1GiB", "fail": ["hipIpcGetMemHandle:9", "hipMalloc:999"] },
  "stack": ["pool", "device"] }
END
options='--config configured.json'
HIPMM_SOFTWARE=memory=64MiB good first registered reserved
silent
options='--config pool.json'
for scenario in first registered reserved; do
  got=$(HIPMM_SOFTWARE=devices=3,memory=64MiB "$here/program" "$scenario" 2>&1)
  [ "$got" = good ] || fail "$scenario without hipmm: $got"
done
got=$(HIPMM_SOFTWARE=devices=3,memroy=64MiB "$here/program" nothing 2>&1)
[ "$got" = good ] || fail "a program that makes no call: $got"
got=$(HIPMM_SOFTWARE=devices=3,memroy=64MiB "$here/program" reserved 2>&1 | grep -c 'HIPMM_SOFTWARE: "memroy=64MiB" is not')
[ "$got" = 1 ] || fail "a wrong setting is told $got times"

# Processes: each writes a report.
good fork early_fork
[ "$(grep -c '^hipmm: report of program, process ' "$work/report")" = 2 ] || fail "not a report of each process"
finish
