# SPDX-License-Identifier: MIT
"""What a program can do wrong, beside what the tests of each subject have: the exception that a Python programmer expects,
with hipmm's sentence, and nothing lost."""

import ctypes
import gc
import subprocess

import numpy
import pytest

import hipmm
import hipmm.profiler
from hipmm import Buffer, Stream, _library

TWO = {
    "runtime": {"type": "software", "devices": 2, "memory": "64MiB"},
    "stack": ["statistics", "pool", "device"],
}



@pytest.mark.graph({"runtime": {"type": "software", "devices": 2}, "stack": [{"type": "pool", "growth": "mapped"}, "device"]})
def test_a_resource_on_another_device_than_the_one_named():
    pool = hipmm.resource("pool", 0)
    for call in (hipmm.set_resource, hipmm.sleep, hipmm.wake):
        with pytest.raises(hipmm.ArgumentError, match="is on device 0, not on device 1"):
            call(pool, device=1)
    hipmm.sleep(pool, device=0)
    hipmm.wake(pool, device=0)


@pytest.mark.graph({"runtime": "software", "stack": [{"type": "pool", "growth": "mapped"}, "device"]})
def test_whether_to_keep_is_a_bool():
    for keep in (1, 0, "False", None):
        for call in (lambda: hipmm.sleep("pool", keep), lambda: hipmm.resource().sleep(keep=keep)):
            with pytest.raises(TypeError, match="keep is True or False, not "):
                call()
    assert hipmm.held_bytes() and Buffer(10)


def test_devices_streams_and_alignments_that_are_none():
    for wrong in ("cuda:1", 1.5, b"0"):
        for call in (hipmm.device_memory, hipmm.device_name, hipmm.held_bytes, hipmm.set_device, hipmm.reset_resource):
            with pytest.raises(TypeError, match="a device is an integer.*, not "):
                call(wrong)
    for wrong in (1 << 70, -(1 << 70), 1 << 40):
        for call in (hipmm.device_memory, hipmm.set_device, hipmm.reset_resource):
            with pytest.raises(hipmm.NoDeviceError):
                call(wrong)
    for wrong in (1 << 70, -(1 << 70)):
        with pytest.raises(OverflowError, match="is not the handle of a stream"):
            Buffer(10, wrong)
    for wrong in (-1, 1 << 70):
        with pytest.raises(ValueError, match=f"alignment is {wrong} bytes"):
            hipmm.resource().allocate(10, alignment=wrong)
    address = hipmm.resource().allocate(numpy.int64(10), alignment=numpy.int64(512))
    hipmm.resource().deallocate(numpy.int64(address), numpy.int64(10))
    for wrong in ("x", None, 1.5, 1 << 70):
        with pytest.raises((TypeError, ValueError), match="not an address"):
            hipmm.resource().deallocate(wrong)


def test_errors_of_options_begin_with_the_options():
    with pytest.raises(hipmm.ConfigError, match="^the options: /maximum_siz: unknown option") as caught:
        hipmm.create("pool", hipmm.create("device"), maximum_siz="1GiB")
    assert caught.value.path == "/maximum_siz"
    with pytest.raises(hipmm.ArgumentError, match="^the graph: the stack of device 0 has no resource"):
        hipmm.resource("nowhere")


