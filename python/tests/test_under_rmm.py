# SPDX-License-Identifier: MIT
"""hipmm.under_rmm() with the real RMM where this Python has it (it needs no GPU for these tests), and with a stand-in of both
layouts of its objects."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import hipmm
from hipmm import _library

pytestmark = [
    pytest.mark.graph(None),
    pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler"),
]

def has_rmm():
    """Whether this Python has the real RMM, and what its bridge needs."""
    from hipmm import _bridge, _under_rmm

    try:
        return importlib.util.find_spec("rmm") is not None and bool(_under_rmm._command())
    except _bridge.Unavailable:
        return False


HAS_RMM = has_rmm()

# The module rmm. The slots are the room of the C++ parts, which Python must neither visit nor free.
RMM = """
import ctypes
from types import SimpleNamespace

__version__ = "{version}"

class Stream:
    {stream}

class CallbackMemoryResource:
    __slots__ = [f"slot{{i}}" for i in range({slots})]

    def __init__(self, allocate, deallocate):
        functions[id(self)] = allocate, deallocate
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(self))

    def _library(self):
        if not ctypes.c_void_p.from_address(id(self) + {held}).value:
            return None
        from hipmm import _under_rmm
        library = _under_rmm._library(__version__)
        library.standin_allocate.restype = ctypes.c_char_p
        return library

    def allocate(self, nbytes, stream=None):
        library = self._library()
        if not library:
            return functions[id(self)][0](nbytes, stream or Stream())
        address = ctypes.c_void_p()
        size, kind = ctypes.c_size_t(nbytes), ctypes.c_int()
        message = library.standin_allocate(
            ctypes.c_void_p.from_address(id(self) + {held}), size, ctypes.byref(address), ctypes.byref(kind))
        if message:
            raise (MemoryError if kind.value == 1 else RuntimeError)(message.decode())
        return address.value or 0

    def deallocate(self, address, nbytes, stream=None):
        library = self._library()
        if not library:
            return functions[id(self)][1](address, nbytes, stream or Stream())
        library.standin_deallocate(
            ctypes.c_void_p.from_address(id(self) + {held}), ctypes.c_void_p(address), ctypes.c_size_t(nbytes))

functions, current = {{}}, {{}}
CudaMemoryResource = type("CudaMemoryResource", (), {{}})
mr = SimpleNamespace(
    CallbackMemoryResource=CallbackMemoryResource, CudaMemoryResource=CudaMemoryResource,
    set_per_device_resource=current.__setitem__,
    get_per_device_resource=lambda device: current.setdefault(device, CudaMemoryResource()))
