#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The tests of the Python package on an installed wheel, over the software device, under each of several interpreters. Each
# gets a virtual environment of its own, with NumPy and pytest from PyPI. Run by hand before a release.
#
#   sh python/interpreters.sh WHEEL PYTHON...
#   sh python/interpreters.sh dist/hipmm-*-cp311-abi3-*_x86_64.whl python3.10 /opt/python3.13/bin/python3 /opt/python3.13t/bin/python3t
#
# Python 3.10 gets its own wheel, which lies beside that one. A free-threaded build of Python must refuse the wheel, and the
# module in it, with a sentence.
set -eu

[ $# -ge 2 ] && [ -f "$1" ] || { sed -n 's/^# \{0,1\}//; 4,10p' "$0" >&2; exit 2; }
tests=$(cd "$(dirname "$0")/tests" && pwd)
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
HIPMM_RUNTIME=software PYTHONDONTWRITEBYTECODE=1
export HIPMM_RUNTIME PYTHONDONTWRITEBYTECODE
unset PYTHONPATH HIPMM_CONFIG # of another hipmm

# refuses VENV: that a free-threaded Python installs no wheel of another ABI, and does not import the module either.
refuses() {
  if "$1/bin/python" -m pip install -q --disable-pip-version-check --no-deps "$wheel" 2>"$work/said"; then
    echo "a free-threaded Python installed $wheel" >&2
    return 1
  fi
  "$1/bin/python" -m zipfile -e "$wheel" "$work/unpacked"
  if PYTHONPATH=$work/unpacked "$1/bin/python" -c 'import hipmm' 2>"$work/said"; then
    echo "a free-threaded Python imported hipmm" >&2
    return 1
  fi
  tail -n 1 "$work/said"
  grep -q 'ImportError: .*free-threaded' "$work/said"
}

# passes VENV
passes() {
  ! "$1/bin/python" -c 'import sys; sys.exit(sys.version_info >= (3, 11))' || wheel=$(echo "$wheel" | sed 's/-cp311-abi3-/-cp310-cp310-/')
  timeout 300 "$1/bin/python" -m pip install -q --disable-pip-version-check numpy pytest "$wheel"
  cd "$work"
  PYTHONPATH=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))') \
    "$1/bin/python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir "$tests" "$tests"
}

failed=
for python in "$@"; do
  "$python" -c 'import sys; print("----", sys.executable, sys.version)'
  venv=$work/venv
  rm -rf "$venv" "$work/unpacked"
  "$python" -m venv "$venv"
  test=passes
  "$python" -c 'import sysconfig, sys; sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))' && test=refuses
  ($test "$venv") || failed="$failed $python"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
