# SPDX-License-Identifier: MIT
#
# What the tests of the command share; sourced. Each check prints what it found, and `finish` ends the script with the
# number of failed checks.

: "${top_builddir:?set it to the build folder}" "${top_srcdir:?set it to the source folder}"
. "$top_srcdir/tests/support/skip.sh"
here=$top_srcdir/tests/cmd
hipmm=$top_builddir/hipmm
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
HIPMM_PLUGIN_PATH=$top_builddir/tests/cmd/.libs:$top_builddir/plugins
export HIPMM_PLUGIN_PATH
unset HIPMM_CONFIG HIPMM_RUNTIME HIPMM_SOFTWARE HIPMM_LOG COLUMNS
LC_ALL=C
export LC_ALL
cd "$work" || exit 99
failed=0

fail() {
  echo "FAIL: $*"
  failed=$((failed + 1))
}

finish() {
  [ $failed = 0 ] || echo "$failed checks failed"
  exit $((failed != 0))
}

# run STATUS ARGUMENT...: runs hipmm, its output in $work/out and $work/err
run() {
  wanted=$1
  shift
  "$hipmm" "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  [ $got = "$wanted" ] || {
    fail "hipmm $*: exit status $got instead of $wanted"
    sed 's/^/  /' "$work/out" "$work/err"
  }
}

# same NAME: what was printed is what expected/NAME holds; folders, versions and times are left out
same() {
  sed -e "s|$here/||g" -e "s|$top_builddir/||g" -e "s|$work|WORK|g" "$work/out" >"$work/clean"
  diff -u "$here/expected/$1" "$work/clean" || fail "the output is not expected/$1"
}

# says PATTERN: a line of standard error matches; nothing is on standard output
says() {
  grep -q -- "$1" "$work/err" || {
    fail "standard error lacks: $1"
    sed 's/^/  /' "$work/err"
  }
  [ ! -s "$work/out" ] || fail "a message is on standard output"
}

# prints PATTERN...: lines of standard output match
prints() {
  for pattern in "$@"; do
    grep -q -- "$pattern" "$work/out" || {
      fail "standard output lacks: $pattern"
      sed 's/^/  /' "$work/out"
    }
  done
}

# value PATH: a value of the JSON printed, as "peak.bytes"
value() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$work/out" "$1"
}

# has PATH VALUE
has() {
  [ "$(value "$1")" = "$2" ] || fail "$1 is $(value "$1") and not $2"
}

# by_keys PAGE: keys alone reach all of a page of `hipmm report`
by_keys() {
  installed node "$1, driven by keys" && installed chromium "$1, driven by keys" || return 0
  node "$here/page_keys.js" chromium "$work/$1" "$work/browser" >"$work/clean" 2>&1
  case $? in
  0) ;;
  77) skip_part "$1, driven by keys" "$(cat "$work/clean")" ;;
  *) fail "$1: $(cat "$work/clean")" ;;
  esac
}