pylibrmm = SimpleNamespace(stream=SimpleNamespace(Stream=Stream))
"""

ERROR = """
#pragma once
#include <stdexcept>
#include <new>
#include <string>
namespace rmm {
struct bad_alloc : std::bad_alloc { bad_alloc(std::string text) : text{text} {} std::string text; };
struct out_of_memory : bad_alloc { using bad_alloc::bad_alloc; };
struct logic_error : std::logic_error { using std::logic_error::logic_error; };
}
"""
STREAM = "#pragma once\nnamespace rmm { struct cuda_stream_view { void *value() const { return nullptr; } }; }"
CALLBACK = """
#pragma once
#include <functional>
#include <cstddef>
#include <rmm/error.hpp>
#include <rmm/cuda_stream_view.hpp>
namespace cuda { struct stream_ref { void *get() const { return nullptr; } }; }
namespace rmm {
namespace mr {
struct device_memory_resource {
  virtual ~device_memory_resource() = default;
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void deallocate(void *ptr, std::size_t bytes) = 0;
};
struct callback_memory_resource : device_memory_resource {
  using stream_type = STREAM_TYPE;
  std::function<void *(std::size_t, stream_type, void *)> a;
  std::function<void(void *, std::size_t, stream_type, void *)> d;
  callback_memory_resource(decltype(a) a, decltype(d) d) : a{a}, d{d} {}
  void *allocate(std::size_t bytes) override { return a(bytes, {}, nullptr); }
  void deallocate(void *ptr, std::size_t bytes) override { d(ptr, bytes, {}, nullptr); }
};
}
struct device_async_resource_ref {
  mr::callback_memory_resource *to;
  void *functions;
  explicit device_async_resource_ref(mr::callback_memory_resource &to) : to{&to} {}
};
}
#define C extern "C" __attribute__((visibility("default")))
C const char *standin_allocate(rmm::mr::device_memory_resource *from, std::size_t bytes, void **ptr_out, int *kind) {
  static thread_local std::string text;
  try { *ptr_out = from->allocate(bytes); return nullptr; }
  catch (const rmm::out_of_memory &e) { text = e.text; *kind = 1; }
  catch (const std::logic_error &e) { text = e.what(); *kind = 2; }
  return text.c_str();
}
C void standin_deallocate(rmm::mr::device_memory_resource *from, void *ptr, std::size_t bytes) { from->deallocate(ptr, bytes); }
"""


def standin(folder, version="26.10.00"):
    """A folder for PYTHONPATH with rmm and librmm."""
    if folder.exists():
        return folder
    is_old = version < "26.06"
    include = folder / "librmm/include/rmm"
    (include / "mr/device").mkdir(parents=True)
    (folder / "librmm/include/cuda_runtime_api.h").write_text("")
    (folder / "librmm/__init__.py").write_text("")
    (include / "error.hpp").write_text(ERROR)
    (include / "cuda_stream_view.hpp").write_text(STREAM)
    callback = "mr/device/callback_memory_resource.hpp" if version < "25.12" else "mr/callback_memory_resource.hpp"
    (include / callback).write_text(CALLBACK.replace("STREAM_TYPE", "cuda_stream_view" if is_old else "cuda::stream_ref"))
    if is_old:
        (include / "mr/device_memory_resource.hpp").write_text("")
    has_streams = version >= "25.12"
    (folder / "rmm").mkdir()
    (folder / "rmm/__init__.py").write_text(RMM.format(
        version=version, slots=5 if is_old else 8, held=24 if is_old else 56,
        stream="def __cuda_stream__(self): return 0, 0" if has_streams else "pass"))
    return folder


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """What a program with RMM has in its environment."""
    base = tmp_path_factory.mktemp("rmm")

    def environment(version=None, path=None):
        path = path or ("" if HAS_RMM and not version else standin(base / str(version), version or "26.10.00"))
        places = {"PYTHONPATH": f"{path}:{os.environ['PYTHONPATH']}", "XDG_CACHE_HOME": str(base / "cache")}
        return {**places, "CUDA_HOME": f"{path}/librmm"} if path else places

    return environment


@pytest.fixture
def program(environment, run):
    """Runs a program with RMM."""

    def program(text, version=None, code=0, env=None, path=None):
        environment_of = {**environment(version, path), "PYTHONWARNINGS": "error::UserWarning"}
        return run(START + textwrap.dedent(text), code=code, env={**environment_of, **(env or {})})

    return program


START = """
import ctypes, hipmm, rmm, sys, warnings
def start(**more):
    hipmm.init({"runtime": {"type": "software", "devices": 2},
        "resources": {"memory": {"type": "device"}, "pool": {"type": "pool", "upstream": "memory"},
            "weights": {"type": "pool", "upstream": "memory", "maximum_size": "64MiB"},
            "main": {"type": "statistics", "upstream": "pool", **more}},
        "devices": {"default": "main"}})
def live(name, device=0):
    return hipmm.query(f"devices/{device}/{name}/live_bytes")
"""

SERVED = """
start()
mr = hipmm.under_rmm()
assert rmm.mr.get_per_device_resource(0) is mr
blocks = [(mr.allocate(n), n) for n in (1, 1000, 5 << 20)]
for value, (address, n) in enumerate(blocks):
    assert address % 256 == 0
    ctypes.memset(address, value + 1, n)
