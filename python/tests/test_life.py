# SPDX-License-Identifier: MIT
"""The ends of things: finalize() with live objects, fork, the end of the interpreter, sub-interpreters."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
import time

import numpy
import pytest

import hipmm
from hipmm import Buffer


def test_buffers_outlive_finalize():
    buffer, resource = Buffer.copy_of(b"abc"), hipmm.resource()
    hipmm.finalize()
    assert not hipmm.is_initialized()
    assert buffer.nbytes == 3 and resource.name == "statistics"
    assert Buffer(5, None, resource).nbytes == 5  # the reference keeps the stack
    del buffer, resource
    hipmm.init({"runtime": "software", "stack": ["pool", "device"]})
    assert Buffer(1).resource.type == "pool"


def test_the_child_of_a_fork_is_refused():
    buffer = Buffer.copy_of(b"abc")
    child = os.fork()
    if not child:
        try:
            code = 1
            try:
                Buffer(1)
            except hipmm.StateError as error:
                code = 0 if "fork" in str(error) else 2
            try:
                buffer.read()
                code = 3
            except hipmm.StateError:
                pass
            if hipmm.is_initialized():
                code = 4
            del buffer
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert buffer.read() == b"abc"


LIVE = """
import hipmm, threading, sys
hipmm.init({"runtime": "software", "stack": ["statistics", "pool", "device"]})
stream = hipmm.Stream()
kept = [hipmm.Buffer(1000, stream) for _ in range(10)]
kept.append(kept)
sys.kept = kept
hipmm.register_allocator("a", lambda n, a, s: hipmm.resource("device").allocate(n), lambda p, n, a, s: hipmm.resource("device").deallocate(p))
sys.more = hipmm.Buffer(100, None, hipmm.create("callback", allocator="a"))
hipmm.set_log_sink(lambda *line: None, "trace")
view = memoryview(kept[0])
sys.tensors = [hipmm.from_dlpack(kept[1]), kept[2].__dlpack__()]
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "hipmm.finalize()",
        "sys.exit(0)",
        "threading.Thread(target=lambda: hipmm.Buffer(1)).start()",
        "raise SystemExit",
    ],
)
def test_the_interpreter_ends_with_live_objects(run, end):
    ended = run(LIVE + end + "\n")
    assert "Error" not in ended.stderr and "hipmm: error" not in ended.stderr, ended.stderr


def test_threads_run_when_the_interpreter_ends(run):
    run(LIVE + """
def work():
    while True:
        hipmm.Buffer(5000)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
""")


EMBEDS = """
#include <Python.h>
int main(void)
{
  for (int i = 0; i < 2; i++) {
    Py_Initialize();
    if (PyRun_SimpleString("import hipmm")) return 2;
    if (i) return PyRun_SimpleString("import os; os.fork() or os._exit(0); assert os.wait()[1] == 0") ? 3 : 0;
    if (Py_FinalizeEx()) return 4;
  }
}
"""


def test_a_program_starts_python_twice_and_forks(tmp_path):
    config = sysconfig.get_config_vars()
    source, program, library = tmp_path / "embeds.c", tmp_path / "embeds", f"python{config['LDVERSION']}"
    source.write_text(EMBEDS)
    compiler = [*os.environ.get("CC", "cc").split(), "-o", program, source, f"-I{config['INCLUDEPY']}"]
    links = [f"-L{config['LIBDIR']}", f"-Wl,-rpath,{config['LIBDIR']}", f"-l{library}", "-lm", "-ldl", "-lpthread"]
    built = subprocess.run([*compiler, *links, "-Wl,--export-dynamic"], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"no program can be linked with lib{library}: {built.stderr}")
    env = {**os.environ, "PYTHONHOME": sys.base_prefix}
    subprocess.run([program], env=env, timeout=30, check=True)


def test_sub_interpreters_are_refused(run):
    ended = run("""
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
other = interpreters.create()
try:
    failure = interpreters.run_string(other, "import hipmm")
    text = str(failure)
except Exception as error:
    text = str(error)
print(text)
import hipmm
hipmm.init({"runtime": "software", "stack": ["device"]})
print(hipmm.Buffer(10).nbytes)
""")
    assert "sub-interpreter" in ended.stdout and ended.stdout.endswith("10\n")


