# SPDX-License-Identifier: MIT
"""hipmm: GPU memory from stacks of resources that a JSON graph describes.

    import hipmm

    hipmm.init("hipmm.json")                    # or a dict, or nothing: hipmm's search for a file
    buffer = hipmm.Buffer(1 << 20)              # 1 MiB of device memory, freed with the object
    with hipmm.using(hipmm.resource("weights")):
        weights = hipmm.Buffer(64 << 20)        # from another resource of the graph

hipmm.rmm is RMM's Python API; hipmm.torch, hipmm.cupy and hipmm.numba serve the frameworks. The guide is doc/python.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

try:
    from . import _hipmm
except ImportError as error:
    import sysconfig

    if "subinterpreter" in str(error):  # Python 3.13 does not come to the extension's own words
        raise ImportError(
            "hipmm cannot be used in a sub-interpreter: its memory belongs to the whole process. Import it in the main "
            'interpreter, or use a process of its own (multiprocessing, "spawn")'
        ) from error
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise
    raise ImportError(
        "hipmm does not support free-threaded builds of Python, which have no stable ABI; use the usual build of the same "
        "version"
    ) from error
from ._errors import (
    ArgumentError,
    ConfigError,
    DeviceError,
    Error,
    FileError,
    InternalError,
    LimitError,
    MemoryError,
    NoDeviceError,
    NotSupportedError,
    PluginError,
    StateError,
)
from ._hipmm import Buffer, Resource, Stream, View, control_reply, flush_log, on_control
from ._hipmm import register_allocator, register_failure_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, SupportsIndex

    from ._growing import GrowingBuffer
    from ._movable import MovableBuffer
    from ._reservation import Reservation
    from ._store import AttachedStore, StoreWriter
    from .profiler import Profile, Records, Statistics

__version__: str = _hipmm.version()

__all__ = [
    "ArgumentError",
    "Buffer",
    "ConfigError",
    "DeviceError",
    "Error",
    "FileError",
    "GrowingBuffer",
    "InternalError",
    "LimitError",
    "MemoryError",
    "NoDeviceError",
    "NotSupportedError",
    "PluginError",
    "Resource",
    "StateError",
    "Stream",
    "View",
    "allocate",
    "attach",
    "control_reply",
    "create",
    "current_device",
    "device_count",
    "device_memory",
    "device_name",
    "finalize",
    "flush_log",
    "from_dlpack",
    "get",
    "get_cmake_dir",
    "get_include",
    "held_bytes",
    "init",
    "is_initialized",
    "library",
    "movable",
    "on_control",
    "paths",
    "profile",
    "query",
    "register_allocator",
    "register_failure_handler",
    "reserve",
    "reset_resource",
    "resource",
    "runtime",
    "set",
    "set_device",
    "set_log_sink",
    "set_resource",
    "sleep",
    "snapshot",
    "statistics",
    "store",
    "synchronize",
    "tag",
    "under_rmm",
    "using",
    "wake",
]


def __getattr__(name: str) -> Any:
    """GrowingBuffer, whose module a program that has none need not import."""
    if name != "GrowingBuffer":
        raise AttributeError(f"module 'hipmm' has no attribute {name!r}")
    from ._growing import GrowingBuffer

    globals()[name] = GrowingBuffer
    return GrowingBuffer


# ---- Initialisation


def init(graph: str | os.PathLike[str] | Mapping[str, Any] | None = None, *, limit: int | str | None = None) -> None:
    """Reads a graph and chooses the runtime; devices are not touched before their first use.

    `graph` is the path of a file, a dict of the same form, a stack such as "pool,device", or None: the graph or the file in
    HIPMM_CONFIG, else ./hipmm.json, else the system's hipmm/hipmm.json, else a plain `device` resource. `limit`, for a dict or
    a stack, is the most physical memory of a device that the process may hold: a number of bytes, "8GiB", "45% of total" or
    "share" (the graph's "limit_physical"). Raises ConfigError for a mistake in the graph
    (FileError if the file cannot be read), and StateError if hipmm is initialised with another graph. With the same graph
    it counts: every init() has its finalize().
    """
    if isinstance(graph, str) and "," in graph and graph.lstrip()[:1] != "{" and not os.path.exists(graph):
        graph = {"stack": [word.strip() for word in graph.split(",")]}
    if limit is not None:
        if not isinstance(graph, Mapping):
            raise ValueError('limit= is for a dict or a stack such as "pool,device"; in a file, write "limit_physical"')
        if "limit_physical" in graph:
            raise ValueError('the graph has a "limit_physical" already; leave limit= out')
        graph = {**graph, "limit_physical": limit}
    if graph is None:
        _hipmm.start(None, None)
    elif isinstance(graph, (str, os.PathLike)):
        if not graph or (isinstance(graph, str) and graph.lstrip().startswith("{") and not os.path.exists(graph)):
            raise ValueError(f"a graph is the path of a file, or a dict such as json.loads(text), not the text {graph!r}")
        _hipmm.start(os.fsdecode(graph), None)
    elif isinstance(graph, Mapping):
        _hipmm.start(None, _json(dict(graph), "the graph"))
    else:
        raise TypeError(f"a graph is a path, a dict or None, not {graph!r}")


def _json(value: Any, what: str) -> str:
    import json

    def plain(part: Any) -> Any:
        """A path as text, and a number of NumPy or another library as Python's."""
        if isinstance(part, os.PathLike):
            return os.fsdecode(part)
        if hasattr(part, "item"):
            return part.item()
        raise TypeError(f"Object of type {type(part).__name__} is not JSON serializable")

    try:
        return json.dumps(value, default=plain)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} cannot be written as JSON: {error}") from None


