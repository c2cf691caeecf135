# SPDX-License-Identifier: MIT
"""Programs that start, stop and share in unusual ways. Each must end as it ends without hipmm.

    residents.py FOLDER RESULTS [--seconds 120] [--until SECONDS] [PATTERN…]     FOLDER: anything, as other runners have one
    residents.py --compare NATIVE UNDER        the cases that pass in NATIVE alone; status 1 if there are any

Alone and under `hipmm run`. Each case is a process of its own. The runtime is CUDA's, or the library that RESIDENTS_RUNTIME names
(software.so, whose functions have HIP's names). Cases of PyTorch are skipped where it is not there or has no device. RESIDENTS_HIPMM
names a libhipmm.so of which a program brings a copy along. JOBS: the cases at a time (4).
"""

import ctypes
import glob
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

import outcomes

UNDER = bool(os.environ.get("HIPMM_RUN_PID"))
MIB = 1 << 20
CASES = {}


class Skip(Exception):
    pass


def case(function):
    CASES[function.__name__] = function
    return function


# ---- The runtime


def library():
    """The runtime's file, and what its names begin with."""
    own = os.environ.get("RESIDENTS_RUNTIME")
    if own:
        return own, "hip"
    places = ["/usr/local/cuda/lib64/libcudart.so*"]
    for package in ("nvidia", "torch"):
        found = importlib.util.find_spec(package)
        for place in (found and found.submodule_search_locations) or ():
            places += [f"{place}/cu1*/lib/libcudart.so*", f"{place}/cuda_runtime/lib/libcudart.so*"]
    files = [file for place in places for file in sorted(glob.glob(place))]
    if not files:
        raise Skip("no CUDA runtime was found")
    return files[0], "cuda"


class Device:
    """A runtime's functions; a status that is not 0 is an error."""

    def __init__(self):
        file, self._prefix = library()
        self._library = ctypes.CDLL(file)

    def __getattr__(self, name):
        function = getattr(self._library, self._prefix + name)

        def call(*arguments):
            status = function(*arguments)
            assert status == 0, f"{name}: {status}"

        return call

    def malloc(self, nbytes):
        ptr = ctypes.c_void_p()
        self.Malloc(ctypes.byref(ptr), ctypes.c_size_t(nbytes))
        return ptr

    def use(self, nbytes=3 * MIB, byte=7):
        """Memory that is allocated, filled, read and freed."""
        ptr, host = self.malloc(nbytes), (ctypes.c_ubyte * nbytes)()
        self.Memset(ptr, byte, ctypes.c_size_t(nbytes))
        self.Memcpy(host, ptr, ctypes.c_size_t(nbytes), 2)
        assert set(bytes(host)) == {byte}
        self.Free(ptr)


class PointerAttributes(ctypes.Structure):
    """cudaPointerAttributes of CUDA 13, of which the runtime writes all 88 bytes. CUDA 12 and HIP write less."""

    _fields_ = [("kind", ctypes.c_int), ("device", ctypes.c_int), ("ptr", ctypes.c_void_p), ("host_ptr", ctypes.c_void_p),
                ("reserved", ctypes.c_long * 8)]


def python(code, env=None, status=0, front=(), arguments=()):
    """A Python program with this module's names; what it printed on standard output, and on standard error."""
    text = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\nfrom residents import *\n{code}"
    return program([*front, sys.executable, "-B", "-c", text, *arguments], env, status)


def program(command, env=None, status=0):
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=100, env={**os.environ, **(env or {})})
    assert ended.returncode == status, f"status {ended.returncode}, not {status}: {(ended.stdout + ended.stderr)[-600:]}"
    return ended.stdout, ended.stderr


def compiled(source, *words):
    """A file that the C compiler made of the source; `words` may name other files of this folder."""
    name = f"made{len(os.listdir('.'))}"
    with open(name + ".c", "w") as file:
        file.write(source)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skip("no C compiler")
    subprocess.run([compiler, "-D_GNU_SOURCE", "-w", "-o", name, name + ".c", *words], check=True)
    return os.path.abspath(name)


