# SPDX-License-Identifier: MIT
"""The hook of `hipmm run` for Python. The folder of this file is the first of PYTHONPATH, so each Python that the program
starts runs it at its start. It makes the first import of PyTorch, CuPy, Numba and RMM give them hipmm as their allocator
(hipmm.hook of the Python package), tells a user of JAX which setting hipmm serves, and leaves no other trace: the folder
goes out of sys.path, and the sitecustomize that Python would have found without it is run in its place.

Every version of Python must be able to read this file. A Python before 3.10 is left as it is.
"""

import os
import sys

_FRAMEWORKS = ("torch", "cupy", "numba.cuda", "rmm", "jax")


def _say(line):
    sys.stderr.write("hipmm: " + line + "\n")
    if os.environ.get("HIPMM_RUN_STRICT", "0") not in ("", "0"):
        sys.stderr.flush()
        os._exit(2)


def _package(folder):
    """Imports hipmm: the package whose `hipmm run` this is (a folder above), also into a Python that has none; or the one of
    this Python."""
    own = os.path.dirname(folder)
    while own != os.path.dirname(own) and not os.path.exists(os.path.join(own, "_hipmm.abi3.so")):
        own = os.path.dirname(own)
    if "hipmm" not in sys.modules and own != os.path.dirname(own):
        from importlib import util

        spec = util.spec_from_file_location("hipmm", os.path.join(own, "__init__.py"), submodule_search_locations=[own])
        package = sys.modules["hipmm"] = util.module_from_spec(spec)
        try:
            spec.loader.exec_module(package)
        except BaseException:
            del sys.modules["hipmm"]
            raise
    import hipmm.hook

    return hipmm.hook


def _serve(framework, folder):
    """Never raises: the program goes on with the framework's own allocator."""
    name = framework.partition(".")[0]
    try:
        hook = _package(folder)
    except Exception as error:
        _say(
            "%s keeps its own allocator: hipmm's Python package cannot be imported by %s (%s: %s). Install it there, or "
            "write hipmm run --no-python" % (name, sys.executable, type(error).__name__, error)
        )
        return
    reason = hook.serve(framework)
    if reason:
        _say("%s keeps its own allocator: %s" % (name, " ".join(str(reason).split())))


class _Finder(object):
    """Finds what the other finders find, and has each framework served once its module has run."""

    def __init__(self, folder):
        self._folder, self._left, self._asked = folder, list(_FRAMEWORKS), []

    def find_spec(self, name, path=None, target=None):
        if name not in self._left or name in self._asked:  # another finder may ask all finders, as numba-cuda's does
            return None
        self._asked.append(name)
        try:
            return self._find(name, path, target)
        finally:
            self._asked.remove(name)

    def _find(self, name, path, target):
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self._watch(name, spec.loader)
                return spec
        return None

    def _watch(self, name, loader):
        run = getattr(loader, "exec_module", None)
        if run is None:
            return

        def exec_module(module):
            del loader.exec_module
            run(module)
            if name in self._left:
                self._left.remove(name)
                _serve(name, self._folder)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            _say("%s keeps its own allocator: its loader %r cannot be watched" % (name, loader))


def _start():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    if os.environ.get("HIPMM_RUN_PYTHON") and sys.version_info >= (3, 10):
        os.environ["HIPMM_RUN_HOOK"] = str(os.getpid())  # preload.so looks for it
        sys.meta_path.insert(0, _Finder(folder))


def _run_other():
    """Runs the next sitecustomize of sys.path, which then is the module of this name. If there is none, the ImportError is
    what Python expects."""
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except BaseException:
        if own is not None:
            sys.modules["sitecustomize"] = own
        raise


if __name__ == "sitecustomize":
    try:
        _start()
    except Exception as error:
        sys.stderr.write("hipmm: PyTorch, CuPy, Numba and RMM keep their own allocators: %s\n" % (error,))
    _run_other()
