#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm run itself: its arguments, programs that it cannot serve, graphs that are wrong, other processes, and the exports
# of the preload object.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
program=program
real_libraries=$here/.libs
echo '{ "stack": ["pool", "device"] }' >pool.json
scenario=command

# Usage.
run 0 run --help
tr -s ' \n' ' ' <"$work/out" |
  grep -q '^Usage: hipmm run \[--config FILE\] \[--stack TYPE,…\] \[--set NAME.OPTION=VALUE\] \[--limit SIZE\] \[--report\[=FILE\]\] \[--json\] \[--merge\] \[--check-streams\] \[--strict\] \[--no-python\] \[--no-driver\] -- PROGRAM \[ARGUMENT\]… ' ||
  fail "the usage is another one"
prints '^Exit status: the program'
run 2 run
says '^hipmm: run: PROGRAM is missing; usage: '
run 2 run --strict --
says '^hipmm: run: PROGRAM is missing; usage: '
run 2 run --config
says 'needs a value$'
run 2 run --strictly -- true
says '^hipmm: run: unknown option "--strictly"; did you mean "--strict"?$'
run 2 run --strict=yes -- true
says 'takes no value$'
run 127 run -- no-such-program
says '^hipmm: run: no-such-program: No such file or directory$'
if [ -c /dev/full ]; then
  "$hipmm" run -- no-such-program 2>/dev/full
  [ $? = 127 ] || fail "without a place for the message, another exit status"
fi
run 127 run -- ./no-such-program
run 126 run -- "$work"
says 'Is a directory$'
echo 'no program' >text
run 126 run -- ./text
says '^hipmm: run: ./text: Permission denied$'
run 2 run --report=/nowhere/report -- true
says '^hipmm: run: --report=/nowhere/report: No such file or directory$'
# The program gets the caller's signals.
if env --default-signal=PIPE grep SigIgn /proc/self/status >signals 2>/dev/null; then
  env --default-signal=PIPE "$hipmm" run --quiet -- grep SigIgn /proc/self/status >served
  cmp -s signals served || fail "under hipmm run: $(cat served) instead of $(cat signals)"
fi
mkfifo pipe
run 2 run --report=pipe -- true
says '^hipmm: run: --report=pipe: it is a pipe that nobody reads, or a socket$'
HIPMM_RUN_REPORT=$work/pipe HIPMM_RUN_PID=0 LD_PRELOAD=$top_builddir/tools/preload/.libs/preload.so \
  timeout 20 "$here/program" memory >"$work/out" 2>"$work/err"
says_once "^hipmm: the report cannot be written: $work/pipe: it is a pipe that nobody reads, or a socket\$"

"$hipmm" run --report=/dev/stderr -- true 2>&1 >/dev/null | grep -q '^hipmm: report of true, ' ||
  fail "--report=/dev/stderr does not report into a pipe"

# A graph without a file.
run 0 run --stack pool,limiting,limiting,device --set pool.maximum_size=8MiB --set limiting.limit=64MiB \
  --set 'limiting.2.limit=25% of total' --limit share -- sh -c 'echo "$HIPMM_CONFIG"'
prints '^{"stack":\[{"type":"pool","maximum_size":"8MiB"},{"type":"limiting","limit":"64MiB"},{"type":"limiting","limit":"25% of total"},{"type":"device"}\],"limit_physical":"share"}$'
run 0 run --config '{"stack": ["pool", "device"]}' -- sh -c 'echo "$HIPMM_CONFIG"'
prints '^{"stack": \["pool", "device"\]}$'
run 2 run --strict --stack pol,device -- true
says '/stack/0/type: unknown type "pol"; did you mean "pool"?; true is not started'
run 2 run --strict --stack pool,device --set pool.maximum_sise=8MiB -- true
says '/stack/0/maximum_sise: unknown option "maximum_sise" of pool; did you mean "maximum_size"?'
run 2 run --strict --stack pool,device --limit 8GIGS -- true
says '/limit_physical: "8GIGS" is not a size; write bytes, "512MiB", "2GB", "50%", "50% of total" or "share"'
run 2 run --stack pool,device --set pol.maximum_size=8MiB -- true
says '^hipmm: run: --set pol.maximum_size=8MiB: no resource of the stack is called "pol"; did you mean "pool"?$'
for setting in maximum_size=8MiB pool.maximum_size .x=1 pool.=1; do
  run 2 run --stack pool,device --set $setting -- true
  says "^hipmm: run: --set $setting: is not NAME.OPTION=VALUE, such as pool.maximum_size=8GiB\$"
