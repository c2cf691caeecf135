#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Automake's driver of test scripts (SH_LOG_DRIVER): as its own test-driver, and beside the result of the script a skipped test
# for each line "SKIPPED: WHAT: WHY" of its log (skip.sh), so that the summary counts the parts that a script left out.
colors=no
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
  --test-name) name=$2 ;;
  --log-file) log=$2 ;;
  --trs-file) results=$2 ;;
  --color-tests) colors=$2 ;;
  esac
  shift 2
done
shift

# tell RESULT COLOR TEXT: the line for the terminal
tell() {
  if [ "$colors" = yes ]; then printf '\033[%sm%s\033[m: %s\n' "$2" "$1" "$3"; else echo "$1: $3"; fi
}

trap 'rm -f "$log" "$results"; exit 1' HUP INT TERM
"$@" >"$log" 2>&1
status=$?
case $status in
0) result=PASS color='0;32' recheck=no copied=no ;;
77) result=SKIP color='1;34' recheck=no copied=yes ;;
99) result=ERROR color='0;35' recheck=yes copied=yes ;;
*) result=FAIL color='0;31' recheck=yes copied=yes ;;
esac
echo "$result $name (exit status: $status)" >>"$log"
tell $result "$color" "$name"
printf ':test-result: %s\n' $result >"$results"
sed -n 's/^SKIPPED: //p' "$log" | while IFS= read -r part; do
  tell SKIP '1;34' "$name - $part"
  echo ":test-result: SKIP $part" >>"$results"
done
printf ':global-test-result: %s\n:recheck: %s\n:copy-in-global-log: %s\n' $result $recheck $copied >>"$results"
