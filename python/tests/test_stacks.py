# SPDX-License-Identifier: MIT
"""Call stacks of Python: `stacks` of recording and tracking."""

import contextlib
import ctypes
import gc
import pathlib
import pickle
import re
import subprocess
import threading

import pytest

import hipmm
from hipmm import _library

HERE = pathlib.Path(__file__).name
LARGE = 2 << 20


def tracked(**options):
    tracking = {"type": "tracking", "stacks": "python", "report_at_end": False, **options}
    return {"runtime": "software", "stack": [tracking, "pool", "device"]}


def stacks():
    """Of each live block its size and its frames, as (name, file, line)."""
    found = []
    for line in hipmm.resource().report().splitlines():
        block = re.match(r"0x\w+: (\d+) B", line)
        frame = re.match(r"  #\d+ in (.*) from (.*?)(?::(\d+))?$", line)
        if block:
            found.append((int(block[1]), []))
        elif frame and found:
            found[-1][1].append((frame[1], pathlib.Path(frame[2]).name, int(frame[3] or 0)))
    return found


def line_of(function, offset=1):
    return function.__code__.co_firstlineno + offset


def allocate(nbytes=LARGE):
    return hipmm.Buffer(nbytes)


class Model:
    def forward(self):
        return allocate()


def nested(depth, call):
    return nested(depth - 1, call) if depth else call()


def is_native(frames):
    return not any(file.endswith(".py") for _, file, _ in frames)


@pytest.mark.graph(tracked())
def test_names_the_functions_and_lines_that_allocate():
    kept = [Model().forward(), allocate()]
    kept += [hipmm.Buffer(100) for _ in range(5)]  # too small for a stack, but by chance
    (size, first), (_, second) = stacks()[:2]
    assert size == LARGE
    assert first[0] == ("allocate", HERE, line_of(allocate))
    name = getattr(Model.forward.__code__, "co_qualname", "forward")  # Python 3.10 has no qualified names
    assert first[1] == (name, HERE, line_of(Model.forward))
    assert first[2][:2] == ("test_names_the_functions_and_lines_that_allocate", HERE)
    assert second[0] == first[0] and second[1][0] == first[2][0]
    assert not any("hipmm" in file for _, file, _ in first + second)


@pytest.mark.graph(tracked(stack_sample=0))
def test_every_allocation_has_a_stack_if_the_sample_is_0():
    kept = [allocate(size) for size in (1, 1000, LARGE)]
    kept[0].resize(5000)
    assert all(frames[0][0] in ("allocate", "test_every_allocation_has_a_stack_if_the_sample_is_0") for _, frames in stacks())


@pytest.mark.graph(tracked(stack_sample=0, stack_depth=9))
def test_deep_recursion_has_a_bounded_stack():
    kept = nested(500, lambda: allocate(10))
    ((size, frames),) = stacks()
    assert (size, len(frames)) == (10, 9)
    assert frames[0][0] == "allocate" and {name for name, _, _ in frames[2:]} == {"nested"}
    del kept