assert live("pool") == sum(n for _, n in blocks) == hipmm.statistics().current_bytes
for value, (address, n) in enumerate(blocks):
    assert ctypes.string_at(address, n) == bytes([value + 1]) * n
    mr.deallocate(address, n)
assert live("pool") == 0
try:
    mr.allocate(1 << 60)
except MemoryError as error:
    assert "pool: cannot allocate 1 EiB" in str(error), error
else:
    raise AssertionError
assert mr.allocate(100) and live("pool") == 100
"""


def test_rmms_memory_is_hipmms(program):
    program(SERVED)


@pytest.mark.parametrize("version", ["25.10.00", "26.04.00", "26.10.00"])
def test_each_layout_of_rmms_objects(program, version):
    program(SERVED, version)


def test_without_a_compiler_python_is_called(program):
    program(textwrap.dedent("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start()
            hipmm.under_rmm()
        [warning] = caught
        assert "CXX names the compiler" in str(warning.message) and "microseconds" in str(warning.message)
        assert warning.filename == "<string>"
        warnings.simplefilter("ignore")
        hipmm.finalize()
    """) + SERVED, env={"CXX": "/no/such/compiler"})


def test_without_a_compiler_an_old_rmm_is_refused(program):
    program("""
        start()
        before = rmm.mr.get_per_device_resource(0)
        try:
            hipmm.under_rmm()
        except RuntimeError as error:
            assert str(error).startswith("RMM 25.10.00 keeps its own resource: CXX names the compiler"), error
        else:
            raise AssertionError
        assert rmm.mr.get_per_device_resource(0) is before
    """, "25.10.00", env={"CXX": "/no/such/compiler"})


def test_an_object_of_another_size_is_left_alone(program, tmp_path):
    path = standin(tmp_path / "other")
    file = path / "rmm/__init__.py"
    file.write_text(file.read_text().replace("range(8)", "range(9)"))
    ended = program("""
        start()
        mr = hipmm.under_rmm()
        address = mr.allocate(1000)
        assert live("pool") == 1000
    """, path=path, env={"PYTHONWARNINGS": "default"})
    assert "another size than its headers say" in ended.stderr


def test_a_name_a_resource_and_their_mistakes(program):
    program("""
        start()
        before = rmm.mr.get_per_device_resource(1)
        mr = hipmm.under_rmm("weights")
        assert rmm.mr.get_per_device_resource(1) is before  # another device keeps its own
        address = mr.allocate(1 << 20)
        assert (live("weights"), live("pool")) == (1 << 20, 0)
        own = hipmm.under_rmm(hipmm.create("pool", hipmm.create("device"), name="own"))
        own.deallocate(own.allocate(100), 100)
        mr.deallocate(address, 1 << 20)  # what was allocated goes back to where it came from
        assert live("weights") == 0
        try:
            mr.allocate(100 << 20)
        except MemoryError as error:
            assert "weights" in str(error), error
        else:
            raise AssertionError
        now = rmm.mr.get_per_device_resource(0)
        for wrong, kind in ((("weigths",), hipmm.ArgumentError), ((hipmm.create("host"),), hipmm.ArgumentError), ((None, 7), hipmm.NoDeviceError), ((3,), TypeError),
                ((hipmm.resource(), 1), hipmm.ArgumentError), (("weights", 9), hipmm.NoDeviceError)):
            try:
                hipmm.under_rmm(*wrong)
            except kind:
                assert rmm.mr.get_per_device_resource(0) is now
            else:
                raise AssertionError(wrong)
    """)


