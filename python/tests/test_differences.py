# SPDX-License-Identifier: MIT
"""The table of doc/rmm.md that says what differs in hipmm.rmm: each row has a test here, and each test a row."""

import inspect
import pathlib
import re

import pytest

import hipmm
import hipmm.rmm as rmm
from hipmm.rmm import mr

PAGE = pathlib.Path(__file__).resolve().parents[2] / "doc/rmm.md"
pytestmark = pytest.mark.graph(None)
TESTS = {}


def row(name):
    def keep(function):
        TESTS[name] = function
        return function

    return keep


@pytest.fixture(autouse=True)
def fresh(graph):
    yield
    from hipmm.rmm.pylibrmm.memory_resource import _devices

    _devices._per_device_mrs.clear()
    if hipmm.is_initialized():
        hipmm.reset_resource()


def test_the_table_has_the_rows_that_are_tested():
    part = PAGE.read_text().split("| RMM in Python |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)`", part, re.M) == list(TESTS)


@row("get_current_device_resource()")
def of_the_graph():
    hipmm.init({"runtime": "software", "stack": ["tracking", "device"]})
    assert mr.get_current_device_resource()._resource.type == "tracking"


@row("set_per_device_resource()")
def of_another_device():
    class Elsewhere:
        type, device = "device", 1

    with pytest.raises(RuntimeError, match="not of device 0"):
        mr.set_per_device_resource(0, mr.DeviceMemoryResource._wrap(Elsewhere()))


@row("deallocate()")
def wrong_frees():
    for resource in (mr.CudaMemoryResource(), mr.PoolMemoryResource(mr.CudaMemoryResource(), 1 << 20)):
        ptr = resource.allocate(1000)
        for wrong in ((ptr + 256, 1000), (ptr, 100000)):
            with pytest.raises(RuntimeError):
                resource.deallocate(*wrong)
        resource.deallocate(ptr, 1000)
        with pytest.raises(RuntimeError):
            resource.deallocate(ptr, 1000)


@row("PoolMemoryResource")
def the_whole_pool_at_once():
    pool = mr.PoolMemoryResource(mr.CudaMemoryResource(), "2MiB", "8MiB")
    ptr = pool.allocate(8 << 20)
    pool.deallocate(ptr, 8 << 20)


@row("ArenaMemoryResource")
def the_whole_arena_at_once():
    arena = mr.ArenaMemoryResource(mr.CudaMemoryResource(), "4MiB")
    arena.deallocate(arena.allocate(4 << 20), 4 << 20)
    with pytest.raises(MemoryError):
        arena.allocate((4 << 20) + 1)


@row("BinningMemoryResource")
def bins():
    base = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    resource = mr.BinningMemoryResource(base, 18, 22)
    assert base.allocation_counts.total_bytes == 0
    above = mr.LimitingResourceAdaptor(resource, 1 << 30)
    mine = mr.TrackingResourceAdaptor(mr.CudaMemoryResource())
    resource.add_bin(1 << 24, mine)
    above.deallocate(above.allocate(1 << 23), 1 << 23)
    assert mine._resource.query("total_count") == 0
    resource.deallocate(resource.allocate(1 << 23), 1 << 23)
    assert mine._resource.query("total_count") == 1


@row("CallbackMemoryResource")
def without_a_stream():
    base = mr.CudaMemoryResource()
    resource = mr.CallbackMemoryResource(lambda size: base.allocate(size), lambda ptr, size: base.deallocate(ptr, size))
    resource.deallocate(resource.allocate(10), 10)


@row("CudaAsyncMemoryResource")
def fabric():
    with pytest.raises(RuntimeError, match="handle type not supported$"):
        mr.CudaAsyncMemoryResource(enable_fabric=True)


@row("CudaAsyncManagedMemoryResource")
def its_own_pool():
    first, second = mr.experimental.CudaAsyncManagedMemoryResource(), mr.experimental.CudaAsyncManagedMemoryResource()
    assert first.pool_handle() != second.pool_handle() != 0


