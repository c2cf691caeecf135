#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Jobs of many ranks under hipmm run: one graph that names the reports and chooses the devices, a report for each rank, and
# `hipmm run --merge` of all of them.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
unset HIPMM_RUNTIME
host=$(uname -n)

# One graph for all ranks. Each gets the device of its local rank, alone.
cat >hipmm.json <<'END'
{ "runtime": { "type": "software", "devices": 2 },
  "report": "report.%r.json",
  "current_device": "local_rank",
  "stack": [{ "type": "limiting", "limit": "64MiB" }, "pool", "device"] }
END
# rank RANK SCENARIO: as a launcher would start it, the third rank of its host
rank() {
  RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=4 timeout 60 "$hipmm" run -- "$here/program" "$2" >"$work/out" 2>"$work/err" </dev/null
}
here=$top_builddir/tests/preload
rank 0 leak || fail "rank 0: $(cat err)"
rank 1 leak || fail "rank 1: $(cat err)"
rank 3 end_terminate
[ $? = 143 ] || fail "rank 3 is not ended by SIGTERM: $(cat err)"
for file in report.0.json report.1.json report.3.json; do
  [ "$(wc -l <$file)" = 1 ] || fail "not one report in $file"
done
grep -q '^{"program":"program","process":[0-9]*,"host":"'"$host"'","rank":1,"local_rank":1,"ranks":4,' report.1.json ||
  fail "report.1.json: $(cat report.1.json)"

# The table; the sums are those of the rows.
run 0 run --merge 'report.*.json'
sed "s/ *[0-9]*  program/ N program/; s/process [0-9]*/process N/; s/$host *N/HOST N/; s/ on $host/ on HOST/" out >clean
cat >wanted <<'END'
   0  HOST N program       0  device        4.00 MiB          6 MiB      4.00 MiB
   1  HOST N program       0  device        4.00 MiB          6 MiB      4.00 MiB
   3  HOST N program       0  device           1 KiB          2 MiB         1 KiB
END
grep '^   [0-9]' clean | diff -u wanted - || fail "the rows are others"
prints '^rank  host  *process  program  device  memory  peak requested  peak reserved  left at exit$'
prints '^ sum  .* device        8.01 MiB         14 MiB      8.01 MiB$'
prints "^most reserved: rank 0 on $host (program, process [0-9]*), 6 MiB on device 0\$"
prints '^no report of 1 of 4 ranks: 2$'
prints "^  rank 3 on $host (program, process [0-9]*): ended by SIGTERM\$"
run 0 run --merge --json report.3.json report.0.json report.1.json
prints '^  "reports": 3,$'
tr -d ' \n' <out >flat
grep -q '"totals":\[{"kind":"device","peak_requested_bytes":8395776,"peak_reserved_bytes":14680064,"live_bytes":8395776,"live_blocks":7}\]' flat ||
  fail "the totals: $(cat flat)"
grep -q '"most":{"rank":0,"host":"'"$host" flat || fail "who holds most: $(cat flat)"
grep -q '"failures":\[{"rank":3,.*"signal":"SIGTERM"}\],"ranks":4,"missing_ranks":\[2\]}$' flat ||
  fail "failures and missing ranks: $(cat flat)"

# The device is chosen before the program starts, only where a launcher tells the local rank.
RANK=1 LOCAL_RANK=1 "$hipmm" run -- sh -c 'echo $HIPMM_SOFTWARE' >out 2>err </dev/null
grep -q '\(^\|,\)devices=1$' out || fail "the rank has more than one device: $(cat out err)"
"$hipmm" run -- sh -c 'echo "$HIPMM_SOFTWARE"' >out 2>err </dev/null
grep -q 'devices=1' out && fail "a device is chosen without a launcher"

# With other runtimes by the variables of HIP and CUDA: a device by its number, or one of those that are visible already.
# visible LOCAL_RANK VARIABLE=VALUE...: the device that the program sees
visible() {
  sed 's/"runtime": [^}]*}/"runtime": "auto"/' hipmm.json >other.json
  rank=$1
  shift
  env "$@" HIPMM_SOFTWARE=devices=2 HIPMM_RUNTIME="$here/.libs/libamdhip64.so" RANK="$rank" LOCAL_RANK="$rank" \
    "$hipmm" run --config other.json -- sh -c 'echo "$HIP_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES"' 2>err </dev/null
}
[ "$(visible 1)" = "1 " ] || fail "no list: $(visible 1) $(cat err)"
[ "$(visible 3 HIP_VISIBLE_DEVICES=4,7)" = "7 " ] || fail "a list: $(visible 3 HIP_VISIBLE_DEVICES=4,7)"
[ "$(visible 0 CUDA_VISIBLE_DEVICES=4,7)" = "4 4,7" ] || fail "CUDA's: $(visible 0 CUDA_VISIBLE_DEVICES=4,7)"

# A launcher inside of hipmm run has no rank, and no row. A second run's reports replace those of the first in the same file.
rm -f report.*
for _ in 1 2; do
  run 0 run -- sh -c 'for i in 0 1; do RANK=$i LOCAL_RANK=$i sh -c "\"$0\" leak; :" || exit 1; done' "$here/program"
