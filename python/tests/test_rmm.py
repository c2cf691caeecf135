# SPDX-License-Identifier: MIT
"""hipmm.rmm: the names, defaults and errors of RMM's Python API. RMM's own tests are run by rmm.sh."""

import functools
import gc
import importlib
import inspect
import os
import pickle
import re
import threading

import numpy
import pytest

import hipmm
import hipmm.rmm as rmm
from hipmm.rmm import mr
from hipmm.rmm._cuda import gpu
from hipmm.rmm.pylibrmm.cuda_stream_pool import CudaStreamPool
from hipmm.rmm.pylibrmm.device_buffer import copy_device_to_ptr, copy_host_to_ptr, copy_ptr_to_host
from hipmm.rmm.pylibrmm.stream import DEFAULT_STREAM, CudaStreamFlags, Stream

pytestmark = pytest.mark.graph(None)


@pytest.fixture(autouse=True)
def fresh(graph):
    yield
    from hipmm.rmm.pylibrmm.memory_resource import _devices

    _devices._per_device_mrs.clear()
    if hipmm.is_initialized():
        hipmm.reset_resource()


# ---- Names

MODULES = {
    "": "DeviceBuffer RMMError enable_logging disable_logging flush_logger get_flush_level get_log_filenames "
    "get_logging_level is_initialized level_enum mr register_reinitialize_hook reinitialize set_flush_level "
    "set_logging_level should_log unregister_reinitialize_hook __version__ __git_commit__ logging_level statistics "
    "auto_device device_array device_array_like get_ipc_handle to_device",
    "mr": "ArenaMemoryResource BinningMemoryResource CallbackMemoryResource CudaAsyncMemoryResource "
    "CudaAsyncViewMemoryResource CudaMemoryResource DeviceMemoryResource FailureCallbackResourceAdaptor "
    "FixedSizeMemoryResource LimitingResourceAdaptor LoggingResourceAdaptor ManagedMemoryResource "
    "PinnedHostMemoryResource PoolMemoryResource PrefetchResourceAdaptor SamHeadroomMemoryResource "
    "StatisticsResourceAdaptor SystemMemoryResource TrackingResourceAdaptor UpstreamResourceAdaptor "
    "available_device_memory disable_logging enable_logging experimental get_current_device_resource get_log_filenames "
    "get_per_device_resource is_initialized set_current_device_resource set_per_device_resource "
    "get_current_device_resource_type get_per_device_resource_type _flush_logs _initialize",
    "mr.experimental": "CudaAsyncManagedMemoryResource",
    "statistics": "Statistics enable_statistics get_statistics push_statistics pop_statistics statistics "
    "ProfilerRecords ProfilerContext profiler default_profiler_records _get_descriptive_name_of_object",
    "pylibrmm": "CudaStreamPool CudaStreamFlags DeviceBuffer memory_resource",
    "pylibrmm.stream": "Stream CudaStreamFlags DEFAULT_STREAM LEGACY_DEFAULT_STREAM PER_THREAD_DEFAULT_STREAM",
    "pylibrmm.cuda_stream_pool": "CudaStreamPool",
    "pylibrmm.cuda_stream": "CudaStream CudaStreamFlags",
    "pylibrmm.device_buffer": "DeviceBuffer to_device copy_ptr_to_host copy_host_to_ptr copy_device_to_ptr",
    "pylibrmm.helper": "parse_bytes",
    "pylibrmm.utils": "as_stream",
    "pylibrmm.logger": "level_enum should_log set_logging_level get_logging_level flush_logger set_flush_level "
    "get_flush_level",
    "pylibrmm.memory_resource": "PoolMemoryResource experimental",
    "pylibrmm.memory_resource._memory_resource": "_flush_logs _initialize _append_id PoolMemoryResource",
    "pylibrmm.memory_resource.experimental": "CudaAsyncManagedMemoryResource",
    "_cuda.gpu": "CUDARuntimeError CUDADriverError driverGetVersion getDevice setDevice runtimeGetVersion "
    "getDeviceCount getDeviceAttribute getDeviceProperties deviceGetName",
    "_cuda.stream": "Stream DEFAULT_STREAM",
    "_lib.device_buffer": "DeviceBuffer to_device",
    "_lib.memory_resource": "PoolMemoryResource _initialize get_current_device_resource_type",
    "_lib.cuda_stream": "CudaStream",
    "_lib.logger": "logging_level set_logging_level",
    "librmm._logger": "level_enum",
    "allocators.cupy": "rmm_cupy_allocator",
    "allocators.torch": "rmm_torch_allocator",
    "rmm": "RMMError reinitialize is_initialized",
    "_version": "__version__ __git_commit__",
}


