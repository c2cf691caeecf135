#!/bin/sh
# SPDX-License-Identifier: MIT
#
# prove.sh: proves hipmm on this machine's GPU, from the folder that bundle.sh made; see README.md.
#
#     sh prove.sh [STEP…] [--json FILE]          PROVE_RUNTIME=software: without a GPU
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -B "$here/tests/lab/gpu/prove.py" --bundle "$here" "$@"
