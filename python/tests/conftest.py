# SPDX-License-Identifier: MIT
"""Every test has hipmm on the software device with GRAPH, or with the graph of its marker. `run` runs a program in a
process of its own."""

import gc
import subprocess
import sys

import pytest

import hipmm

GRAPH = {"runtime": "software", "stack": ["statistics", "pool", "device"]}


def pytest_configure(config):
    config.addinivalue_line("markers", "graph(graph): the graph of this test; None: hipmm is not initialised")


@pytest.fixture(autouse=True)
def graph(request):
    marker = request.node.get_closest_marker("graph")
    graph = marker.args[0] if marker else GRAPH
    if graph is not None:
        hipmm.init(graph)
    yield graph
    gc.collect()
    while hipmm.is_initialized():
        hipmm.finalize()


@pytest.fixture
def run():
    def run(program, *arguments, code=0, env=None):
        import os

        ended = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **(env or {})},
        )
        assert ended.returncode == code, (ended.returncode, ended.stdout, ended.stderr)
        return ended

    return run
