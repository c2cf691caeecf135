#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two ranks of a real launcher, Open MPI's, with one graph: a report for each, and both in one table.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/preload/common.sh"
command -v mpirun >/dev/null || skip "no mpirun here (Debian and Ubuntu: openmpi-bin)"
unset HIPMM_RUNTIME
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$work
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM TMPDIR
timeout 120 mpirun -n 2 --oversubscribe true >err 2>&1 </dev/null || {
  cat err
  echo "mpirun runs nothing here; it wants a network, if only the loopback"
  exit 77
}
cat >hipmm.json <<'END'
{ "runtime": { "type": "software", "devices": 2 },
  "report": "report.%h.%r.json",
  "current_device": "local_rank",
  "stack": ["statistics", { "type": "logging", "file": "memory.%r.csv" }, "pool", "device"] }
END
timeout 120 mpirun -n 2 --oversubscribe "$hipmm" run -- "$here/program" leak >out 2>err </dev/null ||
  fail "mpirun: exit status $?: $(cat out err)"
[ "$(grep -c good out)" = 2 ] || fail "not two good ranks: $(cat out err)"
[ -s memory.0.csv ] && [ -s memory.1.csv ] || fail "not a log for each rank: $(ls)"
run 0 run --merge 'report.*.json'
[ "$(grep -c '^   [01]  .*  program .*  4.00 MiB          6 MiB      4.00 MiB$' out)" = 2 ] || fail "rows: $(cat out)"
prints '^ sum  .* device        8.01 MiB         12 MiB      8.01 MiB$'
grep -q 'no report' out && fail "a rank is missing: $(cat out)"
finish
