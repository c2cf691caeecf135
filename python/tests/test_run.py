# SPDX-License-Identifier: MIT
"""`hipmm run` and `python -m hipmm` with Python programs: the hook that serves PyTorch, CuPy and Numba, which stand-ins
replace (fakes.py); tests/lab/gpu has the real ones."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from hipmm import _library

MIB = 1 << 20
TESTS = pathlib.Path(__file__).resolve().parent

pytestmark = pytest.mark.graph(None)

# What stands in for the package of a framework.
SHIM = f"""
import sys
sys.path.append({str(TESTS)!r})
import fakes
fakes.install(__name__)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with frameworks, and a graph."""
    for name in ("torch", "cupy", "numba", "numba/cuda"):
        package = tmp_path / "modules" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("" if name == "numba" else SHIM)
    (tmp_path / "hipmm.json").write_text('{"stack": ["statistics", "pool", "device"]}')
    return tmp_path


@pytest.fixture
def serve(folder):
    """Runs a program under `hipmm run`, or as `words` say, and returns what subprocess.run() does; `report` is its report, one
    dict for each process."""

    def serve(program, *options, words=None, code=0, flags=(), env=None, path=None):
        path = [folder / "modules", *os.environ["PYTHONPATH"].split(":")] if path is None else path
        start = ALLOCATE if program.startswith(ALLOCATE) else ""
        program = start + textwrap.dedent(program[len(start) :])
        file = folder / "report.json"
        command = words or [_library.command(), "run", f"--report={file}", "--json", *options, "--", sys.executable, *flags]
        ended = subprocess.run(
            [*command, "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=folder,
            env={**os.environ, "HIPMM_TORCH": "pluggable", "PYTHONPATH": ":".join(map(str, path)), **(env or {})},
        )
        assert ended.returncode == code, (ended.returncode, ended.stdout, ended.stderr)
        ended.report = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return ended

    return serve


ALLOCATE = """
import torch, fakes
[allocator] = fakes.torch_current
block = allocator.malloc(5 << 20, 0, None)
"""


# ---- Frameworks


def test_pytorch_is_served_at_its_first_import_and_is_in_the_report(serve):
    ended = serve(ALLOCATE + """
        second = allocator.malloc(1000, 0, None)
        allocator.free(second, 1000, 0, None)
        import hipmm
        print(hipmm.library().rpartition("/")[2], hipmm.query("devices/0/pool/live_count"))
    """)
    assert (ended.stdout, ended.stderr) == ("preload.so 1\n", "")
    [report] = ended.report
    assert report["functions"] == {
        "torch: malloc": {"calls": 2, "passed": 0, "failed": 0},
        "torch: free": {"calls": 1, "passed": 0, "failed": 0},
    }
    [memory] = report["memory"]
    assert memory["peak_requested_bytes"] == 5 * MIB + 1000 and memory["live_bytes"] == 5 * MIB
    assert memory["peak_reserved_bytes"] >= 5 * MIB and report["graph"].endswith("/hipmm.json")


def test_one_stack_serves_the_framework_and_the_other_calls_of_the_process(serve):
    ended = serve(ALLOCATE + """
        import ctypes, hipmm
        runtime, ptr = ctypes.CDLL(None), ctypes.c_void_p()
        assert runtime.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(3 << 20)) == 0
        [stack] = hipmm.snapshot()["stacks"]
        print(hipmm.query("devices/0/pool/live_count"), hipmm.query("devices/0/pool/live_bytes"))
        assert runtime.hipFree(ptr) == 0
    """)
    assert ended.stdout == f"2 {8 * MIB}\n"
    [report] = ended.report
    assert report["functions"]["hipMalloc"]["calls"] == report["functions"]["torch: malloc"]["calls"] == 1
    assert report["memory"][0]["peak_requested_bytes"] == 8 * MIB


def test_the_runtime_is_asked_of_a_framework_s_block(serve, folder):
    """What libraries ask of memory that they are given: attributes, the range, a handle for another process."""
    (folder / "hipmm.json").write_text('{"stack": ["statistics", {"type": "pool", "growth": "segments"}, "device"]}')
    ended = serve(ALLOCATE + """
        import ctypes
        runtime, number = ctypes.CDLL(None), ctypes.c_uint64
        def attribute(which, ptr):
            value = number()
            status = runtime.hipPointerGetAttribute(ctypes.byref(value), which, ctypes.c_void_p(ptr))
            return status or value.value
        def asked(ptr, base):
            fields, start, size = (number * 5)(), ctypes.c_void_p(), ctypes.c_size_t()
            known = runtime.hipPointerGetAttributes(fields, ctypes.c_void_p(ptr))
            ranged = runtime.hipMemGetAddressRange(ctypes.byref(start), ctypes.byref(size), ctypes.c_void_p(ptr))
            return known == 0 and fields[1] == ptr, ranged == 0 and start.value == base and size.value
        small, other = allocator.malloc(1000, 0, None), allocator.malloc(1000, 0, None)
        for ptr in block, small, other:
            print(asked(ptr, ptr), asked(ptr + 500, ptr), attribute(11, ptr + 9) == ptr, attribute(12, ptr), attribute(7, ptr) < 1 << 31)
        handle = ctypes.create_string_buffer(64)
        print(runtime.hipIpcGetMemHandle(handle, ctypes.c_void_p(small)), handle.raw[:9])
        allocator.free(small, 1000, 0, None)
        print(asked(small, small), attribute(11, small))
    """)
    assert ended.stdout.splitlines() == [
        f"(True, {5 * MIB}) (True, {5 * MIB}) True {5 * MIB} True",
        *["(True, 1000) (True, 1000) True 1000 True"] * 2,
        "0 b'hipmm-ipc'",
        "(True, False) 1",
    ]


def test_a_failure_is_counted_once(serve):
    ended = serve("""
        import torch, fakes, hipmm
        [allocator] = fakes.torch_current
        hipmm._hipmm.function("hipmm_torch_on_failure")
        import ctypes
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(hipmm._hipmm.function("hipmm_torch_on_failure"))(None)
        print(allocator.malloc(1 << 50, 0, None), allocator.malloc(100, 0, None) is not None)
    """)
    [report] = ended.report
    assert ended.stdout == "None True\n"
    assert report["functions"]["torch: malloc"] == {"calls": 2, "passed": 0, "failed": 1}
    assert report["memory"][0]["live_bytes"] == 100


def test_a_failed_try_is_not_counted(serve):
    ended = serve("""
        import ctypes, hipmm
        out, size, number = ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t, ctypes.c_int
        attempt = ctypes.CFUNCTYPE(number, size, number, ctypes.c_void_p, ctypes.c_void_p)(
            hipmm._hipmm.function("hipmm_torch_try_malloc"))
        last = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, number, ctypes.c_void_p)(
            hipmm._hipmm.function("hipmm_torch_malloc"))
        print(attempt(1 << 50, 0, None, out) != 0, attempt(1 << 50, 0, None, out) != 0, attempt(100, 0, None, out))
        print(last(1 << 50, 0, None), last(1000, 0, None) is not None)
    """)
    [report] = ended.report
    assert ended.stdout == "True True 0\nNone True\n"
    assert report["functions"]["torch: malloc"] == {"calls": 3, "passed": 0, "failed": 1}
    assert report["memory"][0]["live_bytes"] == 1100


def test_pytorchs_share_of_what_is_held(serve):
    """The bridge's figures, by which memory_reserved() and a memory fraction go, leave out what other libraries have."""
    ended = serve(ALLOCATE + """
        import ctypes, hipmm
        held = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
            hipmm._hipmm.function("hipmm_run_torch_held_bytes"))

        def share():
            now, peak = ctypes.c_size_t(), ctypes.c_size_t()
            assert held(0, ctypes.byref(now), ctypes.byref(peak)) == 0 == held(0, None, None)
            return now.value, peak.value

        runtime, ptr, (alone, _) = ctypes.CDLL(None), ctypes.c_void_p(), share()
        assert alone == hipmm.held_bytes()[0] >= 5 << 20
        assert runtime.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(64 << 20)) == 0
        now, peak = share()
        whole, most = hipmm.held_bytes()
        assert (now, peak) == (whole - (64 << 20), most - (64 << 20)) and now < alone + (64 << 20), (now, peak, whole, most)
        assert runtime.hipFree(ptr) == 0
        hipmm.resource().trim()
        assert share() == hipmm.held_bytes()
        allocator.free(block, 5 << 20, 0, None)
        hipmm.resource().trim()
        assert share()[0] == hipmm.held_bytes()[0]
        assert held(9, None, None) != 0
    """)
    assert ended.stderr == ""