done
run 2 run --limit 8GiB -- true
says '^hipmm: run: --limit needs --stack; in a graph file, write "limit_physical" there$'
run 2 run --config pool.json --stack pool,device -- true
says '^hipmm: run: --stack and --config exclude each other$'
HIPMM_CONFIG='{ "stack": ["pool", "devise"] }' run 1 check
prints '^HIPMM_CONFIG:1:21: /stack/1: unknown type "devise"; did you mean "device"?$'

# The program gets its arguments, and its exit status is returned.
run 3 run --config pool.json sh -c 'exit 3'
run 0 run --config pool.json -- printf '%s.' --report --config -- x
[ "$(cat "$work/out")" = '--report.--config.--.x.' ] || fail "the program's words are others: $(cat "$work/out")"
run 0 run printf %s --strict
[ "$(cat "$work/out")" = --strict ] || fail "an option after the program is not the program's"
printf '#!/bin/sh\necho script "$@"\n' >script
chmod +x script
run 0 run -- ./script one
prints '^script one$'

# A program that is not served: a message says so, or it does not run.
run 0 run --report=report -- true
grep -q '^  no call came through hipmm: ' report || fail "the report says nothing of a program that calls nothing"
if ! ${CC:-cc} -static -x c -o static - 2>"$work/err" <<'END'
int main(void) { return 0; }
END
then
  skip_part "a program that is linked statically" "the C library is not here as an archive"
else
  run 0 run -- ./static
  says '^hipmm: run: ./static is linked statically, so nothing can be put in front of its GPU runtime; ./static runs without hipmm$'
  run 2 run --strict -- ./static
  says '; ./static is not started (--strict)$'
fi
if is_root "a set-user-id program"; then
  cp /bin/sh raised
  chown 65534 raised
  chmod u+s raised
  run 0 run -- ./raised -c :
  says '^hipmm: run: ./raised is set-user-id, set-group-id or has capabilities, .* LD_PRELOAD; ./raised runs without hipmm$'
  run 2 run --strict -- ./raised -c :
fi

# A graph that is wrong, missing, or asks for what is not there.
echo '{ "stack": ["pol", "device"] }' >wrong.json
options='--config wrong.json'
good unready
says_once '^hipmm: wrong.json:1:13: /stack/0: unknown type "pol"; did you mean "pool"?; .*program runs without hipmm$'
[ "$(wc -l <"$work/err")" = 1 ] || fail "more than one line on a wrong graph"
run 2 run --strict --config wrong.json -- "$here/program" unready
says '^hipmm: wrong.json:1:13: .*; .*program is not started (--strict)$'
options='--config nowhere.json'
good unready
says_once '^hipmm: nowhere.json: '
HIPMM_RUNTIME=amd LD_LIBRARY_PATH=/nowhere run 2 run --strict --config pool.json -- true
says '^hipmm: HIPMM_RUNTIME: runtime amd: .*; true is not started (--strict)$'
HIPMM_SOFTWARE=memory=64MiB
export HIPMM_SOFTWARE
echo '{ "stack": [{ "type": "pool", "initial_size": "100MiB" }, "device"] }' >large.json
options='--config large.json'
good unready
says_once '^hipmm: device 0: .*; program goes on without hipmm$'
reports hipMalloc 1 1 0
run 2 run --strict --config large.json -- "$here/program" unready
says '^hipmm: device 0: .*; program is stopped, since it is to run --strict$'
# A graph that only one process could read. /dev/stdin may be a file.
for graph in - pipe /dev/fd/3; do
  printf '{ "stack": ["device"] }' | "$hipmm" run --config $graph -- "$here/program" memory >"$work/out" 2>"$work/err" &&
    fail "a program whose graph only one process can read is started"
  says "^hipmm: run: the graph $graph: every process of the program reads it, so it must be a file, and not "
done 3<>pipe
"$hipmm" run --strict --config /dev/stdin -- "$here/program" memory >"$work/out" <pool.json || fail "a graph in standard input"
# No setting is cut off on its way to the program.
echo '{ "runtime": { "type": "software", "memory": "1GiB" }, "stack": ["pool", "device"] }' >sized.json
HIPMM_SOFTWARE=$(printf 'memory=1GiB,%.0s' $(seq 200))memory=1GiB
run 2 run --strict --config sized.json -- true
says '^hipmm: run: HIPMM_SOFTWARE and the graph.s settings .* are longer together than 2047 bytes; shorten them; true is not'
unset HIPMM_SOFTWARE

