# SPDX-License-Identifier: MIT
"""The base classes, and how errors of hipmm become those of RMM."""

import operator
from collections.abc import Sequence
from typing import Any

import hipmm
from hipmm import _hipmm
from hipmm.rmm import _runtime
from hipmm.rmm.pylibrmm.helper import parse_bytes
from hipmm.rmm.pylibrmm.stream import DEFAULT_STREAM, Stream
from hipmm.rmm.pylibrmm.utils import as_stream


class _Errors:
    """In allocations RMM raises MemoryError where the driver fails; a mistake in an argument is a RuntimeError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, hipmm.Error) or isinstance(error, hipmm.MemoryError):
            return
        if isinstance(error, hipmm.DeviceError):
            raise MemoryError(f"std::bad_alloc: {error}") from error
        raise RuntimeError(str(error)) from error


rmm_errors = _Errors()  # holds nothing, so that one serves all: a generator would cost more than a small allocation


def size_of(value: Any, name: str = "size") -> int:
    """A size_t: not negative, below 2**64."""
    number = operator.index(value)
    if number < 0:
        raise OverflowError(f"can't convert negative value to size_t: {name} is {number}")
    if number >= 1 << 64:
        raise OverflowError(f"value too large to convert to size_t: {name} is {number}")
    return number


def bytes_of(value: Any, name: str = "size") -> int:
    """A size_t from an int or a text."""
    return size_of(parse_bytes(value), name)


def aligned(size: int) -> int:
    """Rounded up to a multiple of 256."""
    return size + 255 & ~255


_LARGEST = (1 << 63) - 1  # of a JSON number; programs write 2**64 - 1 for "no limit"


def _option(value: Any) -> Any:
    if isinstance(value, list):
        return [_option(part) for part in value]
    if isinstance(value, dict):
        return {name: _option(part) for name, part in value.items()}
    return min(value, _LARGEST) if isinstance(value, int) else value


def create(
    kind: str, *upstreams: "DeviceMemoryResource", resources: Sequence[hipmm.Resource] = (), **options: Any
) -> hipmm.Resource:
    """Creates a resource on the current device; options that are None have their defaults."""
    _runtime.ensure()
    given = {name: _option(value) for name, value in options.items() if value is not None}
    try:
        return hipmm.create(kind, *[upstream._resource for upstream in upstreams], resources=resources, **given)
    except hipmm.MemoryError:
        raise
    except hipmm.Error as error:
        raise RuntimeError(str(error)) from error


def prime(resource: hipmm.Resource, nbytes: int, count: int = 1) -> None:
    """Makes a resource take memory now. What an option makes it take at creation, trim() would not give back."""
    blocks = []
    try:
        for _ in range(count):
            blocks.append(resource.allocate(nbytes))
    finally:
        for block in blocks:
            resource.deallocate(block, nbytes)


class DeviceMemoryResource:
    """Where device memory comes from. Programs do not derive from it: CallbackMemoryResource takes functions."""

    _resource: hipmm.Resource

    def allocate(self, nbytes: int, stream: Stream = DEFAULT_STREAM) -> int:
        """The address of `nbytes` bytes for use on `stream`; 0 for 0 bytes. Raises MemoryError."""
        stream = as_stream(stream)
        with rmm_errors:
            return self._resource.allocate(size_of(nbytes, "nbytes"), stream)

    def deallocate(self, ptr: int, nbytes: int, stream: Stream = DEFAULT_STREAM) -> None:
        """Frees memory of allocate(). A wrong address or size raises RuntimeError, and changes nothing."""
        stream = as_stream(stream)
        with rmm_errors:
            self._resource.deallocate(size_of(ptr, "ptr"), size_of(nbytes, "nbytes"), stream)

    def __getattr__(self, name: str) -> Any:
        if name == "_resource":
            raise TypeError(
                f"{type(self).__name__} has no memory: __init__() of a class of rmm.mr was not called, or "
                "DeviceMemoryResource has a subclass in Python; CallbackMemoryResource takes functions of a program"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def _wrap(cls, resource: hipmm.Resource) -> "DeviceMemoryResource":
        """A resource of hipmm, such as the graph's."""
        self = cls.__new__(cls)
        self._resource = resource
        return self

    def __repr__(self) -> str:
        return f"<rmm {type(self).__name__} over {self.__dict__.get('_resource')!r}>"


class UpstreamResourceAdaptor(DeviceMemoryResource):
    """A resource over another one, which it keeps alive."""

    upstream_mr: DeviceMemoryResource

    def __new__(cls, upstream_mr: Any, *_: Any, **__: Any) -> "UpstreamResourceAdaptor":
        self = super().__new__(cls)
        if upstream_mr is None:
            raise Exception("Argument `upstream_mr` must not be None")
        if not isinstance(upstream_mr, DeviceMemoryResource):
            raise TypeError(
                "Argument 'upstream_mr' has incorrect type "
                f"(expected DeviceMemoryResource, got {type(upstream_mr).__name__})"
            )
        self.upstream_mr = upstream_mr
        return self

    def get_upstream(self) -> DeviceMemoryResource:
        """The resource below."""
        return self.upstream_mr


def half_of_free_memory() -> int:
    """In bytes, rounded down to a multiple of 256."""
    _runtime.ensure()
    return _hipmm.device_memory()[0] // 2 & ~255
