#!/bin/sh
# SPDX-License-Identifier: MIT
#
# All sub-commands: help, versions, mistyped words, and outputs that cannot be written.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

run 0
prints '^Usage: hipmm COMMAND'
mv "$work/out" "$work/alone"
for words in --help -h help; do
  run 0 $words
  cmp -s "$work/alone" "$work/out" || fail "hipmm $words does not print what hipmm alone prints"
done
for command in check show plugins plugin describe schema replay plan tune report top export doctor convert bench info completion; do
  run 0
  prints "^  $command "
  run 0 $command --help
  prints "^Usage: hipmm $command"
  prints '^  --help '
  prints '^  --quiet '
  cp "$work/out" "$work/help"
  run 0 help $command
  cmp -s "$work/help" "$work/out" || fail "hipmm help $command is not hipmm $command --help"
done
run 0 --version
prints '^hipmm [0-9]*\.[0-9]*\.[0-9]*$'
mv "$work/out" "$work/version"
run 0 -V
cmp -s "$work/version" "$work/out" || fail "hipmm -V is not hipmm --version"

# --quiet, before and after the command: errors alone.
echo '{ "stack": ["device"] }' >plain.json
bench="bench --workload pair --live 3 --seconds 0.001 --config plain.json"
# shellcheck disable=SC2086 # words are words
HIPMM_RUNTIME=software run 0 $bench
grep -q 'note: --live means nothing' "$work/err" || fail "hipmm bench lacks the note that --quiet should silence"
for words in "--quiet $bench" "-q $bench" "$bench --quiet" "$bench -q"; do
  # shellcheck disable=SC2086 # words are words
  run 0 $words
  [ ! -s "$work/err" ] || fail "hipmm $words is not quiet: $(cat "$work/err")"
done
run 1 check --quiet nothing.json

run 2 chek
says '^hipmm: unknown command "chek"; did you mean "check"?$'
run 2 frobnicate
says '^hipmm: unknown command "frobnicate"; `hipmm --help` lists them$'
run 2 help chek
says 'did you mean "check"?'
run 2 --verison
says '^hipmm: unknown option "--verison"; did you mean "--version"?$'
run 2 show --jsn
says '^hipmm: show: unknown option "--jsn"; did you mean "--json"?$'
run 2 replay --rep 3 x.csv
says '^hipmm: replay: unknown option "--rep"'
run 2 show -x
says '^hipmm: show: unknown option "-x"; `hipmm show --help` lists them$'
run 2 show --json=yes
says 'option "--json=yes" takes no value'
run 2 replay --repeat
says 'option "--repeat" needs a value'
run 2 replay
says '^hipmm: replay: LOG is missing; usage: hipmm replay \[OPTION\]… LOG$'
run 2 check a b
says '"b" is one operand too many'
run 2 plugins x
says 'takes no operand, but "x" was given'
for number in 0 -1 1.5 3x '' 99999999999999999999; do
  run 2 replay --repeat "$number" x.csv
  says "^hipmm: replay: --repeat \"$number\" is not a whole number from 1 to "
done

# A message shows control characters instead of sending them to the terminal.
run 2 "$(printf 'a\033[2Jb')"
says 'a.x1b\[2Jb'
run 2 "$(printf 'a\302\2332Jb\2332Jc')"
says 'a.xc2.x9b2Jb.x9b2Jc'
for name in "$(printf 'n\302\2332J\2332J.json')" "$(printf 'n\302\2332J.json')"; do
  echo '{ "stack": ["device"] }' >"$name"
  for words in check "check --json" show "show --json"; do
    # shellcheck disable=SC2086 # words are words
    run 0 $words "$name"
    grep -q 'n.*2J.*json' "$work/out" || fail "hipmm $words does not name the file"
    grep -q "$(printf '\233')" "$work/out" "$work/err" && fail "hipmm $words sends control characters of C1 on"
  done
