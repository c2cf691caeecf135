#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests of the package on a wheel for aarch64: buffers, initialisation, the life of a process. They run over the software
# device with Debian's Python for arm64, under qemu-user. Run by hand before a release, on Debian; it needs qemu-user,
# apt-get and PyPI, but no root.
#
#   sh python/aarch64.sh WHEEL [ARGUMENT OF PYTEST...]
#
# Python for aarch64 that a test starts by subprocess runs under qemu too. Not so a program that another starts, as `hipmm run`
# does, or that multiprocessing starts, or that a test compiles: those tests are left out.
set -eu

[ $# -ge 1 ] && [ -f "$1" ] || { sed -n 's/^# \{0,1\}//; 4,11p' "$0" >&2; exit 2; }
command -v qemu-aarch64 >/dev/null || { echo "qemu-aarch64 is missing (Debian and Ubuntu: qemu-user)" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "Python for aarch64 is Debian's, and this machine has no apt-get" >&2; exit 1; }
tests=$(cd "$(dirname "$0")/tests" && pwd)
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() {
  "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
}

# ---- Debian's Python, unpacked into a folder: apt-get with lists and an architecture of its own

root=$work/root
mkdir -p "$root" "$work/lists/partial" "$work/archives/partial"
touch "$work/status"
apt() {
  step apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$work/lists" -o APT::Sandbox::User= \
    -o Dir::State::status="$work/status" -o Dir::Cache="$work" -o Dir::Cache::Archives="$work/archives" -o Debug::NoLocking=1 "$@"
}
apt update
apt install -y --no-install-recommends --download-only python3 libstdc++6
for package in "$work"/archives/*.deb; do step dpkg-deb -x "$package" "$root"; done
python=$(echo "$root"/usr/bin/python3.[0-9]*)
release=${python##*/python}

# ---- The wheel and what its tests need

python3 -m venv "$work/venv"
step "$work/venv/bin/python" -m pip install -q --disable-pip-version-check --target "$work/site" --only-binary :all: \
  --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 --python-version "$release" --implementation cp \
  --abi "cp$(echo "$release" | tr -d .)" --abi abi3 --abi none numpy pytest "$wheel"
cat >"$work/site/sitecustomize.py" <<END
import shutil
import subprocess


class Popen(subprocess.Popen):
    def __init__(self, args, *more, **options):
        program = None if isinstance(args, str) else shutil.which(args[0])
        if program:
            with open(program, "rb") as file:
                if file.read(20)[18:20] == b"\xb7\0":  # of ELF: aarch64
                    args = ["$(command -v qemu-aarch64)", "-L", "$root", *args]
        super().__init__(args, *more, **options)


subprocess.Popen = Popen
END

cd "$work"
unset HIPMM_CONFIG
PYTHONPATH=$work/site HIPMM_RUNTIME=software PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH HIPMM_RUNTIME PYTHONDONTWRITEBYTECODE
qemu-aarch64 -L "$root" "$python" -c 'import hipmm, platform; print(hipmm.__version__, platform.machine(), platform.python_version())'
qemu-aarch64 -L "$root" "$python" -m pytest -q -p no:cacheprovider -c /dev/null --rootdir "$tests" \
  --deselect test_life.py::test_spawned_processes_work --deselect test_life.py::test_a_program_starts_python_twice_and_forks \
  "$tests/test_buffer.py" "$tests/test_init.py" "$tests/test_life.py" "$@"
