#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A set-user-id program hears nothing of its caller's environment or working folder, and loads no plugin that others than
# root and its own user can write. Needs root, to make such a program and run it as somebody else. Run by `make check`.
set -eu
: "${top_builddir:?}"

[ "$(id -u)" = 0 ] || { echo "only root can make a set-user-id program"; exit 77; }
command -v setpriv >/dev/null || { echo "setpriv is not installed (util-linux)"; exit 77; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir "$root/bin" "$root/bin/plugins" "$root/open" "$root/theirs" "$root/home"
cp "$top_builddir/tests/unit/privileged" "$root/bin/"
for type in device pool runtimes/software; do
  cp "$top_builddir/plugins/$type/.libs/${type##*/}.so" "$root/bin/plugins/"
  cp "$top_builddir/plugins/$type/.libs/${type##*/}.so" "$root/open/"
done
cp "$top_builddir/plugins/pool/.libs/pool.so" "$root/theirs/"
printf '{"stack": ["device"]}' >"$root/home/hipmm.json"
chmod -R go-w,a+rX "$root"
chmod 4755 "$root/bin/privileged"
bad=0
config=/etc/passwd

# run GRAPH...: as nobody, with an environment that must not be heard; the output in $root/out and $root/err
run() {
  (
    cd "$root/home"
    ASAN_OPTIONS=detect_leaks=0 HIPMM_CONFIG="$config" HIPMM_RUNTIME=nonsense HIPMM_SOFTWARE=nonsense \
      HIPMM_PLUGIN_PATH="$root/open" HIPMM_LOG="info:$root/home/log" \
      setpriv --reuid 65534 --regid 65534 --clear-groups "$root/bin/privileged" "$@" >"$root/out" 2>"$root/err"
  ) || { echo "it ended badly"; cat "$root/out" "$root/err"; bad=1; }
}

# said TEXT: the output has this line, or this beginning of one
said() {
  grep -q "^$1" "$root/out" && return
  echo "not said: $1"
  cat "$root/out" "$root/err"
  bad=1
}

good='{"runtime": "software", "stack": ["pool", "device"]}'
run "$good"
if grep -q '^privileged: no' "$root/out"; then
  echo "set-user-id programs get no rights here (a nosuid file system?)"
  exit 77
fi

# Nothing of the environment is heard, and the plugins beside the program are good: they are root's.
for name in CONFIG RUNTIME SOFTWARE PLUGIN_PATH LOG; do said "HIPMM_$name: not seen"; done
if grep -q '^config: .*hipmm.json' "$root/out"; then said 'config: /'; else said 'config: none'; fi
[ ! -e "$root/home/log" ] || { echo "it logged where its caller said"; bad=1; }
said 'graph: 0 $'

# Nor is a graph that stands in the environment.
config='{"runtime": "software", "plugin_path": "'"$root"'/theirs", "stack": ["pool", "device"]}'
run "$good"
said 'HIPMM_CONFIG: not seen'
said 'graph: 0 $'
config=/etc/passwd

# A path may go back and stand still, also at the root.
run '{"runtime": "software", "plugin_path": "/./../.'"$root"'/bin/../open", "stack": ["pool", "device"]}'
said 'graph: 0 $'
run '{"runtime": "'"$root"'/bin/nothing.so", "stack": ["device"]}'
said "graph: -20 $root/bin/nothing.so: No such file or directory"

# Others can write the folder, or the file; or the file is somebody else's.
chmod 777 "$root/open"
run '{"runtime": "software", "plugin_path": "'"$root"'/open", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/open: others can write it, and this process runs with raised rights"
chmod 755 "$root/open"
chmod 666 "$root/open/pool.so"
run '{"runtime": "software", "plugin_path": "'"$root"'/open", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/open/pool.so: others can write it"
chmod 644 "$root/open/pool.so"
chown 65534 "$root/open/pool.so"
run '{"runtime": "software", "plugin_path": "'"$root"'/open", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/open/pool.so: others can write it"
chown 0 "$root/open/pool.so"
chmod 664 "$root/open/pool.so"
chgrp 65534 "$root/open/pool.so"
run '{"runtime": "software", "plugin_path": "'"$root"'/open", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/open/pool.so: others can write it"

# A folder that is the caller's; and a link from a good folder into it.
chown 65534 "$root/theirs"
run '{"runtime": "software", "plugin_path": "'"$root"'/theirs", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/theirs: others can write it"
mkdir "$root/links"
ln -s "$root/theirs/pool.so" "$root/links/pool.so"
run '{"runtime": "software", "plugin_path": "'"$root"'/links", "stack": ["pool", "device"]}'
said "graph: -20 .*others can write it"
ln -s "$root/theirs" "$root/home/linked"
run '{"runtime": "software", "plugin_path": "'"$root"'/home/linked", "stack": ["pool", "device"]}'
said "graph: -20 .*others can write it"

# A good folder inside one that is the caller's, who can put another in its place.
mkdir "$root/theirs/inner"
cp "$root/bin/plugins/pool.so" "$root/theirs/inner/"
run '{"runtime": "software", "plugin_path": "'"$root"'/theirs/inner", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/theirs: others can write it"

# A link that is the caller's, who can let it lead elsewhere.
ln -s "$root/open" "$root/linked"
chown -h 65534 "$root/linked"
chown 0 "$root/open/pool.so"
chmod 644 "$root/open/pool.so"
chgrp 0 "$root/open/pool.so"
run '{"runtime": "software", "plugin_path": "'"$root"'/linked", "stack": ["pool", "device"]}'
said "graph: -20 .*$root/linked: others can write it"

# A name that is short as it is given, and too long where its links lead.
name=$(printf '%0200d' 0)
names=$name/$name/$name/$name/$name/$name/$name/$name/$name/$name/$name
mkdir -p "$root/deep/$names"
ln -s "$root/deep/$names" "$root/short"
(cd "$root/short" && mkdir -p "$names" && ln -s "$names" on)
run '{"runtime": "'"$root"'/short/on/library.so", "stack": ["device"]}'
said "graph: -20 .*: name too long"

# A runtime by its path is a library like any other.
run '{"runtime": "'"$root"'/theirs/pool.so", "stack": ["device"]}'
said "graph: -20 .*$root/theirs: others can write it"

exit $bad
