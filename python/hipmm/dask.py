# SPDX-License-Identifier: MIT
"""hipmm in the workers of a Dask cluster.

    import hipmm.dask
    from distributed import Client, LocalCluster

    client = Client(LocalCluster(n_workers=2, threads_per_worker=1))
    client.register_plugin(hipmm.dask.Setup("hipmm.json", serve=["cupy"]))

Each worker initialises hipmm with the graph when it starts, and finalizes it when it ends, which writes the report that the
graph's "report" names. A worker whose name is a number, as in a LocalCluster, has this number as its rank: %r in the names
of files, and the device of "current_device": "local_rank".
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from distributed import WorkerPlugin

import hipmm

# Each by a function of a module.
_FRAMEWORKS = {
    "cupy": ("hipmm.cupy", "use"),
    "numba": ("hipmm.numba", "use"),
    "torch": ("hipmm.torch", "use"),
    "rmm": ("hipmm.rmm", "install"),
    "rmm-real": ("hipmm", "under_rmm"),
}


class Setup(WorkerPlugin):  # type: ignore[misc]
    """A plugin for Client.register_plugin().

    `graph` is for hipmm.init() in each worker: a dict, or the path of a file, as the workers see it. `serve` names what
    gets its memory from hipmm in the workers: "cupy", "numba" and "torch" by the use() of hipmm's modules, "rmm" by
    hipmm.rmm.install(), "rmm-real" by hipmm.under_rmm(). Register the plugin before the workers use a GPU. Another Setup takes the place of the first, which
    ends in each worker: hipmm is finalized, and initialised anew. Raises ValueError for an unknown name, and in
    the workers what hipmm.init() raises.
    """

    name = "hipmm"
    idempotent = False  # else a corrected graph would be ignored after one with a mistake, without a word

    def __init__(
        self, graph: str | os.PathLike[str] | Mapping[str, Any] | None = None, serve: Iterable[str] = ()
    ) -> None:
        if graph is not None and not isinstance(graph, (str, os.PathLike, Mapping)):
            raise TypeError(f"a graph is a path, a dict or None, not {graph!r}")
        self.graph = dict(graph) if isinstance(graph, Mapping) else graph
        self.serve = [serve] if isinstance(serve, str) else list(serve)
        for framework in self.serve:
            if framework not in _FRAMEWORKS:
                raise ValueError(f"cannot serve {framework!r}; one of {', '.join(_FRAMEWORKS)}")
        self._is_set_up = False

    def setup(self, worker: Any) -> None:
        """Called by a worker when it starts, or when the plugin is registered."""
        rank = str(worker.name)
        if rank.isdecimal():
            os.environ["HIPMM_RANK"] = os.environ["HIPMM_LOCAL_RANK"] = rank
            if _follows_local_rank(self.graph):
                _show_one_device(int(rank))
        hipmm.init(self.graph)
        self._is_set_up = True
        for framework in self.serve:
            module, function = _FRAMEWORKS[framework]
            getattr(importlib.import_module(module), function)()

    def teardown(self, worker: Any) -> None:
        """Called by a worker when it ends."""
        if self._is_set_up:
            self._is_set_up = False
            hipmm.finalize()


def _follows_local_rank(graph: Any) -> bool:
    """Whether the graph gives each rank its device. A file that cannot be read is the business of hipmm.init()."""
    if not isinstance(graph, Mapping):
        try:
            named = graph or os.environ.get("HIPMM_CONFIG") or "hipmm.json"
            if isinstance(named, str) and named.lstrip().startswith("{"):
                graph = json.loads(named)
            else:
                with open(named, encoding="utf-8") as file:
                    graph = json.load(file)
        except (OSError, ValueError):
            return False
    return isinstance(graph, Mapping) and graph.get("current_device") == "local_rank"


def _show_one_device(rank: int) -> None:
    """Leaves this process one device, since a thread's current device is not that of the threads that run tasks. Where the
    user has made some devices visible, it is one of those."""
    visible = os.environ.get("HIP_VISIBLE_DEVICES") or os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = visible.split(",") if visible else []
    device = devices[rank % len(devices)] if devices else str(rank)
    os.environ["HIP_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"] = device
    software = os.environ.get("HIPMM_SOFTWARE")
    os.environ["HIPMM_SOFTWARE"] = f"{software},devices=1" if software else "devices=1"