def linked(source):
    """A C program that is linked to the runtime; in its source API(Malloc) is hipMalloc or cudaMalloc."""
    file, prefix = library()
    return compiled(f"#define API(name) {prefix}##name\n" + source, file, f"-Wl,-rpath,{os.path.dirname(os.path.abspath(file))}", "-ldl")


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int API(Malloc)(void **ptr, size_t bytes);
int API(Memset)(void *ptr, int byte, size_t bytes);
int API(Memcpy)(void *to, const void *from, size_t bytes, int kind);
int API(Free)(void *ptr);
static unsigned char host[1 << 20];
int main(int argc, char **argv)
{
  void *ptr[10];
  for (int i = 0; i < 10; i++)
    if (API(Malloc)(&ptr[i], sizeof host) || API(Memset)(ptr[i], i, sizeof host)) return 50;
  for (int i = 0; i < 10; i++)
    if (API(Memcpy)(host, ptr[i], sizeof host, 2) || host[0] != i || host[sizeof host - 1] != i || API(Free)(ptr[i])) return 51;
  printf("good\\n");
  return argc > 1 ? atoi(argv[1]) : 0;
}
"""


# ---- The end of a program, and what hipmm is given


@case
def status_of_a_program():
    made = linked(PROGRAM)
    for status in (0, 3, 255):
        assert program([made, str(status)], status=status)[0] == "good\n"


@case
def status_of_a_signal():
    for name in "SIGKILL", "SIGTERM", "SIGABRT", "SIGSEGV", "SIGINT":
        code = "number = getattr(signal, sys.argv[1])\n" + ("" if name == "SIGKILL" else "signal.signal(number, signal.SIG_DFL)\n")
        python(code + "Device().use()\nos.kill(os.getpid(), number)", status=-getattr(signal, name), arguments=[name])


def unserved(env, pattern):
    """A program that hipmm cannot serve: its own status, its own output, and under hipmm one line of hipmm's."""
    made = linked(PROGRAM)
    for status in (0, 7):
        output, errors = program([made, str(status)], env=env, status=status)
        assert output == "good\n", output
        lines = errors.splitlines()
        assert not UNDER or len(lines) == 1 and re.match("hipmm: " + pattern, lines[0]), errors
        assert UNDER or not lines, errors


def graph(text):
    with open("graph.json", "w") as file:
        file.write(text)
    return {"HIPMM_CONFIG": os.path.abspath("graph.json")}


@case
def graph_missing():
    unserved({"HIPMM_CONFIG": os.path.abspath("nowhere.json")}, r".*nowhere\.json: ")


@case
def graph_no_json():
    unserved(graph('{ "stack": [ "pool" "device" ] }'), r".*graph\.json:1:")


@case
def graph_of_an_unknown_type():
    unserved(graph('{ "stack": [ "pol", "device" ] }'), r'.*unknown type "pol"')


@case
def graph_that_is_a_folder():
    os.mkdir("folder.json")
    unserved({"HIPMM_CONFIG": os.path.abspath("folder.json")}, r".*folder\.json: ")


@case
def graph_that_is_unreadable():
    env = graph('{ "stack": [ "device" ] }')
    os.chmod("graph.json", 0)
    if os.access("graph.json", os.R_OK):
        raise Skip("root reads every file")
    unserved(env, r".*graph\.json: ")


@case
def graph_too_large_for_the_device():
    unserved(graph('{ "stack": [ { "type": "pool", "initial_size": "100TiB" }, "device" ] }'), r"device 0: ")


def plugins(text):
    """A graph whose pool is to be found in a folder whose own pool.so has this text."""
    os.mkdir("plugins")
    if text is not None:
        with open("plugins/strange.so", "wb") as file:
            file.write(text)
    return graph('{ "plugin_path": ["plugins"], "stack": [ "strange", "device" ] }')


@case
def plugin_missing():
    unserved(plugins(None), r'.*unknown type "strange"')


@case
def plugin_that_is_no_library():
    unserved(plugins(b"no library"), r".*strange")


@case
def plugin_that_is_cut_off():
    with open(library()[0], "rb") as file:
        unserved(plugins(file.read(2000)), r".*strange")


@case
def plugin_that_is_another_library():
    with open(compiled("int nothing;", "-shared", "-fPIC"), "rb") as file:
        unserved(plugins(file.read()), r".*strange")


@case
def runtime_unknown():
    unserved({"HIPMM_RUNTIME": "nosuch"}, r".*nosuch")