# Without `hipmm run`, by LD_PRELOAD alone, everything works as well; one line says what is wrong.
object=$top_builddir/tools/preload/.libs/preload.so
if [ -z "${SANITIZER_FLAGS-}" ]; then
  for graph in pool wrong; do
    HIPMM_CONFIG=$graph.json LD_PRELOAD=$object:$top_builddir/plugins/runtimes/software/.libs/software.so \
      "$here/program" unready >"$work/out" 2>"$work/err" || fail "LD_PRELOAD with $graph.json: $(cat "$work/err")"
    [ "$(wc -l <"$work/err")" = $([ $graph = wrong ] && echo 1 || echo 0) ] || fail "not the lines of $graph.json"
  done
  HIPMM_CONFIG=pool.json LD_PRELOAD=$object "$here/program" unready >"$work/out" 2>"$work/err" || fail "alone"
  says_once "^hipmm: the program's HIP functions are those of .*libamdhip64.so.[0-9], which is not hipmm's runtime software; "
fi

# AMD's runtime, or a library of that name, is the program's own; chosen by its name or by its path.
LD_LIBRARY_PATH=$real_libraries
export LD_LIBRARY_PATH
options='--config pool.json'
for HIPMM_RUNTIME in amd "$(realpath "$real_libraries/libamdhip64.so")"; do
  good nested
  silent
  reports hipMemAllocHost 1 1 0
  grep -q hipHostMalloc "$work/report" && fail "what the runtime calls itself is counted"
  good memory reuse ordered streams threads host
  silent
  tells "^hipmm: report of program, process [0-9]*, runtime $HIPMM_RUNTIME\$"
  reports hipHostMalloc 1 1 0
done
HIPMM_RUNTIME=amd HIPMM_LOG=info run 0 run --config pool.json -- "$here/program" memory
says_once "growth segments: ROCm's virtual memory is known to lose"
HIPMM_RUNTIME=software
unset LD_LIBRARY_PATH

# The latest release is tried first. The library that the program has opened is the program's, of whatever release it is.
cat >opens.c <<'END'
#include <dlfcn.h>
int main(void)
{
  void *library = dlopen("libamdhip64.so.9", RTLD_NOW), *ptr;
  int (*allocate)(void **, unsigned long) = library ? (int (*)(void **, unsigned long))dlsym(library, "hipMalloc") : 0;
  int (*release)(void *) = library ? (int (*)(void *))dlsym(library, "hipFree") : 0;
  return !allocate || !release || allocate(&ptr, 1000) || release(ptr);
}
END
mkdir -p amd
cp "$real_libraries/libamdhip64.so" amd/libamdhip64.so.8
cp amd/libamdhip64.so.8 amd/libamdhip64.so.9
printf 'int none;\n' | ${CC:-cc} -shared -fPIC -x c -o amd/libamdhip64.so.7 -
if ${CC:-cc} -o opens opens.c; then
  scenario=opens
  LD_LIBRARY_PATH=$work/amd HIPMM_RUNTIME=amd \
    run 0 run --strict --config pool.json --report="$work/report" -- ./opens
  reports hipMalloc 1 0 0
fi

# The software device answers a program in the numbers of the HIP that the program is linked to, of which it knows the name.
cat >numbers.c <<'END'
int hipMalloc(void **ptr, unsigned long bytes);
int hipPointerGetAttributes(void *attributes, const void *ptr);
int hipFree(void *ptr);
int main(void)
{
  void *ptr;
  int attributes[20] = {-1}, local;
  int bad = hipMalloc(&ptr, 1000) || hipPointerGetAttributes(attributes, ptr) || hipFree(ptr);
  return bad ? 99 : 10 * attributes[0] + !!hipPointerGetAttributes(attributes, &local);
}
END
printf 'int hipMalloc(void) { return 1; }\nint hipPointerGetAttributes(void) { return 1; }\nint hipFree(void) { return 1; }\n' >stubs.c
mkdir -p linked
for row in 5:11 6:20 7:20 8:20; do
  release=${row%:*} library=linked/libamdhip64.so.${row%:*}
  ${CC:-cc} -shared -fPIC -o "$library" stubs.c -Wl,-soname,"${library#linked/}" -Wl,-z,lazy 2>"$work/err" &&
    ${CC:-cc} -o "numbers_$release" numbers.c "$library" 2>>"$work/err" || continue
  LD_LIBRARY_PATH=$work/linked run "${row#*:}" run --strict --config pool.json -- "./numbers_$release"
  HIPMM_SOFTWARE=hip=5.7 LD_LIBRARY_PATH=$work/linked run 11 run --strict --config pool.json -- "./numbers_$release"