def finalize() -> None:
    """Undoes one init(); the last one releases the graph. Buffers and Resources that live keep their stacks."""
    _hipmm.finalize()


def is_initialized() -> bool:
    """Whether hipmm can serve: after init(), before finalize(), and not in the child of a fork."""
    return _hipmm.is_initialized()


def runtime() -> str | None:
    """ "amd", "nvidia", "software", or the path of the runtime in use; None before the first init()."""
    return _hipmm.runtime()


def library() -> str:
    """The path of the libhipmm that this process uses, for ctypes and for frameworks; under `hipmm run`, of the object that
    serves the process."""
    return _hipmm.library()


# ---- For C and C++ programs


def get_include() -> str:
    """The folder of the package's C and C++ headers, for a compiler's -I. Raises FileNotFoundError where hipmm is not from a
    wheel."""
    from ._library import folder

    return folder("include", "hipmm/hipmm.h")


def get_cmake_dir() -> str:
    """The folder of the package's CMake files, for CMAKE_PREFIX_PATH, so that find_package(hipmm) finds them. Raises
    FileNotFoundError where hipmm is not from a wheel."""
    from ._library import folder

    return folder("lib/cmake/hipmm", "hipmmConfig.cmake")


# ---- Resources


def resource(name: str | None = None, device: int | None = None) -> Resource:
    """The resource that the graph calls `name`, or the current one, on a device (None: the current). Raises ArgumentError
    for an unknown name, NoDeviceError for an unknown device."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f'the name of a resource is a str, as in hipmm.resource("pool"), not {name!r}')
    return _hipmm.get_resource(device, name)


def _on(which: str | Resource | None, device: int | None) -> Resource:
    """The resource of a name, or the one that was given, which must be on the device, if one is named."""
    if not isinstance(which, Resource):
        return resource(which, device)
    if device is not None and device != which.device:
        raise ArgumentError(f"{which!r} is on device {which.device}, not on device {device}")
    return which


def create(
    type: str,
    *upstreams: Resource,
    name: str | None = None,
    device: int | None = None,
    resources: Sequence[Resource] = (),
    **options: Any,
) -> Resource:
    """Creates a resource of a type over others, as a graph would:

        create("pool", create("device"), maximum_size="1GiB")

    `options` are those of the type (`hipmm describe TYPE`); `resources` are the ones that options name. The resource
    lives as long as something uses it.
    """
    if not isinstance(type, str):
        raise TypeError(f'the type of a resource is a str, as in hipmm.create("device"), not {type!r}')
    return _hipmm.create(device, type, name, _json(options, "the options"), [*upstreams], [*resources])


def set_resource(resource: Resource | None, device: int | None = None) -> Resource:
    """Makes a resource current on its device (None: the graph's, on `device`), and returns the previous one."""
    if resource is not None and not isinstance(resource, Resource):
        raise TypeError(f'set_resource() takes a hipmm.Resource, such as hipmm.resource("name"), or None, not {resource!r}')
    return _hipmm.set_resource(device if resource is None else _on(resource, device).device, resource)


def reset_resource(device: int | None = None) -> None:
    """Makes the graph's resource current again."""
    _hipmm.set_resource(device, None)


class using:
    """with using(resource): makes the resource current on its device for all threads, and the previous one at the end."""

    def __init__(self, resource: Resource) -> None:
        if not isinstance(resource, Resource):
            raise TypeError(f'using() takes a hipmm.Resource, such as hipmm.resource("name"), not {resource!r}')
        self._resource = resource
        self._previous: list[Resource] = []

    def __enter__(self) -> Resource:
        self._previous.append(set_resource(self._resource))
        return self._resource

    def __exit__(self, *_: object) -> None:
        previous = self._previous.pop()
        if _hipmm.is_initialized():  # after finalize() there is none
            set_resource(previous)


class tag(contextlib.ContextDecorator):
    """with tag("layer 7"): what this thread allocates meanwhile is for layer 7; also a decorator, @tag("loss").

    `recording`, `tracking` and `guard` keep the tags of each block. `hipmm report` colours and sums blocks by the innermost, and
    shows the outermost as steps of the program. Other threads have tags of their own, so memory that PyTorch's backward
    pass allocates has none. The thread that begins a tag must end it, and tags must end in the reverse order: a generator or a
    coroutine that waits within a tag leaves it to what runs meanwhile. A decorated generator or async function has the tag
    only in the call that makes it, not while it runs. `name` has at most 63 bytes in UTF-8 and no control characters
    (ArgumentError). StateError if the names of the thread's tags have more than 255 bytes, counting one more for each.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        _hipmm.push_tag(self._name)

    def __exit__(self, *_: object) -> None:
        _hipmm.pop_tag()


def sleep(which: str | Resource | None = None, keep: bool = True, device: int | None = None) -> None:
    """Gives the memory of a resource back to the device, and keeps every address. It does so for the pools with mapped
    memory ("growth": "mapped") at or below the resource that the graph calls `which` (None: the current one), on a device
    (None: the current). `keep` saves the content, by default in pinned host memory; without it the content is lost.

    Waits for the device. Until wake(), allocating raises StateError, freeing works, and nothing may use the memory. Raises
    BufferError while a Buffer in it has a view of the host (memoryview, NumPy, DLPack), or is in use by another thread;
    MemoryError if the host has too little memory (nothing sleeps then), StateError if it sleeps already, NotSupportedError
    if there is no such pool.
    """
    _on(which, device).sleep(keep)


def wake(which: str | Resource | None = None, device: int | None = None) -> None:
    """Gives a resource that sleeps its memory again, under the same addresses and with what sleep() saved. Raises
    MemoryError if the device is full: then it sleeps on, nothing is lost, and wake() can be called again; StateError if it is
    awake."""
    _on(which, device).wake()


def allocate(nbytes: SupportsIndex, stream: Any = None, resource: Resource | None = None) -> Buffer:
    """A Buffer: allocate(n) is Buffer(n)."""
    return Buffer(nbytes, stream, resource)


def under_rmm(which: str | Resource | None = None, device: int | None = None) -> Any:
    """Gives the real RMM, which cuDF and cuML use, hipmm's memory: makes the resource that the graph calls `which`, on a device
    (None: the current), RMM's current resource there. Without `which` it is the resource that is current at RMM's first
    allocation on the device (None: on each device). Returns the rmm.mr.DeviceMemoryResource, which RMM's adaptors can
    stand above. What RMM has allocated before goes back to where it came from.

    A C++ compiler makes the connection in seconds at the first use. Without one, or without the headers of RMM and CUDA, each
    allocation calls Python, and a warning says why. Raises ImportError without RMM, and what hipmm.resource() raises."""
    from ._under_rmm import under_rmm

    return under_rmm(which, device)


def from_dlpack(source: Any, stream: Any = None) -> View:
    """An array of another library (PyTorch, CuPy, NumPy, JAX, ...) by DLPack, without a copy: the View keeps its memory. Work
    on `stream` (None: the default stream) finds the array's contents ready; work on it must have ended, or be waited for
    by the library's own stream, when the View dies. Buffer.copy_of() makes a copy."""
    from ._arrays import from_dlpack

    return from_dlpack(source, stream)


def movable(nbytes: int | str, *, resource: Resource | None = None) -> MovableBuffer:
    """A buffer of the nearest `spilling` resource at or below `resource` (None: the current one). It may be moved to the host or to a
    file while it is not pinned:

        buffer = hipmm.movable("1GiB")
        with buffer.pinned() as array:
            tensor = torch.as_tensor(array, device="cuda")
    """
    from ._movable import MovableBuffer
    from ._reservation import _bytes

    return MovableBuffer(_bytes(nbytes), resource)


def reserve(
    nbytes: int | str,
    timeout: float | None = None,
    *,
    priority: int = 0,
    name: str | None = None,
    resource: Resource | None = None,
) -> Reservation:
    """Reserves memory of the nearest `reserving` resource at or below `resource` (None: the current one):

        with hipmm.reserve("4GiB", timeout=30) as memory:
            data = hipmm.Buffer(1 << 30, resource=memory)

    `with` waits for its turn without the GIL, `timeout` seconds at most (None: for ever; 0: it only tries). `async with` waits in
    an executor. The highest priority goes first, and requests of one priority go in the order of their calls. Raises LimitError
    if there is no room in time; the message names the holders. The end of the block gives back what was not spent. Live
    blocks keep what they use.
    """
    from ._reservation import Reservation, _bytes

    return Reservation(_bytes(nbytes), timeout, priority, name, resource)


# ---- Stores of `hipmm serve`


def attach(store: str, *, deadline: str | float = "60s", device: int | None = None) -> AttachedStore:
    """The arrays of a store of `hipmm serve`, by name, on the device (None: the current one):

        weights = hipmm.attach("weights")
        torch.from_dlpack(weights["layer.0"])

    All processes have the same memory, for reading only. Initialises hipmm if that was not done. Waits for the store's
    commit up to `deadline`, a time such as "10s" or seconds. Raises FileError without a server, and StateError if nothing
    was committed in time."""
    from ._store import AttachedStore

    return AttachedStore(_served(store, "read", deadline, device))


def store(name: str, *, deadline: str | float = "60s", device: int | None = None) -> StoreWriter:
    """A store of `hipmm serve` that this process writes, on the device (None: the current one):

        with hipmm.store("weights") as store:
            store.put("layer.0", array)

    It commits at the end of `with`. The first put() waits for another writer, or for the readers of what is replaced, up to
    `deadline`. Raises what attach() raises."""
    from ._store import StoreWriter

    return StoreWriter(_served(name, "write", deadline, device))


def _served(name: str, mode: str, deadline: str | float, device: int | None) -> Resource:
    if not isinstance(deadline, str):
        deadline = f"{round(deadline * 1e3)}ms"
    _hipmm.start_if_needed()
    return create("served", device=device, store=name, mode=mode, deadline=deadline)


# ---- Inspection


def query(path: str) -> int:
    """A value of a live resource or device, such as "devices/0/pool/reserved_bytes", in its unit (paths() tells it). Raises
    ArgumentError for a path that is not there."""
    return _hipmm.query(path)


def get(path: str) -> Any:
    """A value, or an option's current value. Raises ArgumentError for a path that is not there."""
    import json

    return json.loads(_hipmm.get(path))


def set(path: str, value: Any) -> None:
    """Sets an option of a live resource, such as "devices/0/pool/maximum_size", to 2 << 30 or "2GiB"; None: its default.
    A number is in the option's unit, bytes for sizes. Raises ArgumentError for a path that is not there, ConfigError for a
    value that is not allowed."""
    if value is not None and not isinstance(value, str):
        value = _json(value, "the value")
    _hipmm.set(path, value)


def paths(prefix: str | None = None) -> list[dict[str, Any]]:
    """All values and options at or below a path: dicts with "path", "kind", "value", "unit", "doc", ..."""
    import json

    if prefix is not None and not isinstance(prefix, str):
        raise TypeError(f'a path is a str, as in hipmm.paths("devices/0"), not {prefix!r}')
    result: list[dict[str, Any]] = json.loads(_hipmm.list(prefix))
    return result


def snapshot() -> dict[str, Any]:
    """The state of all stacks; hipmm_snapshot() in hipmm/hipmm.h has the keys."""
    import json

    result: dict[str, Any] = json.loads(_hipmm.snapshot())
    return result


def statistics(resource: Resource | None = None) -> Statistics:
    """The counters of the nearest `statistics` resource at or below `resource` (None: the current one)."""
    from .profiler import statistics

    return statistics(resource)


def profile(name: str | None = None, records: Records | None = None) -> Profile:
    """A context and decorator that records the memory of a piece of the program: hipmm.profiler.Profile."""
    from .profiler import Profile

    return Profile(name, records)


# ---- Devices


def device_count() -> int:
    """The number of devices of the runtime in use."""
    return _hipmm.device_count()


def current_device() -> int:
    """The calling thread's current device."""
    return _hipmm.current_device()


def set_device(device: int) -> None:
    """Makes a device current for the calling thread. Raises NoDeviceError."""
    _hipmm.set_device(device)


def device_name(device: int | None = None) -> str:
    """The device's name. None: the current device."""
    return _hipmm.device_name(device)


def device_memory(device: int | None = None) -> tuple[int, int]:
    """The free and the total memory of a device, in bytes. What pools hold is not free."""
    return _hipmm.device_memory(device)


def held_bytes(device: int | None = None) -> tuple[int, int]:
    """The bytes that the device's stack holds from the runtime: now, and at most so far."""
    return _hipmm.held_bytes(device)


def synchronize(stream: Any = None, device: int | None = None) -> None:
    """Waits for the work that was submitted to a stream (None: the default stream)."""
    _hipmm.synchronize(stream, device)


# ---- The log

_LEVELS = ("error", "warning", "info", "debug", "trace")


def set_log_sink(function: Callable[[str, str, str], object] | None, level: str = "warning") -> None:
    """Gives lines of hipmm's log to function(level, about, message), up to a level ("error" to "trace"); None: to none.

    The function is called on Python's main thread, soon after; flush_log() calls it now. It may use hipmm. An exception
    in it is shown and ignored. Lines that it causes by its own use of hipmm are not given to it.
    """
    if level not in _LEVELS:
        raise ValueError(f"unknown level {level!r}; one of {', '.join(_LEVELS)}")
    if function is None:
        _hipmm.set_log_sink(None, _LEVELS.index(level))
        return
    if not callable(function):
        raise TypeError(f"{function!r} cannot be called")
    call = function
    _hipmm.set_log_sink(lambda number, about, message: call(_LEVELS[number], about, message), _LEVELS.index(level))
