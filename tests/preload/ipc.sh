#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Handles of blocks of mapped pools between two processes under `hipmm run`: data, processes that end, lie or send anything,
# and who gets no handle.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
program=ipc
mkdir -m 700 run
XDG_RUNTIME_DIR=$work/run
export XDG_RUNTIME_DIR

echo '{ "stack": [{ "type": "pool", "exportable": true }, "device"] }' >exportable.json
echo '{ "stack": ["pool", { "type": "device", "handle_type": "posix_fd" }] }' >shared.json
echo '{ "stack": [{ "type": "pool", "ipc": "legacy" }, "device"] }' >legacy.json
echo '{ "stack": ["pool", "device"] }' >pool.json

for graph in exportable shared legacy; do
  options="--config $graph.json"
  good share peer_killed
  silent
done
options='--config legacy.json'
IPC_PLAIN_PEER=1 good share
silent
reports hipIpcGetMemHandle 4 4 0
options='--config exportable.json'
good share
silent
reports hipIpcGetMemHandle 4 0 0
good twice stale
says_once '^hipmm: hipIpcOpenMemHandle: device: the handle cannot be opened: process [0-9]*: the block of the handle was freed'
good owner_killed
says_once 'the handle cannot be opened: process [0-9]* \(has ended\|has no socket\)'
good liar
good altered forked full_table hostile
[ -z "$(ls run/hipmm)" ] || fail "sockets are left: $(ls run/hipmm)"

# A socket that a killed process left is removed by the next one.
python3 -c 'import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind("run/hipmm/1-0")' 2>/dev/null || : >run/hipmm/1-0
[ ! -S run/hipmm/1-0 ] || { good twice && [ ! -e run/hipmm/1-0 ] || fail "an old socket is left"; }
rm -f run/hipmm/1-0

# refused PATTERN: no handle is made, and this is said
refused() {
  good refused
  says_once "^hipmm: hipIpcGetMemHandle: pool: .*$1"
}
IPC_BYTES=300000 refused 'shares its memory with other blocks.*allocate at least 1048576 bytes'
options='--config pool.json'
refused 'write "exportable": true for the pool, or "ipc": "legacy" where the other process has no hipmm$'
options='--config exportable.json'
for unsafe in '' relative "$work/none" "$work/run/link" "$work/open"; do
  mkdir -p open relative && ln -sfn "$work/run" run/link && chmod 777 open
  XDG_RUNTIME_DIR=$unsafe refused 'XDG_RUNTIME_DIR\|cannot be used for sockets'
done
chmod 755 run/hipmm
refused 'run/hipmm cannot be used for sockets: it is not a folder of this user that no other user may enter (mode 0700)$'
rm -r run/hipmm && mkdir -m 700 other && ln -s "$work/other" run/hipmm
refused 'run/hipmm cannot be used for sockets'
rm run/hipmm

# A graph that nobody named.
cp exportable.json hipmm.json
options=
refused 'a graph that was only found (.*hipmm.json) does not allow; name the graph'
HIPMM_CONFIG=hipmm.json good twice

printf '{ "stack": [{ "type": "pool", "ipc": "legacy", "exportable": true }, "device"] }' >wrong.json
run 1 bench --workload pair --seconds 0.01 --config wrong.json
says '"legacy" needs segments, for the driver has no handles of mapped memory'
finish