@pytest.mark.filterwarnings("ignore:rmm.pylibrmm.cuda_stream:DeprecationWarning")
@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_its_names(module):
    found = importlib.import_module(f"hipmm.rmm.{module}".rstrip("."))
    missing = [name for name in MODULES[module].split() if not hasattr(found, name)]
    assert not missing


DEFAULTS = {
    mr.PoolMemoryResource: "upstream_mr initial_pool_size=None maximum_pool_size=None",
    mr.ArenaMemoryResource: "upstream_mr arena_size=None dump_log_on_failure=False",
    mr.FixedSizeMemoryResource: "upstream_mr block_size=1048576 blocks_to_preallocate=128",
    mr.BinningMemoryResource: "upstream_mr min_size_exponent=-1 max_size_exponent=-1",
    mr.CudaAsyncMemoryResource: "initial_pool_size=None release_threshold=None enable_ipc=False enable_fabric=False",
    mr.CudaAsyncViewMemoryResource: "pool_handle",
    mr.SamHeadroomMemoryResource: "headroom",
    mr.CallbackMemoryResource: "allocate_func deallocate_func",
    mr.LimitingResourceAdaptor: "upstream_mr allocation_limit",
    mr.LoggingResourceAdaptor: "upstream_mr log_file_name=None",
    mr.StatisticsResourceAdaptor: "upstream_mr",
    mr.TrackingResourceAdaptor: "upstream_mr capture_stacks=False",
    mr.FailureCallbackResourceAdaptor: "upstream_mr callback",
    mr.PrefetchResourceAdaptor: "upstream_mr",
    mr.CudaMemoryResource: "",
    mr.ManagedMemoryResource: "",
    mr.PinnedHostMemoryResource: "",
    mr.SystemMemoryResource: "",
}


@pytest.mark.parametrize("kind", DEFAULTS, ids=lambda kind: kind.__name__)
def test_the_defaults_of_constructors(kind):
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parameters]
    assert " ".join(shown) == DEFAULTS[kind]


# Functions and methods with arguments; `stream` is the default stream where it has a default.
SIGNATURES = {
    "rmm": "reinitialize(pool_allocator=False, managed_memory=False, initial_pool_size=None, maximum_pool_size=None, "
    "devices=0, logging=False, log_file_name=None) register_reinitialize_hook(func, *args, **kwargs) "
    "unregister_reinitialize_hook(func) is_initialized() RMMError(errcode, msg)",
    "_cuda.gpu": "getDevice() setDevice(device) getDeviceCount() getDeviceAttribute(attr, device) getDeviceProperties(device) "
    "deviceGetName(device) driverGetVersion() runtimeGetVersion() CUDARuntimeError(status) CUDADriverError(status)",
    "allocators.cupy": "rmm_cupy_allocator(nbytes)",
    "pylibrmm.cuda_stream_pool": "CudaStreamPool.get_stream(stream_id=None) CudaStreamPool.get_pool_size()",
    "pylibrmm.device_buffer": "DeviceBuffer(*, ptr=0, size=0, stream, mr=None) DeviceBuffer.copy() DeviceBuffer.capacity() "
    "DeviceBuffer.copy_to_host(ary=None, stream) DeviceBuffer.copy_from_host(ary, stream) "
    "DeviceBuffer.copy_from_device(cuda_ary, stream) DeviceBuffer.prefetch(device=None, stream=None) "
    "DeviceBuffer.reserve(new_capacity, stream) DeviceBuffer.resize(new_size, stream) DeviceBuffer.tobytes(stream) "
    "DeviceBuffer.to_device(b, stream) to_device(b, stream) copy_ptr_to_host(db, hb, stream) "
    "copy_host_to_ptr(hb, db, stream) copy_device_to_ptr(d_src, d_dst, count, stream)",
    "pylibrmm.helper": "parse_bytes(s)",
    "pylibrmm.logger": "should_log(level) set_logging_level(level) get_logging_level() set_flush_level(level) get_flush_level() "
    "flush_logger()",
    "pylibrmm.stream": "Stream(obj=None, flags=None) Stream.synchronize() Stream.is_default()",
    "pylibrmm.utils": "as_stream(stream)",
    "mr": "DeviceMemoryResource.allocate(nbytes, stream) DeviceMemoryResource.deallocate(ptr, nbytes, stream) "
    "UpstreamResourceAdaptor.get_upstream() BinningMemoryResource.add_bin(allocation_size, bin_resource=None) "
    "PoolMemoryResource.pool_size() CudaAsyncViewMemoryResource.pool_handle() LimitingResourceAdaptor.get_allocated_bytes() "
    "LimitingResourceAdaptor.get_allocation_limit() LoggingResourceAdaptor.flush() LoggingResourceAdaptor.get_file_name() "
    "StatisticsResourceAdaptor.push_counters() StatisticsResourceAdaptor.pop_counters() "
    "TrackingResourceAdaptor.get_allocated_bytes() TrackingResourceAdaptor.get_outstanding_allocations_str() "
    "TrackingResourceAdaptor.log_outstanding_allocations() available_device_memory() enable_logging(log_file_name=None) "
    "disable_logging() get_log_filenames() is_initialized() get_current_device_resource() get_per_device_resource(device) "
    "set_current_device_resource(mr) set_per_device_resource(device, mr)",
    "statistics": "enable_statistics() get_statistics() push_statistics() pop_statistics() statistics() "
    "ProfilerContext(records, name) ProfilerRecords.add(name, data) ProfilerRecords.report(ordered_by='memory_peak')",
}