done
[ "$(wc -l <report.1.json)" = 2 ] || fail "no earlier report in report.1.json"
run 0 run --merge report.0.json report.1.json
[ "$(grep -c '^   [01]  .*  program ' out)" = 2 ] || fail "not two rows: $(cat out)"
grep -q '^hipmm: run: --merge: 1 report of earlier runs in the same files left out$' err || fail "earlier: $(cat err)"
run 0 run --merge --quiet report.1.json
silent
cp report.1.json 'report[1].json'
run 0 run --merge --quiet 'report[1].json' # a name, as it stands
silent

# Of one process the last report counts; its use of hipmm's own functions is another report. Values that lack are no zeros.
cat >one.json <<'END'
{"process":1,"host":"a","rank":0,"memory":[{"device":0,"kind":"device","peak_requested_bytes":1}],"functions":{}}

{"process":1,"host":"a","rank":0,"memory":[{"device":0,"kind":"device","peak_requested_bytes":10}],"functions":{"hipMalloc":{"calls":2,"passed":0,"failed":2}},"first_failure":"hipMalloc of 1 GiB: \u001b[31m"}
{"process":1,"host":"a","rank":0,"memory":[{"device":1,"kind":"device","stack":"mine","peak_reserved_bytes":5}],"failed_allocations":3,"first_failure":null}
{"process":1,"host":"b","program":"","rank":null,"memory":[{"device":0,"kind":"managed","peak_requested_bytes":7,"live_bytes":-2}]}
{"process":2,"host":"b","rank":null,"memory":[],"functions":{}}
{"process":2,"host":"a","rank":12,"memory":[]}
{"process":3,"host":"a","rank":0,"memory":[],"functions":{}}
END
run 0 run --merge one.json
prints '^   0  a  *1  -  *0  device  *10 bytes  *-  *-$'
prints '^   0  a  *1  -  *1  device, mine  *-  *5 bytes  *-$'
prints '^  12  a  *2  -  *-  -  *-  *-  *-$'
prints '^   -  b  *1  -  *0  managed  *7 bytes  *-  *-2$'
prints '^ sum  .* device  *10 bytes  *5 bytes  *-$'
prints '^ sum  .* managed  *7 bytes  *-  *-2$'
prints '^most requested: rank 0 on a (a program, process 1), 10 bytes on device 0$'
prints '^  rank 0 on a (a program, process 1): 2 failed, first hipMalloc of 1 GiB: \\x1b\[31m$'
prints '^  rank 0 on a (a program, process 1): 3 failed$'
run 0 run --merge --json one.json
prints '^  "reports": 4,$'

# A file may have any text and any number.
cat >odd.json <<'END'
{"process":9223372036854775807,"host":"a","rank":9223372036854775807,"signal":"\u001b[31mSIGTERM","memory":[{"device":0,"kind":"device","live_bytes":9223372036854775807}],"functions":{"f":{"failed":9223372036854775807},"g":{"failed":1}}}
{"process":-9223372036854775808,"host":"a","rank":-9223372036854775808,"memory":[{"device":0,"kind":"device","live_bytes":1}]}
{"process":2,"host":"a","rank":1,"memory":[]}
{"process":3,"host":"a","rank":1,"memory":[]}
END
run 0 run --merge odd.json
grep -q "$(printf '\033')" out && fail "a control character is printed"
prints ': ended by \\x1b\[31mSIGTERM; 9223372036854775807 failed$'
prints '^ *sum  .* device  .*  8\.00 EiB$'
[ "$(sed -n 's/^ *\(-*[0-9]*\)  a  .*/\1/p' out | tr '\n' ' ')" = "-9223372036854775808 1 1 9223372036854775807 " ] ||
  fail "the ranks are in another order: $(cat out)"

# Mistakes: each file is named, and the good ones count.
run 2 run --merge
says '^hipmm: run: --merge: FILE is missing; usage: hipmm run --merge \[--json\] FILE…$'
run 1 run --merge 'nothing.*.json'
says '^hipmm: run: --merge: nothing\.\*\.json: no such file$'
run 1 run --merge .
says '^hipmm: run: --merge: \.: Is a directory$'
printf '{"process": 1}\n{"process": 1\nhipmm: report of program, process 1\n' >bad.json
run 1 run --merge bad.json one.json
grep -q '^hipmm: run: --merge: bad.json:1: is JSON, but not a report of hipmm$' err || fail "no report: $(cat err)"
grep -q '^hipmm: run: --merge: bad.json:2: .* expected near end of file$' err || fail "cut: $(cat err)"
grep -q '^hipmm: run: --merge: bad.json:3: .*; this is a report for people: write reports with --json$' err ||
  fail "text: $(cat err)"
prints '^   0  a  *1  -  *0  device  *10 bytes  *-  *-$'
: >empty.json
run 0 run --merge empty.json
prints '^no process used GPU memory$'
finish