done

# A runtime that calls its own functions through the hooks is not called without end.
cat >own.c <<'END'
int hipMalloc(void **ptr, unsigned long bytes);
int hipFree(void *ptr);
int hipFreeAsync(void *ptr, void *stream);
static int (*volatile own_malloc)(void **, unsigned long) = hipMalloc;
static int (*volatile own_free)(void *) = hipFree;
static int (*volatile own_free_async)(void *, void *) = hipFreeAsync;
int hipMalloc(void **ptr, unsigned long bytes) { return own_malloc(ptr, bytes); }
int hipFree(void *ptr) { return own_free(ptr); }
int hipFreeAsync(void *ptr, void *stream) { return own_free_async(ptr, stream); }
END
cat >caller.c <<'END'
#include <string.h>
int hipMalloc(void **ptr, unsigned long bytes);
int hipFree(void *ptr);
int hipFreeAsync(void *ptr, void *stream);
int main(int argc, char **argv)
{
  void *ptr = &argc;
  if (!strcmp(argv[1], "hipMalloc")) return hipMalloc(&ptr, 4) != 801;
  if (!strcmp(argv[1], "hipFree")) return hipFree(ptr) != 801;
  return hipFreeAsync(ptr, 0) != 801;
}
END
if ${CC:-cc} -shared -fPIC -o libown.so own.c && ${CC:-cc} -o caller caller.c ./libown.so; then
  options='--config wrong.json'
  for function in hipMalloc hipFree hipFreeAsync; do
    HIPMM_CONFIG=wrong.json HIPMM_LOG=off LD_PRELOAD=$object ./caller $function 2>"$work/err" ||
      fail "a runtime whose $function calls itself"
    scenario=caller
    says_once "^hipmm: $function: .* without end; hipmm cannot stand in front of this runtime\$"
  done
fi

# A message says when the software device was chosen automatically.
unset HIPMM_RUNTIME
options='--config pool.json'
good memory
if grep -q 'runtime software$' "$work/report"; then
  says_once "^hipmm: run: no GPU was found, so .*/program gets the software device$"
  [ "$(wc -l <"$work/err")" = 1 ] || fail "more than one line without a GPU"
  # Nor twice where the command has logged something before.
  mkdir refused && chmod o+w refused
  cp pool.json refused/hipmm.json
  (cd refused && "$hipmm" run -- "$here/program" memory) 2>"$work/err" || fail "a graph that is refused"
  [ "$(grep -c 'no GPU' "$work/err")" = 1 ] || fail "without a GPU, and with a refused graph: $(cat "$work/err")"
fi
HIPMM_RUNTIME=software
export HIPMM_RUNTIME

# Folders: file names are relative to the folder where the program was started.
mkdir -p elsewhere
cp pool.json hipmm.json
echo '{ "stack": ["nothing"] }' >elsewhere/hipmm.json
relative=$(realpath --relative-to=. "$top_builddir/plugins")
HIPMM_PLUGIN_PATH=$relative run 0 run --strict --report=report -- sh -c 'cd elsewhere && exec "$0" memory' "$here/program"
[ ! -s "$work/err" ] || fail "a program that changes its folder: $(cat "$work/err")"
grep -q '^  hipMalloc  *10  *0  *0$' report || fail "a program that changes its folder is not served"

# Processes: each that calls a hook writes a report.
run 0 run --config pool.json --report=report -- sh -c '"$0" memory; "$0" threads & wait' "$here/program"
[ "$(grep -c '^hipmm: report of program, ' report)" = 2 ] || fail "not two reports of two processes"
run 0 run --config pool.json --report -- "$here/program" leak
grep -q '^hipmm: report of program, ' "$work/err" || fail "no report on standard error"
echo 'old' >report
run 0 run --config pool.json --report=report -- "$here/program" leak
grep -q old report && fail "the report is added to an old one"

