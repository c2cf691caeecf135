#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The call stacks of a record: names of functions that nothing exports, stacks that stand for others, a program that is
# stripped, and one that has changed since.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

[ -z "${SANITIZER_FLAGS-}" ] || skip "the program is built without sanitizers"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"

cat >program.c <<'END'
#include <hipmm/hipmm.h>
#include <stdlib.h>
#define STAYS __attribute__((noinline)) static
STAYS void *ask(size_t bytes)
{
  void *ptr = NULL;
  if (hipmm_allocate(NULL, bytes, NULL, &ptr)) abort();
  __asm__ volatile("" ::: "memory");
  return ptr;
}
STAYS void small_layer(void)
{
  for (int i = 0; i < 40000; i++) ask(1000);
  __asm__ volatile("" ::: "memory");
}
STAYS void large_layer(void)
{
  for (int i = 0; i < 20; i++) ask(1 << 20);
  __asm__ volatile("" ::: "memory");
}
int main(void)
{
  if (hipmm_init_from_file("hipmm.json")) return 1;
  small_layer();
  large_layer();
  return 0;
}
END
libraries=$(cd "$top_builddir/.libs" && pwd)
${CC:-cc} -O1 -Wl,--build-id -I"$top_srcdir/include" -o program program.c -L"$libraries" -lhipmm -Wl,-rpath,"$libraries" || exit 99
record() {
  cat >hipmm.json <<END
{"runtime": "software", "stack": [{"type": "recording", "file": "$1", "stacks": "python", "stack_sample": $2},
                                  {"type": "pool", "maximum_size": "1GiB"}, "device"]}
END
  ./program 2>err || fail "the program ends with $?: $(cat err)"
}

# share FUNCTION LEAST MOST: the stacks that the function is in have so many MB at the peak
share() {
  python3 - "$work/out" "$@" <<'END' || fail "the bytes of $1 are wrong"
import json, sys
stacks = json.load(open(sys.argv[1]))["peak"]["by_stack"]
found = sum(stack["bytes"] for stack in stacks if sys.argv[2] in stack["name"]) / 1e6
if not float(sys.argv[3]) <= found <= float(sys.argv[4]): sys.exit("%s" % stacks)
END
}

record all.record 0
run 0 report --json all.record
share small_layer 40 40
share large_layer 20.9 21
# One block in 100 has a stack, and stands for them: of 400 by chance 100 more or fewer at most.
record sampled.record 100000
run 0 report --json sampled.record
share small_layer 30 50
share large_layer 20.9 21
share "no call stack" 0 0
python3 -c 'import json, sys
sentences = json.load(open(sys.argv[1]))["findings"]
sys.exit(not any("most of the peak holds about" in s and "small_layer" in s for s in sentences))' "$work/out" ||
  fail "what happened does not name the function with most of the peak"
run 0 report sampled.record
prints 'small_layer'
run 0 report -o page.html sampled.record
grep -q '"stack_sample":100000' page.html || fail "the page does not know what stacks stand for"

# Conversions keep that.
run 0 convert -o again.record sampled.record
run 0 report --json again.record
share small_layer 30 50
run 0 convert --format pprof -o sampled.pprof sampled.record
grep -q small_layer sampled.pprof || fail "the profile lacks a function"
if installed go "pprof itself"; then
  HOME=$work go tool pprof -raw sampled.pprof >raw 2>err || fail "pprof does not read the profile: $(cat err)"
fi
grep -qa libhipmm sampled.pprof && fail "hipmm's own functions are in the profile"

# Of a stripped program, and of one that was built anew, the place in the file is left.
cp program whole
strip program || exit 99
record stripped.record 0
run 0 report --json stripped.record
share small_layer 0 0
share program 60 61
cp whole program
${CC:-cc} -O0 -Wl,--build-id -I"$top_srcdir/include" -o program program.c -L"$libraries" -lhipmm || exit 99
run 0 report --json all.record
share small_layer 0 0
share program 60 61
cp whole program
run 0 report --json stripped.record # the build is the same, and the names are back
share small_layer 40 40
rm program
run 0 report --json stripped.record
share program 60 61
finish