def shown_signature(found):
    parameters = inspect.signature(found).parameters.values()
    words, starred = [], False
    for p in parameters:
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            words.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        is_stream = p.name == "stream" and isinstance(p.default, rmm.pylibrmm.stream.Stream)
        plain = str(p.replace(annotation=p.empty, default=p.empty))
        words.append(plain if is_stream or p.default is p.empty else f"{plain}={p.default!r}")
    return ", ".join(words)


@pytest.mark.parametrize("module", SIGNATURES)
def test_functions_take_what_rmm_takes(module):
    root = importlib.import_module(f"hipmm.rmm.{module}")
    for name, wanted in re.findall(r"([\w.]+)\(([^)]*)\)", SIGNATURES[module]):
        found = functools.reduce(getattr, name.split("."), root)
        assert (name, shown_signature(found)) == (name, wanted)
        assert inspect.getdoc(found), name


# ---- Resources


def adaptors(base):
    yield mr.PoolMemoryResource(base, 1 << 20, "8MiB")
    yield mr.ArenaMemoryResource(base, "2MiB")
    yield mr.FixedSizeMemoryResource(base, 1 << 16, 2)
    yield mr.BinningMemoryResource(base, 10, 12)
    yield mr.LimitingResourceAdaptor(base, 1 << 30)
    yield mr.StatisticsResourceAdaptor(base)
    yield mr.TrackingResourceAdaptor(base, capture_stacks=True)
    yield mr.FailureCallbackResourceAdaptor(base, lambda nbytes: False)
    yield mr.PrefetchResourceAdaptor(base)


def test_every_resource_allocates():
    sources = [
        mr.CudaMemoryResource(),
        mr.ManagedMemoryResource(),
        mr.PinnedHostMemoryResource(),
        mr.CudaAsyncMemoryResource("1MiB"),
    ]
    for source in sources + [mr.experimental.CudaAsyncManagedMemoryResource()]:
        for resource in [source, *adaptors(source)]:
            ptr = resource.allocate(3000)
            assert ptr % 256 == 0 and ptr
            resource.deallocate(ptr, 3000)
            assert resource.allocate(0) == 0
            buffer = rmm.DeviceBuffer.to_device(b"abc" * 1000)
            assert rmm.DeviceBuffer(ptr=buffer.ptr, size=3000, mr=resource).tobytes() == b"abc" * 1000
            if resource is not source:
                assert resource.get_upstream() is resource.upstream_mr is source


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: mr.PoolMemoryResource(None), Exception),
        (lambda: mr.PoolMemoryResource("device"), TypeError),
        (lambda: mr.PoolMemoryResource(mr.CudaMemoryResource(), 100), RuntimeError),
        (lambda: mr.PoolMemoryResource(mr.CudaMemoryResource(), 512, 256), RuntimeError),
        (lambda: mr.PoolMemoryResource(mr.CudaMemoryResource(), "1.2 foo"), ValueError),
        (lambda: mr.PoolMemoryResource(mr.CudaMemoryResource(), 1 << 50), MemoryError),
        (lambda: mr.ArenaMemoryResource(mr.CudaMemoryResource(), 1000), RuntimeError),
        (lambda: mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), -1), OverflowError),
        (lambda: mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), "1"), TypeError),
        (lambda: mr.LoggingResourceAdaptor(mr.CudaMemoryResource()), ValueError),
        (lambda: mr.CudaAsyncMemoryResource(enable_fabric=True), RuntimeError),
        (lambda: mr.CudaAsyncViewMemoryResource(5), ValueError),
        (lambda: mr.SamHeadroomMemoryResource(-5), OverflowError),
        (lambda: mr.set_current_device_resource(None), TypeError),
        (lambda: mr.get_per_device_resource("0"), TypeError),
        (lambda: mr.get_per_device_resource(0.0), TypeError),
        (lambda: rmm.DeviceBuffer(5), TypeError),
        (lambda: rmm.DeviceBuffer(size=-1), OverflowError),
        (lambda: rmm.DeviceBuffer(size=1 << 64), OverflowError),
        (lambda: rmm.DeviceBuffer(ptr=1 << 64, size=1), OverflowError),
        (lambda: rmm.DeviceBuffer(size=1.0), TypeError),
        (lambda: rmm.DeviceBuffer(size=1).copy(DEFAULT_STREAM), TypeError),
        (lambda: rmm.DeviceBuffer(size=1).resize(1 << 64), OverflowError),
        (lambda: copy_ptr_to_host(-1, bytearray(1)), OverflowError),
        (lambda: mr.StatisticsResourceAdaptor(), TypeError),
        (lambda: rmm.DeviceBuffer(size=1, mr="mr"), TypeError),
        (lambda: rmm.DeviceBuffer(size=1 << 50), MemoryError),
        (lambda: rmm.DeviceBuffer(size=1, stream=0), TypeError),
        (lambda: Stream("stream"), TypeError),
        (lambda: Stream(5), TypeError),
        (lambda: rmm._cuda.gpu.setDevice(77), rmm._cuda.gpu.CUDARuntimeError),
        (lambda: rmm._cuda.gpu.getDeviceProperties(77), rmm._cuda.gpu.CUDARuntimeError),
        (lambda: rmm.reinitialize(devices=77), rmm._cuda.gpu.CUDARuntimeError),
        (lambda: CudaStreamPool("2"), TypeError),
        (lambda: CudaStreamPool(2).get_stream(-1), OverflowError),
        (lambda: CudaStreamPool(2).get_stream("1"), TypeError),
        (lambda: rmm.DeviceBuffer(size=1).copy_from_device(Interface("word", 1, 0)), TypeError),
        (lambda: mr.BinningMemoryResource(mr.CudaMemoryResource(), "a"), TypeError),
    ],
)
def test_wrong_input_raises_what_rmm_raises(make, error, monkeypatch):
    monkeypatch.delenv("RMM_LOG_FILE", raising=False)
    with pytest.raises(error):
        make()


