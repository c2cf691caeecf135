# SPDX-License-Identifier: MIT
"""hipmm.store() and hipmm.attach(): weights in a store of `hipmm serve`, which one process writes and others map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _hipmm
from ._arrays import _CPU, _CUDA, _EXTENSION, _ROCM, _host_reads, prepare_view
from ._hipmm import Buffer, Resource


class StoredArray:
    """Bytes of a store, on the device, for reading only: work that writes there is a fatal fault of the device. CuPy and Numba
    take it by __cuda_array_interface__, and PyTorch by torch.from_dlpack(). It keeps the store mapped."""

    stream = 0  #: nothing has to be waited for: the writer has waited

    def __init__(self, resource: Resource, name: str, ptr: int, nbytes: int, description: bytes) -> None:
        self._resource = resource
        self.name = name
        self.ptr = ptr
        self.nbytes = nbytes
        self.description = description  #: the writer's own

    @property
    def device(self) -> int:
        """The device."""
        return self._resource.device

    def __repr__(self) -> str:
        return f"<hipmm.StoredArray {self.name!r} of {self.nbytes} bytes at {self.ptr:#x} on device {self.device}>"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.ptr if self.nbytes else 0, True),
            "shape": (self.nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        runtime = _hipmm.runtime()
        if runtime == "software":
            return (_CPU, 0) if not self.nbytes or _host_reads(self.ptr) else (_EXTENSION, self.device)
        return (_CUDA if runtime == "nvidia" else _ROCM), self.device

    def __dlpack__(self, *, copy: bool | None = None, **wanted: Any) -> Any:
        if copy:
            raise BufferError("a StoredArray is exported without a copy; hipmm.Buffer.copy_of() makes one")
        versioned = prepare_view(self, **wanted)  # type: ignore[arg-type] # it has what that function asks for
        return _hipmm.store_export(self, self.ptr, self.nbytes, *self.__dlpack_device__(), versioned)


class AttachedStore(Mapping[str, StoredArray]):
    """The names of a committed store, in the writer's order, from hipmm.attach()."""

    def __init__(self, resource: Resource) -> None:
        self._arrays: dict[str, StoredArray] = {}
        index, n_names = 0, 1
        while index < n_names:
            name, ptr, nbytes, description, n_names = _hipmm.store_get(resource, index)
            self._arrays[name] = StoredArray(resource, name, ptr, nbytes, description)
            index += 1

    def __getitem__(self, name: str) -> StoredArray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"<hipmm.AttachedStore of {len(self)} arrays>"


class StoreWriter:
    """A store that is being written, from hipmm.store(). It commits at the end of `with`, unless an exception ends that."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._buffers: list[Buffer] = []

    def put(self, name: str, source: Any, description: bytes = b"") -> Buffer:
        """Copies `source`, which hipmm.Buffer.copy_of() takes, into the store, and names it. `description` is at most 1024 bytes
        of the program's own, such as the type and the shape. The Buffer can be written until the commit."""
        buffer = Buffer.copy_of(source, resource=self._resource)
        block = buffer if buffer.nbytes else Buffer(1, resource=self._resource)  # a name is for memory
        _hipmm.store_put(self._resource, name, block.ptr, buffer.nbytes, description)
        self._buffers.append(block)
        return buffer

    def commit(self) -> None:
        """Gives the memory to the store. From then on it can only be read."""
        self._resource.perform("commit")

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            del self._resource  # the next writer need not wait until this object is gone
        self._buffers.clear()
