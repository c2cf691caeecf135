# SPDX-License-Identifier: MIT
"""hipmm.movable(): content through all tiers, streams, and bad input."""

import pytest

import hipmm

MIB = 1 << 20
GRAPH = {
    "runtime": {"type": "software", "memory": "64MiB"},
    "resources": {
        "movable": {"type": "spilling", "upstream": "small", "pinned": "host", "pinned_limit": "2MiB", "folder": "/tmp"},
        "small": {"type": "limiting", "limit": "4MiB", "upstream": "memory"},
        "memory": {"type": "device"},
        "host": {"type": "pinned"},
    },
    "devices": {"default": "movable"},
}


def value(name):
    return hipmm.query(f"devices/0/movable/{name}")


@pytest.mark.graph(GRAPH)
def test_keeps_content_in_all_tiers():
    buffers = [hipmm.movable("1MiB") for _ in range(10)]
    stream = hipmm.Stream()
    source = hipmm.resource("host")
    for n, buffer in enumerate(buffers):
        content = hipmm.Buffer.copy_of(bytes([n]) * MIB, resource=hipmm.resource("host"))
        with buffer.pinned(stream) as array:
            array.write(content)
    assert (value("device_bytes"), value("pinned_bytes"), value("file_bytes")) == (4 * MIB, 2 * MIB, 4 * MIB)
    for n, buffer in enumerate(buffers):
        with buffer.pinned(stream) as array, buffer.pinned() as same:
            assert array.ptr == same.ptr
            assert hipmm.Buffer.copy_of(array, stream=stream, resource=source).read() == bytes([n]) * MIB
    del buffer, buffers, array, same
    assert value("live_bytes") == 0


@pytest.mark.graph(GRAPH)
def test_stays_whole_without_memory():
    buffer, large = hipmm.movable(3 * MIB), hipmm.movable(2 * MIB)
    content = hipmm.Buffer.copy_of(b"abc" * MIB, resource=hipmm.resource("host"))
    with buffer.pinned() as array:
        array.write(content)
        with pytest.raises(hipmm.LimitError), large.pinned():
            pass
        with pytest.raises(ValueError, match="4194304 bytes are more than the 3145728 of this array"):
            array.write(hipmm.Buffer(4 * MIB, resource=hipmm.resource("host")))
    with pytest.raises(hipmm.StateError, match="not pinned any more"):
        _ = array.ptr
    with large.pinned():
        assert value("device_bytes") == 2 * MIB
    with buffer.pinned() as array:
        assert hipmm.Buffer.copy_of(array, resource=hipmm.resource("host")).read() == b"abc" * MIB


@pytest.mark.graph({"runtime": "software", "stack": ["pool", "device"]})
def test_needs_a_spilling_resource():
    with pytest.raises(hipmm.ArgumentError, match="spilling resource"):
        hipmm.movable(1)
    with pytest.raises(ValueError, match="is not a size"):
        hipmm.movable("many")