def live():
    return sum(hipmm.query(f"devices/{device}/pool/live_count") for device in (0, 1))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hipmm.resource(3), r'a str, as in hipmm.resource\("pool"\), not 3'),
        (lambda: hipmm.resource("pool", device="0"), "integer"),
        (lambda: hipmm.paths(3), r'a str, as in hipmm.paths\("devices/0"\), not 3'),
        (lambda: hipmm.query(3), r"query\(\) argument 1 must be str"),
        (lambda: hipmm.statistics("pool"), r'a hipmm.Resource, such as hipmm.resource\("name"\), not \'pool\''),
        (lambda: hipmm.profiler.push("pool"), "a hipmm.Resource"),
        (lambda: hipmm.profile(len), r"write @hipmm.profile\(\), with parentheses, above <built-in function len>"),
        (lambda: hipmm.profile("step", {}), "recorded into hipmm.profiler.Records, not {}"),
        (lambda: hipmm.profile(3), r'a str, as in hipmm.profile\("step"\), not 3'),
        (lambda: hipmm.set("devices/0/pool/maximum_size", object()), "the value cannot be written as JSON"),
        (lambda: hipmm.create("pool", hipmm.create("device"), a=object()), "the options cannot be written as JSON"),
        (lambda: hipmm.create(3), r'a str, as in hipmm.create\("device"\), not 3'),
        (lambda: hipmm.init(b"hipmm.json"), "a graph is a path, a dict or None, not b'hipmm.json'"),
        (lambda: Buffer(1, None, "pool"), "'pool' is not a resource: give None or a hipmm.Resource"),
        (lambda: Buffer.copy_of("text"), "str is no memory: give bytes"),
        (lambda: hipmm.set_resource("pool"), r"set_resource\(\) takes a hipmm.Resource, .* or None, not 'pool'"),
        (lambda: hipmm.resource().allocate(1.5), "nbytes must be an int of bytes, not <class 'float'>"),
    ],
)
def test_wrong_types(call, sentence):
    hipmm.resource()
    with pytest.raises(TypeError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda b: b.resize(-1), "nbytes is -1 bytes, which is no size of memory"),
        (lambda b: b.reserve(-1), "nbytes is -1 bytes"),
        (lambda b: b.read(-1), "offset is -1 bytes"),
        (lambda b: b.read(0, -1), "nbytes is -1 bytes"),
        (lambda b: b.write(b"x", -1), "offset is -1 bytes"),
        (lambda b: b.resource.allocate(-1), "nbytes is -1 bytes"),
        (lambda b: b.resource.deallocate(b.ptr, -1), "nbytes is -1 bytes"),
        (lambda b: b.resource.trim(-1), "keep is -1 bytes"),
        (lambda b: hipmm.set("devices/0/pool/maximum_size", -1), "-1 is not a size; write bytes"),
        (lambda b: hipmm.create("limiting", hipmm.create("device"), limit=-1), "-1 is not a size; write bytes"),
    ],
)
def test_sizes_below_zero(call, sentence):
    buffer = Buffer.copy_of(b"abc")
    with pytest.raises(ValueError, match=sentence):
        call(buffer)
    assert buffer.read() == b"abc"


@pytest.mark.parametrize("kind", [object, [("O", "i8"), ("value", object)]], ids=["objects", "records"])
def test_references_to_objects_are_never_copied(kind):
    buffer, array = Buffer.copy_of(b"x" * 16), numpy.zeros(1, kind)
    for call in (
        lambda: buffer.write(array),
        lambda: buffer.read(0, 8, array),
        lambda: Buffer.copy_of(array),
    ):
        with pytest.raises(ValueError, match="the array has objects of Python, which cannot be copied"):
            call()
    assert buffer.read() == b"x" * 16 and array.tolist() in ([0], [(0, 0)])
    names = numpy.zeros(1, [("O", "i8")])
    assert buffer.read(0, 8, names)["O"][0] == 0x7878787878787878


def test_numbers_of_numpy_and_paths_in_graphs_and_options(tmp_path):
    hipmm.resource()
    hipmm.set("devices/0/pool/maximum_size", numpy.int64(1 << 30))
    assert hipmm.get("devices/0/pool/maximum_size") == 1 << 30
    limiting = hipmm.create("limiting", hipmm.create("device"), limit=numpy.uint32(100))
    with pytest.raises(hipmm.LimitError):
        limiting.allocate(101)
    hipmm.create("logging", hipmm.create("device"), file=tmp_path / "log.csv").allocate(0)
    assert (tmp_path / "log.csv").exists()


@pytest.mark.graph(None)
@pytest.mark.parametrize("text", ["", '{"stack": ["device"]}'])
def test_the_text_of_a_graph_is_no_path(text):
    with pytest.raises(ValueError, match=r"the path of a file, or a dict such as json.loads\(text\), not the text '"):
        hipmm.init(text)
    assert not hipmm.is_initialized()


@pytest.mark.graph(TWO)
def test_devices_that_are_not_there():
    for device in (-1, 2, 1 << 31, 1 << 32, 1 << 70):
        with pytest.raises((hipmm.NoDeviceError, OverflowError)):
            hipmm.resource(device=device)
        with pytest.raises((hipmm.NoDeviceError, OverflowError)):
            hipmm.device_memory(device)
    with pytest.raises(hipmm.NoDeviceError, match="device 2 does not exist: runtime software has 2, numbered from 0"):
        hipmm.set_device(2)


