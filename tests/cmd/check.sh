#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm check: the form of its output and its exit statuses. tests/graphs tests the errors themselves.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

run 0 check "$here/graphs/branches.json"
same check-good.txt
run 1 check "$here/graphs/bad.json"
same check-bad.txt
run 1 check --json "$here/graphs/bad.json"
same check-bad.json
run 1 check "$here/graphs/syntax.json"
same check-syntax.txt

run 1 check /nowhere/hipmm.json
prints '^/nowhere/hipmm.json: .*No such file or directory$'
prints '^/nowhere/hipmm.json: 1 error$'
run 1 check "$work"
prints 'Is a directory'

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

# A file name is text, not a message.
cp hipmm.json "$work/$(printf 'a\tb.json')"
run 0 check "$(printf 'a\tb.json')"
prints '^a.x09b.json: ok'
cp hipmm.json "$work/$(printf 'a\377.json')"
run 0 check --json "$(printf 'a\377.json')"
prints '^  "file": "a?.json",$'

finish
