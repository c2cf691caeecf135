#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Rust crate builds with cargo, without a network and without a warning, and its tests pass on the software device. A buffer
# is not Sync. Functions and statuses of sys.rs are those of the C headers. Run by `make check`.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"

root=$(cd "$top_srcdir" && pwd)
HIPMM_LIB_DIR=$(cd "$top_builddir/.libs" && pwd) HIPMM_PLUGIN_PATH=$(cd "$top_builddir/plugins" && pwd)
export HIPMM_LIB_DIR HIPMM_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
crate=$root/tools/rust

grep -oh 'HIPMM_\(OK\|E_[A-Z_]*\) = -\{0,1\}[0-9]*' "$root/include/hipmm/hipmm.h" | sort >"$work/c"
sed -n 's/^pub const \(HIPMM_[OE][A-Z_]*\): Status = \(.*\);/\1 = \2/p' "$crate/src/sys.rs" | sort >"$work/rust"
[ -s "$work/c" ] && diff "$work/c" "$work/rust" || {
  echo "sys.rs and hipmm.h have other statuses"
  exit 1
}
# Each function has as many arguments as in the headers.
printf '#include <hipmm/%s>\n' buffer.h stream.h | ${CC:-cc} -E -P -I "$root/include" -x c - | tr '\n' ' ' |
  grep -o 'hipmm_[a-z0-9_]*([^()]*);' >"$work/prototypes"
tr '\n' ' ' <"$crate/src/sys.rs" | grep -o 'fn hipmm_[a-z0-9_]*([^()]*)' | sed 's/^fn //; s/, *)/)/' >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 20 ]
while read -r function; do
  name=${function%%(*}
  prototype=$(grep "^$name(" "$work/prototypes" | head -n 1)
  [ -n "$prototype" ] || { echo "$name is in no header" && exit 1; }
  count() { echo "$1" | grep -o "$2" | wc -l; }
  arguments=$(($(count "$prototype" ,) + 1))
  case $prototype in *'(void);') arguments=0 ;; esac
  [ "$(count "$function" :)" = $arguments ] || { echo "$function does not fit $prototype" && exit 1; }
done <"$work/functions"
echo "sys.rs has the functions and statuses of the headers"

cargo --version >/dev/null 2>&1 || { # rustup's does not run without a home
  skip_part "the crate" "no cargo runs here"
  exit 0
}
cp -r "$crate" "$work/crate"
cd "$work/crate"
CARGO_HOME=$work/cargo CARGO_NET_OFFLINE=true RUSTFLAGS="-D warnings"
export CARGO_HOME CARGO_NET_OFFLINE RUSTFLAGS
# The documentation's example is compiled too.
LD_LIBRARY_PATH=$HIPMM_LIB_DIR cargo test --offline >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
[ "$(grep -c '^test .* ok$' "$work/log")" = 2 ] || {
  cat "$work/log"
  echo "other tests ran than there are"
  exit 1
}
echo "the crate's tests pass"

mkdir -p examples
echo 'fn is_sync<T: Sync>() {} fn main() { is_sync::<hipmm::Buffer>(); }' >examples/sync.rs
if cargo build --offline --example sync >"$work/log" 2>&1 || ! grep -q 'cannot be shared between threads' "$work/log"; then
  cat "$work/log"
  echo "two threads could use a buffer at once"
  exit 1
fi
echo "a buffer is for one thread at a time"
