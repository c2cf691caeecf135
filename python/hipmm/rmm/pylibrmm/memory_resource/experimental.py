# SPDX-License-Identifier: MIT
from hipmm.rmm.pylibrmm.memory_resource._base import DeviceMemoryResource, create


class CudaAsyncManagedMemoryResource(DeviceMemoryResource):
    """Stream-ordered managed memory of a pool of the driver."""

    def __init__(self) -> None:
        self._resource = create("async_managed")

    def pool_handle(self) -> int:
        """The driver's handle of the pool."""
        return self._resource.query("pool_handle")


__all__ = ["CudaAsyncManagedMemoryResource"]
