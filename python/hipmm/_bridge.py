# SPDX-License-Identifier: MIT
"""The bridge of hipmm.torch: bridge/torch.cpp, compiled at its first use against the headers of the PyTorch that is installed,
kept in the user's cache ($XDG_CACHE_HOME/hipmm, by default ~/.cache/hipmm), and put into the place of PyTorch's allocator.
_under_rmm.py compiles and keeps bridge/rmm.cpp by the same functions."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import types
from typing import Any, Iterator

from . import _hipmm

# In the order of struct hipmm_functions.
_FUNCTIONS = (
    *("torch_try_malloc", "torch_malloc", "torch_free", "torch_init", "torch_reset", "torch_memory_fraction"),
    *("torch_record_stream", "torch_end_allocate_to_pool", "torch_is_allocation"),
    *("device_held_bytes", "resource_get_for_device", "resource_release"),
    *("resource_reset_peaks", "resource_visit_blocks", "resource_upstream_count", "resource_upstream"),
    *("last_error_message", "call_site"),
)
_OLDEST, _NEWEST = (2, 8), (2, 15)
_CXX20_SINCE = (2, 14)
_SECONDS = 300  # a compilation takes about ten
_NO_PLACE = ("No space left", "Disk quota", "Read-only file system", "Permission denied", "cannot open output file")
_HERE = pathlib.Path(__file__).parent / "bridge"


class Unavailable(Exception):
    """Why there is no bridge for this PyTorch, as one sentence."""


# ---- What is compiled


def _say(line: str) -> None:
    """Standard error may be closed."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"hipmm: {line}\n")


def _release(version: str) -> tuple[int, ...]:
    """(2, 11) of "2.11.0+cu130"."""
    parts = version.split("+")[0].split(".")[:2]
    try:
        return tuple(int(part) for part in parts)
    except ValueError:
        raise Unavailable(f"PyTorch's version {version!r} is not understood") from None


def _check(torch: Any, may_be_newer: bool = False) -> None:
    """A newer release may have functions with a default that does nothing, which the bridge would not forward."""
    version = str(getattr(torch, "__version__", "unknown"))
    if getattr(torch.version, "hip", None):
        raise Unavailable("the bridge is not built for PyTorch on ROCm yet")
    if not torch.version.cuda:
        raise Unavailable(f"PyTorch {version} is built without CUDA")
    release = _release(version)
    if release < _OLDEST:
        raise Unavailable(f"PyTorch {version} is too old for the bridge, which needs {_OLDEST[0]}.{_OLDEST[1]}")
    if release > _NEWEST and not may_be_newer:
        raise Unavailable(
            f"PyTorch {version} is newer than {_NEWEST[0]}.{_NEWEST[1]}, the last that this hipmm's bridge was built for; "
            "HIPMM_TORCH=bridge tries it"
        )


def compiler() -> list[str]:
    """The compiler, and what CXX has after it, as in CXX="ccache g++"."""
    wanted = shlex.split(os.environ.get("CXX", ""))
    for name in wanted[:1] or ["c++", "g++", "clang++"]:
        found = shutil.which(name)
        if found:
            return [found, *wanted[1:]]
    if wanted:
        raise Unavailable(f"CXX names the compiler {wanted[0]!r}, which is not found")
    raise Unavailable("no C++ compiler is found (c++, g++, clang++); install one, or name one in CXX")


