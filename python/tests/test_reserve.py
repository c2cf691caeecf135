# SPDX-License-Identifier: MIT
"""hipmm.reserve(): with, asyncio, threads, and bad input."""

import asyncio
import threading
import time

import pytest

import hipmm

MIB = 1 << 20
GRAPH = {
    "runtime": {"type": "software", "memory": "64MiB"},
    "stack": [{"type": "reserving", "limit": "8MiB", "progress_timeout": "200s"}, "pool", "device"],
}


def held():
    return hipmm.query("devices/0/reserving/held_bytes")


@pytest.mark.graph(GRAPH)
def test_with_gives_back_what_was_not_spent():
    with hipmm.reserve("4MiB", timeout=30) as memory:
        assert (memory.type, held()) == ("reserving", 4 * MIB)
        data = hipmm.Buffer.copy_of(b"abcd" * (MIB // 4), resource=memory)
        with pytest.raises(hipmm.LimitError, match="1 MiB of the 4 MiB of this reservation are in use"):
            hipmm.Buffer(4 * MIB, resource=memory)
        with hipmm.using(memory):
            current = hipmm.Buffer.copy_of(b"xy" * MIB)
        assert memory.query("used_bytes") == 3 * MIB
    assert held() == 3 * MIB  # the buffers live
    assert (data.read(), current.read()) == (b"abcd" * (MIB // 4), b"xy" * MIB)
    with pytest.raises(hipmm.StateError, match="this reservation was released"):
        memory.allocate(1)
    del data, current
    assert held() == 0


@pytest.mark.graph(GRAPH)
def test_waits_for_another_thread_without_the_gil():
    first = hipmm.reserve("6 MiB")
    first.acquire()
    threading.Timer(0.05, first.release).start()
    with hipmm.reserve(6 * MIB, timeout=60):
        assert held() == 6 * MIB
    assert hipmm.query("devices/0/reserving/waits") == 1
    assert hipmm.query("devices/0/reserving/waited_ns") > 0


@pytest.mark.graph(GRAPH)
def test_resizes_and_says_who_holds_the_rest():
    kept = hipmm.reserve("5MiB", name="sort")
    with kept as memory:
        assert memory.name == "sort"
        with pytest.raises(hipmm.LimitError, match=r"holders: sort \(5 MiB, 0 bytes of it in use\)"):
            hipmm.reserve("4MiB", timeout=0).acquire()
        kept.resize("4MiB")
        with hipmm.reserve("4MiB", timeout=0):
            with pytest.raises(hipmm.LimitError, match="cannot grow from 4 MiB to 5 MiB now"):
                kept.resize("5MiB")
    assert held() == 0


@pytest.mark.graph(GRAPH)
def test_asyncio_waits_in_an_executor():
    order = []

    async def task(name, nbytes, pause):
        async with hipmm.reserve(nbytes) as memory:
            buffer = hipmm.Buffer.copy_of(name.encode() * nbytes, resource=memory)
            order.append(name)
            assert held() <= 8 * MIB
            await asyncio.sleep(pause)
            assert buffer.read() == name.encode() * nbytes
            del buffer

    async def main():
        await asyncio.gather(*(task("abcdef"[i], (2 + i % 3) * MIB, 0.01) for i in range(6)))

    asyncio.run(main())
    assert sorted(order) == list("abcdef")
    assert held() == 0


@pytest.mark.graph(GRAPH)
def test_a_cancelled_task_gets_nothing():
    async def wait():
        async with hipmm.reserve("8MiB"):
            raise AssertionError("it has memory")

    async def main():
        with hipmm.reserve("8MiB"):
            waiting = asyncio.create_task(wait())
            while not hipmm.query("devices/0/reserving/waiting"):
                await asyncio.sleep(0.001)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        for _ in range(5000):  # what the thread gets after all, it gives back
            if not held() and not hipmm.query("devices/0/reserving/waiting"):
                break
            await asyncio.sleep(0.001)
        assert held() == 0

    asyncio.run(main())


@pytest.mark.graph(GRAPH)
def test_wrong_reservations():
    reservation = hipmm.reserve("1MiB")
    with pytest.raises(hipmm.StateError, match="has no memory: it was released, or acquire"):
        reservation.release()
    with reservation:
        with pytest.raises(hipmm.StateError, match="has memory already"):
            reservation.acquire()
        reservation.release()
        with pytest.raises(hipmm.StateError, match="has no memory"):
            reservation.release()
    with pytest.raises(hipmm.LimitError, match="8 MiB can be reserved in all"):
        hipmm.reserve("9MiB").acquire()
    for size in ("4 gigs", "", "MiB", "-1"):
        with pytest.raises(ValueError, match="is not a size"):
            hipmm.reserve(size)
    with pytest.raises(ValueError, match="nbytes is -1 bytes"):
        hipmm.reserve(-1).acquire()
    with pytest.raises(hipmm.ArgumentError, match="neither it nor a resource below it is a reserving resource"):
        hipmm.reserve(1, resource=hipmm.resource("pool")).acquire()
    begun = time.monotonic()
    with hipmm.reserve("8MiB"), pytest.raises(hipmm.LimitError, match=r"the timeout of 0.05 s is over"):
        hipmm.reserve("1.5MiB", timeout=0.05).acquire()
    assert time.monotonic() - begun >= 0.05
    assert held() == 0
