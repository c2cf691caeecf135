#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each installed header must compile alone, as C11 (but for those of C++), C++17 and C++20, without a warning and without
# any other header of ours before it; and twice in one file. All of them must compile before and after the runtimes'
# headers: HIP's on both of its platforms, and CUDA's; stand-ins with the same types serve where those cannot be compiled. A named enum has 32
# bits, for which it has a value that says so. Run by `make check`.
set -eu
. "$top_srcdir/tests/support/skip.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
warnings="-Wall -Wextra -Wshadow -Wundef -Wconversion -Wpedantic -Werror"

# compile LANGUAGE FLAG...: the file $work/source
compile() {
  language=$1
  shift
  case $language in
  c11) ${CC:-cc} -x c -std=c11 -Wstrict-prototypes $warnings -I "$top_srcdir/include" "$@" -fsyntax-only "$work/source" ;;
  *) $CXX -x c++ -std=$language $warnings -I "$top_srcdir/include" "$@" -fsyntax-only "$work/source" ;;
  esac
}

languages="c11 c++17 c++20"
[ -n "$CXX" ] || { skip_part "the headers as C++" "no C++ compiler was found"; languages=c11; }
[ -n "$headers" ] || { echo "no headers to check"; exit 1; }

# ---- Alone ----

for header in $headers; do
  header=${header#include/}
  printf '#include <%s>\n#include <%s>\nextern int not_empty;\n' "$header" "$header" >"$work/source"
  for language in $languages; do
    case $language$header in c11*.hpp) continue ;; esac
    compile $language || { echo "$header: not clean as $language"; bad=1; }
  done
  sed 's|/\*.*\*/||' "$top_srcdir/include/$header" | awk -v header="$header" '
    match($0, /^enum hipmm_[a-z_]+ \{/) { name = $2; found = 0 }
    /_FORCE_32BIT = 0x7fffffff/ { found = 1 }
    /^};/ { if (name && !found) { print header ": enum " name " has no value _FORCE_32BIT = 0x7fffffff"; bad = 1 }; name = "" }
    END { exit bad }' || bad=1
done

# ---- Beside the runtimes' headers ----

for header in $headers; do
  case $header in
  *.hpp) printf '#ifdef __cplusplus\n#include <%s>\n#endif\n' "${header#include/}" ;;
  *) echo "#include <${header#include/}>" ;;
  esac
done >"$work/ours"

# beside NAME STREAM HEADER FLAG...: all of ours before and after the header, and a stream of its type passed to hipmm
beside() {
  name=$1 stream=$2 header=$3
  shift 3
  echo "#include <$header>" >"$work/theirs"
  printf 'void *pass(%s stream);\nvoid *pass(%s stream)\n{\n  hipmm_stream_t same = stream;\n  return same;\n}\n' \
    "$stream" "$stream" >"$work/use"
  for language in $languages; do
    for order in "theirs ours" "ours theirs"; do
      # shellcheck disable=SC2086 # two names
      (cd "$work" && cat $order use >source)
      compile $language "$@" 2>"$work/errors" && continue
      cp "$work/theirs" "$work/source"
      if compile $language "$@" 2>/dev/null; then
        echo "$name, $language, $order:"
        head -n 20 "$work/errors"
        bad=1
      else
        echo "$name: <$header> does not compile here as $language; the stand-in serves"
        return
      fi
    done
  done
}

here=$top_srcdir/tests/abi/neighbours
beside "HIP on AMD" hipStream_t hip/hip_runtime.h $HIP_CFLAGS -U__HIP_PLATFORM_NVIDIA__ -D__HIP_PLATFORM_AMD__
if [ -n "${CUDA_CFLAGS-}" ]; then
  beside "CUDA" cudaStream_t cuda_runtime.h $CUDA_CFLAGS
  beside "HIP on NVIDIA" hipStream_t hip/hip_runtime.h $CUDA_CFLAGS $HIP_CFLAGS -U__HIP_PLATFORM_AMD__ -D__HIP_PLATFORM_NVIDIA__
fi
beside "CUDA, stand-in" cudaStream_t cuda_runtime.h -I "$here/cuda"
beside "HIP on NVIDIA, stand-in" hipStream_t hip/hip_runtime.h -I "$here/nvidia" -I "$here/cuda"

exit $bad