def cuda_headers(root: pathlib.Path) -> pathlib.Path:
    """The folder of cuda_runtime_api.h: of the wheels that PyTorch depends on, or of a toolkit. A folder that has the headers
    of CUDA's compiler too is preferred. Some wheels have a few of them, and only a whole set can be mixed with the others."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    folders = [*glob.glob(str(root.parent / "nvidia/cu[0-9]*/include")), str(root.parent / "nvidia/cuda_runtime/include")]
    folders += [os.path.join(home, "include") for home in homes if home]
    folders += glob.glob(os.path.join(sys.prefix, "targets/*/include"))  # conda
    found = [folder for folder in folders if os.path.exists(os.path.join(folder, "cuda_runtime_api.h"))]
    whole = [folder for folder in found if os.path.exists(os.path.join(folder, "crt/host_config.h"))]
    if not found:
        raise Unavailable(f"CUDA's header cuda_runtime_api.h is in none of {', '.join(folders)}")
    return pathlib.Path((whole or found)[0])


def _command(torch: Any) -> list[str]:
    """The compiler and its arguments, but for the output."""
    root = pathlib.Path(torch.__file__).parent
    libraries = [root / "lib/libc10_cuda.so", root / "lib/libc10.so"]
    for file in [root / "include/c10/cuda/CUDACachingAllocator.h", *libraries]:
        if not file.exists():
            raise Unavailable(f"PyTorch's {file} is missing")
    standard = "c++20" if _release(str(torch.__version__)) >= _CXX20_SINCE else "c++17"
    has_cxx11_abi = getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)
    return [
        *(*compiler(), f"-std={standard}", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(has_cxx11_abi)}",
        *("-isystem", str(root / "include"), "-isystem", str(cuda_headers(root)), "-idirafter", str(_HERE / "cuda")),
        *(str(_HERE / "torch.cpp"), *map(str, libraries)),
    ]


def _key(versions: tuple[str, ...], command: list[str]) -> str:
    """Names what the object depends on: the library below, the compiler, the source and the arguments."""
    digest = hashlib.sha256()
    for text in (*versions, *command):
        digest.update(text.encode() + b"\0")
    for file in (command[0], *(word for word in command if word.endswith(".so"))):
        status = os.stat(file)
        digest.update(f"{status.st_size} {status.st_mtime_ns}\0".encode())
    for source in (*(word for word in command if word.endswith(".cpp")), str(_HERE / "cuda/crt/host_defines.h")):
        digest.update(pathlib.Path(source).read_bytes())
    return digest.hexdigest()[:24]


def _compile(command: list[str], output: pathlib.Path) -> None:
    try:
        done = subprocess.run(
            [*command, "-o", str(output)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not compile the bridge within {_SECONDS} s") from None
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        if any(text in done.stderr for text in _NO_PLACE):
            raise OSError(f"{output.parent} cannot be written")
        lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot" in line]
        raise Unavailable(f"{command[0]} does not compile the bridge: {(lines or ['no message'])[0].strip()}")


# ---- Where it is kept


def _cache() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "hipmm"


def _is_private(path: pathlib.Path) -> bool:
    """Whether no other user can have written it: what is loaded runs in this process."""
    status = os.stat(path)
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@contextlib.contextmanager
def _alone(file: pathlib.Path) -> Iterator[None]:
    """Of processes that want the same object, one compiles it, and the others wait. A file system without locks lets each
    compile its own."""
    with open(file, "w") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _object(name: str, versions: tuple[str, ...], command: list[str]) -> pathlib.Path:
    return _cache() / f"{name}-{_key(versions, command)}.so"


def _cached(name: str, versions: tuple[str, ...], command: list[str]) -> ctypes.CDLL:
    """The object of the cache, compiled where it is not there. OSError: the cache cannot be used."""
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_private(folder):
        raise OSError(f"{folder} can be written by others")
    file = _object(name, versions, command)
    if not file.exists():
        with _alone(file.with_suffix(".lock")):
            if not file.exists():
                part = file.with_suffix(f".{os.getpid()}")
                try:
                    _compile(command, part)
                    os.chmod(part, 0o700)  # whatever the umask is: see _is_private()
                    os.replace(part, file)
                finally:
                    part.unlink(missing_ok=True)
    if not _is_private(file):
        raise OSError(f"{file} can be written by others")
    return ctypes.CDLL(str(file))


def load(name: str, versions: tuple[str, ...], command: list[str]) -> ctypes.CDLL:
    """The object that a command compiles, from the cache where that has it; Unavailable without one. `versions` are those of
    the library below."""
    try:
        return _cached(name, versions, command)
    except OSError as error:
        reason = error
    try:
        with tempfile.TemporaryDirectory(prefix="hipmm-") as folder:
            file = pathlib.Path(folder) / "bridge.so"
            _compile(command, file)
            library = ctypes.CDLL(str(file))
            _say(f"the bridge is compiled at each start, since its cache cannot be used ({reason}); XDG_CACHE_HOME names another")
            return library
    except OSError as error:
        raise Unavailable(f"the bridge cannot be loaded: {reason}; {error}") from None


def functions(names: tuple[str, ...], *more: int | None) -> Any:
    """hipmm's functions as a table for such an object: under `hipmm run` those of the object that serves the process."""
    addresses = [*(_hipmm.function("hipmm_" + name) for name in names), *more]
    return (ctypes.c_void_p * len(addresses))(*addresses)


