# SPDX-License-Identifier: MIT
"""The bridge of hipmm.torch: bridge/torch.cpp, compiled at its first use against the headers of the PyTorch that is installed,
kept in the user's cache ($XDG_CACHE_HOME/hipmm, by default ~/.cache/hipmm), and put into the place of PyTorch's allocator."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
from typing import Any, Iterator

from . import _hipmm

# In the order of struct hipmm_functions.
_FUNCTIONS = (
    *("torch_try_malloc", "torch_malloc", "torch_free", "torch_init", "torch_reset", "torch_memory_fraction"),
    *("torch_record_stream", "torch_end_allocate_to_pool", "torch_is_allocation"),
    *("device_held_bytes", "resource_get_for_device", "resource_release"),
    *("resource_reset_peaks", "resource_visit_blocks", "resource_upstream_count", "resource_upstream"),
    "last_error_message",
)
_OLDEST = (2, 8)
_CXX20_SINCE = (2, 14)
_SECONDS = 300  # a compilation takes about ten
_NO_PLACE = ("No space left", "Disk quota", "Read-only file system", "Permission denied", "cannot open output file")
_HERE = pathlib.Path(__file__).parent / "bridge"


class Unavailable(Exception):
    """Why there is no bridge for this PyTorch, as one sentence."""


# ---- What is compiled


def _release(version: str) -> tuple[int, ...]:
    """(2, 11) of "2.11.0+cu130"."""
    parts = version.split("+")[0].split(".")[:2]
    try:
        return tuple(int(part) for part in parts)
    except ValueError:
        raise Unavailable(f"PyTorch's version {version!r} is not understood") from None


def _check(torch: Any) -> None:
    version = str(torch.__version__)
    if getattr(torch.version, "hip", None):
        raise Unavailable("the bridge is not built for PyTorch on ROCm yet")
    if not torch.version.cuda:
        raise Unavailable(f"PyTorch {version} is built without CUDA")
    if _release(version) < _OLDEST:
        raise Unavailable(f"PyTorch {version} is too old for the bridge, which needs {_OLDEST[0]}.{_OLDEST[1]}")


def _compiler() -> str:
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["c++", "g++", "clang++"]:
        found = shutil.which(name)
        if found:
            return found
    raise Unavailable("no C++ compiler is found (CXX, c++, g++, clang++)")


def _cuda_headers(root: pathlib.Path) -> pathlib.Path:
    """The folder of cuda_runtime_api.h: of the wheels that PyTorch depends on, or of a toolkit. A folder that has the headers
    of CUDA's compiler too is preferred. Some wheels have a few of them, and only a whole set can be mixed with the others."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    folders = [*glob.glob(str(root.parent / "nvidia/cu[0-9]*/include")), str(root.parent / "nvidia/cuda_runtime/include")]
    folders += [os.path.join(home, "include") for home in homes if home]
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
        *(_compiler(), f"-std={standard}", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(has_cxx11_abi)}",
        *("-isystem", str(root / "include"), "-isystem", str(_cuda_headers(root)), "-idirafter", str(_HERE / "cuda")),
        *(str(_HERE / "torch.cpp"), *map(str, libraries)),
    ]


def _key(torch: Any, command: list[str]) -> str:
    """Names what the object depends on: PyTorch, the compiler, the source and the arguments."""
    digest = hashlib.sha256()
    for text in (str(torch.__version__), str(getattr(torch.version, "git_version", "")), *command):
        digest.update(text.encode() + b"\0")
    for file in (command[0], *(word for word in command if word.endswith(".so"))):
        status = os.stat(file)
        digest.update(f"{status.st_size} {status.st_mtime_ns}\0".encode())
    for file in ("torch.cpp", "cuda/crt/host_defines.h"):
        digest.update((_HERE / file).read_bytes())
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


def _cached(torch: Any, command: list[str]) -> ctypes.CDLL:
    """The object of the cache, compiled where it is not there. OSError: the cache cannot be used."""
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_private(folder):
        raise OSError(f"{folder} can be written by others")
    file = folder / f"torch-{'.'.join(map(str, _release(str(torch.__version__))))}-{_key(torch, command)}.so"
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


def _load(torch: Any) -> ctypes.CDLL:
    command = _command(torch)
    try:
        return _cached(torch, command)
    except OSError as error:
        reason = error
    try:
        with tempfile.TemporaryDirectory(prefix="hipmm-") as folder:
            file = pathlib.Path(folder) / "bridge.so"
            _compile(command, file)
            return ctypes.CDLL(str(file))
    except OSError as error:
        raise Unavailable(f"the bridge cannot be loaded: {reason}; {error}") from None


# ---- In PyTorch's place


def install(torch: Any) -> None:
    """Puts the bridge into the place of PyTorch's allocator, until the process ends. Raises Unavailable, with nothing changed."""
    _check(torch)
    addresses = [_hipmm.function("hipmm_" + name) for name in _FUNCTIONS]
    if _hipmm.is_under_run():
        addresses[_FUNCTIONS.index("device_held_bytes")] = _hipmm.function("hipmm_run_torch_held_bytes")
    library = _load(torch)
    table = (ctypes.c_void_p * len(addresses))(*addresses)
    try:
        library.hipmm_bridge_install.restype = ctypes.c_char_p
        refusal = library.hipmm_bridge_install(table, int(_hipmm.is_under_run()))
    except AttributeError as error:
        raise Unavailable(f"the bridge is not whole: {error}") from None
    if refusal is not None:
        raise Unavailable(refusal.decode(errors="replace"))
    _watch_changes(torch, library)
    _share_by_pytorch(torch, library)


def _share_by_pytorch(torch: Any, library: ctypes.CDLL) -> None:
    """A storage that is to be shared with another process moves into memory of PyTorch's own allocator first: a handle
    stands for all of an allocation of the driver, and hipmm's memory may be mapped. Tensors see nothing of the move but another
    data_ptr(). A captured graph that has the address must not be replayed afterwards. Storages of private pools are not moved:
    graphs write there. The bridge refuses those whose segment is not an allocation of the driver."""
    storages = getattr(torch, "UntypedStorage", None)
    share = getattr(storages, "_share_cuda_", None)
    if share is None or hasattr(share, "hipmm_bridge"):
        return
    library.hipmm_bridge_has.argtypes = [ctypes.c_void_p]

    def shared(storage: Any, *arguments: Any, **options: Any) -> Any:
        if storage.device.type == "cuda" and storage.resizable() and library.hipmm_bridge_has(storage.data_ptr()):
            library.hipmm_bridge_leave_to_native(1)
            try:
                storage.resize_(storage.nbytes())  # allocates anew and copies
            finally:
                library.hipmm_bridge_leave_to_native(0)
        return share(storage, *arguments, **options)

    shared.hipmm_bridge = True  # type: ignore[attr-defined]
    storages._share_cuda_ = shared


def _watch_changes(torch: Any, library: ctypes.CDLL) -> None:
    """A program's own allocator that comes later wins, and a line says so."""
    change = getattr(torch._C, "_cuda_changeCurrentAllocator", None)
    if change is None:
        return

    def watched(allocator: Any) -> None:
        change(allocator)
        if not library.hipmm_bridge_is_current():
            sys.stderr.write("hipmm: PyTorch has an allocator of the program's own from here on\n")

    torch._C._cuda_changeCurrentAllocator = watched