def test_cupy_and_numba_are_served(serve):
    ended = serve("""
        import cupy, fakes, hipmm
        memory = fakes.cupy_allocator[-1](2 << 20)
        fakes.cupy_allocator[-1](1000)
        from numba import cuda
        from types import SimpleNamespace
        [Manager] = fakes.numba_manager
        manager = Manager(SimpleNamespace(device=SimpleNamespace(id=0)))
        manager.initialize()
        first, second = manager.memalloc(3 << 20), manager.memalloc(4 << 20)
        second.free()
        print(hipmm.query("devices/0/pool/live_bytes") >> 20)
        del memory
    """)
    assert (ended.stdout, ended.stderr) == ("5\n", "")
    [report] = ended.report
    calls = {name: counts["calls"] for name, counts in report["functions"].items()}
    assert calls == {"cupy: malloc": 2, "cupy: free": 2, "numba: malloc": 2, "numba: free": 1}
    assert report["memory"][0]["peak_requested_bytes"] == 9 * MIB


def test_cupys_pool_counts_cupys_blocks_alone(serve):
    """CuPy's own pool does not have what the program asks the runtime for."""
    ended = serve("""
        import cupy, ctypes
        pool, runtime, ptr = cupy._default_memory_pool, ctypes.CDLL(None), ctypes.c_void_p()
        def used():
            assert pool.used_bytes() + pool.free_bytes() == pool.total_bytes()
            return pool.used_bytes()
        before, memory = used(), pool.malloc(2 << 20)
        assert runtime.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(3 << 20)) == 0
        print(before, used() >> 20, pool.total_bytes() >= 5 << 20)
        del memory
        print(used())
        assert runtime.hipFree(ptr) == 0
        print(used())
    """)
    assert ended.stdout.splitlines() == ["0 2 True", "0", "0"]


