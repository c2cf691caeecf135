#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A build with --disable-shared, in a folder of its own: libhipmm.a with all types of resources linked in, installed; a
# program that is linked with it runs where no file of these types is, and may have functions of the core's names. Takes
# minutes: called by .ci/run, not by `make check`. Usage: sh tests/static_library.sh
set -eu
top_srcdir=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset HIPMM_PLUGIN_PATH HIPMM_CONFIG HIPMM_RUNTIME
mkdir "$root/build"
cd "$root/build"

say() {
  echo "static library: $*"
}

"$top_srcdir/configure" --quiet --disable-shared --prefix="$root/there" ${CONFIGURE_FLAGS-} >"$root/log" 2>&1 &&
  make -j "$(nproc)" >>"$root/log" 2>&1 && make install >>"$root/log" 2>&1 || {
  tail -n 40 "$root/log"
  exit 1
}
[ -f "$root/there/lib/libhipmm.a" ]
[ ! -e "$root/there/lib/libhipmm.so" ]
find "$root/there/lib/hipmm" -name '*.so' ! -name software.so -exec rm {} +
"$root/there/bin/hipmm" plugins | grep -q '^pool .*(built in)/pool'
say "the command has the types, without files"

cat >"$root/program.c" <<'END'
#include <hipmm/hipmm.h>
#include <stdio.h>

/* Names that the core uses too. */
int error_set(void);
int text_nearest(void);
int error_set(void) { return 0; }
int text_nearest(void) { return 0; }

int main(void)
{
  void *memory = NULL;
  if (error_set() || text_nearest()) return 1;
  if (!hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"statistics\", \"pool\", \"arena\", \"device\"]}") &&
      !hipmm_allocate(NULL, 1000, NULL, &memory) && !hipmm_deallocate(NULL, memory, 1000, NULL) && !hipmm_finalize())
    return 0;
  fprintf(stderr, "%s\n", hipmm_last_error_message());
  return 1;
}
END
PKG_CONFIG_PATH=$root/there/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # lists of words
${CC:-cc} -Wall -Wextra -Werror -o "$root/program" "$root/program.c" $(${PKG_CONFIG:-pkg-config} --cflags --libs hipmm)
! ldd "$root/program" | grep -q libhipmm
"$root/program"
say "a program that is linked with libhipmm.a runs"

# A type that is not linked in is found as a file; one that is does not hide a file that comes before it.
mkdir "$root/mine"
# shellcheck disable=SC2046
${CC:-cc} -shared -fPIC -o "$root/mine/fill.so" "$top_srcdir/tests/example/fill.c" \
  $(${PKG_CONFIG:-pkg-config} --cflags hipmm)
HIPMM_PLUGIN_PATH=$root/mine "$root/there/bin/hipmm" plugin test "$root/mine/fill.so" | grep -q '^fill: [0-9]* passed, 0 failed'
say "plugins in files work beside them"
