#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The wheels and the sdist as users get them: builds them, and tries them as a user would, without a GPU.
#
#   sh python/wheel.sh [FOLDER]             the wheel for this machine's processor, and the sdist; FOLDER is dist by default
#   sh python/wheel.sh --release FOLDER     the wheels for x86-64 and aarch64, each also for Python 3.10, and the sdist
#
# Prints a line for each file. The compiler is zig of PyPI, which links against glibc 2.28 (manylinux_2_28) on any machine;
# jansson and libltdl are linked in from their sources. Two runs for one commit write equal bytes. It needs the packages that
# sh etc/quickstart installs, python3-venv, python3-dev and a network. SOURCES names a folder with the sources of
# python/bundle.py. .ci/run calls it.
set -eu
umask 022

stop() {
  echo "python/wheel.sh: $*" >&2
  exit 1
}

processors=$(uname -m)
case ${1-} in
--release)
  [ $# = 2 ] || stop "--release takes a folder, as in: sh python/wheel.sh --release dist"
  processors="x86_64 aarch64"
  shift
  ;;
-*) stop "unknown option $1; there is: sh python/wheel.sh [--release] FOLDER" ;;
esac
[ $# -le 1 ] || stop "one folder is enough: sh python/wheel.sh [--release] FOLDER"

# ---- What it needs

own=$(uname -m)
case $own in
x86_64 | aarch64) ;;
*) stop "wheels are built and tried on x86-64 or aarch64, and this is $own" ;;
esac
getconf GNU_LIBC_VERSION >/dev/null 2>&1 || stop "this machine has no glibc, which the wheels need to be tried here"
for command in autoreconf make pkg-config cc tar gzip; do
  command -v "$command" >/dev/null || stop "$command is missing; sh etc/quickstart installs what a build needs"
done
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || stop "python3 of version 3.11 or later is missing"
[ -f "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ||
  stop "Python's headers are missing (Debian and Ubuntu: python3-dev)"
for hip in "${ROCM_PATH:-/opt/rocm}/include" /usr/include ''; do
  [ ! -f "$hip/hip/hip_runtime_api.h" ] || break
done
[ "$hip" ] || stop "HIP's headers are missing (Debian: libamdhip64-dev); sh etc/quickstart installs them"

[ ! "${1-}" ] || { mkdir -p "$1" && folder=$(cd "$1" && pwd); } || exit 1
cd "$(dirname "$0")/.."
clone=$PWD
: "${folder:=$clone/dist}"
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
case $work in
*[[:space:]]*) stop "Automake cannot build in a folder with a space in its path: $work; set TMPDIR to another" ;;
esac
unset PYTHONPATH HIPMM_CONFIG CFLAGS LDFLAGS MAKEFLAGS CONFIGURE_FLAGS # of another hipmm, or a build of it

# step WHAT COMMAND...: a failure shows the end of its output
step() {
  what=$1
  shift
  "$@" >"$work/log" 2>&1 || {
    tail -n 40 "$work/log" >&2
    stop "$what failed"
  }
}

# ---- The tools and the sources

tools=$work/tools
python3 -m venv "$tools" 2>/dev/null || stop "python3 makes no virtual environment (Debian and Ubuntu: python3-venv)"
step "installing the tools from PyPI, which needs a network," "$tools/bin/python" -m pip install -q --disable-pip-version-check \
  --retries 1 ziglang==0.17.1 setuptools==82.0.0 wheel==0.47.0 build auditwheel twine check-wheel-contents abi3audit cmake
PATH=$tools/bin:$PATH
export PATH
# CUDA's headers are the same for all processors.
step "getting CUDA's headers from PyPI" pip install -q --disable-pip-version-check --retries 1 --no-deps --target "$work/cuda" \
  nvidia-cuda-runtime-cu12==12.9.79
