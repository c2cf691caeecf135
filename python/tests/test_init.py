# SPDX-License-Identifier: MIT
"""init(), graphs, resources, paths, settings, and what wrong input raises."""

import json

import pytest

import hipmm


@pytest.mark.graph(None)
def test_a_graph_is_a_dict_a_path_or_found(tmp_path, monkeypatch):
    graph = {"runtime": "software", "stack": ["pool", "device"]}
    hipmm.init(graph)
    assert (hipmm.runtime(), hipmm.resource().type) == ("software", "pool")
    hipmm.finalize()
    assert not hipmm.is_initialized()

    file = tmp_path / "hipmm.json"
    file.write_text(json.dumps({**graph, "stack": ["arena", "device"]}))
    hipmm.init(file)
    assert hipmm.resource().type == "arena"
    hipmm.finalize()
    hipmm.init(str(file))
    hipmm.finalize()
    monkeypatch.chdir(tmp_path)
    hipmm.init()
    assert hipmm.resource().type == "arena"


@pytest.mark.graph(None)
def test_a_stack_is_a_line_of_types_with_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPMM_RUNTIME", "software")
    hipmm.init("pool, device", limit="8MiB")
    assert (hipmm.resource().type, hipmm.resource("device").type) == ("pool", "device")
    buffer = hipmm.Buffer.copy_of(b"abc" * (1 << 20))
    with pytest.raises(hipmm.MemoryError, match="limit_physical"):
        hipmm.Buffer(8 << 20)
    assert buffer.read() == b"abc" * (1 << 20)
    del buffer
    hipmm.finalize()
    hipmm.init({"stack": ["device"]}, limit="45% of total")
    total = hipmm.device_memory()[1]
    with pytest.raises(hipmm.MemoryError, match="limit_physical"):
        hipmm.Buffer(total * 46 // 100)
    hipmm.Buffer(total * 44 // 100)
    hipmm.finalize()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "6")  # of the software device's two devices, each has three ranks
    monkeypatch.setenv("HIPMM_SOFTWARE", "devices=2,memory=300MiB")
    hipmm.init("pool,device", limit="share")
    assert hipmm.device_count() == 2
    with pytest.raises(hipmm.MemoryError, match="limit_physical"):
        hipmm.Buffer(101 << 20)
    hipmm.Buffer(96 << 20)
    hipmm.finalize()
    with pytest.raises(hipmm.ConfigError, match=r'/stack/0: unknown type "pol"; did you mean "pool"\?'):
        hipmm.init("pol,device")
    with pytest.raises(hipmm.ConfigError, match='/limit_physical: "8GIGS" is not a size'):
        hipmm.init("pool,device", limit="8GIGS")
    (tmp_path / "pool,device").write_text('{"stack": ["arena", "device"]}')
    monkeypatch.chdir(tmp_path)
    hipmm.init("pool,device")  # a file of this name goes first
    assert hipmm.resource().type == "arena"
    hipmm.finalize()
    for graph in (None, "hipmm.json"):
        with pytest.raises(ValueError, match=r'limit= is for a dict or a stack such as "pool,device"'):
            hipmm.init(graph, limit="8MiB")
    with pytest.raises(ValueError, match='has a "limit_physical" already'):
        hipmm.init({"limit_physical": "1GiB"}, limit="8MiB")
    monkeypatch.setenv("HIPMM_CONFIG", '{"stack": ["pool", "device"]}')
    hipmm.init()
    assert hipmm.resource().type == "pool"


@pytest.mark.graph(None)
def test_a_wrong_graph_says_where(tmp_path):
    with pytest.raises(hipmm.FileError, match="no_such.json") as caught:
        hipmm.init(tmp_path / "no_such.json")
    assert isinstance(caught.value, OSError) and caught.value.status == -10

    with pytest.raises(hipmm.ConfigError, match="did you mean") as caught:
        hipmm.init({"runtime": "software", "stack": ["pol", "device"]})
    assert isinstance(caught.value, ValueError)
    assert caught.value.path == "/stack/0"
    assert caught.value.message == str(caught.value)

    file = tmp_path / "hipmm.json"
    file.write_text('{ "stack": [ "pool" "device" ] }')
    with pytest.raises(hipmm.ConfigError) as caught:
        hipmm.init(file)
    assert (caught.value.file, caught.value.line) == (str(file), 1)
    for wrong in (3, [], object()):
        with pytest.raises(TypeError):
            hipmm.init(wrong)
    with pytest.raises(TypeError, match="the graph cannot be written as JSON: "):
        hipmm.init({"stack": ["pool", object()]})


@pytest.mark.graph(None)
def test_an_error_of_a_dict_has_a_path_and_no_line(tmp_path):
    with pytest.raises(hipmm.ConfigError, match='^the graph: /stack/0: unknown type "pol"; did you mean') as caught:
        hipmm.init({"stack": ["pol", "device"]})
    assert caught.value.path == "/stack/0"
    wrong = {"stack": [{"type": "pool", "initial_size": "x", "maximum_size": "y"}, "device"]}
    with pytest.raises(hipmm.ConfigError, match="^the graph: /stack/0/initial_size: ") as caught:
        hipmm.init(wrong)
    assert str(caught.value).endswith("(and 1 more error)")
    with pytest.raises(hipmm.ConfigError, match="^the graph: /stack: 3 is not a list"):
        hipmm.init({"stack": 3})
    hipmm.init({"runtime": "software", "stack": ["device"]})
    file = tmp_path / "hipmm.json"
    file.write_text('{ "runtime": "software", "stack": ["pool", "device"] }')
    with pytest.raises(hipmm.StateError, match="a dict") as caught:
        hipmm.init(file)
    assert "<string>" not in str(caught.value) and str(file) in str(caught.value)
    assert str(caught.value).endswith("or call hipmm.finalize() before, 1 time")
    hipmm.init({"runtime": "software", "stack": ["device"]})
    with pytest.raises(hipmm.StateError, match=r"or call hipmm\.finalize\(\) before, 2 times$"):
        hipmm.init(file)
    hipmm.finalize()
    hipmm.finalize()
    hipmm.init(file)


def test_advice_names_functions_of_python():
    hipmm.resource()
    for path, advice in {
        "nowhere": "hipmm.paths() gives all paths",
        "devices/0/pool/maximum_size": "hipmm.get() reads it",
    }.items():
        with pytest.raises(hipmm.ArgumentError) as caught:
            hipmm.query(path)
        assert advice in str(caught.value)
    with pytest.raises(hipmm.ArgumentError, match="^hipmm.register_allocator: "):
        hipmm.register_allocator("", len, len)
    with pytest.raises(hipmm.ConfigError, match=r"the program must call hipmm.register_allocator\(\) before"):
        hipmm.create("callback", allocator="nowhere")
    with pytest.raises(hipmm.ConfigError, match=r"the program must call hipmm.register_failure_handler\(\) before"):
        hipmm.create("failure_callback", hipmm.create("device"), callback="nowhere")


def test_a_runtime_that_is_not_there(run):
    program = """
import hipmm
try:
    hipmm.init({"stack": ["device"]})
except (hipmm.PluginError, hipmm.NoDeviceError) as error:
    print(error)
"""
    assert "/no/such/library.so" in run(program, env={"HIPMM_RUNTIME": "/no/such/library.so"}).stdout


@pytest.mark.graph(None)
def test_without_init_the_remedy_is_named():
    for call in (lambda: hipmm.Buffer(1), hipmm.resource, hipmm.snapshot, hipmm.finalize):
        with pytest.raises(hipmm.StateError, match=r"call hipmm\.init\(\)"):
            call()


def test_the_same_graph_counts(graph):
    hipmm.init(graph)
    hipmm.finalize()
    assert hipmm.is_initialized() and hipmm.Buffer(1)


def test_another_graph_is_refused():
    with pytest.raises(hipmm.StateError) as caught:
        hipmm.init({"runtime": "software", "stack": ["arena", "device"]})
    assert isinstance(caught.value, RuntimeError)
    assert "hipmm.finalize()" in str(caught.value) and "hipmm_" not in str(caught.value)
    assert hipmm.resource().type == "statistics"


BRANCHES = {
    "runtime": "software",
    "resources": {
        "memory": {"type": "device"},
        "weights": {"type": "pool", "upstream": "memory", "maximum_size": "1MiB"},
        "main": {"type": "statistics", "upstream": "memory"},
    },
    "devices": {"default": "main"},
}


@pytest.mark.graph(
    {
        **BRANCHES,
        "resources": {**BRANCHES["resources"], "main": {"type": "fallback", "upstream": ["weights", "memory"]}},
    }
)
def test_resources_by_name():
    weights = hipmm.resource("weights")
    assert (weights.name, weights.type, weights.device) == ("weights", "pool", 0)
    assert weights == hipmm.resource("weights", 0) and hash(weights) == hash(hipmm.resource("weights"))
    assert weights != hipmm.resource() and weights != "weights"
    assert "weights" in repr(weights)
    with pytest.raises(hipmm.ArgumentError, match='did you mean "weights"'):
        hipmm.resource("weigths")
    with pytest.raises(hipmm.NoDeviceError):
        hipmm.resource(device=99)
    with pytest.raises(TypeError):
        hipmm.Resource()


@pytest.mark.graph(
    {
        **BRANCHES,
        "resources": {**BRANCHES["resources"], "main": {"type": "fallback", "upstream": ["weights", "memory"]}},
    }
)
def test_using_makes_a_resource_current():
    before, weights = hipmm.resource(), hipmm.resource("weights")
    with hipmm.using(weights) as inside:
        assert inside == hipmm.resource() == weights
        assert hipmm.Buffer(1).resource == weights
        with pytest.raises(hipmm.MemoryError):
            hipmm.Buffer(2 << 20)
    assert hipmm.resource() == before
    with pytest.raises(KeyError), hipmm.using(weights):
        raise KeyError
    assert hipmm.resource() == before
    assert hipmm.set_resource(weights) == before
    hipmm.reset_resource()
    assert hipmm.resource() == before
    with pytest.raises(TypeError):
        hipmm.using("weights")


def test_resources_made_in_code():
    pool = hipmm.create("pool", hipmm.create("device"), maximum_size="1MiB", name="mine")
    assert (pool.name, pool.type) == ("mine", "pool")
    assert hipmm.get("created/mine/maximum_size") == "1MiB"
    with pytest.raises(hipmm.MemoryError):
        hipmm.Buffer(2 << 20, None, pool)
    with pytest.raises(hipmm.ConfigError) as caught:
        hipmm.create("pool", hipmm.create("device"), maximum_siz=1)
    assert (caught.value.file, "maximum_size" in str(caught.value)) == ("<options>", True)
    for wrong in (None, "device"):
        with pytest.raises(TypeError):
            hipmm.create("pool", wrong)


def test_the_raw_pair():
    pool = hipmm.resource("pool")
    ptr = pool.allocate(1000, alignment=4096)
    assert ptr % 4096 == 0 and pool.query("live_count") == 1
    with pytest.raises(hipmm.ArgumentError):
        pool.deallocate(ptr + 256, 1000)
    with pytest.raises(hipmm.ArgumentError):
        pool.deallocate(ptr, 5000, alignment=4096)
    pool.deallocate(ptr, 1000, alignment=4096)
    assert pool.query("live_count") == 0
    pool.trim()
    assert pool.query("reserved_bytes") == 0
    with pytest.raises(hipmm.ArgumentError):
        pool.allocate(1, alignment=3)
    with pytest.raises(TypeError):
        pool.deallocate("0x1000")


def test_paths_and_settings():
    hipmm.Buffer(1)
    assert hipmm.query("devices/0/pool/live_count") == 0
    hipmm.set("devices/0/pool/maximum_size", 2 << 20)
    assert hipmm.get("devices/0/pool/maximum_size") == 2 << 20
    hipmm.set("devices/0/pool/maximum_size", "3MiB")
    assert hipmm.get("devices/0/pool/maximum_size") == "3MiB"
    hipmm.set("devices/0/pool/maximum_size", None)
    assert "devices/0/pool/reserved_bytes" in {entry["path"] for entry in hipmm.paths("devices/0/pool")}
    [stack] = [stack for stack in hipmm.snapshot()["stacks"] if stack["top"] == "devices/0/statistics"]
    assert [r["type"] for r in stack["resources"]] == ["statistics", "pool", "device"]
    with pytest.raises(hipmm.ArgumentError, match="reserved_bytes"):
        hipmm.query("devices/0/pool/reserved_byte")


def test_upstreams_and_blocks():
    top = hipmm.resource()
    [pool] = top.upstreams
    [device] = pool.upstreams
    assert (pool, device.type, device.upstreams) == (hipmm.resource("pool"), "device", [])
    buffer = hipmm.Buffer(5 << 20)
    [block] = [block for block in pool.blocks() if block[2] == "live"]
    assert block[:2] == (buffer.ptr, 5 << 20) and block[3] == 0
    assert sum(block[1] for block in pool.blocks()) <= pool.query("reserved_bytes")


@pytest.mark.graph({"runtime": "software", "stack": ["tracking", "device"]})
def test_reports():
    live = hipmm.Buffer(12345)
    assert "12345" in hipmm.resource().report().replace(",", "") or "12.06 KiB" in hipmm.resource().report()
    del live


def test_devices():
    assert (hipmm.device_count(), hipmm.current_device()) == (1, 0)
    hipmm.set_device(0)
    assert hipmm.device_name()
    free, total = hipmm.device_memory()
    assert 0 < free <= total
    buffer = hipmm.Buffer(1 << 20)
    now, peak = hipmm.held_bytes()
    assert buffer.nbytes <= now <= peak
    with pytest.raises(hipmm.Error):
        hipmm.set_device(7)
    with pytest.raises(TypeError):
        hipmm.set_device("0")