class Interface:
    def __init__(self, typestr, length, address, **more):
        self.__cuda_array_interface__ = {"typestr": typestr, "shape": (length,), "data": (address, False), "version": 3, **more}


@pytest.mark.parametrize("typestr", ["<M8[ns]", "<U2", "<f8", "|V8"])
def test_elements_of_every_type_are_copied_whole(typestr):
    source, buffer = rmm.DeviceBuffer.to_device(b"12345678"), rmm.DeviceBuffer.to_device(bytes(8))
    buffer.copy_from_device(Interface(typestr, 1, source.ptr, stream=2))
    assert buffer.tobytes() == b"12345678"


def test_an_interface_that_no_array_has_is_not_copied():
    source, buffer = rmm.DeviceBuffer.to_device(b"12345678"), rmm.DeviceBuffer.to_device(bytes(8))
    shapes = dict(shape=(-1,)), dict(shape=(2, 4)), dict(strides=(2,)), dict(strides=(1, 1))
    for wrong in (*shapes, dict(stream=0), dict(mask=buffer)):
        with pytest.raises(ValueError):
            buffer.copy_from_device(Interface("|u1", 8, source.ptr, **wrong))
    for wrong in (dict(data=None), dict(shape=8), dict(data=("address", False))):
        with pytest.raises(TypeError, match="of Interface is none"):
            buffer.copy_from_device(Interface("|u1", 8, source.ptr, **wrong))
    assert buffer.tobytes() == bytes(8)


def test_limits_that_mean_no_limit():
    most = (1 << 64) - 1
    limiting = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), most)
    assert limiting.get_allocation_limit() == most
    for resource in (
        limiting,
        mr.PoolMemoryResource(mr.CudaMemoryResource(), 0, most - 255),
        mr.CudaAsyncMemoryResource(release_threshold=most),
    ):
        resource.deallocate(resource.allocate(1000), 1000)


def test_a_class_without_memory_says_what_to_do():
    class Mine(mr.DeviceMemoryResource):
        def __init__(self):
            pass

    for call in (
        lambda: rmm.DeviceBuffer(size=1, mr=Mine()),
        lambda: Mine().allocate(1),
        lambda: mr.PoolMemoryResource(Mine(), 0),
        lambda: mr.set_current_device_resource(Mine()),
    ):
        with pytest.raises(TypeError, match="Mine has no memory: .*CallbackMemoryResource takes functions of a program"):
            call()
    assert "Mine" in repr(Mine()) and not hasattr(Mine(), "other")


def test_the_pool_of_the_defaults_has_half_of_the_memory():
    free = mr.available_device_memory()[0]
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource())
    assert free * 0.4 < pool.pool_size() <= free / 2