def test_each_device_has_its_own(program):
    program("""
        start()
        hipmm.under_rmm()
        assert len(hipmm.snapshot()["stacks"]) == 0  # none is built for a device that is not used
        second = rmm.mr.get_per_device_resource(1)
        address = second.allocate(1000)
        assert live("pool", 1) == 1000 and len(hipmm.snapshot()["stacks"]) == 1
        hipmm.set_device(1)
        third = hipmm.under_rmm("weights")
        assert rmm.mr.get_per_device_resource(1) is third is not rmm.mr.get_per_device_resource(0)
        second.deallocate(address, 1000)
        assert live("pool", 1) == 0
    """)


def test_the_first_allocation_fixes_the_resource(program):
    program("""
        start()
        mr = hipmm.under_rmm()
        with hipmm.using(hipmm.resource("weights")):
            address = mr.allocate(1000)
        assert live("weights") == 1000
        mr.deallocate(address, 1000)
        mr.allocate(500)
        assert (live("weights"), live("pool")) == (500, 0)
    """)


def test_threads(program):
    program("""
        import threading
        start()
        mr, wrong = hipmm.under_rmm(), []
        barrier = threading.Barrier(4)
        def work(number):
            barrier.wait()
            for i in range(500):
                n = (i * 37 + number) % 9000 + 1
                first, second = mr.allocate(n), mr.allocate(n)
                ctypes.memset(first, number, n), ctypes.memset(second, number + 100, n)
                if ctypes.string_at(first, n) != bytes([number]) * n:
                    wrong.append(number)
                mr.deallocate(first, n), mr.deallocate(second, n)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        assert not wrong and live("pool") == 0
        hipmm.finalize()
        assert not hipmm.is_initialized()  # the four first uses did not initialise it once more
    """)


def test_hipmm_ends_first_and_begins_again(program):
    ended = program("""
        start()
        mr = hipmm.under_rmm()
        address = mr.allocate(1000)
        ctypes.memset(address, 7, 1000)
        hipmm.finalize()
        assert ctypes.string_at(address, 1000) == bytes([7]) * 1000
        mr.deallocate(address, 1000)
        start()
        hipmm.under_rmm().allocate(300)
        assert live("pool") == 300
    """)
    assert "still held" in ended.stderr


def test_the_child_of_a_fork(program):
    program("""
        import os
        start()
        used, unused = hipmm.under_rmm(device=0), hipmm.under_rmm(device=1)
        used.allocate(1000)
        child = os.fork()
        if child == 0:
            for mr in (used, unused):
                try:
                    mr.allocate(10)
                    os._exit(1)
                except (RuntimeError, ValueError) as error:
                    if "child of a fork" not in str(error):
                        os._exit(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        used.allocate(1000)
    """)


def test_a_worker_of_dask(program):
    pytest.importorskip("distributed", reason="distributed could not be had from PyPI")
    program("""
        import hipmm.dask
        worker = type("Worker", (), {"name": "tcp://10.0.0.1:1234"})
        setup = hipmm.dask.Setup({"runtime": "software", "stack": ["pool", "device"]}, serve=["rmm-real"])
        setup.setup(worker)
        rmm.mr.get_per_device_resource(0).allocate(1000)
        assert live("pool") == 1000
        setup.teardown(worker)
        assert not hipmm.is_initialized()
    """)


def test_no_rmm_and_no_real_one(monkeypatch, run):
    monkeypatch.setitem(sys.modules, "rmm", None)
    with pytest.raises(ImportError, match="needs RMM, such as the package rmm-cu13"):
        hipmm.under_rmm()
    run("""
import hipmm, hipmm.rmm, sys, types
hipmm.rmm.install()
try:
    hipmm.under_rmm()
except hipmm.StateError as error:
    assert "rmm is hipmm.rmm" in str(error)
sys.modules["rmm"] = types.ModuleType("rmm")
try:
    hipmm.under_rmm()
except ImportError as error:
    assert "<module 'rmm'> is no RMM, or too old" in str(error), error
else:
    raise AssertionError
""")


