#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Lines of core/, plugins/, tools/ and python/src that the test suite runs, for each file and in all (Debian: gcovr). A build with
# instrumentation in a folder of its own, one `make check`, and a report; it takes about twice as long as the tests.
#
#     sh tests/coverage.sh [FOLDER]          in FOLDER, build-coverage by default
#     sh tests/coverage.sh --report [FOLDER] the report alone, of the runs so far
#
# FOLDER/coverage.txt has a line per file, FOLDER/coverage/index.html shows each line. Fails if a file of core/, of
# plugins/, of tools/command or of python/src is below 90 % of lines, or all of them together are below 95 %. Left out is
# core/plugin/builtin.c, which is for static builds alone (tests/static_library.sh). The nvidia runtime is there where CUDA's
# headers are.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
command -v gcovr >/dev/null || { echo "gcovr is not installed (Debian: gcovr)"; exit 77; }
run_tests=true
[ "${1-}" != --report ] || { run_tests=false; shift; }
build=${1:-build-coverage}
jobs=$(getconf _NPROCESSORS_ONLN)

# The build, once. Threads count beside each other, so counts are atomic.
instrument() {
  [ -x configure ] || autoreconf -fi
  mkdir -p "$build"
  cd "$build"
  build=$PWD
  ${CC-gcc} -O1 -fPIC -c "$top/tests/coverage.c" -o coverage.o
  [ -f config.status ] || "$top/configure" -q CFLAGS="-O1 -g --coverage -fprofile-update=prefer-atomic" \
    LDFLAGS="--coverage -Wl,--wrap=_exit,--wrap=abort,$build/coverage.o" ${CONFIGURE_FLAGS-}
  make -s -j "$jobs" >build.log 2>&1 || { tail -n 20 build.log; exit 1; }
}

# A test that fails, as those that compare sizes of the library do in a build with instrumentation, still counts lines.
test_all() {
  find . -name '*.gcda' -delete
  EXTENSION_CFLAGS="-O1 -g --coverage -fprofile-update=prefer-atomic" make -s -k -j "$jobs" check >check.log 2>&1 || echo "tests failed in this build (see $build/check.log):" \
    "$(sed -n 's/^FAIL: \([^ ]*\).*/\1/p' check.log | sort -u | tr '\n' ' ')"
}

report() {
  mkdir -p coverage
  gcovr --root "$top" --object-directory . -j "$jobs" --gcov-ignore-parse-errors \
    --filter "$top/core/" --filter "$top/plugins/" --filter "$top/tools/" --filter "$top/python/src/" \
    --exclude "$top/core/plugin/builtin.c" \
    --json-summary coverage.json --txt coverage.txt --html-details coverage/index.html core plugins tools python \
    >gcovr.log 2>&1 || { tail -n 5 gcovr.log; exit 1; }
}

# Prints what is below a bound, and the sums.
judge() {
  python3 - <<'END'
import json, sys
files = [file for file in json.load(open("coverage.json"))["files"] if file["line_total"]]
held = [file for file in files if not file["filename"].startswith("tools/preload/")]
covered, total = sum(file["line_covered"] for file in held), sum(file["line_total"] for file in held)
low = sorted((file for file in held if file["line_percent"] < 90), key=lambda file: file["line_percent"])
for file in low:
    print(f"{file['filename']}: {file['line_covered']} of {file['line_total']} lines, {file['line_percent']:.1f} %")
others = [file for file in files if file not in held]
percent = f"{100 * covered / total:.1f} %"
print(f"core, plugins, the command and python/src: {len(held)} files, {covered} of {total} lines, {percent}; {len(low)} below 90 %")
print(f"tools/preload: {len(others)} files, {sum(file['line_covered'] for file in others)} of",
      f"{sum(file['line_total'] for file in others)} lines")
sys.exit(bool(low) or covered < total * 0.95)
END
}

if $run_tests; then
  instrument
  test_all
else
  cd "$build"
fi
report
judge