def test_a_bin_that_cannot_be_added_changes_nothing():
    bins = mr.BinningMemoryResource(mr.CudaMemoryResource(), 2, 9)  # the first seven are one bin of 256 bytes
    with pytest.raises(TypeError, match="'bin_resource' has incorrect type"):
        bins.add_bin(1 << 20, "device")
    with pytest.raises(RuntimeError):
        bins.add_bin(0)
    assert bins.bin_mrs == []
    bins.add_bin(1 << 20)
    bins.deallocate(bins.allocate(1 << 20), 1 << 20)


def test_bins():
    base = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    bins = mr.BinningMemoryResource(base)
    bins.add_bin(1 << 12)
    first = bins.allocate(3000)
    mine = mr.TrackingResourceAdaptor(mr.CudaMemoryResource())
    mr.set_current_device_resource(bins)
    bins.add_bin(1 << 20, mine)
    bins.add_bin(1 << 20, mr.CudaMemoryResource())  # a bin of the size is there already
    buffer = rmm.DeviceBuffer(size=1 << 19)
    assert mine.get_allocated_bytes() == 1 << 19 and len(bins.bin_mrs) == 2
    bins.deallocate(first, 3000)
    del buffer
    assert mine.get_allocated_bytes() == 0


def test_a_callback_of_either_signature():
    base, seen = mr.CudaMemoryResource(), []

    def allocate(size, stream):
        seen.append(stream)
        return base.allocate(size, stream)

    new = mr.CallbackMemoryResource(allocate, lambda ptr, size, stream: base.deallocate(ptr, size, stream))
    old = mr.CallbackMemoryResource(lambda size: base.allocate(size), lambda ptr, size: base.deallocate(ptr, size))
    stream = Stream()
    for resource in (new, old):
        ptr = resource.allocate(100, stream)
        resource.deallocate(ptr, 100, stream)
    assert seen == [stream]


def test_functions_of_dropped_resources_are_dropped():
    import weakref

    class Function:
        def __call__(self, nbytes):
            return False

    function = Function()
    reference = weakref.ref(function)
    adaptor = mr.FailureCallbackResourceAdaptor(mr.CudaMemoryResource(), function)
    del function, adaptor
    gc.collect()
    mr.FailureCallbackResourceAdaptor(mr.CudaMemoryResource(), len)
    gc.collect()
    assert reference() is None


# ---- Resources in force


def test_the_first_resource_is_plain_device_memory_or_the_graphs():
    assert type(mr.get_current_device_resource()) is mr.CudaMemoryResource
    assert mr.get_current_device_resource() is mr.get_per_device_resource(0)
    mr.get_current_device_resource()
    hipmm.finalize()
    from hipmm.rmm.pylibrmm.memory_resource import _devices

    _devices._per_device_mrs.clear()
    hipmm.init({"runtime": "software", "stack": ["statistics", "device"]})
    assert "statistics" in repr(mr.get_current_device_resource())
    buffer = rmm.DeviceBuffer(size=100)
    assert hipmm.statistics().current_bytes == 100
    del buffer


def test_what_rmm_makes_current_serves_hipmm_too():
    statistics = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    mr.set_current_device_resource(statistics)
    buffer = hipmm.Buffer(100)
    assert statistics.allocation_counts.current_bytes == 100
    assert mr.get_current_device_resource_type() is mr.StatisticsResourceAdaptor
    del buffer


def test_reinitialize():
    rmm.reinitialize(pool_allocator=True, managed_memory=True, initial_pool_size="1MiB", maximum_pool_size=1 << 22)
    pool = mr.get_current_device_resource()
    assert type(pool) is mr.PoolMemoryResource and type(pool.get_upstream()) is mr.ManagedMemoryResource
    assert pool.pool_size() >= 1 << 20
    with pytest.raises(MemoryError):
        rmm.DeviceBuffer(size=1 << 23)
    rmm.reinitialize()
    assert type(mr.get_current_device_resource()) is mr.CudaMemoryResource and rmm.is_initialized()
    with pytest.raises(RuntimeError):
        rmm.reinitialize(devices=[0, 99])
    assert hipmm.current_device() == 0


def test_a_resource_that_was_replaced_is_gone():
    def pools():
        gc.collect()
        return sorted(stack["top"] for stack in hipmm.snapshot()["stacks"] if stack["top"].startswith("created/pool"))

    base, free = mr.CudaMemoryResource(), mr.available_device_memory()[0]
    before = pools()
    for _ in range(5):
        mr.set_current_device_resource(mr.PoolMemoryResource(base, "1GiB"))
    mr.set_current_device_resource(base)
    assert pools() == before
    assert free - mr.available_device_memory()[0] < 64 << 20


