#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What stops under `hipmm run`: the tables and the page go together, the programs of residents.py end under `hipmm run` as
# without it, over the software device, and the judges notice what is wrong.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
python3 -c '' 2>/dev/null || { echo "python3 is missing" && exit 77; }
lab=$top_srcdir/tests/lab
ledger() { python3 -B "$lab/ledger/ledger.py" "$@" >"$work/out" 2>&1; }
shows() { grep -q -- "$1" "$work/out" || { fail "the output lacks: $1" && sed 's/^/  /' "$work/out"; }; }

ledger check || { fail "the tables" && cat "$work/out"; }

# The programs, each alone and under `hipmm run`. That hipmm serves them is in the report.
if [ -z "${SANITIZER_FLAGS-}" ]; then
  mkdir results
  RESIDENTS_RUNTIME=$(realpath "$top_builddir/plugins/runtimes/software/.libs/software.so")
  RESIDENTS_HIPMM=$(realpath "$top_builddir/.libs/libhipmm.so")
  HIPMM_PLUGIN_PATH=$(realpath "$top_builddir/plugins") HIPMM_RUNTIME=software
  export RESIDENTS_RUNTIME RESIDENTS_HIPMM HIPMM_PLUGIN_PATH HIPMM_RUNTIME
  unset LD_PRELOAD HIPMM_RUN_PID HIPMM_SOFTWARE HIPMM_CONFIG
  echo '{ "stack": ["pool", "device"] }' >pool.json
  for way in native run; do
    [ $way = run ] && front="$hipmm run --config pool.json --report=report --" || front="env"
    # shellcheck disable=SC2086 # several words
    JOBS=2 $front python3 -B "$lab/gpu/residents.py" . results/residents-$way.txt >"$work/out" 2>&1 || { fail "residents.py" && cat "$work/out"; }
    grep '^failed\|^crashed' results/residents-$way.txt && fail "$way: a program did not end as it ends alone"
    [ "$(grep -c '^passed' results/residents-$way.txt)" -ge 19 ] || fail "$way: too few programs passed"
  done
  [ "$(awk '$1 == "hipMalloc" && $2 > $3 { n++ } END { print n + 0 }' report)" -ge 20 ] || fail "hipmm serves too few of the programs"
  ledger check results || { fail "the results" && cat "$work/out"; }

  # A case that is lost, a reason that is past, results that are cut off.
  cp -r results lost
  sed -i 's/^passed second_preload/failed second_preload it says why/' lost/residents-run.txt
  ledger check lost && fail "a lost case is not noticed"
  shows '^FAIL: residents: second_preload passes alone and not under hipmm run (failed: it says why): mend it'
  sed -i '/second_preload/d; /^end/d' lost/residents-run.txt
  ledger check lost && fail "a run that was cut off is not noticed"
  shows 'residents-run.txt: was cut off before its last case'
fi
ledger check . && fail "no results are results"
shows 'no SUITE-native.txt with its SUITE-run.txt'

# The tables of a copy.
mkdir -p copy/tests/lab/gpu copy/tests/lab/hip_tests copy/doc
cp -r "$lab/ledger" copy/tests/lab/
cp "$lab"/gpu/*.py copy/tests/lab/gpu/
cp "$lab/hip_tests/known.txt" copy/tests/lab/hip_tests/
cp "$top_srcdir/doc/stops.md" copy/doc/
chmod -R u+w copy
copy() { python3 -B copy/tests/lab/ledger/ledger.py "$@" >"$work/out" 2>&1; }
mkdir new
for way in native run; do
  printf 'begun a::one\npassed a::one\nbegun a::two\npassed a::two\nbegun a::three\nskipped a::three no reason\nend\n' >new/cupy-$way.txt
done
printf 'begun a::two\nfailed a::two AssertionError: a | b\nbegun a::one\nbegun a::four\npassed a::four\nend\n' >new/cupy-run.txt
copy check || { fail "the copy" && cat "$work/out"; }
: >copy/tests/lab/ledger/results.txt
: >copy/tests/lab/ledger/reasons.txt
copy record new && fail "cases without a reason are taken"
shows '^FAIL: cupy: a::one passes alone and not under hipmm run (crashed)'
shows '^FAIL: cupy: a::two passes alone and not under hipmm run (failed: AssertionError: a / b)'
printf 'cupy\ta::one\tthis is why\ncupy\ta::two\tand this\n' >>copy/tests/lab/ledger/reasons.txt
copy check && fail "a page that is not of the tables is not noticed"
shows 'stops.md is not of these tables'
copy page && copy check || { fail "the page" && cat "$work/out"; }
grep -q '^| `one` | crashed | this is why |$' copy/doc/stops.md || fail "the page lacks a row"
sed -i 's/^failed a::two.*/passed a::two/' new/cupy-run.txt
copy record new && fail "a reason that is past is not noticed"
shows '^FAIL: cupy: a::two passes now: take its row out of '
copy page
cp -r new fewer
sed -i '/a::four/d; /a::one/d' fewer/cupy-*.txt
copy record fewer && fail "fewer cases are taken"
shows 'cupy: 2 cases, fewer than the 3 that are recorded'
printf 'nosuch\ta::one\twhy\n' >>copy/tests/lab/ledger/reasons.txt
copy check && fail "a suite that is none"
shows 'reasons.txt: a row is SUITE<tab>CASE<tab>REASON'

# The runner: a case that ends the process, one that hangs and one that fails lose no other.
if ! python3 -c 'import pytest' 2>/dev/null; then
  skip_part "the runner of pytest's cases" "python3 has no pytest"
else
  mkdir project
  cat >project/test_project.py <<'END'
import os, time, unittest
import pytest
def test_first(): pass
def test_ends(): os._exit(9)
@pytest.mark.parametrize("value", [1, "a b"])
def test_values(value): assert value == 1
def test_hangs(): time.sleep(50)
@pytest.mark.skip(reason="for a reason")
def test_skipped(): pass
class Test(unittest.TestCase):
    def test_last(self): pass
    def test_device(self): raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")
END
  python3 -B "$lab/gpu/pytest_cases.py" project "$work/project.txt" --seconds 2 test_project.py >"$work/out" 2>&1 ||
    { fail "the runner" && cat "$work/out"; }
  grep -v '^begun' project.txt | cut -d' ' -f1,2 | sort >project.outcomes
  cat >wanted <<'END'
end
failed test_project.py::Test::test_device
failed test_project.py::test_values[a_b]
passed test_project.py::Test::test_last
passed test_project.py::test_first
passed test_project.py::test_values[1]
skipped test_project.py::test_skipped
END
  diff wanted project.outcomes || fail "the outcomes are others"
  [ "$(grep -c '^begun' project.txt)" = 8 ] || fail "a case ran twice"
fi
finish
