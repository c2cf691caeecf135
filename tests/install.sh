#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What a user does after `make install`: compiles a program with pkg-config and runs it, then builds a plugin of their
# own against the installed headers alone and uses it beside ours; and both again with CMake. The installation is a moved one (DESTDIR), so nothing
# may depend on the configured prefix. Run by `make check`, which sets the variables in capitals and the two tops.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
. "$top_srcdir/tests/support/skip.sh"
[ -z "${SANITIZER_FLAGS-}" ] || { echo "the build without sanitizers looks at this"; exit 77; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset MAKEFLAGS MFLAGS HIPMM_PLUGIN_PATH

"${MAKE:-make}" -C "$top_builddir" install DESTDIR="$root" >"$root/install.log" 2>&1 || {
  cat "$root/install.log"
  exit 1
}

for page in man1/hipmm.1 man3/hipmm_allocate.3 man5/hipmm.json.5 man7/hipmm-plugin.7; do
  [ "$(find "$root" -path "*/$page")" ] || {
    echo "$page is not installed"
    exit 1
  }
done
echo "the manual pages are installed"

for file in doc/hipmm/README.md doc/hipmm/doc/guide.md doc/hipmm/examples/forward.c doc/hipmm/examples/count_rust.rs \
  doc/hipmm/examples/ggml_buffer.c hipmm/hipmm.schema.json hipmm/hipmm.f90 hipmm/hipmm_allocate.inc hipmm/rust/src/lib.rs \
  'auto-load/*/libhipmm.so.*-gdb.py'; do
  [ "$(find "$root" -path "*/$file")" ] || {
    echo "$file is not installed"
    exit 1
  }
done
docs=$(dirname "$(find "$root" -path '*/doc/hipmm/README.md')")
for link in $(sed -n 's/.*](\([A-Za-z/]*\.md\)).*/\1/p' "$docs/README.md"); do
  [ -f "$docs/$link" ] || {
    echo "README.md leads to $link, which is not installed"
    exit 1
  }
done
echo "so are the README and what it leads to, examples and the schema"
for completion in bash-completion/completions/hipmm zsh/site-functions/_hipmm; do
  [ "$(find "$root" -path "*/share/$completion" -size +1k)" ] || {
    echo "$completion is not installed"
    exit 1
  }
done
echo "the completions of the shells are installed"

# What pkg-config says, in the moved place.
folder() {
  ${PKG_CONFIG:-pkg-config} --variable="$1" hipmm
}
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name hipmm.pc)")
PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
flags="$(${PKG_CONFIG:-pkg-config} --cflags --libs hipmm) ${SANITIZER_FLAGS-}"
LD_LIBRARY_PATH=$root$(folder libdir | sed "s:^$root::")
export LD_LIBRARY_PATH

# compile OUTPUT SOURCE FLAG...: as a user would, but strictly
compile() {
  output=$1
  shift
  # shellcheck disable=SC2086 # lists of words
  ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -o "$output" "$@" $flags
}

cat >"$root/program.c" <<'END'
#include <hipmm/hipmm.h>
#include <stdio.h>

int main(int argc, char **argv)
{
  void *memory = NULL;
  if (argc == 2 && !hipmm_init_from_string(argv[1]) && !hipmm_allocate(NULL, 1000, NULL, &memory) &&
      !hipmm_deallocate(NULL, memory, 1000, NULL) && !hipmm_finalize()) return 0;
  fprintf(stderr, "%s\n", hipmm_last_error_message());
  return 1;
}
END
compile "$root/program" "$root/program.c"
"$root/program" '{"runtime": "software", "stack": ["pool", "device"]}'
echo "a program runs against the installed library"

compile "$root/readme" "$top_srcdir/tests/example/readme.c"
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2 "$root/readme" "$root/rmm.csv"
echo "so do the examples of RMM's README"

mkdir "$root/theirs"
compile "$root/theirs/fill.so" -shared -fPIC "$top_srcdir/tests/example/fill.c" -Wl,-z,defs
"$root/program" '{"runtime": "software", "plugin_path": ["'"$root"'/theirs"], "stack": ["fill", "pool", "device"]}'
HIPMM_PLUGIN_PATH=$root/theirs "$root/program" '{"runtime": "software", "stack": ["fill", "pool", "device"]}'
echo "a third party's plugin works beside ours"