def test_jax_says_which_of_its_settings_is_served(serve, folder):
    jax, plugin = folder / "modules" / "jax", folder / "modules" / "jax_plugins" / "xla_cuda13"
    for package in (jax, plugin):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    program = "import jax"
    [line] = serve(program).stderr.splitlines()
    assert line.startswith("hipmm: jax keeps its own allocator: ") and "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async" in line
    serve(program, "--strict", code=2)
    for value in "cuda_async", "CUDA_ASYNC":
        assert serve(program, env={"XLA_PYTHON_CLIENT_ALLOCATOR": value}).stderr == ""
    assert serve(program, env={"JAX_PLATFORMS": "cpu"}).stderr == ""
    plugin.rename(folder / "modules" / "jax_plugins" / "xla_tpu")
    assert serve(program).stderr == ""


def test_a_program_that_imports_hipmms_module_chooses_itself(serve):
    ended = serve("""
        import hipmm.torch, fakes
        assert fakes.torch_current == []
        hipmm.torch.use({"stack": ["device"]})
        [allocator] = fakes.torch_current
        assert allocator.malloc(100, 0, None)
        print(hipmm.resource().type)
    """)
    assert (ended.stdout, ended.stderr) == ("device\n", "")
    assert ended.report[0]["functions"]["torch: malloc"]["calls"] == 1


def test_use_after_the_hook_changes_nothing(serve):
    ended = serve(ALLOCATE + """
        import hipmm.torch
        print(hipmm.torch.use() is allocator, len(fakes.torch_current))
    """)
    assert ended.stdout == "True 1\n"


def test_no_python_leaves_python_alone(serve):
    program = """
        import sys, torch, fakes
        print(fakes.torch_current, "hipmm" in sys.modules, len(sys.meta_path), "sitecustomize" in sys.modules)
    """
    assert serve(program, "--no-python").stdout.startswith("[] False ")
    assert serve(program).stdout.startswith("[<fakes.")


def test_a_pytorch_without_a_bridge_keeps_its_own_allocator(serve):
    """Its calls of the runtime are served."""
    program = """
        import torch, fakes, ctypes
        print(fakes.torch_current)
        assert ctypes.CDLL(None).hipMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(3 << 20)) == 0
    """
    for _ in range(2):
        ended = serve(program, env={"HIPMM_TORCH": ""})
        [line] = ended.stderr.splitlines()
        assert line.startswith("hipmm: torch keeps its own allocator: PyTorch's version 'unknown' is not understood. Its")
        assert ended.stdout == "[]\n" and ended.report[-1]["functions"]["hipMalloc"]["calls"] == 1
    assert serve(program, env={"HIPMM_TORCH": "native"}).stderr == ""
    assert "not one of bridge, pluggable, native" in serve(program, env={"HIPMM_TORCH": "x"}).stderr
    serve(program, "--strict", code=2, env={"HIPMM_TORCH": "bridge"})


