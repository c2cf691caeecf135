# SPDX-License-Identifier: MIT
"""Runs the cases of a test file of PyTorch's, and writes what became of each, one a line, so that two runs can be compared.

    torch_cases.py FILE RESULTS [--seconds 120] [--until SECONDS] [--cuda] [PATTERN…]
    torch_cases.py --compare NATIVE UNDER      the cases that pass in NATIVE alone; status 1 if there are any but EXPECTED

--cuda: only cases whose source names CUDA. A case that takes longer than --seconds ends the process, as a crash does: a later
call goes on with the next case. A later call repeats the case that --until has cut.
"""

import faulthandler
import fnmatch
import importlib.util
import inspect
import os
import subprocess
import sys
import time
import unittest


def read(file):
    results = {}
    if os.path.exists(file):
        with open(file) as lines:
            for line in lines:
                outcome, _, name = line.rstrip("\n").partition(" ")
                name, _, why = name.partition(" ")
                if outcome == "begun":
                    results.setdefault(name, ("crashed", ""))
                elif outcome == "cut":
                    results.pop(name, None)
                else:
                    results[name] = (outcome, why)
    return results


class Result(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self._file, self._open = file, open(file, "a", buffering=1)

    def _say(self, outcome, test, why=""):
        self._open.write(f"{outcome} {test.id()} {' '.join(str(why).split())[-300:]}".rstrip() + "\n")

    def startTest(self, test):
        self._say("begun", test)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        self._failed = False

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()

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


def run(path, results, only_cuda, patterns):
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    provide_old_names(path)
    spec.loader.exec_module(module)
    done = read(results)
    result = Result(results)
    found = [test for test in cases(unittest.defaultTestLoader.loadTestsFromModule(module))
             if (not patterns or any(fnmatch.fnmatch(test.id(), f"*{pattern}*") for pattern in patterns))
             and (not only_cuda or names_cuda(test))]
    if not found:
        sys.exit(f"{path} has no such case here: is there a GPU, and Triton?")
    for test in found:
        if test.id() not in done:
            unittest.TestSuite([test]).run(result)


def cut(results, size):
    """If a case is under way after the first `size` bytes of results, it is not done."""
    with open(results, "a+") as file:
        file.seek(size)
        outcome, _, name = (file.read().splitlines() or [""])[-1].partition(" ")
        if outcome == "begun":
            file.write(f"cut {name}\n")


# Cases of test_cuda.py that fail with any allocator but PyTorch's own, by the assertion that asks for its sizes or its reuse.
EXPECTED = {
    "test_graph_memory_stats_and_use_result_after_destroy_graph":
        'reserved_bytes of "small_pool" change by kSmallBuffer = 2097152: assertEqual(current, expected)',
    "test_graph_two_successive":
        'assertEqual(reserved_no_sharing - memory_stats()["reserved_bytes.all.current"], kSmallBuffer)',
    "test_record_stream_on_shifted_view":
        "no reuse until the other stream is done, rather than reuse in its order: assertNotEqual(try_realloc.data_ptr(), data_ptr)",
}


def compare(native, under):
    alone, with_hipmm = read(native), read(under)
    lost = {name: with_hipmm.get(name, ("missing", "")) for name, (outcome, _) in alone.items() if outcome == "passed"}
    lost = {name: found for name, found in lost.items() if found[0] != "passed"}
    gained = [name for name, (outcome, _) in with_hipmm.items()
              if outcome == "passed" and alone.get(name, ("", ""))[0] in ("failed", "crashed")]
    for label, results in (("native", alone), ("under", with_hipmm)):
        counts = {}
        for outcome, _ in results.values():
            counts[outcome] = counts.get(outcome, 0) + 1
        print(label, dict(sorted(counts.items())))
    expected = {name: EXPECTED[name.rpartition(".")[2]] for name, (outcome, _) in lost.items()
                if outcome == "failed" and name.rpartition(".")[2] in EXPECTED}
    for name, (outcome, why) in lost.items():
        print(f"expected {name}: {expected[name]}" if name in expected else f"LOST {name}: {outcome} {why}")
    for name in gained:
        print(f"gained {name}")
    return len(lost) > len(expected)


def main():
    global SECONDS
    words = sys.argv[1:]
    if words[0] == "--compare":
        return compare(*words[1:])
    options = {"--seconds": 120, "--until": 560}
    for option in options:
        if option in words:
            at = words.index(option)
            options[option] = int(words[at + 1])
            del words[at : at + 2]
    only_cuda = "--cuda" in words
    words = [word for word in words if word != "--cuda"]
    SECONDS = options["--seconds"]
    if os.environ.get("TORCH_CASES_CHILD"):
        run(words[0], words[1], only_cuda, words[2:])
        return 0
    end = time.monotonic() + options["--until"]
    for _ in range(40):
        before = len(read(words[1]))
        size = os.path.getsize(words[1]) if before else 0
        try:
            status = subprocess.run([sys.executable, "-B", *sys.argv], env={**os.environ, "TORCH_CASES_CHILD": "1"},
                                    timeout=max(1, end - time.monotonic())).returncode
        except subprocess.TimeoutExpired:
            cut(words[1], size)
            print("out of time; call again to go on")
            return 2
        if status == 0:
            return 0
        print(f"status {status} after {len(read(words[1]))} cases", flush=True)
        if len(read(words[1])) == before:
            return 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
