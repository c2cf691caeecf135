#!/bin/sh
# SPDX-License-Identifier: MIT
#
# gdb's `info hipmm` on a live program and on its core file: the stacks, the blocks of each type that it reads, the owners of
# pointers, and what is wrong in a command. The sums are those that hipmm itself tells. Run by `make check`.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"
command -v gdb >/dev/null || skip "gdb is missing"
gdb -q -nx -batch -ex 'python print("python")' 2>&1 | grep -qx python || skip "gdb has no Python"

root=$(cd "$top_srcdir" && pwd) library=$(cd "$top_builddir/.libs" && pwd)
HIPMM_PLUGIN_PATH=$(cd "$top_builddir/plugins" && pwd) HIPMM_SOFTWARE=memory=256MiB,host_memory=16MiB
export HIPMM_PLUGIN_PATH HIPMM_SOFTWARE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
${CC:-cc} -D_GNU_SOURCE -g -O1 -I "$root/include" "$root/tests/doors/gdb.c" -o program -L "$library" -lhipmm -Wl,-rpath,"$library"
script=$root/tools/gdb/hipmm-gdb.py

# gdb loads the script with the library under the name that it is installed with.
real=$(readlink -f "$library/libhipmm.so")
installed=$(find "$(dirname "$library")/tools/gdb" -name 'libhipmm.so.*-gdb.py')
mkdir -p "auto${real%/*}"
cp "$installed" "auto${real%/*}/"

cat >questions <<'END'
echo == stacks\n
info hipmm
echo == blocks\n
info hipmm blocks devices/0/big
echo == by name\n
info hipmm blocks local
echo == by stack\n
info hipmm blocks created/mine
echo == live\n
info hipmm owner live + 10
echo == freed\n
info hipmm owner freed
echo == arena\n
info hipmm owner from_arena + 2999
echo == mapped\n
info hipmm owner mapped + 0x100000
echo == foreign\n
info hipmm owner &foreign
echo == adaptor\n
info hipmm blocks top
echo == end\n
END
gdb -q -nx -batch -iex "set auto-load scripts-directory $work/auto" -iex "set auto-load safe-path $work/auto" \
  -ex 'break done' -ex run -x questions -ex 'gcore core.file' ./program >live 2>&1 || true
grep -q '^== end' live || {
  cat live
  grep -qi 'ptrace\|not permitted' live && skip "no program may be traced here"
  exit 1
}
[ -s core.file ] || {
  cat live
  echo "gdb wrote no core file"
  exit 1
}
gdb -q -nx -batch -ex "source $script" -x questions ./program core.file >core 2>&1 || true

# has FILE PART PATTERN: a line of the part matches
has() {
  sed -n "/^== $2\$/,/^== /p" "$1" | grep -Eq "$3" || {
    cat "$1"
    echo "$1: $2: no line is $3"
    exit 1
  }
}
for file in live core; do # the program, the core file
  has $file stacks '^devices/0: graph <string>, device 0, [0-9]+ references, held [1-9][0-9]* bytes, peak [1-9]'
  has $file stacks '^  devices/0/top: statistics over devices/0/local$'
  has $file stacks '^  devices/0/local: arena over devices/0/big; .*1 live \(3072 bytes\)'
  has $file stacks '^  devices/0/source: device; [1-9] live \([0-9]+ bytes\)$'
  has $file stacks '^  created/mine/pool: pool over created/mine/device; .*1 live \(41943040 bytes\)'
  has $file blocks ' 1024 bytes  live, requested 1000, stream 0x[1-9a-f]'
  has $file blocks ' bytes  pending, stream 0x[1-9a-f]'
  has $file 'by name' ' 3072 bytes  live, requested 3000, stream 0x[1-9a-f]'
  has $file 'by stack' '^  0x[0-9a-f]+ +41943040 bytes  live, stream 0x0$'
  has $file live '^devices/0/big: .*requested 1000.*, at byte 10 of it$'
  has $file live '^devices/0/source: '
  has $file freed '^devices/0/big: .*  pending, stream'
  has $file arena '^devices/0/local: .*requested 3000.*, at byte 2999 of it$'
  has $file arena '^devices/0/big: .*  live'
  has $file mapped '^created/mine/pool: .* 41943040 bytes .*, at byte 1048576 of it$'
  has $file foreign 'is in no block that hipmm'
  has $file adaptor 'the blocks of a statistics cannot be read here'
  # The blocks of a pool cover what it holds, once each.
  sed -n '/^== blocks$/,/^== /p' $file | awk '
    / bytes / { if (end && $1 != end) bad = 1; n++; sum += $2 }
    END { exit bad || n < 3 || sum % 1048576 }' || {
    cat $file
    echo "$file: the blocks of a pool are not all that it holds"
    exit 1
  }
  echo "info hipmm answers: $file"
done
sed -n '/^== stacks/,/^== end/p' live >a
sed -n '/^== stacks/,/^== end/p' core >b
diff a b || {
  echo "the core file answers otherwise than the program"
  exit 1
}

# says PATTERN COMMAND: what is wrong, without a trace of Python
says() {
  gdb -q -nx -batch -ex "source $script" -ex "$2" ./program core.file >out 2>&1 || true
  if ! grep -q -- "$1" out || grep -q Traceback out; then
    cat out
    echo "$2 does not say $1"
    exit 1
  fi
}
says 'there is no resource pol; there are: devices/0/top' 'info hipmm blocks pol'
says 'info hipmm wat: write' 'info hipmm wat'
says 'needs an expression' 'info hipmm owner'
says 'No symbol "nothing"' 'info hipmm owner nothing'
gdb -q -nx -batch -ex "source $script" -ex 'info hipmm' >out 2>&1 || true
grep -q 'libhipmm is not loaded, or has no debug information' out || { cat out && exit 1; }
echo "it says what is wrong"
