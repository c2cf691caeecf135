#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm info: versions, the graph in force and where it is from, runtimes and why not others, devices, plugin folders. And the
# warning that there is no GPU, which is for machines where one could have been used.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
COLUMNS=999
export COLUMNS

# value KEY: the first value of that name in the JSON printed
value() {
  sed -n "s/^ *\"$1\": \(.*[^,]\),*$/\1/p" "$work/out" | head -n 1
}

is() {
  [ "$(value "$1")" = "$2" ] || fail "$1 is $(value "$1") and not $2"
}

# device_is KEY VALUE: the same of the first software device. The devices of other runtimes, which this machine may have, come first.
device_is() {
  found=$(sed '1,/"name": "hipmm software device"/d' "$work/out" | sed -n "s/^ *\"$1\": \(.*[^,]\),*$/\1/p" | head -n 1)
  [ "$found" = "$2" ] || fail "$1 is $found and not $2"
}

HIPMM_RUNTIME=software
HIPMM_SOFTWARE=devices=3,memory=2GiB,peer_group=2,granularity=4MiB,managed_memory=false
export HIPMM_RUNTIME HIPMM_SOFTWARE
run 0 info
version=$("$hipmm" --version | cut -d' ' -f2)
prints "^hipmm     $version, plugin ABI [0-9]*$"
prints '^graph     built in (no graph file was found), 1 resource, runtime "auto" (HIPMM_RUNTIME=software overrides it)$'
prints '^runtimes  amd '
prints '^          software in use: HIP [0-9.]*, 3 devices, /.*software\.so$'
prints '^device 0  hipmm software device, 2 GiB, 2 GiB free; virtual memory in 4 MiB, memory pools, reaches device 1$'
prints '^device 2  .*memory pools$'
prints "^plugins   .*/tests/cmd/.libs (HIPMM_PLUGIN_PATH) [0-9]* found"
run 0 info --json
is version "\"$version\""
prints '^  "runtime": "software",$'
device_is memory_bytes 2147483648
device_is mapping_granularity 4194304
device_is mapping_rdma null # the runtime does not know the attribute
device_is memory_pools true
device_is managed_memory false
run 2 info x
says 'takes no operand'

# The graph, and where it is from.
echo '{ "stack": ["pool", "device"], "runtime": "software", "plugin_path": ["/nowhere/at/all"] }' >hipmm.json
run 0 info
prints '^graph     hipmm.json (this folder), 2 resources, runtime "software"$'
prints '^          /nowhere/at/all (plugin_path of the graph) does not exist$'
cp hipmm.json other.json
HIPMM_CONFIG=other.json run 0 info
prints '^graph     other.json (HIPMM_CONFIG), 2 resources'
run 0 info --config other.json
prints '^graph     other.json (--config), 2 resources'
echo '{ "stack": ["pol"] }' >bad.json
run 1 info --config bad.json --json
is ok false
is in_force false
grep -q '^hipmm: bad.json' "$work/err" || fail "the error in the graph is not printed"
rm hipmm.json

# A runtime that cannot be used says why, each in its line.
HIPMM_RUNTIME=$work/nothing.so run 1 info
prints "^          $work/nothing.so cannot be used: .*nothing.so"
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=0 run 1 info
prints 'software cannot be used: .*devices'

# A runtime that does not answer is given up.
hanging=$top_builddir/tests/cmd/loader/.libs/hang.so
HIPMM_RUNTIME=$hanging run 1 info --timeout 1 --json
prints '"reason": "it did not answer within 1 s; does its driver hang?"'
grep -q '"name": "software",$' "$work/out" || fail "the other runtimes are not told"
for number in 0 x 3601; do
  run 2 info --timeout $number
  says "^hipmm: info: --timeout \"$number\" is not a whole number from 1 to 3600$"
done

# What Python says of PyTorch; nothing, if it says nothing or does not answer.
grep -q '^PyTorch' "$work/out" && fail "there is no PyTorch"
mkdir bin
python() {
  printf '#!/bin/sh\n%s\n' "$1" >bin/python3
  chmod +x bin/python3
}
python 'echo "$PWD $*" >&2; echo "{\"version\": \"2.11.0\", \"allocator\": \"gets the bridge:\", \"detail\": \"compiled, /x.so\"}"'
PATH=$PWD/bin:$PATH run 0 info
prints '^PyTorch   2.11.0 gets the bridge: compiled, /x.so$'
PATH=$PWD/bin:$PATH run 0 info --json
is allocator '"gets the bridge:"'
for program in 'echo {}' 'exit 1' 'echo no' 'exec sleep 9'; do
  python "$program"
  PATH=$PWD/bin:$PATH run 0 info --timeout 1
  grep -q '^PyTorch' "$work/out" && fail "$program: there is no PyTorch"
done
rm -r bin

