#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A second of tests/soak/soak, from a seed that is always the same; HIPMM_TEST_SOAK_SECONDS asks for more.
: "${top_builddir:?set it to the build folder}"
exec timeout $((600 + ${HIPMM_TEST_SOAK_SECONDS-1})) $TEST_LAUNCHER "$top_builddir/tests/soak/soak" \
  "${HIPMM_TEST_SOAK_SECONDS-1}" 1