def test_the_table_has_the_order_of_the_bridge():
    from hipmm import _under_rmm

    text = (pathlib.Path(_under_rmm.__file__).parent / "bridge/rmm.cpp").read_text()
    table = text[text.index("struct hipmm_functions") : text.index("};", text.index("struct hipmm_functions"))]
    names = re.findall(r"\(\*(\w+)\)\(", table)
    assert list(_under_rmm._FUNCTIONS[0]) == names == [name.removeprefix("run_rmm_") for name in _under_rmm._FUNCTIONS[1]]


# ---- hipmm run


@pytest.fixture
def under_run(environment, tmp_path):
    """Runs a program under `hipmm run`: what it printed, what hipmm said, and the report."""
    (tmp_path / "hipmm.json").write_text('{"stack": ["statistics", "pool", "device"]}')

    def under_run(text, *words, code=0, env=None):
        report = tmp_path / "report.json"
        command = [_library.command(), "run", f"--report={report}", "--json", "--", sys.executable, *(words or ["-c"])]
        ended = subprocess.run(
            [*command, textwrap.dedent(text)], capture_output=True, text=True, timeout=60, cwd=tmp_path,
            env={**os.environ, **environment(), **(env or {})})
        assert ended.returncode == code, (ended.returncode, ended.stdout, ended.stderr)
        reports = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        return ended.stdout, ended.stderr, reports

    return under_run


def test_run_serves_the_first_import(under_run):
    output, said, [report] = under_run("""
        import rmm, hipmm
        assert not hipmm.is_initialized()
        mr = rmm.mr.get_per_device_resource(0)
        kept, freed = mr.allocate(5 << 20), mr.allocate(1000)
        mr.deallocate(freed, 1000)
        try:
            mr.allocate(1 << 60)
        except MemoryError:
            print(hipmm.query("devices/0/pool/live_count"))
    """)
    assert (output, said) == ("1\n", "")
    assert report["functions"]["rmm: malloc"] == {"calls": 3, "passed": 0, "failed": 1}
    assert report["functions"]["rmm: free"] == {"calls": 1, "passed": 0, "failed": 0}
    assert report["memory"][0]["peak_requested_bytes"] == (5 << 20) + 1000 and report["memory"][0]["live_bytes"] == 5 << 20


def test_run_leaves_the_programs_choice(under_run):
    output, said, _ = under_run("""
        import rmm
        own = rmm.mr.CallbackMemoryResource(lambda nbytes, stream: 4096, lambda address, nbytes, stream: None)
        rmm.mr.set_per_device_resource(0, own)
        print(rmm.mr.get_per_device_resource(0).allocate(10))
        import hipmm
        mr = hipmm.under_rmm()
        mr.deallocate(mr.allocate(10), 10)
    """)
    assert (output, said) == ("4096\n", "")


def test_run_without_a_compiler_is_one_line(under_run):
    output, said, _ = under_run(
        "import rmm; print(type(rmm.mr.get_per_device_resource(0)).__name__)", env={"CXX": "/no/such/compiler"}
    )
    assert output == "CudaMemoryResource\n"
    assert said.count("\n") == 1 and "rmm keeps its own allocator" in said and "CXX names the compiler" in said


def test_run_and_a_fork_after_the_import(under_run):
    output, said, _ = under_run("""
        import os, rmm
        if os.fork() == 0:
            mr = rmm.mr.get_per_device_resource(0)
            print(mr.allocate(1000) != 0, flush=True)
            os._exit(0)
        os.wait()
    """)
    assert (output, said) == ("True\n", "")


def test_run_and_another_module_of_this_name(under_run, tmp_path):
    (tmp_path / "rmm.py").write_text("")
    assert under_run("import sys; sys.path.insert(0, ''); import rmm; print(rmm.__file__ and 1)")[:2] == ("1\n", "")


def test_run_and_hipmms_own_rmm(under_run, tmp_path):
    (tmp_path / "program.py").write_text("import rmm; print(rmm.__name__)")
    assert under_run("program.py", "-m", "hipmm.rmm")[:2] == ("hipmm.rmm\n", "")
