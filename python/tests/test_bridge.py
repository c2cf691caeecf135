# SPDX-License-Identifier: MIT
"""hipmm._bridge: how the bridge of hipmm.torch is compiled, kept and put in force, with a PyTorch that stands in; and that the
real class forwards every virtual function of the PyTorch in TORCH_ROOTS (folders of packages `torch`), where there is one."""

import ctypes
import errno
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hipmm import _bridge, _hipmm

pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")

SOURCE = """
#include <cstdlib>
#pragma GCC visibility push(default)
extern "C" const char *hipmm_bridge_install(void *const *functions, int is_under_run) {
  if (is_under_run != !!functions[18]) return "the function of the run is missing";
  for (int i = 0; i < 18; i++) if (!functions[i]) return "a function is missing";
  return std::getenv("REFUSAL");
}
static int is_current = 1;
extern "C" int hipmm_bridge_is_current() { return is_current; }
extern "C" void displace() { is_current = 0; }
extern "C" int hipmm_bridge_has(void *ptr) { return ptr == (void *)4096; }
static int failures;
static const char *failure;
extern "C" void fail(int times, const char *why) { failures = times; failure = why; }
extern "C" const char *hipmm_bridge_move(void **storage, int *is_out_of_memory) {
  *is_out_of_memory = failures > 0 && failure[0] == 'C';
  if (failures-- > 0) return failure;
  *storage = (void *)8192;
  return nullptr;
}
"""

COMPILER = """#!/bin/sh
case $* in *-shared*) echo compiled >>"{log}" ;; esac
exec c++ "$@"
"""


@pytest.fixture
def torch(tmp_path, monkeypatch):
    """A PyTorch of which the bridge is a short source, and a compiler that keeps a log."""
    root = tmp_path / "site/torch"
    for file in ("include/c10/cuda/CUDACachingAllocator.h", "__init__.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    (root / "lib").mkdir()
    for name in ("libc10.so", "libc10_cuda.so"):
        subprocess.run(["c++", "-shared", "-x", "c++", "/dev/null", "-o", root / "lib" / name], check=True)
    (tmp_path / "site/nvidia/cu13/include").mkdir(parents=True)
    (tmp_path / "site/nvidia/cu13/include/cuda_runtime_api.h").touch()
    source = tmp_path / "bridge"
    (source / "cuda/crt").mkdir(parents=True)
    (source / "cuda/crt/host_defines.h").touch()
    (source / "torch.cpp").write_text(SOURCE)
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER.format(log=tmp_path / "log"))
    compiler.chmod(0o700)
    monkeypatch.setattr(_bridge, "_HERE", source)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return SimpleNamespace(
        __file__=str(root / "__init__.py"),
        __version__="2.11.0+cu130",
        version=SimpleNamespace(cuda="13.0", hip=None, git_version="abc"),
        _C=SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True, _cuda_changeCurrentAllocator=lambda allocator: None),
    )


def compilations(tmp_path):
    log = tmp_path / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def refused(torch):
    """Why there is no bridge; PyTorch is as before."""
    change = torch._C._cuda_changeCurrentAllocator
    with pytest.raises(_bridge.Unavailable) as refusal:
        _bridge.install(torch)
    assert torch._C._cuda_changeCurrentAllocator is change
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_it_is_compiled_once(torch, tmp_path):
    _bridge.install(torch)
    _bridge.install(torch)
    assert compilations(tmp_path) == 1
    files = [file.name for file in (tmp_path / "cache/hipmm").iterdir()]
    assert sum(name.endswith(".so") for name in files) == 1 and not any(str(os.getpid()) in name for name in files)


