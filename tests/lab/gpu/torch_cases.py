# SPDX-License-Identifier: MIT
"""Runs the cases of a test file of PyTorch's, and writes what became of each, one a line, so that two runs can be compared.

    torch_cases.py FILE RESULTS [--seconds 120] [--until SECONDS] [--cuda] [PATTERN…]
    torch_cases.py --compare NATIVE UNDER      the cases that pass in NATIVE alone; status 1 if there are any

--cuda: only cases whose source names CUDA. A case that takes longer than --seconds ends the process, as a crash does: the next
process goes on with the next case. A later call repeats the case that --until has cut.
"""

import fnmatch
import importlib.util
import inspect
import os
import sys
import unittest

import outcomes


class Result(unittest.TestResult):
    def __init__(self, file, seconds):
        super().__init__()
        self._writer = outcomes.Writer(file, seconds)

    def _say(self, outcome, test, why=""):
        self._writer.say(outcome, test.id(), why)

    def startTest(self, test):
        self._writer.begin(test.id())
        self._failed = False

    def stopTest(self, test):
        self._writer.end()

    def addSuccess(self, test):
        if not self._failed:
            self._say("passed", test)

    def addSubTest(self, test, subtest, error):
        if error:
            self._failed = True
            self._say("failed", test, error[1])

    def addFailure(self, test, error):
        self._say("failed", test, error[1])

    def addError(self, test, error):
        self._say("failed", test, f"{error[0].__name__}: {error[1]}")

    def addSkip(self, test, reason):
        self._say("skipped", test, reason)

    def addExpectedFailure(self, test, error):
        self._say("passed", test)

    def addUnexpectedSuccess(self, test):
        self._say("passed", test)


# Names that test files of earlier releases import, and what this PyTorch calls them.
RENAMED = {"torch.testing._internal.inductor_utils": {"HAS_CUDA": "HAS_CUDA_AND_TRITON"}}


def provide_old_names(path):
    with open(path) as file:
        text = file.read()
    for module, names in RENAMED.items():
        if module in text:
            found = importlib.import_module(module)
            for old, new in names.items():
                if not hasattr(found, old) and hasattr(found, new):
                    setattr(found, old, getattr(found, new))


def names_cuda(test):
    return "cuda" in inspect.getsource(getattr(type(test), test._testMethodName)).lower()


def cases(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def run(words, seconds):
    only_cuda = "--cuda" in words
    path, results, *patterns = [word for word in words if word != "--cuda"]
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    provide_old_names(path)
    spec.loader.exec_module(module)
    done = outcomes.read(results)
    result = Result(results, seconds)
    found = [test for test in cases(unittest.defaultTestLoader.loadTestsFromModule(module))
             if (not patterns or any(fnmatch.fnmatch(test.id(), f"*{pattern}*") for pattern in patterns))
             and (not only_cuda or names_cuda(test))]
    if not found:
        sys.exit(f"{path} has no such case here: is there a GPU, and Triton?")
    for test in found:
        if outcomes.named(test.id()) not in done:
            unittest.TestSuite([test]).run(result)
    return 0


if __name__ == "__main__":
    sys.exit(outcomes.main(run, __doc__))