@case
def runtime_that_is_no_file():
    unserved({**graph('{ "stack": [ "device" ] }'), "HIPMM_RUNTIME": "/nonexistent/runtime.so"}, r".*/nonexistent/runtime\.so")


# ---- Processes


@case
def fork_before_the_device():
    python("""
import os
child = os.fork()
Device().use()
if child == 0:
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
Device().use()
""")


@case
def fork_after_the_device():
    """A child that leaves the device alone and ends as programs end, by exit()."""
    python("""
import os
device = Device()
device.use()
kept = device.malloc(MIB)
child = os.fork()
if child == 0:
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
device.use()
device.Free(kept)
""")


@case
def fork_after_the_device_and_exec():
    python("""
import subprocess
device = Device()
device.use()
for close_fds in (True, False):
    subprocess.run([sys.executable, "-B", "-c", "from residents import *; Device().use()"], check=True, close_fds=close_fds,
                   env={**os.environ, "PYTHONPATH": sys.path[0] + ":" + os.environ.get("PYTHONPATH", "")})
device.use()
""")


@case
def fork_in_a_thread():
    python("""
import os, threading
device = Device()
device.use()
def work(stop):
    while not stop.is_set():
        device.use(4096)
stop = threading.Event()
threads = [threading.Thread(target=work, args=(stop,)) for _ in range(3)]
[thread.start() for thread in threads]
for _ in range(10):
    child = os.fork()
    if child == 0:
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
stop.set()
[thread.join() for thread in threads]
device.use()
""")


@case
def rank_killed_and_restarted():
    """What a launcher does: one of two ranks dies, both are started again."""
    rank = """
device = Device()
kept = [device.malloc(MIB) for _ in range(5)]
if sys.argv[1:] == ["1", "0"]:
    os.kill(os.getpid(), signal.SIGKILL)
device.use()
print("rank", sys.argv[1])
"""
    for attempt in "0", "1":
        for number in "0", "1":
            status = -signal.SIGKILL if (number, attempt) == ("1", "0") else 0
            output, _ = python(rank, status=status, arguments=[number, attempt], env={"RANK": number, "LOCAL_RANK": number})
            assert output == ("" if status else f"rank {number}\n"), output


# ---- Other tools


SECOND = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static int calls;
void *malloc(size_t bytes)
{
  static void *(*next)(size_t);
  if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  calls++;
  return next(bytes);
}
int API(Malloc)(void **ptr, size_t bytes)
{
  static int (*next)(void **, size_t);
  if (!next) next = (int (*)(void **, size_t))dlsym(RTLD_NEXT, STRING(API(Malloc)));
  return next ? next(ptr, bytes) : 1000;
}
__attribute__((destructor)) static void end(void) { if (!calls) abort(); }
"""


@case
def second_preload():
    """Another library that is preloaded, and has malloc() and the runtime's function."""
    made = linked(PROGRAM)
    prefix = library()[1]
    head = f"#define API(name) {prefix}##name\n#define STRING_(name) #name\n#define STRING(name) STRING_(name)\n"
    second = compiled(head + SECOND, "-shared", "-fPIC", "-ldl")
    before = os.environ.get("LD_PRELOAD")
    for words in ([second, before], [before, second]):
        output, errors = program([made, "5"], env={"LD_PRELOAD": ":".join(filter(None, words))}, status=5)
        assert (output, errors) == ("good\n", ""), (output, errors)


SANITIZED = """
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
__global__ void fill(char *ptr, int count) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < count) ptr[i] = 1; }
int main(int argc, char **argv)
{
  char *ptr;
  int bytes = 1 << 20, beyond = argc > 1 ? atoi(argv[1]) : 0;
  if (cudaMalloc(&ptr, bytes)) return 50;
  fill<<<(bytes + beyond + 255) / 256, 256>>>(ptr, bytes + beyond);
  if (cudaDeviceSynchronize() || cudaFree(ptr)) return 51;
  printf("good\\n");
  return 0;
}
"""


def sanitized(*words, status=0, env=None):
    tool, compiler = (shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}") for name in ("compute-sanitizer", "nvcc"))
    if not tool or not compiler or library()[1] != "cuda":
        raise Skip("no compute-sanitizer, or no nvcc")
    with open("sanitized.cu", "w") as file:
        file.write(SANITIZED)
    subprocess.run([compiler, "-arch=native", "-o", "sanitized", "sanitized.cu"], check=True)
    return program([tool, "--error-exitcode", "9", "./sanitized", *words], env, status)