@pytest.mark.parametrize("what", ["version", "source", "library", "compiler", "abi"])
def test_another_one_is_compiled_where_something_has_changed(torch, tmp_path, what):
    _bridge.install(torch)
    if what == "version":
        torch.__version__ = "2.12.0+cu130"
    elif what == "source":
        (tmp_path / "bridge/torch.cpp").write_text(SOURCE + "int more;\n")
    elif what == "library":
        os.utime(tmp_path / "site/torch/lib/libc10.so", (1, 1))
    elif what == "abi":
        torch._C._GLIBCXX_USE_CXX11_ABI = False
    else:
        os.utime(tmp_path / "compiler", (1, 1))
    _bridge.install(torch)
    assert compilations(tmp_path) == 2


def test_the_abi_is_pytorchs(torch):
    assert "-D_GLIBCXX_USE_CXX11_ABI=1" in _bridge._command(torch)
    torch._C._GLIBCXX_USE_CXX11_ABI = False
    assert "-D_GLIBCXX_USE_CXX11_ABI=0" in _bridge._command(torch)


def test_the_object_is_kept_whatever_the_umask_is(torch, tmp_path):
    before = os.umask(0o002)
    try:
        _bridge.install(torch)
        _bridge.install(torch)
    finally:
        os.umask(before)
    assert compilations(tmp_path) == 1