done
# So with characters that change the order of what is shown, or are invisible: U+202E, U+2066, U+200B, U+FEFF.
name=$(printf 'n\342\200\256\342\201\246\342\200\213\357\273\277.json')
echo '{ "stack": ["device"] }' >"$name"
for words in check "check --json" show "show --json"; do
  # shellcheck disable=SC2086 # words are words
  run 0 $words "$name"
  grep -q "$(printf '\342\200\|\342\201\|\357\273')" "$work/out" "$work/err" && fail "hipmm $words sends U+202E on"
done
run 0 check --json "$name"
prints '"file": "n.u202e.u2066.u200b.ufeff.json"'

# A reader that has read enough ends the command without a message; the output is longer than a pipe holds.
"$hipmm" describe --json 2>"$work/err" | head -n 1 >"$work/out"
prints '^{$'
[ ! -s "$work/err" ] || fail "hipmm describe --json | head: $(cat "$work/err")"

# A failed write is an error, not a crash. (Only Linux has /dev/full.)
if [ ! -w /dev/full ]; then
  skip_part "writes that fail" "there is no /dev/full"
else
  for words in --help --version "describe sample" "describe --json sample" "describe --man sample" plugins "plugins --json" \
    "show $here/graphs/stack.json" "check $here/graphs/stack.json" "check --json $here/graphs/stack.json" schema; do
    # shellcheck disable=SC2086 # words are words
    "$hipmm" $words >/dev/full 2>"$work/err"
    got=$?
    [ $got = 1 ] || fail "hipmm $words >/dev/full: exit status $got instead of 1"
    grep -q '^hipmm: cannot write to standard output' "$work/err" || fail "hipmm $words >/dev/full says nothing"
  done
  HIPMM_LOG=trace:/dev/full "$hipmm" bench --workload pair --seconds 0.01 --config "$top_srcdir/etc/hipmm.json" >"$work/out" 2>"$work/err" ||
    fail "a log on a full disk ends the command"
  [ "$(grep -c '^hipmm: warning: the log cannot be written: No space left on device; lines are lost$' "$work/err")" = 1 ] ||
    fail "a log on a full disk is not told of once: $(cat "$work/err")"
fi
"$hipmm" --help >&- 2>"$work/err"
got=$?
[ $got = 1 ] || fail "hipmm --help >&-: exit status $got instead of 1"
{
  "$hipmm" schema 2>"$work/err"
  echo $? >"$work/status"
} | true
case $(cat "$work/status") in
0 | 1) ;; # 0: all was written before the reader went away
*) fail "a closed pipe ends hipmm with $(cat "$work/status")" ;;
esac

# Progress only on a terminal.
# shellcheck disable=SC2086 # words are words
TERM=xterm HIPMM_RUNTIME=software run 0 bench --workload pair --seconds 0.3 --config plain.json
! grep -q "$(printf '\r')" "$work/out" "$work/err" || fail "hipmm bench shows progress in a file"
if installed script "progress on a terminal"; then
  for words in "bench --workload pair --seconds 0.5 --config plain.json" \
    "bench --workload replay --trace $here/traces/odd.csv --seconds 0.5 --config plain.json"; do
    TERM=xterm HIPMM_RUNTIME=software script -qec "$hipmm $words" "$work/typescript" >/dev/null 2>&1 </dev/null
    grep -q '█.*%' "$work/typescript" || fail "hipmm $words shows no progress on a terminal"
    TERM=xterm HIPMM_RUNTIME=software script -qec "$hipmm --quiet $words" "$work/typescript" >/dev/null 2>&1 </dev/null
    ! grep -q '█' "$work/typescript" || fail "hipmm --quiet $words shows progress"
  done
fi

# Colour only on a terminal.
for words in --help plugins "describe sample" "show $here/graphs/stack.json" "check $here/graphs/stack.json"; do
  # shellcheck disable=SC2086 # words are words
  TERM=xterm run 0 $words
  ! grep -q "$(printf '\033')" "$work/out" "$work/err" || fail "hipmm $words sends colour to a file"
done

finish