# The program that doc/cpp.md shows, for CMake below, and one of RMM 0.12.
awk '/^```/ { if (inside) exit; inside = $0 == "```cpp"; next } inside' "$docs/doc/cpp.md" >"$root/cpp.cpp"
# shellcheck disable=SC2046,SC2086 # lists of words
${CC:-cc} -std=c11 -Wall -Wextra -Werror ${SANITIZER_FLAGS-} "$top_srcdir/tests/compat/old_program.c" -o "$root/old" \
  $(${PKG_CONFIG:-pkg-config} --cflags --libs hipmm-rmm)
HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2 "$root/old"
echo "a program of RMM 0.12 is compiled by what pkg-config says"

# Plugins in other languages, from the installed headers alone, must pass the conformance kit, and so must the folders that
# the command writes.
bin=$root$(folder prefix | sed "s:^$root::")/bin
headers=$(${PKG_CONFIG:-pkg-config} --cflags hipmm)
# conforms LANGUAGE FILE ARGUMENT...: the kit passes
conforms() {
  language=$1
  shift
  "$bin/hipmm" plugin test "$@" >"$root/kit" || {
    cat "$root/kit"
    exit 1
  }
  echo "a plugin in $language passes the conformance kit"
}
# shellcheck disable=SC2086 # lists of words
${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror ${SANITIZER_FLAGS-} $headers -shared -fPIC \
  -o "$root/theirs/fill.so" "$top_srcdir/tests/example/fill.c" -Wl,-z,defs
conforms C11 "$root/theirs/fill.so"
if [ "${CXX-}" ]; then
  # shellcheck disable=SC2086
  $CXX -std=c++20 -Wall -Wpedantic -Werror ${SANITIZER_FLAGS-} $headers -shared -fPIC \
    -o "$root/theirs/count_cpp.so" "$top_srcdir/tests/example/count_cpp.cpp"
  conforms C++20 "$root/theirs/count_cpp.so"
else
  skip_part "the plugin in C++" "no C++ compiler was found"
fi
if ! rustc --version >/dev/null 2>&1; then # rustup's does not run without a home
  skip_part "the plugin in Rust" "no rustc runs here"
else
  rustc --edition 2021 --crate-type cdylib -C panic=abort -o "$root/theirs/count_rust.so" \
    "$top_srcdir/tests/example/count_rust.rs"
  conforms Rust "$root/theirs/count_rust.so"
fi
# What hipmm-plugin(7) shows: the plugin, and the commands that build, test and describe it.
# shown_in SECTION: the block of examples there, as a reader sees it
shown_in() {
  awk -v heading=".SH $1" '/^\.SH/ { here = $0 == heading } /^\.EE/ { inside = 0 } here && inside; /^\.EX/ { inside = 1 }' \
    "$(find "$root" -name hipmm-plugin.7)" | sed -e 's/\\-/-/g' -e 's/\\&//g' -e 's/\\e/\\/g'
}
mkdir "$root/page"
(
  cd "$root/page"
  shown_in EXAMPLE >forward.c
  shown_in BUILDING | sed "s|pkg-config|${PKG_CONFIG:-pkg-config}|; s|^cc|${CC:-cc} -Wall -Wextra -Werror ${SANITIZER_FLAGS-}|" >commands
  [ "$(wc -l <commands)" = 4 ]
  PATH=$bin:$PATH sh -eu commands
) >"$root/page.log" 2>&1 || {
  cat "$root/page.log"
  exit 1
}
grep -q '^forward: [0-9]* passed, 0 failed' "$root/page.log"
echo "what hipmm-plugin(7) shows can be built, and its commands do what they say"

for role in adaptor sub-allocator source; do
  (
    cd "$root"
    mine=mine_$(echo $role | tr - _)
    "$bin/hipmm" plugin new "$mine" --role $role
    cd "$mine"
    "${MAKE:-make}" check HIPMM="$bin/hipmm" CC="${CC:-cc}" PKG_CONFIG="${PKG_CONFIG:-pkg-config}" \
      CFLAGS="-Wall -Wextra -Wpedantic -Werror ${SANITIZER_FLAGS-}"
    "${MAKE:-make}" install PKG_CONFIG="${PKG_CONFIG:-pkg-config}" DESTDIR="$root/packaged"
    [ -f "$root/packaged$(folder plugindir)/$mine.so" ]
    HIPMM_PLUGIN_PATH=. "$bin/hipmm" describe "$mine"
  ) >"$root/new.log" 2>&1 || {
    cat "$root/new.log"
    exit 1
  }
  echo "what \`hipmm plugin new --role $role\` writes builds against the installation and passes its own check"
done
(
  cd "$root/mine_source"
  "${MAKE:-make}" clean
  ! PKG_CONFIG_PATH=$root/nowhere PKG_CONFIG_LIBDIR=$root/nowhere "${MAKE:-make}" PKG_CONFIG="${PKG_CONFIG:-pkg-config}"
) >"$root/new.log" 2>&1 || {
  cat "$root/new.log"
  exit 1
}
grep -q 'does not find hipmm. Install hipmm (make install' "$root/new.log"
! grep -q 'fatal error' "$root/new.log"
echo "without an installation, its Makefile says what to do"

# The same two as a CMake project, which has to know by itself where the library is; and versions that it asks for.
with_cmake() {
  unset LD_LIBRARY_PATH CMAKE_GENERATOR
  package=$(dirname "$(find "$root" -name hipmmConfig.cmake)")
  version=$(${PKG_CONFIG:-pkg-config} --modversion hipmm)
  mkdir "$root/outside" "$root/versions"
  cp "$top_srcdir/tests/compat/old_program.c" "$top_srcdir/tests/cpp/test.hpp" "$root/cpp.cpp" "$root/outside"
  for source in rmm_containers rmm26_resources; do
    sed 's:\.\./cpp/test:test:' "$top_srcdir/tests/compat/$source.cpp" >"$root/outside/$source.cpp"
  done
  mkdir "$root/outside/of_26"
  cat >"$root/outside/of_26/CMakeLists.txt" <<'END'
find_package(rmm 24.02 QUIET PATHS "${hipmm_RMM_DIR}" NO_DEFAULT_PATH)
if(rmm_FOUND)
  message(SEND_ERROR "hipmm says that it has the headers of RMM 24")
endif()
find_package(rmm 26.10 REQUIRED PATHS "${hipmm_RMM_DIR}" NO_DEFAULT_PATH)
add_executable(rmm26 ../rmm26_resources.cpp)
target_link_libraries(rmm26 PRIVATE rmm::rmm)
unset(rmm_DIR CACHE)
END
  cat >"$root/outside/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.12)
project(outside C)
option(WITH_CXX "Build what is in C++" OFF)
find_package(hipmm 0.1 REQUIRED COMPONENTS rmm_compat cpp)
add_executable(old old_program.c)
target_link_libraries(old PRIVATE hipmm::rmm_compat)
find_package(hipmm QUIET COMPONENTS rmm nothing)
if(hipmm_FOUND OR NOT hipmm_NOT_FOUND_MESSAGE MATCHES "no component \"rmm\".*headers, hipmm, cpp, rmm_compat")
  message(SEND_ERROR "unknown components: \"${hipmm_FOUND}\", ${hipmm_NOT_FOUND_MESSAGE}")
endif()
find_package(hipmm QUIET COMPONENTS cpp OPTIONAL_COMPONENTS nothing)
if(NOT hipmm_FOUND OR NOT hipmm_cpp_FOUND OR hipmm_nothing_FOUND)
  message(SEND_ERROR "${hipmm_FOUND}, cpp: ${hipmm_cpp_FOUND}, nothing: ${hipmm_nothing_FOUND}")
endif()
if(WITH_CXX)
  enable_language(CXX)
  add_executable(cpp cpp.cpp)
  target_link_libraries(cpp PRIVATE hipmm::cpp)

  find_package(rmm QUIET NO_SYSTEM_ENVIRONMENT_PATH PATHS "${INSTALLED}")
  if(rmm_FOUND AND rmm_DIR MATCHES "hipmm")
    message(SEND_ERROR "hipmm's package shadows RMM's own")
  endif()
  unset(rmm_DIR CACHE)
  add_subdirectory(of_26) # a folder has an rmm::rmm of its own
  set(rmm_ROOT "${INSTALLED}/lib/none;${INSTALLED}")
  find_package(rmm 23.12 EXACT REQUIRED)
  get_filename_component(place "${rmm_DIR}" REALPATH)
  message(STATUS "by rmm_ROOT: ${place}")
  unset(rmm_ROOT)
  unset(rmm_DIR CACHE)
  find_package(rmm 23.12 REQUIRED PATHS "${hipmm_RMM_DIR}" NO_DEFAULT_PATH)
  add_executable(rmm rmm_containers.cpp)
  target_compile_definitions(rmm PRIVATE SPDLOG_ACTIVE_LEVEL=SPDLOG_LEVEL_DEBUG)
  target_link_libraries(rmm PRIVATE rmm::rmm)
endif()
file(WRITE "${CMAKE_BINARY_DIR}/found" "${hipmm_VERSION} ${hipmm_PLUGIN_ABI} ${hipmm_PLUGIN_DIR}\n")
END
  for project in "$docs/examples" "$root/outside"; do
    cmake -S "$project" -B "$root/build-${project##*/}" -Dhipmm_DIR="$package" -DWITH_CXX="${CXX:+ON}" \
      -DINSTALLED="$(cd "$package/../../.." && pwd)" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wno-missing-field-initializers -Werror ${SANITIZER_FLAGS-}" \
      -DCMAKE_C_FLAGS="-std=gnu11 -Wall -Wextra -Werror ${SANITIZER_FLAGS-}" || return 1
    cmake --build "$root/build-${project##*/}" || return 1
  done
  HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2 "$root/build-examples/readme" "$root/cmake.csv" || return 1
  for plugin in "$root"/build-examples/*.so; do "$bin/hipmm" plugin test "$plugin" || return 1; done
  HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2 "$root/build-outside/old" || return 1
  if [ "${CXX-}" ]; then
    HIPMM_RUNTIME=software "$root/build-outside/cpp" || return 1
    (cd "$root/outside" && HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2 ../build-outside/rmm) || return 1
    (cd "$root/outside" && HIPMM_RUNTIME=software HIPMM_SOFTWARE=devices=2,pageable_memory_access=true \
      ../build-outside/of_26/rmm26) || return 1
  fi
  echo "$version $(folder plugin_abi) $root$(folder plugindir | sed "s:^$root::")" |
    diff - "$root/build-outside/found" || return 1

  cat >"$root/versions/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.19)
project(versions NONE)
foreach(wanted IN LISTS WANTED)
  string(REPLACE "=" ";" wanted "${wanted}")
  list(POP_BACK wanted answer)
  find_package(hipmm ${wanted} QUIET CONFIG PATHS "${PACKAGE}" NO_DEFAULT_PATH)
  if((hipmm_FOUND AND NOT answer) OR (answer AND NOT hipmm_FOUND))
    message(SEND_ERROR "find_package(hipmm ${wanted}) gives \"${hipmm_FOUND}\" instead of ${answer}")
  endif()
  unset(hipmm_DIR CACHE)
endforeach()
END
  # Each is what is asked for, and whether this version will do.
  major=${version%%.*}
  next=$((major + 1))
  wanted="$major=1;$version=1;$version=EXACT=1;$major.999=0;$next=0;$next.0=0;$major.999=EXACT=0"
  wanted="$wanted;$major...$next=1;$version...$version=1;$major...<$version=0;$next...9999=0"
  cmake -S "$root/versions" -B "$root/versions/build" -DPACKAGE="$package" -DWANTED="$wanted"
}
echo 'cmake_minimum_required(VERSION 3.19)' >"$root/new_enough.cmake"
if cmake -P "$root/new_enough.cmake" >/dev/null 2>&1; then
  (with_cmake) >"$root/cmake.log" 2>&1 || {
    cat "$root/cmake.log"
    exit 1
  }
  HIPMM_PLUGIN_PATH=$root/build-examples "$root/program" '{"runtime": "software", "stack": ["fill", "pool", "device"]}'
  echo "CMake builds the installed examples and programs of RMM, and gets no version but those that serve it"
else
  echo "CMake 3.19 or newer is not installed: find_package(hipmm) was not tried"
fi

# A HIP program, linked to what HIP library there is.
cat >"$root/unchanged.c" <<'END'
int hipMalloc(void **ptr, unsigned long bytes);
int hipFree(void *ptr);

int main(void)
{
  void *memory;
  return hipMalloc(&memory, 1000) || hipFree(memory);
}
END
compile "$root/unchanged" "$root/unchanged.c" "$(find "$root" -name software.so)"
HIPMM_RUNTIME=software ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 "$bin/hipmm" run \
  --strict --report="$root/report" -- "$root/unchanged"
grep -q '^  hipMalloc  *1  *0  *0$' "$root/report"
echo "a program that knows nothing of hipmm runs under the installed command"

# Found on the PATH, a command is not told where it lies; what bears its name elsewhere is no hint.
mkdir -p "$root/elsewhere/hipmm"
(cd "$root/elsewhere" && PATH=$bin:$PATH hipmm describe pool >/dev/null)
echo "the installed command finds its plugins from the PATH too"