def test_of_two_processes_one_compiles(torch, tmp_path):
    program = """
import pathlib, sys
from types import SimpleNamespace
from hipmm import _bridge
_bridge._HERE = pathlib.Path(sys.argv[1])
torch = SimpleNamespace(__file__=sys.argv[2], __version__="2.11.0", version=SimpleNamespace(cuda="13.0", hip=None),
                        _C=SimpleNamespace())
_bridge.install(torch)
"""
    words = [sys.executable, "-c", program, str(tmp_path / "bridge"), torch.__file__]
    both = [subprocess.Popen(words) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert compilations(tmp_path) == 1


def test_a_cache_that_cannot_be_made(torch, tmp_path):
    (tmp_path / "cache").write_text("a file")
    _bridge.install(torch)
    assert compilations(tmp_path) == 1


def test_a_cache_that_is_full(torch, tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"""#!/bin/sh
case $* in *{tmp_path}/cache*) echo 'fatal error: error writing to x: No space left on device' >&2; exit 1 ;; esac
exec c++ "$@"
""")
    _bridge.install(torch)
    assert not [file for file in (tmp_path / "cache/hipmm").iterdir() if file.suffix == ".so"]


def read_only(*_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_cache_that_is_read_only(torch, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_bridge, "open", read_only, raising=False)  # of the lock
        _bridge.install(torch)
        _bridge.install(torch)
    assert compilations(tmp_path) == 2 and not list((tmp_path / "cache/hipmm").iterdir())


def test_what_a_read_only_cache_has_is_used(torch, tmp_path, monkeypatch):
    _bridge.install(torch)
    monkeypatch.setattr(_bridge, "open", read_only, raising=False)
    _bridge.install(torch)
    assert compilations(tmp_path) == 1


def test_no_place_at_all(torch, tmp_path, monkeypatch):
    monkeypatch.setattr(_bridge, "open", read_only, raising=False)
    monkeypatch.setattr(_bridge.tempfile, "TemporaryDirectory", read_only)
    assert "Read-only file system" in refused(torch)


def test_an_object_that_is_damaged(torch, tmp_path):
    folder = tmp_path / "cache/hipmm"
    folder.mkdir(parents=True, mode=0o700)
    file = folder / f"torch-2.11-{_bridge._key(_bridge._versions(torch), _bridge._command(torch))}.so"
    file.write_bytes(b"damaged")
    file.chmod(0o700)
    _bridge.install(torch)
    assert compilations(tmp_path) == 1


def test_a_file_system_without_locks(torch, tmp_path, monkeypatch):
    monkeypatch.setattr(_bridge.fcntl, "flock", read_only)
    _bridge.install(torch)
    assert compilations(tmp_path) == 1


def test_a_cache_that_others_can_write(torch, tmp_path):
    folder = tmp_path / "cache/hipmm"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    _bridge.install(torch)
    assert not list(folder.iterdir())
    folder.chmod(0o700)
    _bridge.install(torch)
    file = next(file for file in folder.iterdir() if file.suffix == ".so")
    file.chmod(stat.S_IRWXU | stat.S_IWOTH)
    _bridge.install(torch)
    assert compilations(tmp_path) == 3


def test_a_compiler_with_arguments(torch, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", f"{tmp_path / 'compiler'} -Wall")
    _bridge.install(torch)
    assert compilations(tmp_path) == 1 and _bridge.compiler() == [str(tmp_path / "compiler"), "-Wall"]


def test_no_compiler(torch, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    assert re.fullmatch(r"CXX names the compiler .*none', which is not found", refused(torch))


def test_a_compiler_that_fails(torch, tmp_path):
    (tmp_path / "bridge/torch.cpp").write_text("#error this PyTorch is too new\n")
    assert "this PyTorch is too new" in refused(torch)
    assert compilations(tmp_path) == 1 and not list((tmp_path / "cache/hipmm").glob("*.so"))


def test_a_compiler_that_cannot_run(torch, tmp_path):
    (tmp_path / "compiler").write_text("#!/none/sh\n")
    assert "cannot be run" in refused(torch)


def test_a_compiler_that_does_not_end(torch, tmp_path, monkeypatch):
    (tmp_path / "compiler").write_text("#!/bin/sh\nexec sleep 30\n")
    monkeypatch.setattr(_bridge, "_SECONDS", 0.2)
    assert "did not compile the bridge within" in refused(torch)
    assert not list((tmp_path / "cache/hipmm").glob("*.so"))


def test_an_object_without_our_functions(torch, tmp_path):
    (tmp_path / "bridge/torch.cpp").write_text("int nothing;\n")
    assert "hipmm_bridge_install" in refused(torch)


@pytest.mark.parametrize(
    "version, cuda, hip, why",
    [
        ("2.7.1+cu126", "12.6", None, "too old for the bridge, which needs 2.8"),
        ("2.16.0+cu130", "13.0", None, "is newer than 2.15, the last that this hipmm's bridge was built for"),
        ("3.0.0", "13.0", None, "is newer than 2.15"),
        ("2.11.0+cpu", None, None, "is built without CUDA"),
        ("2.11.0+rocm7.0", None, "7.0", "ROCm"),
        ("mine", "13.0", None, "'mine' is not understood"),
    ],
)
def test_a_pytorch_that_is_not_for_it(torch, tmp_path, version, cuda, hip, why):
    torch.__version__, torch.version.cuda, torch.version.hip = version, cuda, hip
    assert why in refused(torch)
    assert compilations(tmp_path) == 0


def test_a_newer_pytorch_is_tried_where_that_is_wanted(torch, tmp_path):
    torch.__version__ = "2.16.0.dev20261101+cu130"
    _bridge.install(torch, True)
    assert compilations(tmp_path) == 1


def test_a_pytorch_without_headers(torch, tmp_path):
    (tmp_path / "site/torch/include/c10/cuda/CUDACachingAllocator.h").unlink()
    assert "CUDACachingAllocator.h is missing" in refused(torch)


def test_no_headers_of_cuda(torch, tmp_path, monkeypatch):
    (tmp_path / "site/nvidia/cu13/include/cuda_runtime_api.h").unlink()
    exists = os.path.exists
    monkeypatch.setattr(_bridge.os.path, "exists", lambda file: "cuda_runtime_api" not in str(file) and exists(file))
    assert "cuda_runtime_api.h is in none of" in refused(torch)


def test_an_allocator_that_has_started(torch, monkeypatch):
    monkeypatch.setenv("REFUSAL", "PyTorch's allocator has started")
    assert refused(torch) == "PyTorch's allocator has started"


def test_a_change_that_pytorch_refuses(torch, capfd):
    def refuse(allocator):
        raise RuntimeError("Can't swap an already initialized allocator")

    torch._C._cuda_changeCurrentAllocator = refuse
    _bridge.install(torch)
    with pytest.raises(RuntimeError, match="Can't swap"):
        torch._C._cuda_changeCurrentAllocator("one")
    assert capfd.readouterr().err == ""


def test_an_allocator_of_the_programs_wins(torch, capfd):
    _bridge.install(torch)
    torch._C._cuda_changeCurrentAllocator("one")
    assert capfd.readouterr().err == ""
    _bridge._load(torch).displace()
    torch._C._cuda_changeCurrentAllocator("one")
    assert capfd.readouterr().err == "hipmm: PyTorch has an allocator of the program's own from here on\n"


def test_settings_without_a_counterpart_are_named_once(torch, monkeypatch, capfd):
    given = []
    torch._C._accelerator_setAllocatorSettings = given.append
    monkeypatch.setattr(_bridge, "_named", set())
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True, max_split_size_mb:64,roundup_power2_divisions:[256:1,>:2]")
    _bridge.install(torch)
    assert capfd.readouterr().err == "hipmm: only private pools use these settings of PyTorch: max_split_size_mb\n"
    change = torch._C._accelerator_setAllocatorSettings
    for text in ("max_split_size_mb:32", "roundup_power2_divisions:4", "pinned_use_background_threads:True"):
        change(text)
    assert capfd.readouterr().err == ""
    change("roundup_power2_divisions:[256:1,>:2],garbage_collection_threshold:0.5,max_split_size_mb:32")
    change("garbage_collection_threshold:0.5")
    assert capfd.readouterr().err == "hipmm: only private pools use these settings of PyTorch: garbage_collection_threshold\n"
    assert len(given) == 5

    def refuse(text):
        raise ValueError(text)

    torch._C._accelerator_setAllocatorSettings = refuse
    _bridge._watch_settings(torch)
    with pytest.raises(ValueError):
        torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:x")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("value, is_on", [("1", True), ("yes", True), ("True", True), ("0", False), ("", False)])
def test_nccl_registers_no_ranges(torch, monkeypatch, capfd, value, is_on):
    name = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"
    monkeypatch.setenv(name, value)
    _bridge.install(torch)
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    assert libc.getenv(name.encode()) == (b"0" if is_on else value.encode())  # as PyTorch reads it
    said = f"hipmm: {name} is turned off: the memory that hipmm holds changes; register a MemPool\n"
    assert capfd.readouterr().err == (said if is_on else "")


class Storage:
    """What a storage of PyTorch's is to the bridge: an address, in memory that `_cdata` is the address of."""

    device = SimpleNamespace(type="cuda")

    def __init__(self, address):
        self.memory = ctypes.c_void_p(address)
        self._cdata = ctypes.addressof(self.memory)

    def data_ptr(self):
        return self.memory.value

    def _share_cuda_(self, *arguments):
        return self.data_ptr(), arguments


@pytest.fixture
def storages(torch):
    """Storages that are to be shared; `calls` says what PyTorch was asked for."""
    calls = []
    torch.cuda = SimpleNamespace(synchronize=lambda device: calls.append("synchronize"))
    torch.OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {})
    torch.UntypedStorage = type("UntypedStorage", (Storage,), {"_share_cuda_": Storage._share_cuda_, "calls": calls})
    _bridge.install(torch)
    _bridge.install(torch)  # again: no second wrapper
    torch.UntypedStorage.fail = _bridge._load(torch).fail
    return torch.UntypedStorage


def test_a_storage_is_moved_before_it_is_shared(storages):
    storage = storages(4096)
    assert storage._share_cuda_(1) == (8192, (1,)) and storages.calls == ["synchronize"]
    assert storage._share_cuda_() == (8192, ()) and storages.calls == ["synchronize"]


def test_whose_a_block_is(storages):
    assert _bridge.has(4096) and not _bridge.has(8192)


def test_a_storage_that_is_not_hipmms(storages):
    assert storages(12288)._share_cuda_() == (12288, ()) and not storages.calls


def test_a_move_without_memory(torch, storages):
    storage = storages(4096)
    storages.fail(1, b"CUDA out of memory")
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        storage._share_cuda_()
    assert storage.data_ptr() == 4096 and storages.calls == ["synchronize"]
    assert storage._share_cuda_() == (8192, ())


def test_a_move_that_fails(storages):
    storage = storages(4096)
    storages.fail(1, b"an illegal address")
    with pytest.raises(RuntimeError, match="an illegal address"):
        storage._share_cuda_()
    assert storage.data_ptr() == 4096 and storages.calls == ["synchronize"]


def test_the_bridge_is_described_without_an_import_of_pytorch(torch, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.delenv("HIPMM_TORCH", raising=False)
    file = tmp_path / "site/torch/version.py"
    file.write_text("__version__ = '2.11.0+cu130'\ncuda = '13.0'\nhip = None\ngit_version = 'abc'\n")
    (tmp_path / "site/torch/__init__.py").write_text("1 / 0")
    assert _bridge.describe()["detail"] == f"which {tmp_path}/compiler compiles at its first use"
    _bridge.install(torch)
    described = _bridge.describe()
    assert described["version"] == torch.__version__ and described["allocator"] == "gets the bridge:"
    assert Path(described["detail"].removeprefix("compiled, ")).exists()
    monkeypatch.setenv("HIPMM_TORCH", "native")
    assert _bridge.describe()["detail"] == "HIPMM_TORCH=native"
    monkeypatch.setenv("HIPMM_TORCH", "")
    file.write_text("__version__ = '2.11.0+cpu'\ncuda = None\nhip = None\n")
    assert _bridge.describe()["detail"] == "PyTorch 2.11.0+cpu is built without CUDA"
    monkeypatch.setattr(sys, "path", [])
    assert _bridge.describe() == {}


ROOTS = [Path(root) for root in os.environ.get("TORCH_ROOTS", "").split(":") if root]


@pytest.mark.parametrize("root", ROOTS, ids=str)
def test_every_virtual_function_is_forwarded(root, tmp_path):
    """As the compiler lays out the class: a function of a base in its table is one that the bridge does not have."""
    files = [root / "include/torch" / name for name in ("headeronly/version.h", "csrc/api/include/torch/version.h")]
    numbers = re.findall(r"define TORCH_VERSION_M\w+ (\d+)", "".join(file.read_text() for file in files if file.exists()))
    torch = SimpleNamespace(__file__=str(root / "__init__.py"), __version__=".".join(numbers), _C=SimpleNamespace())
    words = [word for word in _bridge._command(torch) if not word.endswith(".so") and word != "-shared"]
    subprocess.run([*words, "-Wall", "-Wextra", "-Werror", "-fdump-lang-class=classes", "-c", "-o", "/dev/null"],
                   check=True, cwd=tmp_path)
    text = (tmp_path / "classes").read_text()
    table = re.search(r"Vtable for \{anonymous\}::Forward\n(.*?)\n\n", text, re.S).group(1)
    functions = re.findall(r"\(int \(\*\)\(\.\.\.\)\)(.*)", table)
    assert len(functions) > 40
    left = [name for name in functions if "::" in name and "Forward" not in name and not name.startswith("(&")]
    assert left == [], left


def test_the_table_of_functions_is_the_sources():
    text = (Path(_bridge.__file__).parent / "bridge/torch.cpp").read_text()
    table = text[text.index("struct hipmm_functions {") :].split("};")[0]
    assert tuple(re.findall(r"\(\*(\w+)\)\(", table.replace("(*visitor)", ""))) == (*_bridge._FUNCTIONS, "run_pass")
