# SPDX-License-Identifier: MIT
"""hipmm.store() and hipmm.attach(), with `hipmm serve`: what another process finds, and what fails."""

import gc
import os
import subprocess

import numpy
import pytest

import hipmm

COMMAND = os.path.join(os.path.dirname(hipmm.__file__), "bin", "hipmm")


@pytest.fixture
def server(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    server = subprocess.Popen([COMMAND, "serve", "weights"], stdout=subprocess.PIPE, text=True)
    assert "serving" in server.stdout.readline()
    yield server
    server.terminate()
    assert server.wait() == 0
    server.stdout.close()


READER = """
import numpy, hipmm
hipmm.init({"runtime": "software"})
weights = hipmm.attach("weights", deadline=10)
assert list(weights) == ["a", "layer.b"] and weights["layer.b"].description == b"<f4 3"
array = numpy.from_dlpack(weights["layer.b"])
assert array.view("<f4").tolist() == [1.0, 2.0, 3.0] and not array.flags.writeable
hipmm.finalize()
del weights
print(array.sum())
"""


def test_another_process_reads(server, run):
    with hipmm.store("weights") as store:
        store.put("a", bytes(range(100)))
        store.put("layer.b", numpy.array([1, 2, 3], "<f4"), b"<f4 3")
        with pytest.raises(hipmm.ArgumentError, match='has the name "a" already'):
            store.put("a", b"x")
    assert int(run(READER).stdout) == numpy.array([1, 2, 3], "<f4").view("u1").sum()
    weights = hipmm.attach("weights")
    interface = weights["a"].__cuda_array_interface__
    assert interface["data"] == (weights["a"].ptr, True) and interface["shape"] == (100,)
    assert hipmm.Buffer.copy_of(weights["a"]).read() == bytes(range(100))
    assert len(weights) == 2 and "c" not in weights and "100 bytes" in repr(weights["a"])
    with pytest.raises(BufferError, match="without a copy"):
        weights["a"].__dlpack__(copy=True)


def test_names_of_any_bytes(server):
    names = ["\udcff", "\udcfe", "é", "empty"]
    with hipmm.store("weights") as store:
        for name in names:
            store.put(name, b"" if name == "empty" else b"abc")
        with pytest.raises(ValueError, match="null"):
            store.put("a\0b", b"abc")
    weights = hipmm.attach("weights", deadline=0)
    assert list(weights) == names and [array.nbytes for array in weights.values()] == [3, 3, 3, 0]
    with pytest.raises(hipmm.StateError, match="this process, [0-9]*, has it; release its other resource"):
        hipmm.store("weights", deadline=0).put("a", b"abc")


def test_what_fails_commits_nothing(server):
    with pytest.raises(ZeroDivisionError):
        with hipmm.store("weights") as store:
            store.put("a", b"abc")
            1 / 0
    gc.collect()  # pytest has the exception
    with pytest.raises(hipmm.StateError, match="nothing was committed"):
        hipmm.attach("weights", deadline=0)
    with pytest.raises(hipmm.FileError, match="start one with `hipmm serve other`"):
        hipmm.attach("other")
    with pytest.raises(hipmm.ConfigError, match="1 to 64 letters"):
        hipmm.attach("a/b")
