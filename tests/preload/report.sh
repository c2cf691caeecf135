#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The report of hipmm run: at each end of a program, while it runs, as JSON, and in files of several processes.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
program=program
options='--config pool.json'
echo '{ "stack": ["pool", "device"] }' >pool.json
echo '{ "stack": ["tracking", "pool", "device"] }' >tracking.json
echo '{ "stack": [{ "type": "tracking", "report_at_end": false }, "pool", "device"] }' >silent.json
echo '{ "stack": ["guard", "pool", "device"] }' >guard.json
ulimit -c 0

# ends STATUS SCENARIO: with that exit status, and one report in $work/report
ends() {
  scenario=$2
  rm -f "$work/report"
  # shellcheck disable=SC2086 # several words
  timeout 60 "$hipmm" run $options --report="$work/report" -- "$here/program" "$2" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  [ $got = "$1" ] || fail "$2: exit status $got and not $1"
  [ "$(grep -c '^hipmm: report of program, process [0-9]*, runtime software' "$work/report")" = 1 ] ||
    fail "$2: not one report"
}

# However the program ends, there is a report, and the exit status is the program's.
ends 7 end_exit_now
tells 'runtime software$'
tells "^  graph $work/pool.json\$"
tells '^    left at exit     1 KiB (1024 bytes) in 1 block$'
ends 7 end_quick
tells '^    left at exit     1 KiB'
ends 7 end_asked_late
tells 'runtime software$'
ends 143 end_terminate
tells 'runtime software, ended by SIGTERM$'
tells '^    left at exit     1 KiB'
if [ -z "${SANITIZER_FLAGS-}" ]; then # which have handlers of their own
  ends 134 end_abort
  tells ', ended by SIGABRT$'
  ends 139 end_fault
  tells ', ended by SIGSEGV$'
  tells '^    left at exit     1 KiB'
fi

# A report that cannot be written changes nothing for the program.
if [ -z "${SANITIZER_FLAGS-}" ]; then # which write to files and to standard error
  for report in - "$work/report"; do
    # shellcheck disable=SC2086 # several words
    timeout 60 "$hipmm" run $options --report="$report" -- "$here/program" end_unread </dev/null
    got=$?
    [ $got = 7 ] || fail "end_unread, --report=$report: exit status $got and not 7"
  done
  # shellcheck disable=SC2086 # several words
  got=$(timeout 60 "$hipmm" run $options --report="$work/report" -- "$here/program" end_limited 2>&1 </dev/null)
  [ "$got" = "hipmm: the report cannot be written: $work/report: File too large" ] || fail "end_limited: $got"
fi

# Handlers of the program's are what they were.
ends 5 end_own_early
tells 'runtime software$'
ends 143 end_own_late
tells ', ended by SIGTERM$'
ends 6 end_ignored
tells 'runtime software$'
good report_own
[ "$(grep -c '^hipmm: report of ' "$work/report")" = 1 ] || fail "a report at a signal that the program handles"
got=$(timeout 60 "$hipmm" run --config pool.json -- "$here/program" end_terminate 2>&1)
[ -z "$got" ] || fail "without --report: $got"

# Children: that of vfork() has the parent's memory, and one that forked after the first call cannot report at a signal.
ends 0 end_children

# While the program runs.
REPORT_FILE=$work/report
export REPORT_FILE
good report_now
unset REPORT_FILE
[ "$(grep -c "runtime software, while it runs\$" "$work/report")" = 3 ] || {
  fail "not three reports while the program runs"
  sed "s/^/  /" "$work/report"
}
tells '^    now              1 KiB (1024 bytes) in 1 block$'
tells '^    now              2 KiB (2048 bytes) in 2 blocks$'
tells '^    left at exit     0 bytes$'

# What tracking and guard find at the end: in the report, else in the log.
options='--config tracking.json'
good leak
silent
tells '^  device 0, tracking$'
tells '^    device 0: 3 allocations outstanding, 4197376 bytes$'
tells '^    0x[0-9a-f]*: 1048576 B (allocation 2, '
run 0 run --config tracking.json -- "$here/program" leak
scenario=leak
says_once '^hipmm: warning: tracking: device 0: 3 allocations outstanding, 4197376 bytes$'
says_once '^hipmm: warning: tracking: 0x[0-9a-f]*: 1048576 B (allocation 2, '
run 0 run --config silent.json -- "$here/program" leak
silent
run 0 run --config tracking.json -- "$here/program" end_late_free
silent
options='--config guard.json'
good end_damage
says_once '^hipmm: error: guard: .* past its end'
tells '^  device 0, guard$'
tells '^    overruns 1, underruns 0, writes after a free 1, double frees 0$'
run 0 run --config guard.json -- "$here/program" end_damage
says_once '^hipmm: error: guard: .* past its end'