def test_a_resource_that_was_current_gives_its_memory_back():
    base = mr.CudaMemoryResource()
    before = hipmm.device_memory()[0]
    for make in (
        lambda: mr.PoolMemoryResource(base, "64MiB"),
        lambda: mr.ArenaMemoryResource(base, "64MiB"),
        lambda: mr.FixedSizeMemoryResource(base, 1 << 20, 64),
        lambda: mr.StatisticsResourceAdaptor(mr.PoolMemoryResource(base, "64MiB")),
    ):
        mr.set_current_device_resource(make())
        buffer = rmm.DeviceBuffer(size=1 << 20)
        assert before - hipmm.device_memory()[0] >= 64 << 20
        mr.set_current_device_resource(base)
        gc.collect()
        assert before - hipmm.device_memory()[0] >= 64 << 20  # the buffer keeps it
        del buffer
        gc.collect()
        assert before - hipmm.device_memory()[0] < 8 << 20


def test_statistics_of_a_block_leave_the_pool_its_memory():
    rmm.reinitialize(pool_allocator=True, initial_pool_size="64MiB")
    pool = mr.get_current_device_resource()
    with rmm.statistics.statistics():
        rmm.DeviceBuffer(size=100)
    gc.collect()
    assert pool.pool_size() >= 64 << 20


def test_logging(tmp_path, monkeypatch):
    monkeypatch.setenv("RMM_LOG_FILE", str(tmp_path / "of%20the environment.csv"))
    rmm.reinitialize(logging=True)
    rmm.DeviceBuffer(size=1000)
    mr._flush_logs()
    file = tmp_path / "of%20the environment.dev0.csv"
    assert rmm.get_log_filenames() == {0: str(file)}
    lines = file.read_text().splitlines()
    assert lines[0] == "Thread,Time,Action,Pointer,Size,Stream"
    assert [line.split(",")[2] for line in lines[1:]] == ["allocate", "free"]
    rmm.disable_logging()
    assert rmm.get_log_filenames() == {0: None}
    rmm.enable_logging(str(tmp_path / "second"))
    rmm.enable_logging()  # is on already
    assert os.path.exists(tmp_path / "second.dev0")


def rows(file):
    """(action, size) of each row of a log."""
    mr._flush_logs()
    return [(line.split(",")[2], int(line.split(",")[4])) for line in file.read_text().splitlines()[1:]]


@pytest.mark.parametrize("name", ["again.csv", "link.csv"])
def test_a_log_begins_anew_while_blocks_of_the_one_before_live(tmp_path, name):
    """A cell of a notebook that is run twice, and logging that is switched off and on."""
    file, again = tmp_path / "again.dev0.csv", tmp_path / name
    (tmp_path / "link.dev0.csv").symlink_to(file)
    for size in (1000, 2000, 3000):
        rmm.reinitialize(pool_allocator=True, initial_pool_size="1MiB", logging=True, log_file_name=str(again))
        kept = rmm.DeviceBuffer(size=size), rmm.DeviceBuffer(size=1)
        adaptor = mr.get_current_device_resource()
        assert isinstance(adaptor, mr.LoggingResourceAdaptor) and adaptor.get_upstream().pool_size() >= 1 << 20
        assert rows(file) == [("allocate", size), ("allocate", 1)]
    for size in (4, 5):
        rmm.disable_logging()
        rmm.enable_logging(str(again))
        work = rmm.DeviceBuffer(size=size)
        assert rows(file) == [("allocate", size)]
    del kept  # whose rows are in no file that has a name
    assert rows(file) == [("allocate", 5)] and (tmp_path / "link.dev0.csv").is_symlink()
    del work
    assert rows(file) == [("allocate", 5), ("free", 5)]


def test_a_log_of_somebody_else_stays(tmp_path):
    file = tmp_path / "theirs.dev0.csv"
    rmm.reinitialize()
    theirs = hipmm.create("logging", hipmm.create("device"), file=file)
    with pytest.raises(RuntimeError, match="is written already by another"):
        rmm.enable_logging(str(tmp_path / "theirs.csv"))
    theirs.deallocate(theirs.allocate(7), 7)
    theirs.perform("flush")
    assert rows(file) == [("allocate", 7), ("free", 7)]