@pytest.mark.parametrize("kind, found", [("", "pool"), ("native", "device")])
def test_the_graph_without_a_file(serve, folder, kind, found):
    """The bridge's PyTorch has a pool, of memory that the program can share. PyTorch's own allocator has the runtime's."""
    (folder / "hipmm.json").unlink()
    program = """
        from hipmm import _bridge
        _bridge.install = lambda *_: None
        import torch, hipmm, ctypes
        ptr, runtime = ctypes.c_void_p(), ctypes.CDLL(None)
        assert runtime.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(3 << 20)) == 0
        print(hipmm.resource().type, runtime.hipIpcGetMemHandle(ctypes.create_string_buffer(64), ptr))
    """
    assert serve(program, env={"HIPMM_TORCH": kind}).stdout == f"{found} 0\n"


def test_pytorch_without_a_gpus_support_is_left_alone(serve):
    ended = serve("import torch, fakes; print(fakes.torch_current)", env={"FAKE_TORCH_CPU": "1"})
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


# ---- The hook in Python


def test_the_hook_leaves_no_trace_and_loads_nothing(serve, folder):
    program = """
        import sys
        print(*sorted(sys.modules)); print(*sys.path)
        print("sitecustomize" in sys.modules)
    """
    plain = serve(program, words=[sys.executable]).stdout
    assert serve(program).stdout == plain


def test_the_users_sitecustomize_is_kept(serve, folder):
    (folder / "modules" / "sitecustomize.py").write_text("print('mine'); import builtins; builtins.here = __file__")
    ended = serve(ALLOCATE + "import sys; print(sys.modules['sitecustomize'].__file__ == here)")
    assert (ended.stdout, ended.stderr) == ("mine\nTrue\n", "")


def test_the_users_sitecustomize_may_fail(serve, folder):
    (folder / "modules" / "sitecustomize.py").write_text("1 / 0")
    ended = serve(ALLOCATE + "print(len(fakes.torch_current))")
    assert ended.stdout == "1\n" and "ZeroDivisionError" in ended.stderr and "hipmm" not in ended.stderr


def test_a_framework_that_cannot_be_imported_is_an_import_error_as_ever(serve, folder):
    (folder / "modules" / "cupy" / "__init__.py").write_text("import no_such_module")
    ended = serve("""
        for name in ("cupy", "cupy", "no_such_framework"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name)
        import torch, fakes
        print(len(fakes.torch_current), type(torch.__loader__).__name__ if hasattr(torch, "__loader__") else "")
    """)
    assert ended.stdout.split()[:4] == ["no_such_module", "no_such_module", "no_such_framework", "1"]
    assert ended.stderr == ""


def test_a_finder_that_asks_all_finders(serve):
    """numba-cuda puts such a one in front."""
    ended = serve("""
        import importlib.util, sys

        class Finder:
            asked = []

            def find_spec(self, name, path=None, target=None):
                if name != "torch" or self.asked:
                    return None
                self.asked.append(name)
                return importlib.util.find_spec(name)

        sys.meta_path.insert(0, Finder())
        import torch, fakes
        print(len(fakes.torch_current))
        sys.meta_path.insert(1, sys.meta_path.pop(0))
        Finder.asked.clear()
        import cupy
        print(len(fakes.cupy_allocator))
    """)
    assert (ended.stdout, ended.stderr) == ("1\n1\n", "")


def test_children_are_served(serve):
    ended = serve("""
        import multiprocessing, subprocess, sys
        program = "import torch, fakes; [a] = fakes.torch_current; print(bool(a.malloc(1 << 20, 0, None)))"
        if __name__ == "__main__":
            print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout, end="")
            print(subprocess.run(["sh", "-c", '"$0" -c "$1"', sys.executable, program], capture_output=True, text=True).stdout)
    """)
    assert ended.stdout.split() == ["True", "True"]
    assert [report["functions"]["torch: malloc"]["calls"] for report in ended.report if report["functions"]] == [1, 1]


def test_workers_are_served(serve, folder):
    (folder / "modules" / "work.py").write_text(textwrap.dedent("""
        import multiprocessing

        def work(nbytes):
            import torch, fakes
            [allocator] = fakes.torch_current
            return bool(allocator.malloc(nbytes, 0, None))

        def main():
            with multiprocessing.get_context("fork").Pool(1) as pool:  # as DataLoader's workers, which use no GPU
                print(pool.map(abs, [-1]))
            for kind in ("spawn", "forkserver"):
                with multiprocessing.get_context(kind).Pool(1) as pool:
                    print(pool.map(work, [1 << 20]))
    """))
    quiet = {"PYTHONWARNINGS": "ignore"}  # of fork() in a process with threads
    ended = serve("import work; assert work.work(1000); work.main()", env=quiet)
    assert (ended.stdout, ended.stderr) == ("[1]\n[True]\n[True]\n", "")
    assert [report["functions"]["torch: malloc"]["calls"] for report in ended.report if report["functions"]].count(1) >= 1