# A plugin of any name is told of the end, at its two moments.
echo '{ "stack": ["sample", "pool", "device"] }' >sample.json
run 0 run --config sample.json -- "$here/program" leak
scenario=leak
says_once '^sample: the process exits$'
says_once '^sample: the process has ended$'
[ "$(tail -n 1 "$work/err")" = 'sample: the process has ended' ] || fail "the end is not told last: $(cat "$work/err")"

# As JSON, a line for each process.
options='--config tracking.json --json'
good leak
[ "$(wc -l <"$work/report")" = 1 ] || fail "not one line of JSON"
scenario=json
tells '^{"program":"program","process":[0-9]*,"host":"'"$(uname -n)"'","rank":null,"local_rank":null,"ranks":null,"run_time":[0-9]*,"moment":"exit","signal":null,"runtime":"software","graph":"'"$work"'/tracking.json"'
tells '"functions":{"hipMalloc":{"calls":3,"passed":0,"failed":0}}'
tells '"memory":\[{"device":0,"kind":"device","stack":null,"peak_requested_bytes":4197376,"live_bytes":4197376,"live_blocks":3,'
tells '"resources":\[{"device":0,"name":"tracking","report":\["device 0: 3 allocations outstanding, 4197376 bytes",'
if installed python3 "whether the report is JSON"; then
  python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$work/report" || fail "no JSON"
fi
run 0 report "$work/report"
prints '^- program (process [0-9]*) had 3 blocks with 4.00 MiB of it when the report was made.$'
ends=$(timeout 60 "$hipmm" run --config pool.json --json -- "$here/program" end_terminate 2>&1 >/dev/null)
case $ends in
*'"moment":"signal","signal":"SIGTERM"'*) ;;
*) fail "--json without --report: $ends" ;;
esac

# Files of processes and ranks; the percent sign of a folder is no letter.
mkdir '100%'
cd '100%'
cp ../pool.json .
run 0 run --config pool.json --report='r.%p.%r.%%' -- sh -c \
  'RANK=1 "$0" leak; RANK=2 "$0" leak; cd /; "$0" leak' "$here/program"
for rank in 1 2; do
  [ "$(find . -name "r.[0-9]*.$rank.%" | wc -l)" = 1 ] || fail "not one report of rank $rank: $(ls)"
done
[ "$(find . -name 'r.[0-9]*.0.%' | wc -l)" = 2 ] || fail "not a report of the shell and of the last program: $(ls)"
grep -q "^  graph $work/100%/pool.json\$" r.[0-9]*.2.% || fail "the graph is not named"
rm -f r.*
run 0 run --config pool.json --report='%h' -- "$here/program" leak
[ -s "$(uname -n)" ] || fail "no report of this host: $(ls)"
run 0 run --config pool.json --report='%%p' -- sh -c '"$0" leak; "$0" leak; true' "$here/program"
[ "$(grep -c '^hipmm: report of program' %p)" = 2 ] || fail "a report in the file %p is lost: $(cat %p)"
run 2 run --config pool.json --report='%q' -- "$here/program" leak
says '^hipmm: run: --report: "%q": unknown %q; write %p for the process, '
run 2 run --config pool.json --report='nowhere/%p' -- "$here/program" leak
says '^hipmm: run: --report=nowhere/%p: No such file or directory$'
cd ..
# A report does not take the place of the graph, or of a file that the program's command line names.
cp pool.json graph.json
echo data >data.txt
for words in "--report=graph.json --config graph.json -- true" "--report=data.txt --config graph.json -- cat data.txt"; do
  file=${words%% *}
  # shellcheck disable=SC2086 # several words
  run 2 run $words
  says "^hipmm: run: --report: \"${file#--report=}\" is an input too; write another file\$"
done
cmp -s pool.json graph.json || fail "the report took the place of the graph"
grep -q '^data$' data.txt || fail "the report took the place of a file that the program reads"
finish