def test_a_refused_reinitialize_changes_nothing(monkeypatch):
    monkeypatch.delenv("RMM_LOG_FILE", raising=False)
    rmm.reinitialize(pool_allocator=True, initial_pool_size="64MiB")
    pool = mr.get_current_device_resource()
    for wrong, error in (
        (dict(devices=[0, 7]), gpu.CUDARuntimeError),
        (dict(devices="0"), TypeError),
        (dict(logging=True), ValueError),
        (dict(pool_allocator=True, initial_pool_size=100), RuntimeError),
        (dict(pool_allocator=True, initial_pool_size="2MiB", maximum_pool_size="1MiB"), RuntimeError),
        (dict(pool_allocator=True, maximum_pool_size="much"), ValueError),
    ):
        with pytest.raises(error):
            rmm.reinitialize(**wrong)
        assert mr.get_current_device_resource() is pool and gpu.getDevice() == 0


# ---- DeviceBuffer


def test_device_buffer():
    values = numpy.arange(10, dtype="u1")
    buffer = rmm.DeviceBuffer.to_device(values)
    assert (buffer.size, buffer.capacity(), len(buffer)) == (10, 10, 10)
    assert buffer.mr is mr.get_current_device_resource() and buffer.stream == DEFAULT_STREAM
    assert isinstance(buffer, hipmm.Buffer)
    other = rmm.DeviceBuffer.copy_of(numpy.arange(3), DEFAULT_STREAM, mr.PinnedHostMemoryResource())
    assert type(other) is rmm.DeviceBuffer and other.tobytes() == numpy.arange(3).tobytes()
    assert type(other.mr) is mr.PinnedHostMemoryResource
    buffer.resize(4)
    buffer.reserve(100)
    assert buffer.tobytes() == bytes(values[:4]) and buffer.capacity() == 100
    assert pickle.loads(pickle.dumps(buffer)).tobytes() == buffer.tobytes()
    with pytest.raises(ValueError, match="too small"):
        buffer.copy_to_host(bytearray(3))
    with pytest.raises(ValueError, match="too large"):
        buffer.copy_from_host(b"12345")
    with pytest.raises(BufferError):
        buffer.copy_to_host(b"1234")
    with pytest.raises(ValueError):
        buffer.copy_from_device(values)
    with pytest.raises(ValueError):
        rmm.DeviceBuffer.to_device(numpy.arange(3))
    rmm.DeviceBuffer(size=100, mr=mr.ManagedMemoryResource()).prefetch(0)
    buffer.prefetch()


def test_raw_copies():
    source, target, stream = rmm.DeviceBuffer.to_device(b"abcdef"), rmm.DeviceBuffer(size=6), Stream()
    copy_device_to_ptr(source.ptr, target.ptr, 6, stream)
    stream.synchronize()
    copy_host_to_ptr(b"XY", target.ptr + 1)
    result = bytearray(6)
    copy_ptr_to_host(target.ptr, result)
    assert result == b"aXYdef"
    copy_ptr_to_host(target.ptr, bytearray())
    with pytest.raises(OverflowError):
        copy_device_to_ptr(-1, target.ptr, 1)
    with pytest.raises(RuntimeError):
        copy_device_to_ptr(16, target.ptr, 6)


def test_stream_pools():
    pool = rmm.pylibrmm.CudaStreamPool(3, CudaStreamFlags.NON_BLOCKING)
    streams = [pool.get_stream() for _ in range(6)]
    assert streams[:3] == streams[3:] and len(set(streams)) == 3 and pool.get_stream(4) == streams[1]
    assert not streams[0].is_default() and DEFAULT_STREAM.is_default()
    with pytest.raises(RuntimeError):
        rmm.pylibrmm.CudaStreamPool(0)


def test_threads():
    rmm.reinitialize(pool_allocator=True, initial_pool_size="1MiB")
    failed = []

    def work():
        try:
            for size in range(1, 300):
                assert rmm.DeviceBuffer.to_device(b"x" * size).tobytes() == b"x" * size
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.parametrize(
    "text, size",
    [
        ("100", 100),
        ("1.5 KiB", 1536),
        ("2GB", 2 * 10**9),
        ("3\tMiB", 3 << 20),
        ("1tb", 10**12),
        ("1.", 1),
        (7, 7),
        ("5B", 5),
    ],
)
def test_sizes(text, size):
    assert rmm.pylibrmm.helper.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["1k", "", "x", "-1", "1 foo", "1,5GB", "1GB ", " 1GB", "1e3", "1" * 400 + "GB"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="Could not parse"):
        rmm.pylibrmm.helper.parse_bytes(text)


def test_the_debug_log_needs_its_variable_alone(run, tmp_path):
    program = """
from hipmm.rmm import mr
from hipmm.rmm._cuda import gpu
tracking = mr.TrackingResourceAdaptor(mr.CudaMemoryResource())
ptr = tracking.allocate(10)
tracking.log_outstanding_allocations()
tracking.deallocate(ptr, 10)
"""
    log = tmp_path / "log"
    ended = run(program, env={"RMM_DEBUG_LOG_FILE": str(log)})
    assert "[warning] tracking: device 0: 1 allocation outstanding, 10 bytes" in log.read_text() and not ended.stderr
    ended = run(program, env={"RMM_DEBUG_LOG_FILE": str(tmp_path / "nowhere" / "log")})
    assert "RMM_DEBUG_LOG_FILE: [Errno 2]" in ended.stderr and "1 allocation outstanding" in ended.stderr


