#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What an operation on streams that nobody retained takes, in instructions: as much beside many streams as beside few.
# stream_costs.c says what the streams do.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
. "$top_srcdir/tests/cmd/counts.sh"
HIPMM_RUNTIME=software
HIPMM_LOG=error
export HIPMM_RUNTIME HIPMM_LOG

few=64
many=4096
growth=1.1
wait_instructions=4000 # a step for each free block of the busy stream makes it 20,000

needs_callgrind

# compare WHAT BYTES GRAPH
compare() {
  program=$top_builddir/tests/cmd/stream_costs
  instructions beside_few costs_start costs_stop "$program" "$1" $few "$2" "$3"
  instructions beside_many costs_start costs_stop "$program" "$1" $many "$2" "$3"
  at_most "$1, $3, $many streams instead of $few" "$beside_many" "$beside_few" "$growth"
}

compare pairs 65536 "'stack': [{'type': 'fixed_size', 'block_size': '64KiB'}, 'device']"
compare pairs 1048576 \
  "'stack': [{'type': 'pool', 'initial_size': '1MiB', 'maximum_size': '1MiB', 'growth': 'segments'}, 'device']"
compare pairs 65536 "'stack': ['monotonic', 'device']"
compare pairs 4194304 "'stack': [{'type': 'arena', 'arena_size': '4MiB'}, 'device']"
compare wait 4096 "'stack': [{'type': 'fixed_size', 'block_size': '4KiB'}, 'device']"
at_most "wait, fixed_size, however many blocks the busy stream has" "$beside_few" $wait_instructions 1
compare wait 8192 "'stack': ['pool', 'device']"
finish