sources=${SOURCES:-$work/sources}
mkdir -p "$sources" "$work/include"
archives=$(python "$clone/python/bundle.py" fetch "$sources") || exit 1
cp -r "$hip/hip" "$work/include/"
headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
cp -rL "$headers" "$work/include/python"
# Debian's pyconfig.h leads to one for each processor. They say the same of 64-bit processors to the stable ABI.
of_own=${headers%/*}/$own-linux-gnu/${headers##*/}/pyconfig.h
[ ! -f "$of_own" ] || cp "$of_own" "$work/include/python/pyconfig.h"

# Of a clone, the files that git knows, in their state of now
mkdir "$work/tree"
if git rev-parse --git-dir >/dev/null 2>&1; then
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$work/tree"
else
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}
  tar --exclude='./build*' --exclude=./dist --exclude=./.git -cf - . | tar -xf - -C "$work/tree"
fi
export SOURCE_DATE_EPOCH
chmod -R u+rwX,go+rX,go-w "$work/tree"

# ---- The sdist, from which the wheels are built

step "making the sdist" python -m build --no-isolation --sdist --outdir "$work/sdist" "$work/tree"
tar -xzf "$work"/sdist/hipmm-*.tar.gz -C "$work"
tree=$(echo "$work"/hipmm-*)
sdist=$folder/${tree##*/}.tar.gz
rm -f "$folder"/hipmm-*.whl "$sdist"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+rX,go-w --format=pax \
  --pax-option='exthdr.name=%d/%f,delete=atime,delete=ctime' -cf - -C "$work" "${tree##*/}" | gzip -9n >"$sdist"
(cd "$tree" && step "autoreconf" autoreconf -fi)

# ---- The wheels

zig=$(python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
ZIG_GLOBAL_CACHE_DIR=$work/zig
export ZIG_GLOBAL_CACHE_DIR

# libraries PROCESSOR: jansson and libltdl, in $work/PROCESSOR
libraries() {
  prefix=$work/$1
  mkdir -p "$prefix/src" "$prefix/lib"
  for archive in $archives; do tar -xf "$sources/$archive" -C "$prefix/src"; done
  for library in "$prefix"/src/jansson-* "$prefix"/src/libtool-*/libltdl; do
    cd "$library"
    [ -f configure ] || step "autoreconf in $library" autoreconf -fi
    step "configuring $library" env CFLAGS='-O2 -fPIC -fvisibility=hidden' ./configure --host="$1-linux-gnu" --disable-shared \
      --enable-ltdl-install --prefix="$prefix"
    step "compiling $library" make -s install
  done
  rm -f "$prefix"/lib/*.la # with which libtool would take the archives for parts of hipmm
}

# build PROCESSOR
build() {
  printf '#!/bin/sh\nexec "%s" cc -target %s-linux-gnu.2.28 "$@"\n' "$zig" "$1" >"$work/cc-$1"
  chmod +x "$work/cc-$1"
  CC=$work/cc-$1 AR="$zig ar" RANLIB="$zig ranlib"
  export CC AR RANLIB
  (libraries "$1")
  # Exceptions of the program pass through the preloaded functions, so these need the program's own unwinder and not zig's.
  echo 'void _Unwind_Resume(void) {} void __gcc_personality_v0(void) {}' >"$work/$1/gcc_s.c"
  step "making a stand-in for libgcc_s" "$CC" -shared -nostdlib -Wl,-soname,libgcc_s.so.1 "$work/$1/gcc_s.c" -o "$work/$1/lib/libunwinder.so"
  # shellcheck disable=SC2089 # setup.py heeds the quotes
  CONFIGURE_FLAGS="--host=$1-linux-gnu CXX=no CFLAGS=-O2 LDFLAGS='-Wl,-s -L$work/$1/lib -Wl,--as-needed -lunwinder' LTDL_CFLAGS=-I$work/$1/include
    JANSSON_CFLAGS=-I$work/$1/include JANSSON_LIBS=-ljansson HIP_CFLAGS='-isystem $work/include -D__HIP_PLATFORM_AMD__'
    --with-cuda=$work/cuda/nvidia/cuda_runtime"
  # shellcheck disable=SC2090
  export CONFIGURE_FLAGS
  # Of the extension: flags of its own, the linker, and the platform in the name of the wheel
  step "building the wheel for $1" env STRIP=true CFLAGS="-I$work/include/python" LDSHARED="$CC -shared -s" \
    _PYTHON_HOST_PLATFORM="linux-$1" python -m build --no-isolation --wheel --outdir "$work/$1/built" "$tree"
  cd "$work/$1"
  step "unpacking the wheel" python -m wheel unpack --dest unpacked built/*.whl
  step "describing what the wheel bundles" python "$clone/python/bundle.py" describe unpacked/* "$work/$1"
  mkdir packed
  step "packing the wheel" python -m wheel pack --dest-dir packed unpacked/*
  step "tagging the wheel" python -m wheel tags --remove --platform-tag "manylinux_2_28_$1" packed/*.whl
  # The same for 3.10, whose ABI has the functions for buffers, but outside of the stable part (python/src/extension.h).
  [ "$processors" = "$own" ] || step "tagging the wheel" python -m wheel tags --python-tag cp310 --abi-tag cp310 packed/*.whl
  verify "$1"
  mv packed/*.whl "$folder/"
}

# verify PROCESSOR: what can be seen without running it
verify() {
  step "abi3audit" abi3audit --strict packed/*-abi3-*.whl
  step "twine check" twine check --strict packed/*.whl "$sdist"
  step "check-wheel-contents" check-wheel-contents --config "$clone/pyproject.toml" packed/*.whl
  step "auditwheel" auditwheel show packed/*-abi3-*.whl
  tr '\n' ' ' <"$work/log" | grep -Eq "the following platform tag: \"manylinux_2_(1[0-9]|2[0-8])_$1\"" || {
    cat "$work/log" >&2
    stop "the wheel for $1 needs more than manylinux_2_28"
  }
  ! grep -rlF -e "$work" -e "$clone" unpacked/* || stop "these files have a path of the machine that built them"
  cd unpacked/*/
  for file in bin/hipmm include/hipmm/hipmm.h include/hipmm/compat/rmm/rmm.h \
    include/hipmm/compat/rmm26/rmm/mr/pool_memory_resource.hpp include/hipmm/compat/rmm26/cuda/memory_resource \
    lib/libhipmm.so.0 lib/librmm_compat.so.0 \
    lib/cmake/hipmm/hipmmConfig.cmake lib/pkgconfig/hipmm.pc lib/hipmm/*/nvidia.so lib/hipmm/*/software.so \
    lib/hipmm/*/control/control.so lib/hipmm/*/preload/preload.so lib/hipmm/*/preload/python/sitecustomize.py py.typed _hipmm.pyi bridge/torch.cpp; do
    # shellcheck disable=SC2086 # a pattern
    ls hipmm/$file >/dev/null 2>&1 || stop "the wheel for $1 has no $file"
  done
  cd "$work/$1"
  find unpacked -type f -exec readelf -d {} + 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
    grep -vE '^(lib(c|m|dl|pthread|gcc_s|hipmm)\.so\.[0-9]+|ld-linux-.*)$' >"$work/log" || return 0
  stop "the wheel for $1 needs other libraries than glibc's: $(tr '\n' ' ' <"$work/log")"
}

for processor in $processors; do (build "$processor"); done

# ---- As a user would, in a fresh virtual environment

wheel=$(echo "$folder"/hipmm-*-cp311-abi3-*"_$own.whl")
python3 -m venv "$work/fresh"
step "installing the wheel with NumPy" "$work/fresh/bin/python" -m pip install -q --disable-pip-version-check numpy "$wheel"
cd "$work"
cat >program.py <<'EOF'
import numpy
import hipmm

hipmm.init({"runtime": "software", "stack": ["statistics", {"type": "pool", "maximum_size": "1GiB"}, "device"]})
values = numpy.arange(1000, dtype="f8")
buffer = hipmm.Buffer.copy_of(values)
numpy.testing.assert_array_equal(buffer.to_numpy("f8"), values)
with hipmm.using(hipmm.resource("pool")):
    print(hipmm.Buffer(1 << 20), hipmm.statistics(hipmm.resource("statistics")))
assert numpy.from_dlpack(buffer).nbytes == 8000
EOF
step "a program in Python" "$work/fresh/bin/python" program.py

# C programs find the headers and the library in the wheel: by CMake, by a plain compiler, by pkg-config.
of_hipmm() {
  "$work/fresh/bin/python" -c "import hipmm, os; print($1)"
}
cat >program.c <<'EOF'
#include <hipmm/hipmm.h>
#include <stdio.h>

int main(void)
{
  void *ptr;
  if (hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"pool\", \"device\"]}") ||
      hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL) || hipmm_finalize()) {
    fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  return 0;
}
EOF
cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.15)
project(program C)
find_package(hipmm REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE hipmm::hipmm)
EOF
unset CC CFLAGS
step "CMake" env CMAKE_PREFIX_PATH="$(of_hipmm 'hipmm.get_cmake_dir()')" cmake -S . -B by_cmake
step "compiling with CMake" cmake --build by_cmake
library=$(of_hipmm 'os.path.dirname(hipmm.library())')
mkdir by_cc by_pkg_config
step "compiling with cc" cc program.c -o by_cc/program -I"$(of_hipmm 'hipmm.get_include()')" -L"$library" -l:libhipmm.so.0 -Wl,-rpath,"$library"
# shellcheck disable=SC2046 # a list of words
step "compiling with pkg-config" cc program.c -o by_pkg_config/program -Wl,-rpath,"$library" \
  $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs hipmm)
for way in by_cmake by_cc by_pkg_config; do step "the program in C, $way," "$way/program"; done

# `hipmm run` of the wheel serves a Python that has no hipmm of its own. The stand-in for PyTorch is the tests'.
python3 -m venv --without-pip "$work/bare"
mkdir -p "$work/modules/torch"
echo 'import fakes; fakes.install("torch")' >"$work/modules/torch/__init__.py"
step "hipmm run" env PYTHONPATH="$work/modules:$clone/python/tests" HIPMM_RUNTIME=software HIPMM_TORCH=pluggable \
  "$work/fresh/bin/hipmm" run --strict --report -- \
  "$work/bare/bin/python" -c 'import torch, fakes; [a] = fakes.torch_current; assert a.malloc(1 << 20, 0, None)'
grep -q '^  torch: malloc  *1  *0  *0$' "$work/log" || stop "hipmm run did not serve PyTorch: $(cat "$work/log")"

# The wheel's command is built without SQLite.
"$work/fresh/bin/hipmm" convert "$clone/tests/data/nsys.sqlite" 2>"$work/log" && stop "the wheel reads databases of SQLite"
grep -q 'which this build of hipmm cannot read' "$work/log" || stop "hipmm convert says: $(cat "$work/log")"
[ "$("$work/fresh/bin/hipmm" plugins | grep -c '\.so$')" -ge 30 ] || stop "plugins are missing"

# The sdist builds as in a distribution: without network, with what is installed.
python3 -m venv "$work/offline"
step "installing setuptools" "$work/offline/bin/python" -m pip install -q --disable-pip-version-check setuptools wheel
alone=$(unshare -rn true 2>/dev/null && echo "unshare -rn") || echo "python/wheel.sh: no unshare -n here; pip is only told to use no network" >&2
# shellcheck disable=SC2086 # two words
step "building the sdist without network" env CFLAGS=-O0 $alone "$work/offline/bin/python" -m pip install -q \
  --disable-pip-version-check --no-build-isolation --no-index "$sdist"
step "what the sdist built" env HIPMM_RUNTIME=software "$work/offline/bin/python" -c 'import hipmm; hipmm.init(); hipmm.Buffer(1 << 20)'

for file in "$folder"/hipmm-*; do echo "$file, $(wc -c <"$file") bytes"; done
