#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm run with a CUDA program. Its runtime is a fake over the software device, which hipmm uses as a runtime by path.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
program=cuda
HIPMM_RUNTIME=$top_builddir/plugins/runtimes/software/.libs/software.so
export HIPMM_RUNTIME

echo '{ "stack": ["device"] }' >device.json
echo '{ "stack": ["pool", "device"] }' >pool.json
for graph in device pool; do
  options="--config $graph.json"
  good memory
  silent
  reports cudaMalloc 10 0 0
  reports cudaFree 11 1 0
  reports cudaMallocAsync 10 0 0
  reports cudaMallocAsync_ptsz 10 0 0
  reports cudaFreeAsync 10 0 0
  reports cudaFreeAsync_ptsz 10 0 0
  reports cudaStreamCreate 1 0 0
  reports cudaStreamCreateWithPriority 1 0 0
  grep -q cudaStreamCreateWithFlags "$work/report" && fail "what the runtime calls itself is counted"
  good capture
  reports cudaMallocAsync 2 1 0
  reports cudaFreeAsync 3 1 1
  says_once '^hipmm: cudaFreeAsync: 0x[0-9a-f]* was not allocated in the capture that is to free it$'
  good pools
  silent
  reports cudaMallocFromPoolAsync 4 1 0
  reports cudaMallocFromPoolAsync_ptsz 1 0 0
  good reset peers
  silent
done
cat >limited.json <<'END'
{ "resources": {
    "memory": { "type": "device" }, "pool": { "type": "pool", "upstream": "memory", "growth": "segments" },
    "top": { "type": "limiting", "upstream": "pool", "limit": "4MiB" },
    "managed": { "type": "managed" }, "pinned": { "type": "pinned" } },
  "devices": { "default": "top" } }
END
options='--config limited.json'
good wrong
reports cudaMalloc 3 0 1
reports cudaFree 6 1 2
reports cudaHostAlloc 1 1 0
reports cudaMallocHost 1 0 0
reports cudaMallocManaged 1 0 0
reports cudaMemPoolExportPointer 1 0 1
says_once '^hipmm: cudaFree: 0x[0-9a-f]* was freed before$'

# A block that is a part of an allocation, or of mapped memory, goes to another process.
echo '{ "stack": [{ "type": "pool", "exportable": true }, "device"] }' >exportable.json
mkdir -m 700 run
before=$options
for options in "$before" '--config exportable.json'; do
  XDG_RUNTIME_DIR=$work/run good share
  silent
  reports cudaIpcGetMemHandle 1 0 0
  reports cudaIpcOpenMemHandle 1 0 0
  reports cudaIpcCloseMemHandle 1 0 0
done
options=$before

# The runtime comes with a library that is opened with RTLD_LOCAL.
options='--config pool.json'
program=opener
"$hipmm" run --config pool.json --report=report -- "$here/opener" "$here/.libs/opened.so" >"$work/out" 2>"$work/err" ||
  fail "a library that was opened: $(cat "$work/err")"
scenario=opened
reports cudaMalloc 1 0 0
reports cudaFree 1 0 0
tells '^    peak requested   4 KiB (4096 bytes)$'

# The program cannot use memory of another runtime than its own: it runs without hipmm, and a message says so.
program=cuda
real=$HIPMM_RUNTIME
HIPMM_RUNTIME=software
cat >stub.c <<END
int cudaMalloc(void **ptr, unsigned long bytes) { *ptr = (void *)4096; return bytes == 1 ? 2 : 0; }
int cudaFree(void *ptr) { return ptr != (void *)4096; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
END
cat >plain.c <<'END'
#include <stdio.h>
int cudaMalloc(void **ptr, unsigned long bytes);
int cudaFree(void *ptr);
int main(void)
{
  void *ptr;
  int bad = cudaMalloc(&ptr, 4) || cudaFree(ptr);
  if (!bad) printf("good\n");
  return bad;
}
END
cc=${CC:-cc}
if $cc -shared -fPIC -o libcudart.so.12 stub.c && $cc -o plain plain.c ./libcudart.so.12; then
  LD_LIBRARY_PATH=. "$hipmm" run --config pool.json -- ./plain >"$work/out" 2>"$work/err" || fail "another runtime"
  scenario=another
  says_once "^hipmm: the program's CUDA functions are those of .*libcudart.so.12, which is not hipmm's runtime software; "
  LD_LIBRARY_PATH=. "$hipmm" run --strict --config pool.json -- ./plain >"$work/out" 2>"$work/err"
  [ $? = 2 ] || fail "another runtime, strictly"
  says_once 'plain is stopped, since it is to run --strict$'
fi

# An object's own functions with CUDA's names are its own: what they call in HIP is served. So it is where Python opens such an
# object, and where a program is linked with it.
printf 'int use(void);\nint main(void) { return use(); }\n' >linked.c
cp "$here/.libs/opener" "$here/.libs/names.so" . 2>/dev/null || cp "$here/opener" "$here/.libs/names.so" .
$cc -o linked linked.c ./names.so -Wl,--allow-shlib-undefined || fail "a program that is linked with its own CUDA"
LD_LIBRARY_PATH=$here/.libs
export LD_LIBRARY_PATH
for program in './opener ./names.so' ./linked; do
  for option in --strict --no-driver --no-python --check-streams; do
    scenario="$program under $option"
    # shellcheck disable=SC2086 # several words
    "$hipmm" run $option --config pool.json --report=report -- $program >"$work/out" 2>"$work/err" ||
      fail "$scenario: exit status $?"
    reports hipMalloc 2 0 1
    reports hipFree 1 0 0
    reports hipMemGetInfo 1 0 0
    reports cudaDeviceReset 1 0 1
    grep -q 'cudaMalloc\|cudaFree\|cuMem' report && fail "$scenario: a function of its own is counted"
    says_once '^hipmm: cudaDeviceReset: no library of this process has this function besides hipmm, so the call is refused$'
    [ "$(wc -l <"$work/err")" = 1 ] || fail "$scenario: $(cat "$work/err")"
  done
done
unset LD_LIBRARY_PATH
HIPMM_RUNTIME=$real
finish
