#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A program that knows HIP's headers only is compiled without a warning, linked to software.so and run: every_call.c, which
# calls each function that the device exports. HIP_INCLUDE names a folder of other headers, such as those of HIP 7.1 in PyPI's
# triton (triton/backends/amd/include); without it the headers are those that hipmm was built with.
set -u
: "${top_srcdir:?set it to the source folder}" "${top_builddir:?set it to the build folder}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "the build without sanitizers looks at this"

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
software=$(cd "$top_builddir/plugins/runtimes/software/.libs" && pwd)/software.so
headers=${HIP_CFLAGS-}
[ -z "${HIP_INCLUDE-}" ] || headers="-isystem $HIP_INCLUDE -D__HIP_PLATFORM_AMD__"

# The device has the numbers and structs of the headers' release.
# shellcheck disable=SC2086 # lists of words
release=$(echo '#include <hip/hip_version.h>
release HIP_VERSION_MAJOR.HIP_VERSION_MINOR' | ${CC:-cc} -E -P $headers - | tr -d ' \n' | sed 's/.*release//')
case $release in
5.[0-2]) hip=5.2 ;;
5.*) hip=5.7 ;;
6.*) hip=6.4 ;;
7.0) hip=7.0 ;;
*) hip=7.1 ;;
esac
# shellcheck disable=SC2086
${CC:-cc} -std=gnu11 -Wall -Wextra -Werror $headers "$top_srcdir/tests/runtimes/software/every_call.c" -o "$work/program" \
  "$software" -Wl,-rpath,"${software%/*}" || { echo "every_call.c does not compile"; exit 1; }
HIPMM_SOFTWARE=devices=2,memory=64MiB,hip=$hip timeout 120 "$work/program" || { echo "FAIL: every_call with HIP $release"; exit 1; }

# Of HIP 7.1's functions for memory, the device lacks those that the guide lists.
case $release in
7.[1-9]*) ;;
*) skip_part "the functions of HIP 7.1" "the headers are those of HIP $release; set HIP_INCLUDE" && exit 0 ;;
esac
family='hip\(Mem\|Malloc\|Host\|Ipc\|Free\)[A-Za-z0-9_]*'
# shellcheck disable=SC2086
echo '#include <hip/hip_runtime_api.h>' | ${CC:-cc} -E -P $headers - | tr '\n' ' ' | grep -o "hipError_t  *$family(" |
  sed 's/.* //; s/($//; /_spt$/d' | sort -u >"$work/declared"
${NM:-nm} -D -P --defined-only "$software" | sed 's/ .*//' | sort -u >"$work/exported"
comm -23 "$work/declared" "$work/exported" >"$work/lacking"
sed -n '/^| functions | why not |/,/^$/p' "$top_srcdir/doc/guide.md" | grep -o "$family" | sort -u >"$work/listed"
[ "$(wc -l <"$work/declared")" -gt 100 ] || { echo "FAIL: few functions are declared"; exit 1; }
diff "$work/listed" "$work/lacking" || { echo "FAIL: doc/guide.md (<) does not list what software.so lacks of HIP $release (>)"; exit 1; }
