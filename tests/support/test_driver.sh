#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What Automake's summary is told: script_driver.sh of a script that passes, fails or is skipped, and of the parts that it skips;
# tap_awk.sh of a test that CMocka skips.
set -u
: "${top_srcdir:?set it to the source folder}"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cat >"$work/script.sh" <<'END'
. "$top_srcdir/tests/support/skip.sh"
installed no-such-program "a part" || echo "the rest goes on"
installed sh "another part" && exit "$1"
END

# tells STATUS RESULT: the driver's line and results of the script that ends so
tells() {
  sh "$top_srcdir/tests/support/script_driver.sh" --test-name a.sh --log-file "$work/log" --trs-file "$work/trs" \
    --color-tests no --enable-hard-errors yes --expect-failure no -- sh "$work/script.sh" "$1" >"$work/out"
  printf '%s: a.sh\nSKIP: a.sh - a part: no-such-program is missing\n' "$2" | diff - "$work/out" || exit 1
  grep '^:test-result: ' "$work/trs" >"$work/results"
  printf ':test-result: %s\n:test-result: SKIP a part: no-such-program is missing\n' "$2" | diff - "$work/results" || exit 1
  grep -qx ":global-test-result: $2" "$work/trs" || { cat "$work/trs"; exit 1; }
  grep -qx 'the rest goes on' "$work/log" || { cat "$work/log"; exit 1; }
}

tells 0 PASS
tells 1 FAIL
tells 77 SKIP
tells 99 ERROR

# CMocka's skipped tests, as its releases report them, beside a failure.
cat >"$work/tap.sh" <<'END'
printf '1..4\nok 1 - works\nnot ok 2 # SKIP has no GPU\nok 3 # SKIP has no GPU\nnot ok 4 - counts to 10 # SKIP\n'
END
AM_TAP_AWK="sh $top_srcdir/tests/support/tap_awk.sh awk" sh "$top_srcdir/build-aux/tap-driver.sh" --test-name tap \
  --log-file "$work/log" --trs-file "$work/trs" --color-tests no --enable-hard-errors yes --expect-failure no -- \
  sh "$work/tap.sh" >"$work/out"
grep '^:test-result: ' "$work/trs" | cut -d ' ' -f 2 >"$work/results"
printf 'PASS\nSKIP\nSKIP\nFAIL\n' | diff - "$work/results" || exit 1
