#!/bin/sh
# SPDX-License-Identifier: MIT
#
# RMM's own tests (python/rmm/rmm/tests of a clone of RMM 26.x, which is not part of hipmm) against hipmm.rmm: on the
# software device with stand-ins for Numba and cuda.bindings, on a GPU with the real ones.
#
#   sh python/tests/rmm.sh FOLDER [PYTEST-ARGUMENT...]         software, with the package of `make check` in build/
#   PYTHON=python3 sh python/tests/rmm.sh FOLDER ...            a GPU: a Python that has hipmm, pytest, numba-cuda, cuda-python
set -eu

[ -f "${1-}/test_helpers.py" ] || { sed -n 's/^# \{0,1\}//; 4,9p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
tests=$(cd "$1" && pwd)
shift
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
if [ -z "${PYTHON-}" ]; then
  build=${BUILD:-$top/build}
  for PYTHON in "$build"/python/venv-*/bin/python; do :; done # one for each version of Python that the tests ran with
  [ -x "$PYTHON" ] || { echo "first: make -C $build check TESTS=python/tests/python.sh" >&2; exit 2; }
  PYTHONPATH=$build/python/package:$here
  HIPMM_PLUGIN_PATH=$build/plugins HIPMM_RUNTIME=software HIPMM_SOFTWARE=pageable_memory_access=true
  export PYTHONPATH HIPMM_PLUGIN_PATH HIPMM_RUNTIME HIPMM_SOFTWARE
  set -- -p standins "$@"
fi
cd "$tests"
exec "$PYTHON" -m hipmm.rmm -m pytest -q -p no:cacheprovider "$@"