# A sanitizer that is a library need not come first; it still finds what it looks for.
cat >checked.c <<'END'
#include <stdlib.h>
int hipMalloc(void **ptr, unsigned long bytes);
int hipFree(void *ptr);
int main(int argc, char **argv)
{
  void *ptr = 0;
  char *volatile host = malloc(10);
  int bad = hipMalloc(&ptr, 1000) || hipFree(ptr) || !argv[0];
  host[argc > 1 ? 10 : 9] = 1;
  free(host);
  return bad;
}
END
if [ -z "${SANITIZER_FLAGS-}" ] && gcc -fsanitize=address -o checked checked.c "$here/.libs/libamdhip64.so" 2>"$work/err"; then
  scenario=checked options=$ASAN_OPTIONS
  LD_LIBRARY_PATH=$here/.libs
  export LD_LIBRARY_PATH
  unset ASAN_OPTIONS
  run 0 run --config pool.json --report="$work/report" -- sh -c 'exec ./checked'
  reports hipMalloc 1 0 0
  ASAN_OPTIONS=exitcode=9 run 9 run --config pool.json -- ./checked wrong
  says 'heap-buffer-overflow'
  ASAN_OPTIONS=$options
  export ASAN_OPTIONS
  unset LD_LIBRARY_PATH
fi

# Other preloaded libraries stay.
printf 'int other(void) { return 1; }\n' | ${CC:-cc} -shared -fPIC -x c -o other.so -
LD_PRELOAD=$work/other.so run 0 run --config pool.json -- sh -c 'echo "$LD_PRELOAD"'
prints "preload.so:.*software.so:$work/other.so\$"

# dlsym() looks from where it is called: a library that is preloaded behind hipmm finds the next function of a name, and one
# that was opened by itself what its own libraries have. A program finds its own functions, also where hipmm has such names.
cat >next.c <<'END'
#include <dlfcn.h>
int atoi(const char *text)
{
  static int calls;
  int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "atoi");
  return calls++ ? -1 : 1 + next(text);
}
END
printf 'int deep(void) { return 7; }\n' >deep.c
cat >opened.c <<'END'
#include <dlfcn.h>
int deep(void);
int use(void) { return !dlsym(RTLD_DEFAULT, "deep") || dlsym(RTLD_DEFAULT, "cuda nothing") || deep() != 7; }
END
cat >looks.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
  void *library = dlopen("./opened.so", RTLD_NOW | RTLD_LOCAL);
  int (*use)(void) = library ? (int (*)(void))dlsym(library, "use") : NULL;
  int (*own)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cudaDeviceReset");
  printf("%d %d %d\n", atoi("5"), use ? use() : -1, own ? own() : -1);
}
int cudaDeviceReset(void) { return 8; }
END
compile="${CC:-cc} -D_GNU_SOURCE -fno-builtin"
if $compile -shared -fPIC -o next.so next.c && $compile -shared -fPIC -o libdeep.so deep.c &&
  $compile -shared -fPIC -o opened.so opened.c ./libdeep.so && $compile -rdynamic -o looks looks.c; then
  LD_PRELOAD=$work/next.so run 0 run --config pool.json -- ./looks
  prints '^6 0 8$'
fi

# The object exports the functions of its table, those that end a process at once, those for Python, and nothing else.
${NM:-nm} -D -P --defined-only "$object" | awk '$2 != "A" { print $1 }' | sort >exported
printf '%s\n' '#include "hooks.h"' '#define ROW(api, name, ...) "row" #api #name' '#define NONE(...)' \
  'HOOKS(ROW, ROW, ROW, ROW, ROW, NONE)' >rows.c
${CC:-cc} -E -P -I"$top_srcdir/include" -I"$top_srcdir/tools/preload" rows.c | tr -d '\n' |
  grep -o '"row" "[a-z]*" "[A-Za-z0-9_]*"' | sed 's/"row" "\(.*\)" "\(.*\)"/\1\2/' >declared
printf '%s\n' _Exit _exit dlclose dlsym hipmm_run_symbol >>declared
sed -n 's/^[a-z_ ]* \**\(hipmm_run_[a-z_]*\)(.*);$/\1/p' "$top_srcdir/tools/preload/frameworks.c" "$top_srcdir/tools/preload/checks_hip.c" \
  >>declared
sort -o declared declared
[ "$(wc -l <declared)" -gt 80 ] && diff declared exported || fail "what is exported is not what is declared"
finish
