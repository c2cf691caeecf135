# SPDX-License-Identifier: MIT
"""hipmm.reserve(): a task reserves memory before it allocates."""

from __future__ import annotations

import asyncio
import re

from . import _hipmm
from ._errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._hipmm import Resource

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}b": 1000**n for n, letter in enumerate("kmgtp", 1)}
_UNITS |= {f"{letter}ib": 1024**n for n, letter in enumerate("kmgtp", 1)}


def _bytes(size: int | str) -> int:
    if not isinstance(size, str):
        return size
    parts = re.fullmatch(r"(\d+)(?:\.(\d*))?[ \t]*([a-z]*)", size.lower())
    if not parts or parts[3] not in _UNITS:
        raise ValueError(f'{size!r} is not a size; write bytes, "512MiB" or "2GB"')
    fraction = parts[2] or ""
    return int(parts[1] + fraction) * _UNITS[parts[3]] // 10 ** len(fraction)


class Reservation:
    """A part of a `reserving` resource's memory, from hipmm.reserve(). It works with `with` and with `async with`."""

    def __init__(self, nbytes: int, timeout: float | None, priority: int, name: str | None, resource: Resource | None) -> None:
        self._arguments = (resource, nbytes, -1 if timeout is None else round(timeout * 1e9), priority, name)
        self._resource: Resource | None = None

    def acquire(self) -> Resource:
        """Waits for its turn, and returns the resource to allocate from."""
        if self._resource is not None:
            raise StateError("this reservation has memory already; hipmm.reserve() makes another")
        self._resource = _hipmm.reserve(*self._arguments)
        return self._resource

    def release(self) -> None:
        """Gives back what was not spent. Blocks stay, and keep what they use until they are freed."""
        _hipmm.release_reservation(self._held())
        self._resource = None

    def resize(self, nbytes: int | str) -> None:
        """Changes the reserved bytes, and never waits. Raises LimitError, and changes nothing, if there is no room, if other
        requests wait, or if more is in use."""
        _hipmm.resize_reservation(self._held(), _bytes(nbytes))

    def _held(self) -> Resource:
        if self._resource is None:
            raise StateError("this reservation has no memory: it was released, or acquire() was not called")
        return self._resource

    def __enter__(self) -> Resource:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        if self._resource is not None and _hipmm.is_initialized():
            self.release()

    async def __aenter__(self) -> Resource:
        """Waits as `with` does, in a thread of the event loop's executor. A task that is cancelled meanwhile gets nothing."""
        waiting = asyncio.get_running_loop().run_in_executor(None, self.acquire)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            waiting.add_done_callback(lambda done: None if done.cancelled() or done.exception() else self.release())
            raise

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()
