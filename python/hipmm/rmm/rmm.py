# SPDX-License-Identifier: MIT
"""reinitialize(), its hooks, and RMMError."""

from collections.abc import Callable
from typing import Any

from hipmm.rmm import mr
from hipmm.rmm.pylibrmm.memory_resource._devices import _initialize


class RMMError(Exception):
    """An error of RMM's, with a number. Nothing here raises it; programs catch it."""

    def __init__(self, errcode: int, msg: str) -> None:
        self.errcode = errcode
        super().__init__(msg)


_reinitialize_hooks: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []


def reinitialize(
    pool_allocator: bool = False,
    managed_memory: bool = False,
    initial_pool_size: int | str | None = None,
    maximum_pool_size: int | str | None = None,
    devices: int | list[int] | None = 0,
    logging: bool = False,
    log_file_name: str | None = None,
) -> None:
    """Calls the hooks, then puts new resources in force on `devices`, and forgets those of other devices. A mistake in an
    argument changes nothing.

    With `pool_allocator`, a pool of `initial_pool_size` (None: half of the free memory) up to `maximum_pool_size` (None:
    unlimited); sizes are bytes, or texts such as "1GiB". With `managed_memory`, over managed memory. With `logging`, each
    device writes `log_file_name` (None: RMM_LOG_FILE), with ".devN" before its extension.
    """
    for function, arguments, named in reversed(_reinitialize_hooks):
        function(*arguments, **named)
    _initialize(
        pool_allocator=pool_allocator,
        managed_memory=managed_memory,
        initial_pool_size=initial_pool_size,
        maximum_pool_size=maximum_pool_size,
        devices=devices,
        logging=logging,
        log_file_name=log_file_name,
    )


def is_initialized() -> bool:
    """Whether RMM's resources can be used."""
    return mr.is_initialized()


def register_reinitialize_hook(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Has func(*args, **kwargs) called before each reinitialize(); the latest hook first. Returns `func`."""
    _reinitialize_hooks.append((func, args, kwargs))
    return func


def unregister_reinitialize_hook(func: Callable[..., Any]) -> None:
    """Removes every registration of `func`."""
    _reinitialize_hooks[:] = [hook for hook in _reinitialize_hooks if hook[0] != func]