def test_the_interpreter_ends_with_live_objects(serve):
    from test_life import LIVE

    for end in ("", "hipmm.finalize()", "import os; os.abort()"):
        ended = serve(LIVE + "import torch, fakes; sys.block = fakes.torch_current[0].malloc(1 << 20, 0, None)\n" + end,
                      code=-6 if "abort" in end else 0)
        assert "rror" not in ended.stderr, ended.stderr
        assert ended.report[0]["functions"]["torch: malloc"]["calls"] == 1


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_ignores_the_hook_is_noticed(serve, flag):
    program = """
        import ctypes
        runtime, ptr = ctypes.CDLL(None), ctypes.c_void_p()
        for _ in range(2):
            assert runtime.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(1000)) == 0
    """
    ended = serve(program, flags=[flag])
    assert ended.stderr.count("\n") == 1 and "started without hipmm's hook" in ended.stderr
    assert ended.report[0]["functions"]["hipMalloc"] == {"calls": 2, "passed": 0, "failed": 0}
    assert serve(program).stderr == "" == serve(program, "--no-python", flags=[flag]).stderr


@pytest.mark.skipif(
    (pathlib.Path(_library.command()).resolve().parents[1] / "_library.py").exists(),
    reason="the command of a wheel brings the package along",
)
def test_a_missing_package_is_one_line(serve, folder):
    ended = serve("import torch, fakes; print(fakes.torch_current)", path=[folder / "modules"])
    assert ended.stdout == "[]\n"
    assert ended.stderr.count("\n") == 1 and "torch keeps its own allocator: hipmm's Python package" in ended.stderr
    ended = serve("import torch; print('not reached')", "--strict", path=[folder / "modules"], code=2)
    assert ended.stdout == ""


def test_a_package_of_another_version_is_one_line(serve):
    ended = serve(
        "import os\nos.environ['HIPMM_RUN_PYTHON'] = '/no/such/object.so'\nimport torch, fakes; print(fakes.torch_current)"
    )
    assert ended.stdout == "[]\n"
    assert ended.stderr.count("\n") == 1 and "does not go with this `hipmm run`" in ended.stderr


def test_a_framework_that_refuses_is_one_line(serve):
    ended = serve("""
        import sys
        sys.path.append(%r)
        import fakes
        fakes.torch_has_started = True
        import torch
        print(fakes.torch_current)
    """ % str(TESTS))
    assert ended.stdout == "[]\n"
    assert ended.stderr.count("\n") == 1 and "torch keeps its own allocator: hipmm.torch.use() was called after" in ended.stderr


# ---- python -m hipmm


def test_python_m_hipmm(serve, folder):
    (folder / "modules" / "train.py").write_text("import sys\n" + ALLOCATE + "print(sys.argv, __name__, sys.flags.optimize)")
    file = str(folder / "modules" / "train.py")
    name = [sys.executable, "-O", "-m", "hipmm", "--report"]
    for words, first in (([file], file), (["-m", "train"], file)):
        ended = subprocess.run(
            [*name, *words, "--steps", "3"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=folder,
            env={**os.environ, "HIPMM_TORCH": "pluggable", "PYTHONPATH": f"{folder / 'modules'}:{os.environ['PYTHONPATH']}"},
        )
        assert ended.stdout == f"{[first, '--steps', '3']} __main__ 1\n", ended.stderr
        assert "torch: malloc                           1            0            0" in ended.stderr


def test_python_m_hipmm_without_a_program(serve):
    import hipmm

    for words, code in (([], 2), (["--help"], 0)):
        ended = subprocess.run([sys.executable, "-m", "hipmm", *words], capture_output=True, text=True)
        assert ended.returncode == code and "usage: python -m hipmm" in ended.stdout + ended.stderr
        assert ("`hipmm run --help` lists the options" in ended.stdout) == (words == ["--help"])
    ended = subprocess.run([sys.executable, "-m", "hipmm", "check"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "hipmm: check: no such Python program; for a command of hipmm, run `hipmm COMMAND`\n"
    assert hipmm.__version__