@row("CudaAsyncViewMemoryResource")
def a_pool_of_hip():
    class ihipMemPoolHandle_t(int):
        pass

    source = mr.experimental.CudaAsyncManagedMemoryResource()
    view = mr.CudaAsyncViewMemoryResource(ihipMemPoolHandle_t(source.pool_handle()))
    assert view.pool_handle() == source.pool_handle()
    view.deallocate(view.allocate(10), 10)


@row("StatisticsResourceAdaptor")
def an_object():
    counts = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource()).allocation_counts
    assert isinstance(counts, rmm.statistics.Statistics) and counts.total_count == counts["total_count"] == 0
    with pytest.raises(KeyError):
        counts["no_count"]


@row("TrackingResourceAdaptor")
def an_unknown_block():
    base = mr.CudaMemoryResource()
    ptr = base.allocate(10)
    with pytest.raises(RuntimeError):
        mr.TrackingResourceAdaptor(base).deallocate(ptr, 10)
    base.deallocate(ptr, 10)


@row("LoggingResourceAdaptor")
def failures(tmp_path):
    resource = mr.LoggingResourceAdaptor(
        mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 100), str(tmp_path / "log")
    )
    with pytest.raises(MemoryError):
        resource.allocate(1000)
    resource.flush()
    assert "allocate failure" in pathlib.Path(resource.get_file_name()).read_text()


@row("DeviceBuffer")
def a_buffer_of_hipmm():
    stream = rmm.pylibrmm.stream.Stream()
    buffer = rmm.DeviceBuffer(size=1 << 20, stream=stream)
    target = bytearray(1 << 20)
    buffer.copy_from_host(b"\5" * (1 << 20), stream)
    buffer.copy_to_host(target, stream)
    assert target == b"\5" * (1 << 20)
    assert isinstance(buffer, hipmm.Buffer) and memoryview(buffer).nbytes == 1 << 20


@row("set_logging_level()")
def log_levels(tmp_path, monkeypatch):
    from hipmm.rmm.pylibrmm import logger

    monkeypatch.setenv("RMM_DEBUG_LOG_FILE", str(tmp_path / "log"))
    rmm.set_logging_level("debug")
    assert rmm.get_logging_level() is rmm.logging_level.DEBUG is rmm.level_enum.debug and rmm.logging_level.ERR == 4
    for wrong in ("DEBUG", "INFO", "verbose", ""):
        with pytest.raises(TypeError):
            rmm.set_logging_level(wrong)
    mr.PoolMemoryResource(mr.CudaMemoryResource(), 0).allocate(1)
    rmm.flush_logger()
    text = (tmp_path / "log").read_text()
    rmm.set_logging_level(rmm.level_enum.off)
    monkeypatch.setattr(logger, "_file", None)
    rmm.set_logging_level(rmm.level_enum.info)
    assert "[debug]" in text or "[info]" in text


@row("RMMNumbaManager")
def the_mixin():
    source = (pathlib.Path(rmm.__file__).parent / "allocators/numba.py").read_text()
    assert "GetIpcHandleMixin" in source and "def get_ipc_handle" not in source


@row("rmm_torch_allocator")
def hipmms_allocator():
    source = (pathlib.Path(rmm.__file__).parent / "allocators/torch.py").read_text()
    assert "from hipmm.torch import allocator" in source


@row("getDeviceAttribute()")
def attributes():
    assert rmm._cuda.gpu.getDeviceAttribute(83, 0) == 1  # managed memory
    assert rmm._cuda.gpu.getDeviceAttribute(12345, 0) == 0


@row("getDeviceProperties()")
def properties():
    found = rmm._cuda.gpu.getDeviceProperties(0)
    assert len(vars(found)) == 10 and found.totalGlobalMem > 0


@row("CUDARuntimeError")
def status():
    with pytest.raises(rmm._cuda.gpu.CUDARuntimeError) as caught:
        from hipmm.rmm import _runtime

        _runtime.call("hipSetDevice", 99)
    assert type(caught.value.status) is int and "hipErrorInvalidDevice" in str(caught.value)


@row("librmm.load_library()")
def load_library():
    from hipmm.rmm import _librmm

    assert _librmm.load_library() is None


@pytest.mark.parametrize("name", list(TESTS))
def test_the_row(name, request):
    TESTS[name](*(request.getfixturevalue(fixture) for fixture in inspect.signature(TESTS[name]).parameters))