@case
def compute_sanitizer():
    assert "good" in sanitized()[0]


@case
def compute_sanitizer_finds_a_write_beyond_a_block():
    sanitized("100", status=9)


@case
def compute_sanitizer_finds_a_write_beyond_a_block_without_a_pool():
    sanitized("100", status=9, env=graph('{ "stack": [ "device" ] }'))


@case
def two_libraries():
    """A program that brings a libhipmm of its own."""
    own = os.environ.get("RESIDENTS_HIPMM")
    if not own:
        raise Skip("RESIDENTS_HIPMM is not set")
    shutil.copy(own, "libother.so")
    python(f"""
device = Device()
device.use()
other = ctypes.CDLL({os.path.abspath("libother.so")!r})
other.hipmm_last_error_message.restype = ctypes.c_char_p
def check(status):
    assert status == 0, (status, other.hipmm_last_error_message())
check(other.hipmm_init_from_string(b'{{"stack": ["pool", "device"]}}'))
ptr = ctypes.c_void_p()
for order in range(2):
    check(other.hipmm_allocate(None, ctypes.c_size_t(MIB), None, ctypes.byref(ptr)))
    device.Memset(ptr, 3, ctypes.c_size_t(MIB))
    host = (ctypes.c_ubyte * MIB)()
    device.Memcpy(host, ptr, ctypes.c_size_t(MIB), 2)
    assert set(bytes(host)) == {{3}}
    check(other.hipmm_deallocate(None, ptr, ctypes.c_size_t(MIB), None))
    device.use()
check(other.hipmm_finalize())
device.use()
""")


# ---- PyTorch


def torch(code, env=None, **options):
    if os.environ.get("RESIDENTS_RUNTIME") or not importlib.util.find_spec("torch"):
        raise Skip("no PyTorch with a device")
    output, errors = python("import torch\nif not torch.cuda.is_available(): print('none'); sys.exit(0)\n" + code, env, **options)
    if output == "none\n":
        raise Skip("PyTorch has no device")
    return output, errors


TRAIN = """
def train(steps=5):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.randn(64, 256, generator=torch.Generator().manual_seed(2))
    for _ in range(steps):
        loss = model(data.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
first = train()
assert first == first and 0 < first < 1e6
assert abs(train() - first) < 1e-5
torch.cuda.empty_cache()
"""


@case
def torch_no_caching():
    torch(TRAIN, env={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})


@case
def torch_backend_async():
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        torch(TRAIN + "torch.cuda.memory_stats(); torch.cuda.memory_summary(); torch.cuda.get_allocator_backend()",
              env={name: "backend:cudaMallocAsync"})


@case
def torch_backend_async_is_told():
    torch("assert torch.cuda.get_allocator_backend() == 'cudaMallocAsync'", env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})


@case
def torch_backend_async_graph():
    torch(GRAPH, env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})


GRAPH = """
x = torch.zeros(1000, device="cuda")
graph = torch.cuda.CUDAGraph()
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    (x + 1).sum()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y = (x + 1) * 2
for value in range(3):
    x.fill_(value)
    graph.replay()
    assert y[0].item() == 2 * (value + 1)
"""


@case
def torch_settings_in_the_environment():
    for setting in ("expandable_segments:True,max_split_size_mb:128", "garbage_collection_threshold:0.6,roundup_power2_divisions:4"):
        torch(TRAIN, env={"PYTORCH_CUDA_ALLOC_CONF": setting})


@case
def torch_settings_at_run_time():
    torch(TRAIN + GRAPH + """
change = torch.cuda.memory._set_allocator_settings
for setting in ("expandable_segments:True", "max_split_size_mb:64", "garbage_collection_threshold:0.6", "roundup_power2_divisions:4",
                "expandable_segments:False"):
    change(setting)
    assert abs(train() - first) < 1e-5
""")


@case
def torch_wrong_settings_at_run_time():
    torch(TRAIN + """
for setting in ("no_such_setting:1", "max_split_size_mb:1", "garbage_collection_threshold:7"):
    try:
        torch.cuda.memory._set_allocator_settings(setting)
    except (RuntimeError, ValueError):
        pass
    else:
        raise SystemExit(f"{setting} is accepted")
assert abs(train() - first) < 1e-5
""")


