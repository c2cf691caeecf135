#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm show: the exact output.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

run 0 show "$here/graphs/branches.json"
same show-branches.txt
run 0 show --json "$here/graphs/branches.json"
same show-branches.json
# What is no terminal has no end of the line: descriptions are whole.
COLUMNS=60 run 0 show "$here/graphs/stack.json"
! grep -q '…' "$work/out" || fail "hipmm show cuts a description for a file"
run 0 show "$here/graphs/stack.json"
same show-stack.txt

# Resources that no device needs.
run 0 show "$here/graphs/names.json"
same show-names.txt
run 0 show --json "$here/graphs/names.json"
prints '^  "by_name": \['

# Without a file: the graph that a program would get.
HIPMM_RUNTIME=software run 0 show
prints '^graph    none found: a plain `device` for every device$'
prints '^runtime  software'
prints '^device'

# A runtime that is missing here is reported, and is not a failure.
echo '{ "runtime": "/nowhere/libhip.so", "stack": ["device"] }' >hipmm.json
run 0 show
prints '^runtime  none: '
run 0 show --json
prints '"in_force": null'

# Standard input is read once, for the graph and for the runtime.
"$hipmm" show - <hipmm.json >"$work/out" 2>"$work/err" || fail 'show -: it failed'
prints '^graph    <stdin>$'
prints '^runtime  none: '

run 1 show "$here/graphs/bad.json"
says 'graphs/bad.json:[0-9:]*: /resources/main/inital_size: unknown option'
run 1 show "$here/graphs/syntax.json"
says 'graphs/syntax.json:3:'

finish