# On a narrow terminal, the line that says so is overwritten, and not repeated.
if installed script "the width of a terminal"; then
  TERM=xterm script -qec "stty cols 40; HIPMM_RUNTIME=$hanging $hipmm info --timeout 1 >text" /dev/null >"$work/out" </dev/null
  python3 - "$work/out" <<'END' || fail "progress goes beyond 40 columns"
import sys
lines = open(sys.argv[1], encoding="utf-8", newline="").read().replace("\033[K", "").split("\r")
sys.exit(not any("%" in line for line in lines) or any(len(line) >= 40 for line in lines))
END
fi

# Without any other runtime there is no warning that the software device is used.
unset HIPMM_RUNTIME HIPMM_SOFTWARE
mkdir alone alone/plugins
cp "$hipmm" alone/
for type in device pool; do cp "$top_builddir/plugins/$type/.libs/$type.so" alone/plugins/; done
cp "$top_builddir/plugins/runtimes/software/.libs/software.so" alone/plugins/
usual=$hipmm
hipmm=$work/alone/hipmm
unset HIPMM_PLUGIN_PATH
if [ -z "${SANITIZER_FLAGS-}" ] && ! "$hipmm" plugins | grep -q '^nvidia '; then
  LD_PRELOAD=$top_builddir/tests/cmd/loader/.libs/no_amd.so run 0 show
  [ ! -s "$work/err" ] || fail "a warning, although only software was built: $(cat "$work/err")"
  LD_PRELOAD=$top_builddir/tests/cmd/loader/.libs/no_amd.so run 0 info
  prints 'nvidia cannot be used: '
  # Without the nvidia runtime, the last line says why, and what to install.
  if tail -n 1 "$work/out" | grep -q '^nvidia    this runtime was not built: '; then
    prints 'nvidia cannot be used: hipmm was built without it$'
    LD_PRELOAD=$top_builddir/tests/cmd/loader/.libs/no_amd.so run 0 info --json
    [ "$(value nvidia_missing)" != null ] || fail "the object does not say why"
  elif [ -f "$top_builddir/plugins/runtimes/nvidia/nvidia.la" ]; then
    ! grep -q 'not built' "$work/out" || fail "it says that the nvidia runtime was not built"
  else
    fail "it does not say why the nvidia runtime is missing"
  fi
fi

# A folder beside the program's may be anybody's, as in /tmp. It is looked into if no other user can write it.
mkdir alone/bin bare bare/bin
mv alone/hipmm alone/bin/
cp alone/bin/hipmm bare/bin/
besides=0 # the status where there is no such folder: 1, unless this machine has hipmm installed
bare/bin/hipmm plugins >/dev/null 2>&1 || besides=$?
cp "$top_builddir/tests/cmd/.libs/sample.so" alone/plugins/
hipmm=$work/alone/bin/hipmm
# judged MODE OWNER: whether the folder is looked into; only root can give it away
judged() {
  chmod "$1" alone/plugins
  chown "$2" alone/plugins 2>/dev/null || { skip_part "plugins of user $2" "only root can give a folder away" && return; }
  if [ "$1" = 755 ] && [ "$2" = "$(id -u)" ]; then
    run 0 plugins
    prints '^sample '
  else
    run $besides plugins
    grep -q '^sample ' "$work/out" && fail "plugins come from a folder of mode $1 and user $2"
    grep -q "warning: plugin: $work/alone/plugins is not used: nobody named it" "$work/err" || fail "it is not said: $(cat "$work/err")"
    HIPMM_PLUGIN_PATH=$work/alone/plugins run 0 plugins
    prints '^sample '
  fi
}
judged 755 "$(id -u)"
judged 1777 "$(id -u)"
judged 755 65534
chmod 755 alone/plugins
chown "$(id -u)" alone/plugins
hipmm=$usual

# `hipmm run` preloads nothing that another user put beside a folder of plugins.
mkdir -p open/tools/preload/.libs open/tools/preload/python open/plugins
cp "$top_builddir/tools/preload/.libs/preload.so" open/tools/preload/.libs/
echo >open/tools/preload/python/sitecustomize.py
preloaded() {
  HIPMM_PLUGIN_PATH=$work/open/plugins:$top_builddir/plugins HIPMM_RUNTIME=software run 0 run -- env
  grep -c "^LD_PRELOAD=$work/open/tools/preload/.libs\|^PYTHONPATH=$work/open/tools/preload/python" "$work/out"
}
[ -n "${SANITIZER_FLAGS-}" ] || [ "$(preloaded)" = 2 ] || fail "what is the user's own is not preloaded"
chmod 777 open/tools/preload/.libs open/tools/preload/python
[ -n "${SANITIZER_FLAGS-}" ] || [ "$(preloaded)" = 0 ] || fail "what everybody can write is preloaded"

finish
