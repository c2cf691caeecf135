# SPDX-License-Identifier: MIT
"""hipmm.dask in the workers of a real LocalCluster, which are processes of their own."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("distributed", reason="distributed could not be had from PyPI")

import hipmm.dask  # noqa: E402
from hipmm import _library  # noqa: E402

pytestmark = pytest.mark.graph(None)

PROGRAM = """
import json, os
import distributed
import hipmm.dask

def fail():
    import hipmm
    error = hipmm.MemoryError("none is left")
    error.status = -30
    raise error

def work(megabytes):
    import hipmm
    kept = hipmm.Buffer(megabytes << 20)
    try:
        hipmm.Buffer(1 << 40)
    except hipmm.MemoryError:
        pass
    return hipmm.device_count(), os.environ["HIPMM_RANK"], kept.device, os.getpid()

if __name__ == "__main__":
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs="ERROR")
    with cluster, distributed.Client(cluster) as client:
        try:
            client.register_plugin(hipmm.dask.Setup({"stack": ["pol"]}))
        except hipmm.Error as error:
            print(json.dumps(str(error)))
        plugin = hipmm.dask.Setup("hipmm.json", serve=["rmm"])  # the mistake is mended
        client.register_plugin(plugin)
        client.register_plugin(plugin)
        workers = sorted(client.scheduler_info()["workers"].values(), key=lambda worker: worker["name"])
        tasks = [client.submit(work, 3 * (1 + worker["name"]), workers=worker["name"], pure=False) for worker in workers]
        print(json.dumps(client.gather(tasks)))
        try:
            client.submit(fail).result()
        except MemoryError as error:
            print(json.dumps([type(error).__name__, error.status, str(error), type(error).__module__]))
        print(json.dumps(sorted(client.run(lambda: __import__("rmm").__name__).values())))
"""


def test_two_workers_write_reports_that_add_up(tmp_path):
    graph = {
        "runtime": {"type": "software", "devices": 2},
        "report": "report.%h.%r.json",
        "current_device": "local_rank",
        "stack": ["statistics", {"type": "logging", "file": "memory.%r.csv"}, "pool", "device"],
    }
    (tmp_path / "hipmm.json").write_text(json.dumps(graph))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    wrong, done, failed, rmm = (json.loads(line) for line in ended.stdout.splitlines())
    assert [row[:3] for row in done] == [[1, "0", 0], [1, "1", 0]]  # each has a device of its own, alone
    assert rmm == ["hipmm.rmm", "hipmm.rmm"]
    assert 'did you mean "pool"' in wrong
    assert failed == ["MemoryError", -30, "none is left", "hipmm"]

    merged = subprocess.run(
        [_library.command(), "run", "--merge", "--json", str(tmp_path / "report.*.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(merged.stdout)
    rows = report["memory"]
    assert [row["rank"] for row in rows] == [0, 1] and [row["process"] for row in rows] == [row[3] for row in done]
    assert [row["peak_requested_bytes"] for row in rows] == [3 << 20, 6 << 20]
    [total] = report["totals"]
    for key in ("peak_requested_bytes", "peak_reserved_bytes", "live_bytes", "live_blocks"):
        assert total[key] == sum(row[key] for row in rows)
    assert report["most"] == rows[1]
    assert [(failure["rank"], failure["failed"]) for failure in report["failures"]] == [(0, 1), (1, 1)]
    assert {file.name for file in tmp_path.glob("memory.*")} == {"memory.0.csv", "memory.1.csv"}


def test_mistakes_are_told_before_they_reach_a_worker():
    with pytest.raises(ValueError, match="cannot serve 'cuda'; one of cupy, numba, torch, rmm"):
        hipmm.dask.Setup({"stack": ["device"]}, serve="cuda")
    with pytest.raises(TypeError, match="a graph is a path, a dict or None, not 3"):
        hipmm.dask.Setup(3)


def test_a_worker_takes_one_of_the_visible_devices(monkeypatch):
    names = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "HIPMM_SOFTWARE", "HIPMM_RANK", "HIPMM_LOCAL_RANK")
    for name in names:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")  # so that what the plugin sets is undone
        monkeypatch.delenv(name)

    class Worker:
        name = 3

    plugin = hipmm.dask.Setup({"runtime": "software", "current_device": "local_rank", "stack": ["device"]})
    os.environ["CUDA_VISIBLE_DEVICES"] = "4,5"
    plugin.setup(Worker())
    assert [os.environ.get(name) for name in names] == ["5", "5", "devices=1", "3", "3"]
    plugin.teardown(Worker())
    plugin.teardown(Worker())  # nothing is left to undo
    assert not hipmm.is_initialized()
    for name in names:
        del os.environ[name]
    Worker.name = "tcp://10.0.0.1:1234"
    plugin.setup(Worker())
    assert [os.environ.get(name) for name in names] == [None] * 5
    plugin.teardown(Worker())