# ---- In PyTorch's place

_library: ctypes.CDLL | None = None  # that is in force


def _versions(torch: Any) -> tuple[str, ...]:
    return str(torch.__version__), str(getattr(torch.version, "git_version", ""))


def _name(torch: Any) -> str:
    return "torch-" + ".".join(map(str, _release(str(torch.__version__))))


def _load(torch: Any) -> ctypes.CDLL:
    return load(_name(torch), _versions(torch), _command(torch))


def has(ptr: int) -> bool:
    """Whether a block of the bridge's begins at the address, which can be moved before it is shared."""
    return _library is not None and bool(_library.hipmm_bridge_has(ctypes.c_void_p(ptr)))


def install(torch: Any, may_be_newer: bool = False) -> None:
    """Puts the bridge into the place of PyTorch's allocator, until the process ends. Raises Unavailable, with nothing changed."""
    global _library
    _check(torch, may_be_newer)
    is_under_run = _hipmm.is_under_run()
    of_run = {"device_held_bytes": "run_torch_held_bytes"} if is_under_run else {}
    names = tuple(of_run.get(name, name) for name in _FUNCTIONS)
    table = functions(names, _hipmm.function("hipmm_run_pass") if is_under_run else None)
    library = _load(torch)
    try:
        library.hipmm_bridge_install.restype = ctypes.c_char_p
        refusal = library.hipmm_bridge_install(table, int(is_under_run))
    except AttributeError as error:
        raise Unavailable(f"the bridge is not whole: {error}") from None
    if refusal is not None:
        raise Unavailable(refusal.decode(errors="replace"))
    _library = library
    _share_by_pytorch(torch, library)
    _watch_changes(torch, library)
    _watch_settings(torch)
    _leave_ranges_unregistered()


def _share_by_pytorch(torch: Any, library: ctypes.CDLL) -> None:
    """A storage that is to be shared with another process moves into memory of PyTorch's own allocator first: a handle
    stands for all of an allocation of the driver, and hipmm's memory may be mapped. So under `hipmm run` that memory passes
    the hooks by, and is not of the stack. The work of all streams ends first: the program may have told the other process of
    an event for it. Tensors see nothing of the move but another data_ptr(). A captured graph that has the
    address must not be replayed afterwards. Storages of private pools are not moved: graphs write there. The bridge refuses
    those whose segment is not an allocation of the driver."""
    storages = getattr(torch, "UntypedStorage", None)
    share = getattr(storages, "_share_cuda_", None)
    if share is None or hasattr(share, "hipmm_bridge"):
        return
    move = ctypes.PyDLL(library._name, handle=library._handle).hipmm_bridge_move  # keeps the global lock
    move.argtypes, move.restype = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)], ctypes.c_char_p

    def shared(storage: Any, *arguments: Any, **options: Any) -> Any:
        if storage.device.type == "cuda" and has(storage.data_ptr()):
            is_out_of_memory = ctypes.c_int()
            torch.cuda.synchronize(storage.device)  # other threads go on meanwhile, so that move() has little to wait for
            refusal = move(storage._cdata, ctypes.byref(is_out_of_memory))
            if refusal is not None:
                raise (torch.OutOfMemoryError if is_out_of_memory.value else RuntimeError)(refusal.decode(errors="replace"))
        return share(storage, *arguments, **options)

    shared.hipmm_bridge = True  # type: ignore[attr-defined]
    storages._share_cuda_ = shared


