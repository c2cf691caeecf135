# SPDX-License-Identifier: MIT
"""Makes `import rmm` find hipmm.rmm: each module rmm.X is the module hipmm.rmm.X itself, imported when it is asked for."""

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

_OURS = __name__.rpartition(".")[0]  # hipmm.rmm


def _target(name: str) -> str | None:
    """Which module of this package stands for the module `name`, if one does."""
    if name == "rmm" or name.startswith("rmm."):
        return _OURS + name[3:]
    return f"{_OURS}._librmm" if name == "librmm" else None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        ours = _target(name)
        if ours is None:
            return None
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name == ours:
                return None
            raise
        return importlib.machinery.ModuleSpec(
            name, self, loader_state=(module, module.__spec__), is_package=hasattr(module, "__path__")
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module: ModuleType = spec.loader_state[0]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module ran when it was imported. It keeps the spec of its own name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state[1]


_finder = _Finder()


def install() -> None:
    """From here on, `import rmm` and `import librmm` find hipmm.rmm. Again: no effect.

    Raises ImportError if the real RMM was imported before: its objects and these do not mix.
    """
    for name in ("rmm", "librmm"):
        module = sys.modules.get(name)
        if module is not None and not module.__name__.startswith(_OURS):
            place = getattr(module, "__file__", None) or ", ".join(getattr(module, "__path__", ()))
            raise ImportError(
                f"the real {name} was imported already, from {place}; "
                "call hipmm.rmm.install() before anything imports it"
            )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
