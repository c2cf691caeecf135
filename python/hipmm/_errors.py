# SPDX-License-Identifier: MIT
"""The exceptions. Each is also the exception that a Python programmer expects, and has the parts of hipmm's record."""

from __future__ import annotations

import builtins


class Error(Exception):
    """A call of hipmm failed. str() is the whole reason in one line; the attributes are its parts."""

    status: int = 0  #: the status of the C interface, such as -30
    hip_code: int = 0  #: the runtime's error behind it; 0 if none
    line: int = 0  #: of a syntax error in a graph, from 1; 0 if none
    column: int = 0
    file: str = ""  #: the graph's file, "<string>" for a dict, "<options>" for options in code; empty if none
    path: str = ""  #: the JSON pointer of the invalid value; empty if none
    resource: str = ""  #: the name of the resource that failed; empty if none

    @property
    def message(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[object, ...]:
        """Says how it is made, since Dask makes exceptions of classes with Python's own __reduce__() by __new__(), which
        Python refuses for a class with two bases among its exceptions."""
        return type(self), self.args, self.__dict__


class ArgumentError(Error, ValueError):
    """An argument is invalid: an address or a size that is not a live block's, an unknown name, ..."""


class StateError(Error, RuntimeError):
    """hipmm is not initialised, or initialised with another graph; or this is the child of a fork."""


class ConfigError(Error, ValueError):
    """The graph is not valid JSON, or not a valid graph."""


class FileError(ConfigError, OSError):
    """The graph's file cannot be read."""


class PluginError(Error, RuntimeError):
    """A plugin is missing, or cannot be used."""


class MemoryError(Error, builtins.MemoryError):
    """Out of memory: of the device, of the host, or of a resource's maximum."""


class LimitError(MemoryError):
    """A configured limit forbids the allocation."""


class NoDeviceError(Error, RuntimeError):
    """No runtime with a device, or no such device."""


class NotSupportedError(Error, NotImplementedError):
    """This runtime, device or resource cannot do it."""


class DeviceError(Error, RuntimeError):
    """A call of the GPU runtime failed; `hip_code` is its error."""


class InternalError(Error, RuntimeError):
    """A bug in hipmm."""


_CLASSES = {
    -1: ArgumentError,
    -2: ArgumentError,
    -3: ArgumentError,
    -4: StateError,
    -10: FileError,
    -11: ConfigError,
    -12: ConfigError,
    -20: PluginError,
    -21: PluginError,
    -30: MemoryError,
    -31: LimitError,
    -40: NoDeviceError,
    -41: NotSupportedError,
    -42: DeviceError,
}


for _class in (Error, MemoryError, InternalError, *_CLASSES.values()):
    _class.__module__ = "hipmm"


# Advice of the C functions that names C functions, and its counterpart here.
_ADVICE = {
    "hipmm_init() or hipmm_init_from_file()": "hipmm.init()",
    "use the graph in use (hipmm_init_if_needed()), build a stack beside it (hipmm_stack_build_from_file()), or call "
    "hipmm_finalize() before": "use the graph in use (hipmm.is_initialized() tells), or call hipmm.finalize() before",
    "hipmm_allocator_register": "hipmm.register_allocator",
    "hipmm_control_register": "hipmm.on_control",
    "hipmm_failure_handler_register": "hipmm.register_failure_handler",
    "hipmm_list() gives all paths": "hipmm.paths() gives all paths",
    "hipmm_get() reads it": "hipmm.get() reads it",
    "get it with hipmm_resource_get_by_name()": "get it with hipmm.resource(name)",
    "fork before hipmm_init()": "fork before hipmm.init()",
    "is not suspended": "is awake, not suspended; hipmm.sleep() has to come before",
    "<string>": "a dict",
}

# Texts that the package made of a dict, whose lines no one has seen.
_TEXTS = {"<string>": "the graph", "<options>": "the options"}


def make(
    status: int,
    hip_code: int,
    line: int,
    column: int,
    file: str,
    path: str,
    resource: str,
    message: str,
    device: int | None,
) -> Error:
    """The exception for an error record. Called by the extension, which knows the device of some calls."""
    for source, what in _TEXTS.items():
        if message.startswith(source):
            message = what + message.removeprefix(source).removeprefix(f":{line}:{column}")
    asleep = resource or message.partition(": ")[0]
    place = "" if device is None else f", device={device}"
    message = message.replace("(hipmm_resource_resume())", f'(hipmm.wake("{asleep}"{place}))')
    for advice, in_python in _ADVICE.items():
        message = message.replace(advice, in_python)
    error = _CLASSES.get(status, InternalError)(message)
    error.status, error.hip_code, error.line, error.column = status, hip_code, line, column
    error.file, error.path, error.resource = file, path, resource
    return error