# Of PYTORCH_ALLOC_CONF: how PyTorch's own allocator divides segments, and when it frees them.
_WITHOUT_COUNTERPART = (
    *("max_split_size_mb", "garbage_collection_threshold", "max_non_split_rounding_mb", "large_segment_size_mb"),
    *("release_lock_on_cudamalloc", "throw_on_cudamalloc_oom"),
)
_named: set[str] = set()


def _name_settings(text: str) -> None:
    """A line of the settings that hipmm does not heed, each once."""
    wanted = {part.partition(":")[0].strip() for part in re.split(r"[,\]]", text)}
    found = [name for name in _WITHOUT_COUNTERPART if name in wanted and name not in _named]
    _named.update(found)
    if found:
        _say(f"only private pools use these settings of PyTorch: {', '.join(found)}")


def _watch_settings(torch: Any) -> None:
    """Those of the environment, and those that the program gives at run time."""
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        _name_settings(os.environ.get(variable, ""))
    for name in ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings"):
        function = getattr(torch._C, name, None)
        if function is None:
            continue

        def watched(text: str, function: Any = function) -> Any:
            result = function(text)
            _name_settings(text)
            return result

        setattr(torch._C, name, watched)


def _leave_ranges_unregistered() -> None:
    """With this setting PyTorch registers all memory with NCCL, in segments that do not change until they are freed. PyTorch
    ignores the setting for its own expandable segments. hipmm turns it off, since its ranges change: NCCL and the network
    card would go on using the memory that was there before."""
    for name in ("TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"):
        if os.environ.get(name, "").upper() in ("1", "Y", "YES", "T", "TRUE"):
            os.environ[name] = "0"
            _say(f"{name} is turned off: the memory that hipmm holds changes; register a MemPool")


def _watch_changes(torch: Any, library: ctypes.CDLL) -> None:
    """A program's own allocator that comes later wins, and a line says so."""
    change = getattr(torch._C, "_cuda_changeCurrentAllocator", None)
    if change is None:
        return

    def watched(allocator: Any) -> None:
        change(allocator)
        if not library.hipmm_bridge_is_current():
            _say("PyTorch has an allocator of the program's own from here on")

    torch._C._cuda_changeCurrentAllocator = watched


# ---- For `hipmm info`


def describe() -> dict[str, str]:
    """Which allocator hipmm gives the PyTorch of this Python, and why, without importing it; empty where there is none."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.origin:
        return {}
    version = types.SimpleNamespace(cuda=None, hip=None)
    exec((pathlib.Path(found.origin).parent / "version.py").read_text(), version.__dict__)
    torch = types.SimpleNamespace(
        __file__=found.origin, __version__=version.__version__, version=version, _C=types.SimpleNamespace()
    )
    wanted = os.environ.get("HIPMM_TORCH", "")
    told = {"version": str(version.__version__), "allocator": "has its own allocator:"}
    if wanted in ("native", "pluggable"):
        names = {"native": told["allocator"], "pluggable": "gets hipmm as a pluggable allocator:"}
        return {**told, "allocator": names[wanted], "detail": f"HIPMM_TORCH={wanted}"}
    try:
        _check(torch, wanted == "bridge")
        command = _command(torch)
    except Unavailable as error:
        return {**told, "detail": str(error)}
    file = _object(_name(torch), _versions(torch), command)
    state = f"compiled, {file}" if file.exists() else f"which {command[0]} compiles at its first use"
    return {**told, "allocator": "gets the bridge:", "detail": state}


if __name__ == "__main__":
    print(json.dumps(describe()))
