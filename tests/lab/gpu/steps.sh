#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What of prove.sh's trainings needs no GPU: see test_steps.py. TORCH names the folder torch of an installed PyTorch, with
# CUDA or without, if python3 has none; the models are left out without it.
set -u
: "${top_srcdir:?set it to the source folder}"
[ -z "${SANITIZER_FLAGS-}" ] || { echo "the build without sanitizers looks at this"; exit 77; }
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
[ -z "${TORCH-}" ] || PYTHONPATH=$(dirname "$TORCH")${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH="${PYTHONPATH-}"
exec python3 -B "$top_srcdir/tests/lab/gpu/test_steps.py"