@pytest.mark.graph(TWO)
def test_what_is_of_another_device():
    here, there = hipmm.resource(device=0), hipmm.resource(device=1)
    stream = Stream(device=1)
    buffer = Buffer(1000, None, there)
    assert (buffer.device, Buffer(10, stream, there).device) == (1, 1)
    for call in (
        lambda: Buffer(10, stream),
        lambda: Buffer(10, Stream(device=0), there),
        lambda: buffer.fill(1, stream=Stream(device=0)),
        lambda: buffer.copy(Stream(device=0)),
        lambda: buffer.resize(1 << 20, Stream(device=0)),
        lambda: buffer.write(b"x", 0, Stream(device=0)),
    ):
        with pytest.raises(hipmm.ArgumentError, match=r"stream 0x[0-9a-f]+ is of device [01], not of device [01]"):
            call()
    with pytest.raises(hipmm.ArgumentError, match="is not allocated here"):
        here.deallocate(buffer.ptr, 1000)
    with pytest.raises(hipmm.ArgumentError, match="serves device 1; a resource of device 0 stands on its own"):
        hipmm.create("pool", there, device=0)
    assert Buffer.copy_of(buffer).device == 0  # a copy goes from device to device
    assert live() == 1 and buffer.read() == bytes(1000)


@pytest.mark.graph(TWO)
def test_streams_that_are_gone():
    stream, buffer = Stream(), Buffer.copy_of(b"abc")
    handle = stream.handle
    del stream
    gc.collect()
    for gone in (handle, 0xDEAD0, -1):
        for call in (
            lambda gone=gone: Buffer(10, gone),
            lambda gone=gone: buffer.fill(1, stream=gone),
            lambda gone=gone: buffer.resize(1 << 20, gone),
            lambda gone=gone: buffer.copy(gone),
            lambda gone=gone: hipmm.synchronize(gone),
        ):
            with pytest.raises(hipmm.ArgumentError, match=r"0x[0-9a-f]+ is not a live stream"):
                call()
    with pytest.raises(OverflowError):
        Buffer(10, 1 << 70)
    hipmm.resource(device=1)
    assert live() == 1 and buffer.read() == b"abc"


# ---- What is wrong before the program begins

START = {
    "hipmm.init()": "import hipmm; call = hipmm.init",
    "import hipmm.rmm": "import hipmm.rmm; call = lambda: hipmm.rmm.DeviceBuffer(size=1)",
}


@pytest.mark.graph(None)
@pytest.mark.parametrize("start", START.values(), ids=START)
@pytest.mark.parametrize(
    ("text", "env", "error", "sentence"),
    [
        (None, {}, "FileError", "HIPMM_CONFIG: {file}: cannot be read: No such file or directory"),
        ('{"stack": ["pool" "device"]}', {}, "ConfigError", "{file}:1:19: "),
        ('{"stack": ["pol", "device"]}', {}, "ConfigError", 'unknown type "pol"; did you mean "pool"?'),
        ('{"stack": ["mine"], "plugin_path": "nowhere"}', {}, "ConfigError", 'which "plugin_path" names, is not there'),
        ('{"stack": ["bad"], "plugin_path": "plugins"}', {}, "PluginError", "plugins/bad.so: file too short"),
        ('{"stack": ["device"]}', {"HIPMM_RUNTIME": "nvidai"}, "PluginError", 'did you mean "nvidia"?'),
        ('{"stack": ["device"]}', {"HIPMM_RUNTIME": "nowhere/libhip.so"}, "NoDeviceError", "nowhere/libhip.so"),
        ('{"stack": ["device"]}', {"HIPMM_RUNTIME": "nvidia"}, "NoDeviceError", "nvidia: NVIDIA's driver"),
    ],
    ids=["missing", "syntax", "type", "plugin-path", "plugin", "runtime", "library", "driver"],
)
def test_a_start_that_fails(run, tmp_path, start, text, env, error, sentence):
    if "NVIDIA" in sentence and (has_driver() or not has_nvidia()):
        pytest.skip("NVIDIA's driver is here, or this build has no runtime nvidia")
    file = tmp_path / "hipmm.json"
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "bad.so").write_text("x")
    if text is not None:
        file.write_text(text)
    ended = run(
        f"{start}\ntry:\n    call()\nexcept hipmm.Error as error:\n    print(type(error).__name__, error)\n"
        "assert not hipmm.is_initialized()\n",
        env={"HIPMM_CONFIG": str(file), **env},
    )
    assert ended.stdout.startswith(error + " ") and sentence.format(file=file) in ended.stdout, ended.stdout


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def has_nvidia():
    ended = subprocess.run([_library.command(), "describe", "nvidia"], capture_output=True)
    return ended.returncode == 0
