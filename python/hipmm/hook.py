# SPDX-License-Identifier: MIT
"""`hipmm run` for Python: what its hook (sitecustomize.py, which the environment carries to every Python that the program
starts) calls when a framework has been imported. A program has no use for this module."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import sys

from . import _hipmm

_MODULES = {"torch": "hipmm.torch", "cupy": "hipmm.cupy", "numba.cuda": "hipmm.numba", "rmm": "hipmm._under_rmm"}


def _is_wanted(framework: str) -> bool:
    """Whether the framework uses a GPU, and the program has not chosen an allocator for it."""
    if framework == "torch":
        version = sys.modules["torch"].version
        return bool(version.cuda or getattr(version, "hip", None))
    if framework == "numba.cuda":
        return not os.environ.get("NUMBA_CUDA_MEMORY_MANAGER") and os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "0"
    if framework == "rmm":  # and not hipmm.rmm, or a module of the program that has this name
        return hasattr(getattr(sys.modules["rmm"], "mr", None), "CallbackMemoryResource") and "hipmm.rmm" not in sys.modules
    return True


def _jax() -> str | None:
    """JAX has no place for another allocator. It asks the driver for memory, in a way that a variable chooses."""
    found = importlib.util.find_spec("jax_plugins")
    plugins = pkgutil.iter_modules((found and found.submodule_search_locations) or ())
    has_cuda = any(plugin.name.startswith("xla_cuda") for plugin in plugins)
    is_used = any(name in (os.environ.get("JAX_PLATFORMS") or "cuda") for name in ("cuda", "gpu"))
    if not has_cuda or not is_used or os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "").lower() == "cuda_async":
        return None
    return "it maps its memory itself; with XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async in the environment, hipmm serves all of it"


def serve(framework: str) -> str | None:
    """Gives hipmm to the framework. Returns why it keeps its own allocator; None if it is served, or if it has no use for
    hipmm: PyTorch without a GPU's support, or a program that imports hipmm.torch itself, and so chooses itself."""
    if framework == "jax":
        return _jax()
    module = _MODULES[framework]
    if module in sys.modules or not _is_wanted(framework):
        return None
    if not _hipmm.is_under_run():
        return (
            f"hipmm {_hipmm.version()} of {os.path.dirname(__file__)} does not go with this `hipmm run`: that is of another "
            "version, or LD_PRELOAD was changed"
        )
    try:
        imported = importlib.import_module(module)
        if framework == "torch":
            return imported._take_under_run()  # type: ignore[no-any-return]
        imported.use()
    except RuntimeError as error:
        return str(error).removeprefix("PyTorch keeps its own allocator: ")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