def test_spawned_processes_work(run, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing
import hipmm

def work(buffer):
    return hipmm.Buffer.copy_of(buffer).read()[::-1]

def start():
    hipmm.init({"runtime": "software", "stack": ["device"]})

if __name__ == "__main__":
    start()
    with multiprocessing.get_context("spawn").Pool(1, start) as pool:
        print(pool.apply(work, (hipmm.Buffer.copy_of(b"abc"),)))
""")
    ended = run(
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')", str(program)
    )
    assert ended.stdout == "b'cba'\n"


def test_a_program_writes_the_report_that_its_graph_names(run, tmp_path):
    """At its end, with live objects, as one rank of a job."""
    graph = {"runtime": "software", "report": f"{tmp_path}/report.%r.json", "stack": ["statistics", "pool", "device"]}
    for end in ("", "hipmm.finalize()", "sys.exit(0)"):
        run(
            f"import hipmm, sys\nhipmm.init({graph!r})\nsys.kept = [hipmm.Buffer(1000), hipmm.Buffer(24)]\n{end}",
            env={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"},
        )
        [line] = (tmp_path / "report.3.json").read_text().splitlines()
        report = json.loads(line)
        assert (report["rank"], report["local_rank"], report["ranks"]) == (3, 1, 4)
        [memory] = report["memory"]
        assert (memory["device"], memory["peak_requested_bytes"]) == (0, 1024)
        (tmp_path / "report.3.json").unlink()


def test_an_exception_passes_through_using_after_finalize():
    with pytest.raises(KeyError, match="mine"):
        with hipmm.using(hipmm.resource("pool")):
            hipmm.finalize()
            raise KeyError("mine")


# ---- Sleep and wake

TWO_POOLS = {
    "runtime": "software",
    "resources": {
        "memory": {"type": "device"},
        "weights": {"type": "pool", "upstream": "memory", "growth": "mapped"},
        "kv": {"type": "pool", "upstream": "memory", "growth": "mapped"},
        "loose": {"type": "pool", "upstream": "memory", "growth": "segments"},
        "top": {"type": "fallback", "upstream": ["weights", "kv"]},
    },
    "devices": {"default": "top"},
}


@pytest.mark.graph(TWO_POOLS)
def test_a_resource_sleeps_and_wakes():
    data = bytes(range(256)) * 20000
    weights = Buffer.copy_of(data, None, hipmm.resource("weights"))
    kv = Buffer(30 << 20, None, hipmm.resource("kv"))
    address, free = kv.ptr, hipmm.device_memory()[0]
    hipmm.sleep("kv", keep=False)
    assert hipmm.device_memory()[0] >= free + 0.95 * kv.nbytes
    hipmm.sleep(hipmm.resource("weights"))
    assert hipmm.held_bytes()[0] == 0
    with pytest.raises(hipmm.StateError, match=r'weights.*suspended.*resume.*\(hipmm\.wake\("weights"\)\)'):
        Buffer(10)
    with pytest.raises(hipmm.StateError, match="kv"):
        Buffer(10, None, hipmm.resource("kv"))
    views = (lambda: memoryview(weights), lambda: numpy.asarray(weights), lambda: kv.write(weights))
    for use in (weights.read, lambda: weights.write(b"new"), lambda: weights.fill(0), weights.copy, *views):
        with pytest.raises(hipmm.StateError, match=r'weights: cannot read or write .*\(hipmm\.wake\("weights"\)\)'):
            use()
    resources = [resource for stack in hipmm.snapshot()["stacks"] for resource in stack["resources"]]
    assert sum(resource.get("suspended", False) for resource in resources) == 2
    assert hipmm.query("devices/0/weights/saved_bytes") >= len(data)
    del kv
    hipmm.resource("kv").wake()
    assert Buffer(30 << 20, None, hipmm.resource("kv")).ptr == address
    hipmm.wake("weights")
    assert weights.read() == data
    hipmm.sleep()
    hipmm.wake(None, 0)
    assert weights.read() == data


@pytest.mark.graph(TWO_POOLS)
def test_nothing_sleeps_below_a_view_of_the_host():
    weights, kv = (Buffer.copy_of(b"abc", None, hipmm.resource(name)) for name in ("weights", "kv"))
    empty, other = Buffer(0, None, hipmm.resource("weights")), Buffer.copy_of(b"xyz", None, hipmm.resource("memory"))
    views = (memoryview, numpy.asarray, numpy.from_dlpack, hipmm.from_dlpack, lambda buffer: buffer.__dlpack__())
    for make in views:
        held = [make(weights), make(weights), memoryview(empty), make(other)]
        for _ in range(2):
            for sleeper in ("weights", "top"):
                with pytest.raises(BufferError, match=f"{sleeper}: cannot sleep: a Buffer on weights is in use by a view"):
                    hipmm.sleep(sleeper, keep=False)
            assert weights.read() == b"abc"
            hipmm.sleep("kv")  # which has nothing but the device in common
            hipmm.wake("kv")
            del held[0]
        del held
        hipmm.sleep("top")
        for refused in (*views, Buffer.copy_of, lambda buffer: other.write(buffer)):
            with pytest.raises(hipmm.StateError, match=r'hipmm\.wake\("weights"\)'):
                refused(weights)
        hipmm.wake("top")
        assert weights.read() == kv.read() == b"abc"


@pytest.mark.graph({**TWO_POOLS, "runtime": {"type": "software", "host_access": False}})
def test_an_array_on_a_device_lives_while_its_memory_sleeps():
    weights = Buffer.copy_of(b"abc", None, hipmm.resource("weights"))
    tensor = hipmm.from_dlpack(weights)
    hipmm.sleep("weights")
    hipmm.wake("weights")
    with pytest.raises(BufferError, match="size cannot change"):
        weights.resize(1 << 20)
    assert Buffer.copy_of(tensor).read() == b"abc"
    del tensor
    weights.resize(1 << 20)


@pytest.mark.graph({**TWO_POOLS, "devices": {"default": "weights"}})
def test_threads_sleep_and_use_memory_at_once():
    """A sleep and a use that meet: one of the two is refused, and the content is never torn."""
    stop, used, wrong = threading.Event(), [], []
    buffers = [Buffer.copy_of(b"abc" * 1000) for _ in range(4)]

    def work(number):
        buffer = buffers[number]
        calls = (buffer.read, lambda: bytes(memoryview(buffer)), lambda: buffer.copy(None, kv).read(), buffer.shrink_to_fit)
        while not stop.is_set():
            for call in calls:
                try:
                    if call() not in (None, b"abc" * 1000):
                        wrong.append(call)
                    used.append(call)
                except (BufferError, hipmm.StateError):
                    pass
            time.sleep(0.0005)  # a sleep finds the memory unused now and then

    kv = hipmm.resource("kv")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(buffers))]
    for thread in threads:
        thread.start()
    slept, until = 0, time.monotonic() + 20
    while slept < 40 and time.monotonic() < until:
        for pool in ("weights", "kv"):
            try:
                hipmm.sleep(pool)
            except BufferError:
                continue
            slept += 1
            hipmm.wake(pool)
    stop.set()
    for thread in threads:
        thread.join()
    assert used and slept >= 40 and not wrong and all(buffer.read() == b"abc" * 1000 for buffer in buffers)


@pytest.mark.graph({**TWO_POOLS, "runtime": {"type": "software", "devices": 2}})
def test_what_cannot_sleep_says_why():
    for awake in (lambda: hipmm.wake("kv"), hipmm.resource("kv").wake):
        with pytest.raises(hipmm.StateError, match=r"kv: is awake, not suspended; hipmm\.sleep\(\) has to come before"):
            awake()
    hipmm.sleep("kv", True)
    with pytest.raises(hipmm.StateError, match="suspended already") as error:
        hipmm.sleep("kv")
    eval(re.search(r"hipmm\.wake\(.*?\)", str(error.value))[0])  # the advice is a call as it must be written
    hipmm.sleep("kv", device=1)
    with pytest.raises(hipmm.StateError, match=r'\(hipmm\.wake\("kv", device=1\)\)'):
        hipmm.sleep("kv", device=1)
    hipmm.wake("kv", device=1)
    with pytest.raises(hipmm.NotSupportedError, match='"growth": "mapped"'):
        hipmm.sleep("memory")
    with pytest.raises(hipmm.NotSupportedError, match='"growth": "mapped"'):
        hipmm.sleep("loose")
    with pytest.raises(hipmm.ArgumentError):
        hipmm.sleep("kw")
    with pytest.raises(TypeError):
        hipmm.sleep(3)
    with pytest.raises(TypeError):
        hipmm.resource("kv").sleep(True, 1)


@pytest.mark.graph({**TWO_POOLS, "runtime": {"type": "software", "memory": "128MiB"}})
def test_a_resource_sleeps_on_while_the_device_is_full():
    kv = Buffer.copy_of(b"kv" * (30 << 20), None, hipmm.resource("kv"))
    hipmm.sleep("kv")
    other = Buffer(100 << 20, None, hipmm.resource("weights"))
    with pytest.raises(hipmm.MemoryError, match="stays suspended"):
        hipmm.wake("kv")
    hipmm.sleep("weights", keep=False)
    hipmm.wake("kv")
    assert kv.read(0, 4) == b"kvkv"
    assert other.nbytes == 100 << 20
