# SPDX-License-Identifier: MIT
"""hipmm.under_rmm(): hipmm's memory under the real RMM, by bridge/rmm.cpp or, where that cannot be compiled, by a call of
Python for each allocation. `hipmm run` calls use() at the first import of RMM."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
import sys
import warnings
from typing import Any

import hipmm

from . import _bridge, _hipmm

# In the order of struct hipmm_functions; under `hipmm run` two are those that count for the report.
_FUNCTIONS = tuple(
    (
        *("is_initialized", "init_if_needed", "resource_get_for_device", "resource_retain", "resource_release"),
        *(prefix + "allocate", prefix + "deallocate", "last_error_message"),
    )
    for prefix in ("", "run_rmm_")
)


def _rmm() -> Any:
    try:
        import rmm
    except ImportError as error:
        raise ImportError(f"hipmm.under_rmm() needs RMM, such as the package rmm-cu13: {error}") from error
    if rmm.__name__ == "hipmm.rmm":
        raise hipmm.StateError("rmm is hipmm.rmm in this process, whose memory is hipmm's already")
    if not hasattr(getattr(rmm, "mr", None), "CallbackMemoryResource"):
        raise ImportError(f"{rmm!r} is no RMM, or too old: it has no rmm.mr.CallbackMemoryResource")
    return rmm


# ---- Without Python in an allocation


def _folder(package: str) -> pathlib.Path:
    """The package of a wheel; conda has the same files below the folders of the environment."""
    spec = importlib.util.find_spec(package)
    return pathlib.Path(spec.origin).parent if spec and spec.origin else pathlib.Path(sys.prefix)


def _command() -> list[str]:
    """The compiler and its arguments, but for the output."""
    root, logger = _folder("librmm"), _folder("rapids_logger")
    include = root / "include"
    if not (include / "rmm/error.hpp").exists():
        raise _bridge.Unavailable(f"RMM's headers are not in {include}")
    libraries = [file for name in ("lib64", "lib") if (file := root / name / "librmm.so").exists()]
    parts = sorted((include / "rapids").glob("lib*"))  # of NVIDIA's C++ library, until 25.8
    folders = [include, include / "rapids", *parts, logger / "include", _bridge.cuda_headers(root)]
    return [
        *(*_bridge.compiler(), "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"),
        "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE",
        *(word for folder in folders for word in ("-isystem", str(folder))),
        *("-idirafter", str(_bridge._HERE / "cuda"), str(_bridge._HERE / "rmm.cpp"), *map(str, libraries[:1])),
    ]


@functools.cache
def _library(version: str) -> ctypes.CDLL:
    library = _bridge.load("rmm-" + ".".join(version.split(".")[:2]), (version,), _command())
    arguments = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
    library.hipmm_rmm_put.argtypes, library.hipmm_rmm_put.restype = arguments, ctypes.c_char_p
    return library


def _connect(rmm: Any, made: Any, resource: hipmm.Resource | None, device: int) -> None:
    """Replaces the functions of an object by hipmm's own. Raises Unavailable, with nothing changed."""
    library, table = _library(str(rmm.__version__)), _bridge.functions(_FUNCTIONS[_hipmm.is_under_run()])
    handle = resource and resource._handle
    refusal = library.hipmm_rmm_put(table, handle, device, id(made), type(made).__basicsize__)
    if refusal is not None:
        raise _bridge.Unavailable(refusal.decode())


# ---- In RMM's place


def _resource(rmm: Any, resource: hipmm.Resource | None, device: int) -> Any:
    """RMM's object for a resource of hipmm; None: for the one that is current at the first allocation."""
    found = [resource] if resource else []

    def allocate(nbytes: int, stream: Any) -> int:
        if not found:
            _hipmm.start_if_needed()
            found.append(hipmm.resource(device=device))
        return found[0].allocate(nbytes, stream)

    def deallocate(address: int, nbytes: int, stream: Any) -> None:
        found[0].deallocate(address, nbytes, stream)

    return rmm.mr.CallbackMemoryResource(allocate, deallocate)


def under_rmm(which: str | hipmm.Resource | None, device: int | None) -> Any:
    rmm = _rmm()
    _hipmm.start_if_needed()
    resource = None if which is None else hipmm._on(which, device)
    if resource and not resource.is_device_accessible:
        raise hipmm.ArgumentError(f"RMM needs memory that devices can access, which {resource!r} does not have")
    first = resource.device if resource else hipmm.current_device() if device is None else device
    others = range(hipmm.device_count())
    if first not in others:
        raise hipmm.NoDeviceError(f"there is no device {first}; the number of devices is {len(others)}")
    devices = [first, *(other for other in others if resource is None and device is None and other != first)]
    made = {device: _resource(rmm, resource, device) for device in devices}
    try:
        for device in devices:
            _connect(rmm, made[device], resource, device)
    except _bridge.Unavailable as reason:
        if not hasattr(rmm.pylibrmm.stream.Stream, "__cuda_stream__"):  # until 25.10: Python cannot tell the streams apart
            raise RuntimeError(f"RMM {rmm.__version__} keeps its own resource: {reason}") from None
        warnings.warn(f"each allocation of RMM calls Python, which takes microseconds: {reason}", stacklevel=3)
    for device in devices:
        rmm.mr.set_per_device_resource(device, made[device])
    return made[first]


def _visible_devices() -> int:
    """The number of devices, without the driver: the program may fork after its import of RMM, and a driver that has started
    does not serve the child. A device that is left out has RMM's own resource."""
    try:
        count = len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        count = 1
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return max(1, min(count, len(visible.split(","))) if visible else count)


def use() -> None:
    """For `hipmm run`, at the first import of RMM. Without the compiled object RMM keeps its resource, whose calls of the
    runtime are served too. No device is used, and hipmm is initialised by the first allocation."""
    rmm = _rmm()
    for device in range(_visible_devices()):
        made = _resource(rmm, None, device)
        _connect(rmm, made, None, device)
        rmm.mr.set_per_device_resource(device, made)
