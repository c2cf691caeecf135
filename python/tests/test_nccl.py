# SPDX-License-Identifier: MIT
"""tests/lab/gpu/nccl_ranks.py, which shows on GPUs that NCCL works over hipmm's memory: here over the software device, with a
stand-in for NCCL; and that it notices what is wrong."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GPU = Path(os.environ["top_srcdir"]).resolve() / "tests/lab/gpu"
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("nccl") / "libnccl.so"
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", path, GPU / "nccl_stand_in.c", "-ldl"], check=True)
    return path


def ranks(library, *words, **environment):
    software = Path(os.environ["top_builddir"]).resolve() / "plugins/runtimes/software/.libs/software.so"
    settings = {"NCCL_LIBRARY": str(library), "FAKE_SOFTWARE": str(software), "HIPMM_SOFTWARE": "devices=2,memory=1GiB", **environment}
    return subprocess.run([sys.executable, "-B", GPU / "nccl_ranks.py", *words, "--mib", "9", "--turns", "2"],
                          env={**os.environ, **settings}, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("kind, words", [("mapped", []), ("segments", ["--register"]), ("shared", ["--register"]),
                                         ("nccl", ["--register"]), ("mapped", ["--threads", "--register"])])
def test_sums_are_right(library, kind, words):
    done = ranks(library, kind, *words, FAKE_OPENS="1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [rank["right"] for rank in found["ranks"]] == [{"memory": True, kind: True}] * 2
    assert found["log"] == dict.fromkeys(("registered", "opened"), 8 if "--register" in words else 0) | {"refused": 0}
    assert all(len(times) == 2 for rank in found["ranks"] for times in rank["seconds"].values())


def test_a_wrong_sum_is_noticed(library):
    found = json.loads(ranks(library, "mapped", "--register", FAKE_WRONG="1").stdout)
    assert [rank["right"] for rank in found["ranks"]] == [{"memory": False, "mapped": False}] * 2


@pytest.mark.parametrize("words, environment, said", [
    (["mapped"], {"NCCL_LIBRARY": "/nowhere/libnccl.so"}, "/nowhere/libnccl.so: cannot open shared object file"),
    (["mapped"], {"HIPMM_SOFTWARE": "devices=1"}, "needs 2 devices"),
    (["mapped", "--threads"], {"HIPMM_SOFTWARE": "devices=1"}, "needs 2 devices"),
    (["else"], {}, "invalid choice: 'else'"),
])
def test_bad_input(library, words, environment, said):
    done = ranks(library, *words, **environment)
    assert done.returncode and said in done.stderr
