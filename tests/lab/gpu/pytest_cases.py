# SPDX-License-Identifier: MIT
"""Runs the cases of tests that pytest runs (CuPy's, JAX's, RMM's, Numba's), and writes what became of each, one a line, so that
two runs can be compared.

    pytest_cases.py FOLDER RESULTS [--seconds 120] [--until SECONDS] FILE[::CASE]…
    pytest_cases.py --compare NATIVE UNDER     the cases that pass in NATIVE alone; status 1 if there are any

FOLDER is where the project's pytest.ini or pyproject.toml is, FILE a path below it. A case that takes longer than --seconds, or
after which no call of the device works any more, ends the process: the next process goes on with the next case.
"""

import os
import re
import sys

import outcomes

# After these errors each call of CUDA fails in the process. The case that met one says so; later cases get a process of their own.
_LASTING = re.compile(r"illegal (memory access|address|instruction)|misaligned address|unspecified launch failure|device-side assert"
                      r"|CUDA_ERROR_(ILLEGAL|LAUNCH_FAILED|MISALIGNED|ASSERT)|cudaError(Illegal|LaunchFailure|Misaligned|Assert)")


class Plugin:
    def __init__(self, results, seconds):
        self._writer, self._done = outcomes.Writer(results, seconds), outcomes.read(results)

    def pytest_collection_modifyitems(self, config, items):
        left = [item for item in items if outcomes.named(item.nodeid) not in self._done]
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left

    def pytest_runtest_logstart(self, nodeid):
        self._outcome, self._why, self._is_lost = None, "", False
        self._writer.begin(nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._outcome, self._why = "failed", f"{self._why} {_last_error(report)}".strip()
            self._is_lost = self._is_lost or bool(_LASTING.search(report.longreprtext))
        elif report.skipped and self._outcome is None:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._outcome, self._why = "skipped", getattr(report, "wasxfail", "") or reason
        elif report.when == "call" and self._outcome is None:
            self._outcome = "passed"

    def pytest_runtest_logfinish(self, nodeid):
        self._writer.end()
        self._writer.say(self._outcome or "failed", nodeid, self._why)
        if self._is_lost:
            sys.stdout.flush()
            os._exit(3)


def _last_error(report):
    """The error itself, without the lines of source around it."""
    lines = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
    return " ".join(lines) or report.longreprtext[-300:]


def run(words, seconds):
    import pytest

    folder, results, *files = words
    results = os.path.abspath(results)
    os.chdir(folder)
    arguments = ["-q", "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--tb=short", "--continue-on-collection-errors", *files]
    status = pytest.main(arguments, [Plugin(results, seconds)])
    failed, nothing_left = pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED
    return 0 if status == failed or (status == nothing_left and outcomes.read(results)) else int(status)


if __name__ == "__main__":
    sys.exit(outcomes.main(run, __doc__))
