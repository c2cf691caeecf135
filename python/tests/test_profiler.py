# SPDX-License-Identifier: MIT
"""Statistics and the profiler."""

import functools

import pytest

import hipmm
from hipmm import Buffer
from hipmm.profiler import Records, pop, push


def test_statistics():
    assert hipmm.statistics() == (0, 0, 0, 0, 0, 0)
    kept = Buffer(100)
    Buffer(50)
    now = hipmm.statistics()
    assert (now.current_bytes, now.peak_bytes, now.total_bytes, now.total_count) == (100, 150, 150, 2)
    push()
    del kept
    inside = pop()
    assert (inside.current_bytes, inside.total_bytes) == (-100, 0)
    assert (hipmm.statistics().current_bytes, hipmm.statistics().peak_bytes) == (0, 150)
    hipmm.resource().reset_peaks()
    assert hipmm.statistics().peak_bytes == 0
    with pytest.raises(hipmm.StateError):
        pop()


@pytest.mark.graph({"runtime": "software", "stack": ["device"]})
def test_without_a_statistics_resource():
    with pytest.raises(hipmm.ArgumentError):
        hipmm.statistics()
    records = Records()
    with hipmm.profile("block", records):
        Buffer(1)
    assert len(records) == 0 and "statistics" in records.report()


def test_profile_of_a_loop_that_resets_peaks():
    records = Records()
    with hipmm.profile("steps", records):
        for _ in range(3):
            hipmm.resource().reset_peaks()
            Buffer(1000)
            assert hipmm.statistics().peak_bytes == 1000
        hipmm.resource().reset_peaks()
    assert records["steps"].peak_bytes == 1000
    assert hipmm.statistics().peak_bytes == 1000


def test_profiles_are_nested():
    records = Records()

    @hipmm.profile(records=records)
    def inner(nbytes):
        """Of mine."""
        return Buffer(nbytes)

    with hipmm.profile("step", records):
        first = inner(1000)
        with hipmm.profile("more", records):
            inner(500)
    inner(10)
    name = inner.__qualname__
    assert inner.__doc__ == "Of mine."
    assert set(records.names()) == {"step", "step/more", f"step/{name}", f"step/more/{name}", name}
    assert (records["step"].calls, records["step"].peak_bytes, records["step"].total_bytes) == (1, 1500, 1500)
    assert records[f"step/{name}"].total_bytes == 1000
    report = records.report()
    assert report.splitlines()[1].split() == ["1", "1,500", "1,500", "step"]
    records.clear()
    assert len(records) == 0
    del first


def test_an_exception_ends_the_scope():
    records = Records()
    with pytest.raises(KeyError), hipmm.profile("block", records):
        Buffer(10)
        raise KeyError
    assert records["block"].total_bytes == 10
    with pytest.raises(hipmm.StateError):
        pop()
    with pytest.raises(ValueError, match="needs a name"), hipmm.profile():
        pass


def test_what_would_record_nothing_is_refused():
    def steps():
        yield

    async def task():
        pass

    async def both():
        yield

    for function in (steps, task, both):
        with pytest.raises(TypeError, match="returns before its body runs, so nothing would be recorded"):
            hipmm.profile()(function)
    with pytest.raises(ValueError, match="unknown order 'bytes'; one of calls, peak_bytes, total_bytes"):
        hipmm.profiler.records.report("bytes")
    assert hipmm.profile()(functools.partial(len, "abc"))() == 3