# ---- The arrays of RMM 0.12


def test_arrays_of_numba_are_in_memory_of_the_current_resource(run):
    """With stand-ins for Numba: rmm.sh has them too."""
    run(f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import standins, numpy, hipmm.rmm as rmm
from hipmm.rmm import mr

mr.set_current_device_resource(mr.StatisticsResourceAdaptor(mr.CudaMemoryResource()))
live = lambda: mr.get_current_device_resource().allocation_counts["current_bytes"]
sources = [numpy.arange(6).astype(kind) for kind in ("i1", "f4", "f8", "?", "M8[ms]")]
sources += [numpy.zeros(3, [("a", "i4"), ("b", "f8")]), numpy.arange(12.0).reshape(3, 4), numpy.asfortranarray(numpy.eye(3))]
for source in sources:
    array = rmm.to_device(source)
    back = rmm.device_array_like(array)
    assert live() == 2 * source.nbytes and (array.shape, array.dtype) == (source.shape, source.dtype)
    back.copy_to_device(array)
    numpy.testing.assert_array_equal(back.copy_to_host(), source)
    assert back.copy_to_host().strides == source.strides
    again = rmm.to_device(source[::-1].copy(), to=back)
    assert again is back
    numpy.testing.assert_array_equal(back.copy_to_host(), source[::-1])
    del array, back, again
    assert live() == 0

kept = rmm.device_array((2, 5), "i4", order="F")
assert kept.strides == (4, 8) and live() == 40
assert rmm.auto_device(kept) == (kept, False) and rmm.get_ipc_handle(kept) == ("handle", kept.address)
copied, is_new = rmm.auto_device(rmm.DeviceBuffer.to_device(b"abc"))
assert not is_new and bytes(copied.copy_to_host()) == b"abc"
new, is_new = rmm.auto_device([1, 2, 3], stream=rmm.pylibrmm.stream.Stream())
assert is_new and new.copy_to_host().tolist() == [1, 2, 3] and rmm.to_device(numpy.float64(7)).shape == (1,)
assert rmm.device_array(0).shape == (0,) and rmm.device_array(3, strides=(8,)).strides == (8,)
for wrong in (dict(shape=-1), dict(shape=(2, 3), strides=(8,)), dict(shape=2, strides=(-8,)), dict(shape=(2, 2), order="K")):
    try:
        rmm.device_array(**wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
del kept, copied, new
assert live() == 0
""")


# ---- The name rmm


def test_install(run, tmp_path):
    ended = run("""
import sys
import hipmm.rmm
hipmm.rmm.install()
hipmm.rmm.install()
import rmm, rmm.mr, librmm
from rmm.allocators.cupy import rmm_cupy_allocator
import rmm.pylibrmm.memory_resource._memory_resource as deep
librmm.load_library()
assert rmm is hipmm.rmm and sys.modules["rmm.mr"] is sys.modules["hipmm.rmm.mr"]
assert deep.PoolMemoryResource is rmm.mr.PoolMemoryResource
assert rmm.__spec__.name == rmm.__name__ == "hipmm.rmm"
try:
    import rmm.no_such
except ModuleNotFoundError as error:
    print(error)
""")
    assert "rmm.no_such" in ended.stdout


def test_install_refuses_the_real_one(run, tmp_path):
    (tmp_path / "rmm.py").write_text("")
    ended = run(f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import rmm
import hipmm.rmm
try:
    hipmm.rmm.install()
except ImportError as error:
    print(error)
""")
    assert "the real rmm was imported already" in ended.stdout


def test_running_a_program(run, tmp_path):
    (tmp_path / "other.py").write_text("value = 5\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, other, rmm\nprint(__name__, sys.argv[1:], other.value, rmm.DeviceBuffer(size=3).size)\n"
    )
    run_main = "import runpy, sys; sys.argv = ['x'] + sys.argv[1:]; runpy.run_module('hipmm.rmm', run_name='__main__', alter_sys=True)"
    assert run(run_main, str(program), "a", "b").stdout == "__main__ ['a', 'b'] 5 3\n"
    assert run(run_main, "-c", "import rmm; print(rmm.__name__)").stdout == "hipmm.rmm\n"
    assert "usage" in run(run_main, code=2).stderr
    assert "no such file" in run(run_main, "nowhere.py", code=2).stderr
    assert "usage" in run(run_main, "--help").stdout
