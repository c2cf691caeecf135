#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm check: the form of its output and its exit statuses. tests/graphs tests the errors themselves.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

run 0 check "$here/graphs/branches.json"
same check-good.txt
run 0 check --strict "$here/graphs/names.json"
prints ': ok, 5 resources; by name only: chunks, weights, activations$'
run 1 check "$here/graphs/bad.json"
same check-bad.txt
run 1 check --json "$here/graphs/bad.json"
same check-bad.json
run 1 check "$here/graphs/syntax.json"
same check-syntax.txt
run 1 check "$here/graphs/duplicates.json"
same check-duplicates.txt
# Nothing is read of a file with a syntax error, and the first is the only error.
run 1 check "$top_srcdir/tests/graphs/invalid/unit_without_quotes.json"
prints "json:1:47: '}' expected near 'GB'; a number with a unit stands in double quotes$"
prints 'unit_without_quotes.json: 1 error$'

# A file that was cut off has one mistake, wherever that was.
whole='{ "stack": ["pool", { "type": "device", "peers": [0, 1] }], "runtime": { "type": "software" } }'
for bytes in $(seq 1 $((${#whole} - 1))); do
  printf '%s' "$whole" | head -c "$bytes" >cut_off.json
  "$hipmm" check cut_off.json >"$work/out"
  grep -q '^cut_off.json: 1 error$' "$work/out" || fail "after $bytes bytes of $whole: $(cat "$work/out")"
done

run 1 check /nowhere/hipmm.json
prints '^/nowhere/hipmm.json: .*No such file or directory$'
prints '^/nowhere/hipmm.json: 1 error$'
run 1 check "$work"
prints 'Is a directory'

# What the plugins of all types check: CASE.expect is what `hipmm check` prints for CASE.json. Building refuses the same.
unset RMM_LOG_FILE
echo 'Thread,Time,Action,Pointer,Size,Stream' >empty.csv
for graph in "$top_srcdir"/tests/graphs/types/*.json; do
  name=$(basename "$graph" .json)
  expected=${graph%.json}.expect
  cp "$graph" .
  wanted=0
  grep -q '^[^ ]*: ok, ' "$expected" || wanted=1
  run $wanted check "$name.json"
  diff -u "$expected" "$work/out" || fail "hipmm check $name.json: not what tests/graphs/types/$name.expect says"
  [ "$name" = runtime_nowhere ] || run $wanted replay --config "$name.json" empty.csv
  error=$(grep -v ': warning: ' "$expected" | sed -n '1s/^.*json:[0-9:]*: //p')
  case $wanted$name in
  0* | 1runtime_nowhere) ;;
  *) grep -qF -- "$error" "$work/err" || fail "$name.json: building says $(cat "$work/err") instead of $error" ;;
  esac
done

# A folder may be made before the program starts.
cat >no_folder.json <<'END'
{
  "report": "/nowhere/report.json",
  "resources": {
    "log": { "type": "logging", "file": "/nowhere/at/all/%d.csv", "upstream": "record" },
    "record": { "type": "recording", "file": "not_here/record.bin", "upstream": "arena" },
    "arena": { "type": "arena", "dump_log_on_failure": true, "dump_log_file": "/dev/null/dump", "upstream": "memory" },
    "memory": { "type": "device" }
  },
  "devices": { "default": "log" }
}
END
run 0 check no_folder.json
for folder in '2:3: /report: warning: the folder "/nowhere"' '/log/file: warning: the folder "/nowhere/at/all"' \
  '/record/file: warning: the folder "not_here"' '/arena/dump_log_file: warning: the folder "/dev/null"'; do
  prints "$folder does not exist; create it before the program starts$"
done
mkdir not_here
run 0 check no_folder.json
prints ', 3 warnings$'

run 0 check limit_of_zero.json
run 1 check --strict limit_of_zero.json
prints '^limit_of_zero.json: 1 warning$'
run 1 check --strict --json limit_of_zero.json
prints '"ok": false'
run 0 check --strict limit_of_a_share.json
HIPMM_RUNTIME=software run 0 check runtime_nowhere.json
prints '^runtime_nowhere.json:1:3: /runtime: warning: .* is not there; HIPMM_RUNTIME replaces it$'

# Standard input, and a place that a diagnostic lacks.
"$hipmm" check - <limit_missing.json >"$work/out" 2>"$work/err" && fail 'check -: exit status 0'
prints '^<stdin>:1:28: /stack/1: limiting needs "limit"'
printf '{ "stack": ["pool\0' | "$hipmm" check - >"$work/out" 2>"$work/err" && fail 'check - with a zero byte: exit status 0'
says '^hipmm: <stdin> has a zero byte'
run 1 check --json /nowhere/hipmm.json
prints '"line": null,$'
prints '"column": null,$'

# A plugin whose descriptor claims too much is an error in the graph, not a crash.
echo '{ "stack": ["claims", "device"] }' >claims.json
HIPMM_PLUGIN_PATH=$top_builddir/tests/bad/.libs:$HIPMM_PLUGIN_PATH run 1 check claims.json
prints 'claims.so: its option table, said to have 1000000 rows'
HIPMM_PLUGIN_PATH=$top_builddir/tests/bad/.libs run 0 plugins --json
prints 'claims.so: its option table, said to have 1000000 rows'
rm claims.json

# The file that hipmm_init() would read.
run 2 check
says '^hipmm: check: no graph file found'
cp "$here/graphs/stack.json" hipmm.json
run 0 check
prints '^.*hipmm.json: ok, 3 resources$'
HIPMM_CONFIG=$here/graphs/bad.json run 1 check
prints 'graphs/bad.json: '
HIPMM_CONFIG=nothing.json run 1 check
prints '^nothing.json: cannot be read: No such file or directory; HIPMM_CONFIG names this file$'
printf 'Thread,Time,Action,Pointer,Size,Stream\n' >empty.csv
HIPMM_CONFIG=nothing.json run 1 replay empty.csv
says 'HIPMM_CONFIG: nothing.json: cannot be read'
run 1 check nothing.json
prints '^nothing.json: cannot be read: No such file or directory$'

# A check creates nothing and needs no runtime: this type fails when it is created.
echo '{ "stack": [{ "type": "fails", "how": "with_words" }, "device"] }' >fails.json
HIPMM_PLUGIN_PATH=$top_builddir/tests/bad/.libs:$HIPMM_PLUGIN_PATH HIPMM_RUNTIME=/nowhere/runtime.so run 0 check fails.json
prints '^fails.json: ok'
HIPMM_PLUGIN_PATH=$top_builddir/tests/bad/.libs:$HIPMM_PLUGIN_PATH HIPMM_RUNTIME=software run 1 bench --config fails.json --seconds 0.1 --workload pair

# A file name is text, not a message.
cp hipmm.json "$work/$(printf 'a\tb.json')"
run 0 check "$(printf 'a\tb.json')"
prints '^a.x09b.json: ok'
cp hipmm.json "$work/$(printf 'a\377.json')"
run 0 check --json "$(printf 'a\377.json')"
prints '^  "file": "a?.json",$'

finish