@case
def torch_fork_before_cuda():
    torch(TRAIN.partition("first =")[0] + """
child = os.fork()
assert train() > 0
if child == 0:
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
""", env={"PYTORCH_NVML_BASED_CUDA_CHECK": "1"})  # is_available() is to start no CUDA


@case
def torch_fork_after_cuda():
    torch(TRAIN + """
kept = torch.ones(1000, device="cuda")
child = os.fork()
if child == 0:
    try:
        torch.ones(1, device="cuda")
    except RuntimeError as error:
        assert "forked subprocess" in str(error), error
        del kept
        sys.exit(3)
    os._exit(4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert kept.sum().item() == 1000 and abs(train() - first) < 1e-5
""")


@case
def torch_data_loader():
    torch(TRAIN + """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(200.0))
loader = DataLoader(data, 10, num_workers=2, pin_memory=True, multiprocessing_context="fork")
assert sum(batch.cuda(non_blocking=True).sum().item() for [batch] in loader) == 19900
""")


@case
def torch_memory_is_known_to_the_runtime():
    """Libraries ask the runtime what a tensor's memory is, and take a pointer that it does not know for the host's."""
    torch("""
x = torch.arange(1000.0, device="cuda")
class Other:
    __cuda_array_interface__ = x[10:].__cuda_array_interface__
other = torch.as_tensor(Other(), device="cuda")
assert other.data_ptr() == x[10:].data_ptr() and other[0].item() == 10
found = PointerAttributes()
Device().PointerGetAttributes(ctypes.byref(found), ctypes.c_void_p(x[10:].data_ptr()))
assert (found.kind, found.device, found.ptr) == (2, 0, x[10:].data_ptr()), (found.kind, found.device, found.ptr)
base, size = ctypes.c_uint64(), ctypes.c_size_t()
driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(x[10:].data_ptr())) == 0
assert base.value <= x.data_ptr() and base.value + size.value >= x.data_ptr() + 4000
""")


@case
def cupy_and_torch_share_arrays():
    if not importlib.util.find_spec("cupy"):
        raise Skip("no CuPy")
    torch("""
import cupy
a = cupy.arange(1000, dtype=cupy.float32)
t = torch.as_tensor(a, device="cuda")
assert t.data_ptr() == a.data.ptr and torch.from_dlpack(a).sum().item() == 499500
b = cupy.asarray(torch.ones(7, device="cuda"))
assert float(b.sum()) == 7 and float(cupy.from_dlpack(t).sum()) == 499500
memory = cupy.cuda.UnownedMemory(t.data_ptr(), 4000, t)
assert memory.device_id == 0
""")


@case
def torchrun_with_a_rank_killed():
    if not importlib.util.find_spec("torch"):
        raise Skip("no PyTorch with a device")
    with open("rank.py", "w") as file:
        file.write(f"""
import os, signal, sys, time, torch
rank, attempt = (os.environ[name] for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
torch.cuda.set_device(int(rank) % torch.cuda.device_count())
{TRAIN}
if attempt == "0":
    os.kill(os.getpid(), signal.SIGKILL) if rank == "1" else time.sleep(60)
print("rank", rank, "after", attempt, flush=True)
""")
    torch("")
    output, _ = program([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval",
                         "0.2", "--standalone", "rank.py"])
    assert sorted(re.findall(r"rank (\d) after (\d)", output)) == [("0", "1"), ("1", "1")], output


# ---- Running them


def run_one(name):
    with tempfile.TemporaryDirectory(prefix="residents.") as folder:
        os.chdir(folder)
        try:
            CASES[name]()
        except Skip as why:
            print(why)
            return outcomes.SKIPPED
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
            traceback.print_exc()
            return 1
        finally:
            os.chdir("/")
    return 0


def run(words, seconds):
    names = [name for name in CASES if not words[2:] or any(word in name for word in words[2:])]
    return outcomes.run_programs(words[1], {name: [sys.executable, "-B", __file__, "--case", name] for name in names}, seconds)


if __name__ == "__main__":
    sys.exit(run_one(sys.argv[2]) if sys.argv[1:2] == ["--case"] else outcomes.main(run, __doc__))