@pytest.mark.graph(tracked(stack_sample=0))
def test_each_thread_has_its_own_frames():
    kept, barrier = [], threading.Barrier(4)

    def work(i):
        barrier.wait()
        for _ in range(50):
            kept.append(nested(i, lambda: allocate(100 + i)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = stacks()
    assert len(found) == 200
    for size, frames in found:
        assert sum(name == "nested" for name, _, _ in frames) == size - 100 + 1
        assert any(name.endswith("work") for name, _, _ in frames)


def allocate_by(library):
    """Calls C as other extensions do: `library` keeps the GIL (PyDLL) or releases it (CDLL)."""
    ptr = ctypes.c_void_p()
    assert library.hipmm_allocate(None, ctypes.c_size_t(LARGE), None, ctypes.byref(ptr)) == 0
    return ptr


def path_of_libhipmm():
    return next(line.split()[-1] for line in open("/proc/self/maps") if "libhipmm.so" in line)


@pytest.mark.graph(tracked())
def test_a_thread_without_the_gil_has_frames_of_c():
    path = path_of_libhipmm()
    kept = [allocate_by(ctypes.PyDLL(path)), allocate_by(ctypes.CDLL(path))]
    (_, held), (_, released) = stacks()
    assert held[0] == ("allocate_by", HERE, line_of(allocate_by, 3))
    assert released and is_native(released)
    for ptr in kept:
        ctypes.CDLL(path).hipmm_deallocate(None, ptr, ctypes.c_size_t(LARGE), None)


def allocate_as_an_operator(path, text, takes_the_lock):
    """As PyTorch's operators do: without Python's lock, which the allocator may take for the call stack."""
    without, holding = ctypes.CDLL(path), ctypes.PyDLL(path)
    size = ctypes.c_size_t(len(text))
    wanted = without.hipmm_call_site(ctypes.c_size_t(LARGE), text, size)
    again = holding.hipmm_call_site(ctypes.c_size_t(LARGE), text, size) if takes_the_lock else None
    ptr = allocate_by(without)
    without.hipmm_call_site(ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    return wanted, again, ptr


@pytest.mark.graph(tracked())
def test_a_caller_without_the_gil_may_take_it_for_the_stack():
    path, text = path_of_libhipmm(), ctypes.create_string_buffer(8192)
    first = allocate_as_an_operator(path, text, True)
    second = allocate_as_an_operator(path, text, False)
    assert (first[:2], second[0]) == ((1, 0), 1)
    (_, taken), (_, released) = stacks()
    assert taken[0][:2] == ("allocate_as_an_operator", HERE) and is_native(released)
    for *_, ptr in first, second:
        ctypes.CDLL(path).hipmm_deallocate(None, ptr, ctypes.c_size_t(LARGE), None)


@pytest.mark.graph(tracked())
def test_a_caller_without_python_may_say_what_it_runs():
    """As the bridge does in PyTorch's backward pass."""
    library, text = ctypes.CDLL(path_of_libhipmm()), ctypes.create_string_buffer(8192)
    lines = b"autograd: MulBackward0 from torch\n"
    size, own = ctypes.c_size_t(LARGE), ctypes.c_size_t(ctypes.c_size_t(-1).value)
    assert library.hipmm_call_site(own, text, size) == 0  # nothing was asked: nothing changes
    assert library.hipmm_call_site(size, text, ctypes.c_size_t(len(text))) == 1
    text.value = lines
    assert library.hipmm_call_site(own, text, ctypes.c_size_t(len(lines))) == 0
    kept = [allocate_by(library)]
    library.hipmm_call_site(ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    kept.append(allocate_by(library))
    (_, said), (_, after) = stacks()
    assert said == [("autograd: MulBackward0", "torch", 0)] and is_native(after) and len(after) > 1
    for ptr in kept:
        library.hipmm_deallocate(None, ptr, ctypes.c_size_t(LARGE), None)


# ---- Tags


@pytest.mark.graph({"runtime": "software", "stack": [{"type": "tracking", "report_at_end": False}, "pool", "device"]})
def test_tags_nest_in_each_thread():
    @hipmm.tag("loss")
    def loss():
        return allocate()

    kept = []
    with hipmm.tag("step 3"):
        with hipmm.tag("größe"):
            kept.append(allocate())
        kept.append(loss())
        thread = threading.Thread(target=lambda: kept.append(allocate()))
        thread.start()
        thread.join()
        with pytest.raises(ZeroDivisionError), hipmm.tag("layer 7"):
            1 / 0
        kept.append(allocate())
    kept.append(allocate())
    tags = [re.findall("tag: (.*)", block) for block in hipmm.resource().report().split("\n0x")[1:]]
    assert tags == [["step 3 / größe"], ["step 3 / loss"], [], ["step 3"], []]


@pytest.mark.graph({"runtime": "software", "stack": [{"type": "tracking", "report_at_end": False}, "device"]})
def test_a_tag_may_be_used_again():
    tag, kept = hipmm.tag("layer"), []
    with tag, tag:
        kept.append(allocate())
    with tag:
        kept.append(allocate())
    kept.append(allocate())
    assert re.findall("tag: (.*)", hipmm.resource().report()) == ["layer / layer", "layer"]


@pytest.mark.parametrize(("name", "error", "message"), [
    ("", hipmm.ArgumentError, "empty"), ("a" * 64, hipmm.ArgumentError, "63 bytes"), ("ä" * 32, hipmm.ArgumentError, "63 bytes"),
    ("a\nb", hipmm.ArgumentError, "control characters"), ("a\0b", ValueError, "null"), ("\udc80", UnicodeEncodeError, "surrogates"),
    (7, TypeError, "str"), (None, TypeError, "str")])
def test_names_that_are_no_tags(name, error, message):
    with pytest.raises(error, match=message), hipmm.tag(name):
        raise AssertionError
    with hipmm.tag("a" * 63):
        pass


def test_tags_without_end():
    depth = 0
    with pytest.raises(hipmm.StateError, match="more than 255 bytes"), contextlib.ExitStack() as stack:
        while True:
            stack.enter_context(hipmm.tag("layer"))
            depth += 1
    assert depth == 255 // len("layer ")
    with pytest.raises(hipmm.StateError, match="this thread has no tag"):
        hipmm._hipmm.pop_tag()


@pytest.mark.graph(tracked())
def test_another_interpreter_is_left_alone():
    try:
        import _interpreters as interpreters  # since Python 3.13

        other = interpreters.create("legacy")
    except ImportError:
        interpreters = pytest.importorskip("_xxsubinterpreters")
        other = interpreters.create(isolated=False)
    program = f"""
import ctypes
def hidden():
    ptr = ctypes.c_void_p()
    ctypes.PyDLL({path_of_libhipmm()!r}).hipmm_allocate(None, ctypes.c_size_t({LARGE}), None, ctypes.byref(ptr))
hidden()
"""
    interpreters.run_string(other, program)
    kept = allocate()
    interpreters.destroy(other)
    (_, there), (_, here) = stacks()
    assert is_native(there) and here[0][0] == "allocate"
    del kept


@pytest.mark.graph(tracked(stacks="all"))
def test_all_has_the_functions_of_c_in_front_of_those_of_python():
    kept = allocate_by(ctypes.PyDLL(path_of_libhipmm()))
    ((_, frames),) = stacks()
    python = [i for i, frame in enumerate(frames) if frame[1].endswith(".py")]
    assert python[0] > 0 and frames[python[0]][0] == "allocate_by"
    assert is_native(frames[: python[0]]) and not is_native(frames[python[0] :])
    assert not any("libpython" in file or "libhipmm" in file for _, file, _ in frames)
    ctypes.CDLL(path_of_libhipmm()).hipmm_deallocate(None, kept, ctypes.c_size_t(LARGE), None)


@pytest.mark.graph(
    {"runtime": "software", "stack": ["pool", {"type": "tracking", "stacks": "python", "stack_sample": 0}, "device"]}
)
def test_no_code_of_python_runs_meanwhile():
    """A collection would call finalizers, which may want a lock that the thread has: here that of the pool, which asks the
    list below it for memory."""
    threshold = gc.get_threshold()

    class Garbage:
        def __init__(self):
            self.itself = self
            self.buffer = allocate(100)

        def __del__(self):
            allocate(100)

    gc.set_threshold(1)
    try:
        for _ in range(20):
            Garbage()
            kept = nested(40, allocate)
        assert gc.isenabled()
        gc.disable()
        allocate(10)
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.set_threshold(*threshold)
    del kept


@pytest.mark.graph(None)
def test_an_interpreter_that_ends_can_still_allocate(run):
    run(
        """
import hipmm
hipmm.init({"runtime": "software", "stack": [{"type": "tracking", "stacks": "all", "stack_sample": 0, "report_at_end": False},
                                             "pool", "device"]})
class Late:
    def __init__(self):
        self.make = hipmm.Buffer
    def __del__(self):
        self.kept = self.make(1 << 21)
late = Late()
late.itself = late
"""
    )


@pytest.mark.graph(None)
def test_a_record_has_them_for_pytorch_and_pprof(run, tmp_path):
    file = tmp_path / "program.record"
    program = tmp_path / "train.py"
    program.write_text(
        """import hipmm
hipmm.init({"runtime": "software", "stack": [{"type": "recording", "file": "%s", "stacks": "python"}, "pool", "device"]})
def layer():
    return hipmm.Buffer(3 << 20)
kept = [layer() for _ in range(4)]
small = [hipmm.Buffer(1024) for _ in range(20000)]
"""
        % file
    )
    run(f"import runpy; runpy.run_path({str(program)!r})")
    assert "layer from" in subprocess.run([_library.command(), "report", file], capture_output=True, text=True).stdout
    subprocess.run([_library.command(), "convert", "-o", tmp_path / "s.pickle", file], check=True, capture_output=True)
    trace = pickle.loads((tmp_path / "s.pickle").read_bytes())["device_traces"][0]
    large = [event for event in trace if event["action"] == "alloc" and event["size"] == 3 << 20]
    assert len(large) == 4
    for event in large:
        frame = event["frames"][0]
        assert (frame["name"], frame["filename"], frame["line"]) == ("layer", str(program), 4)
    sampled = [event for event in trace if event["size"] == 1024 and event.get("frames")]
    assert 5 < len(sampled) < 100  # 39 are expected
