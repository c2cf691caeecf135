#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hipmm doctor: its answers on the software device, a runtime that breaks its process or hangs, and wrong arguments. What
# each probe finds is tested in test_doctor.c.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
HIPMM_RUNTIME=software
export HIPMM_RUNTIME

export HIPMM_SOFTWARE=devices=2 # one has nobody to give access to
run 0 doctor
prints '^Runtime software, HIP '
prints '^good      pool-order '
prints '^Nothing bad was found.$'
! grep -q '^BAD\|^absent' "$work/out" || fail "the software device has defects: $(cat "$work/out")"
unset HIPMM_SOFTWARE
COLUMNS=40 "$hipmm" doctor >"$work/out" || fail "no text of 40 columns"
! grep -E '^.{41,}' "$work/out" || fail "a line is longer than a terminal of 40 columns"
prints '^good      mapping-data$'
run 0 doctor --only mapping-data --json
prints '"verdict": "good"'
[ "$(grep -c '"probe"' "$work/out")" = 1 ] || fail "--only runs other probes too"
# The faults of ROCm's virtual memory.
HIPMM_SOFTWARE=devices=2,rocm_mapping=true "$hipmm" doctor >"$work/out" && fail "ROCm's mapping is good"
[ "$(grep -c '^BAD' "$work/out")" = 2 ] || fail "not two faults of ROCm: $(cat "$work/out")"
prints '^BAD       mapping-files '
prints 'seen: pieces of 2048 KiB took descriptors; this process may open '
prints '^BAD       mapping-peers '
prints 'seen: hipMemsetAsync returned hipErrorInvalidValue (1)'
# A device that is short of memory, and calls that fail.
HIPMM_SOFTWARE=fail=hipMemMap:1 "$hipmm" doctor --only mapping-alias >"$work/out" 2>"$work/err"
[ $? = 1 ] || fail "a failing call is not bad"
prints '^BAD       mapping-alias '
prints 'seen: hipMemMap returned hipErrorOutOfMemory\|seen: hipMemMap returned hip'
prints 'what to do: Write "growth": "segments"'
HIPMM_SOFTWARE=fail=hipMemMap:1 "$hipmm" doctor --only mapping-alias --json >"$work/out"
prints '"verdict": "bad"'
prints '"bad": 1'
run 2 doctor --only headache
says '^hipmm: doctor: there is no probe "headache"; without --only all are run and named$'
run 1 doctor --device 7
says '^hipmm: doctor: there is no device 7; the runtime software has 1$'
run 2 doctor --timeout 0
HIPMM_RUNTIME=/none/libamdhip64.so run 1 doctor
says '/none/libamdhip64.so'
finish
