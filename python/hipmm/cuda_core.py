# SPDX-License-Identifier: MIT
"""cuda.core's memory from hipmm, by the protocol of cuda.core.MemoryResource (release 1.2 and later).

    import hipmm.cuda_core
    resource = hipmm.cuda_core.Resource("weights")    # a name in the graph, or a hipmm.Resource
    buffer = resource.allocate(1 << 20, stream=stream)
    device.memory_resource = resource                 # for what cuda.core itself allocates on the device
"""

from __future__ import annotations

from typing import Any

from cuda.core import Buffer, MemoryResource, __version__

import hipmm

if [int(part) for part in __version__.split(".")[:2]] < [1, 2]:  # its buffers do not keep their stream
    raise ImportError(f"hipmm.cuda_core needs cuda.core 1.2 or later, and this is {__version__}; pip install -U cuda-core")


def _sources(resource: hipmm.Resource) -> list[hipmm.Resource]:
    """The resources below, and this one, that ask the runtime for memory."""
    return [source for upstream in resource.upstreams for source in _sources(upstream)] or [resource]


class Resource(MemoryResource):  # type: ignore[misc]
    """Memory of a resource of hipmm: of the one that is current on `device` (None: the current device) if `resource` is None.
    Keeps the resource alive, and so do the buffers. Thread-safe."""

    def __init__(self, resource: str | hipmm.Resource | None = None, device: int | None = None) -> None:
        self._resource = hipmm._on(resource, device)

    @property
    def resource(self) -> hipmm.Resource:
        """The resource of hipmm."""
        return self._resource

    def allocate(self, size: int, *, stream: Any = None) -> Any:
        """A cuda.core.Buffer, which is ready in the order of `stream` (None: the default stream), and is freed in that order
        unless close() names another stream. Raises hipmm.MemoryError."""
        pointer = self._resource.allocate(size, stream)
        try:
            return Buffer.from_handle(pointer, size, mr=self, stream=stream)
        except BaseException:
            self._resource.deallocate(pointer, size, stream)
            raise

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        """Frees in the order of `stream`."""
        self._resource.deallocate(int(ptr), size, stream)

    @property
    def is_device_accessible(self) -> bool:
        return self._resource.is_device_accessible

    @property
    def is_host_accessible(self) -> bool:
        return self._resource.is_host_accessible

    @property
    def is_managed(self) -> bool:
        return all(source.type in ("managed", "async_managed") for source in _sources(self._resource))

    @property
    def device_id(self) -> int:
        """The device; -1 for memory that no device reaches."""
        return self._resource.device if self.is_device_accessible else -1
