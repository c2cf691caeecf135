#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm describe, plugins and schema: their output for plugins that are good, bad and missing.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

run 0 describe sample
same describe-sample.txt
run 0 describe --json sample
same describe-sample.json
COLUMNS=60 run 0 describe sample
same describe-sample-narrow.txt
! grep -q ' $' "$work/out" || fail "a line ends in blanks"

run 0 describe
for type in sample pool device statistics software; do prints "^  $type  *[A-Z]"; done
prints '^Sources'
prints '^Runtimes'
run 0 describe --json
prints '"type": "sample"'

run 2 describe sampel
says '^hipmm: describe: unknown type "sampel"; did you mean "sample"?$'
run 2 describe quux
says '^hipmm: describe: unknown type "quux"; `hipmm describe` lists those found$'

# A plugin that cannot be loaded is listed, not skipped.
mkdir bad
echo "no ELF" >bad/broken.so
cp "$top_builddir/tests/cmd/.libs/sample.so" bad
HIPMM_PLUGIN_PATH=$HIPMM_PLUGIN_PATH:$work/bad
run 1 describe broken
says '^hipmm: .*broken.so'
run 0 plugins
prints '^sample  *1\.2\.3  *adaptor '
prints '^sample .*not used: another sample comes first'
prints '^broken  *refused  *.*/bad/broken.so$'
prints '^    .*broken.so: '
prints ' found, 1 refused'
run 0 plugins --json
prints '"refusal": ".*broken.so: '
prints '"shadowed": true'

# plugin_path of a graph file, named or found.
HIPMM_PLUGIN_PATH=$top_builddir/plugins
mkdir mine
cp "$top_builddir/tests/cmd/.libs/sample.so" "$top_builddir/tests/cmd/.libs/plain.so" mine
echo '{ "plugin_path": "mine", "stack": ["sample", "plain"] }' >graph.json
run 2 describe sample
run 0 describe --config graph.json sample
prints '^sample 1\.2\.3, adaptor, 1 upstream, .*/mine/sample.so$'
cp graph.json hipmm.json
run 0 describe sample
run 0 plugins
prints '/mine/sample.so$'
run 0 schema
prints '"sample"'

# Each example of the schema is valid, by the schema and in a graph. One graph has those of all types.
mkdir examples
echo '{ "stack": ["device"] }' >plain.json
run 0 schema plain.json
cp "$work/out" examples/hipmm.schema.json
(cd examples && python3 "$here/schema.py" <hipmm.schema.json) || fail "the schema's examples"
grep -q '"advise.coarse_grain.1"' examples/examples.json || fail "there are no examples"
for graph in examples/examples.json examples/runtime.*.json; do run 0 check $graph; done

# The entry for the catalogue of JSON schemas names the file that hipmm reads.
python3 - "$top_srcdir/etc/schemastore.json" <<'END' || fail "the catalogue's entry"
import json, sys
entry = json.load(open(sys.argv[1]))
assert set(entry) == {"name", "description", "fileMatch", "url"} and entry["fileMatch"] == ["hipmm.json"], entry
END
echo '{ "plugin_path": "mine", "stack": ["sample", "plian"] }' >hipmm.json
run 0 plugins
grep -q '^hipmm: .*hipmm.json is not a valid graph' "$work/err" || fail "an invalid graph is passed over in silence"
run 1 plugins --config hipmm.json
says '/stack/1: unknown type "plian"'

finish
