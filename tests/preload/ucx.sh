#!/bin/sh
# SPDX-License-Identifier: MIT
#
# UCX's calls for blocks of hipmm's, in a program that knows nothing of hipmm: what UCX learns of each block must agree, and
# another process must find the block's data behind whatever handle it gets.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
LD_LIBRARY_PATH=$here/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
XDG_RUNTIME_DIR=$work/runtime
export LD_LIBRARY_PATH XDG_RUNTIME_DIR
mkdir -m 700 "$XDG_RUNTIME_DIR"
library=$(basename "$(ls "$here"/.libs/libamdhip64.so.? | head -n 1)")

echo '{ "stack": ["device"] }' >device.json
echo '{ "stack": [{ "type": "pool", "growth": "segments" }, "device"] }' >segments.json
echo '{ "stack": [{ "type": "pool", "growth": "mapped" }, "device"] }' >mapped.json
echo '{ "stack": [{ "type": "pool", "growth": "mapped", "exportable": true }, "device"] }' >shared.json
echo '{ "stack": [{ "type": "pool", "growth": "mapped" }, { "type": "device", "handle_type": "posix_fd" }] }' >descriptors.json
echo '{ "stack": [{ "type": "pool", "ipc": "legacy" }, "device"] }' >legacy.json

# One graph has the program's own sizes, whose 200 MiB take seconds.
fewer='4096 3145728 33554432'
sizes=$fewer

# looks NAME COMMAND…: all blocks are as they must be; what was found is in $work/out
looks() {
  name=$1
  shift
  # shellcheck disable=SC2086 # numbers
  timeout 600 "$@" "$here/ucx" "$library" $sizes >"$work/out" 2>"$work/err" </dev/null && [ "$(tail -n 1 "$work/out")" = good ] || {
    fail "UCX's calls, $name"
    sed 's/^/  /' "$work/out" "$work/err"
  }
}

# all PATTERN: so is each block
all() {
  [ "$(grep -c '^bytes=' "$work/out")" = "$(grep -c "^bytes=.*$1" "$work/out")" ] || {
    fail "$name: a block is not $1"
    sed 's/^/  /' "$work/out"
  }
}

looks 'the runtime alone'
all ' mapped=no .* way=legacy opened=0$'
for graph in device segments legacy mapped shared descriptors; do
  if [ $graph = shared ]; then sizes=; else sizes=$fewer; fi
  looks "$graph" "$hipmm" run --config $graph.json --
  case $graph in
  device | segments | legacy) all ' mapped=no .* way=legacy opened=0$' ;;
  mapped)
    all ' way=none$'
    [ "$(grep -c 'a library asked whether .* write "exportable": true' "$work/err")" = 1 ] || fail "$name: no word of slow copies"
    ;;
  *)
    [ "$(grep -c '^bytes=4096 .* way=none$' "$work/out")" = 3 ] || fail "$name: a small block is shown"
    [ "$(grep -c '^bytes=[0-9]\{5,\} .*legacy=1 .* way=legacy opened=0$' "$work/out")" = 6 ] ||
      fail "$name: a large block is not shared: $(cat "$work/out")"
    ;;
  esac
done
finish
