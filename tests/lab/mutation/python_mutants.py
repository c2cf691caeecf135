# SPDX-License-Identifier: MIT
"""Changes of the Python package: each public function, method and property of python/hipmm does nothing and returns None,
one at a time, and python/src is changed as C sources elsewhere. The tests of python/tests must notice."""
import ast
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time

from sites import Site, sites_of
from workspace import TOP, run

PACKAGE = os.path.join("python", "hipmm")
STUBS = os.path.join(PACKAGE, "_hipmm.pyi")
FIRST = "from ._errors import ("  # of hipmm/__init__.py: what the extension has is taken away before anybody imports it
WHOLE_SUITE = 600


class Call(Site):
    """A name of a module that does nothing: a function or `Class.method`."""

    def __init__(self, name, qualified, line, is_property):
        self.name, self.kind, self.line, self.qualified = name, "call", line, qualified
        where = f"_hipmm.{qualified}" if name == STUBS else qualified
        nothing = "functools.wraps(REAL)(lambda *words, **named: None)"  # with the documentation and the signature of the real one
        if is_property:
            nothing = "property(lambda self: None, doc=REAL.__doc__)"
        self.changes = {line - 1: f"import functools; {where} = {nothing.replace('REAL', where)}"}
        self.key = f"{name}:call: {qualified}"

    def apply(self, text):
        """The changed module; of the stubs, the changed hipmm/__init__.py."""
        change = self.changes[self.line - 1]
        if self.name != STUBS:
            return f"{text}\n\n{change}\n"
        with open(os.path.join(TOP, PACKAGE, "__init__.py"), encoding="utf-8") as file:
            return file.read().replace(FIRST, f"{change}\n{FIRST}", 1)


def public(body):
    return [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]


def is_property(node):
    return any(getattr(word, "id", getattr(word, "attr", "")) in ("property", "cached_property", "setter")
               for word in node.decorator_list)


def calls_of(name, text):
    seen = set()
    for node in public(ast.parse(text).body):
        members = public(node.body) if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            qualified = member.name if member is node else f"{node.name}.{member.name}"
            if qualified not in seen and isinstance(member, ast.FunctionDef):
                seen.add(qualified)
                yield Call(name, qualified, member.lineno, is_property(member))


def python_sites(kinds):
    """All of them, in the order of the files."""
    for path in sorted(glob.glob(os.path.join(TOP, "python", "**", "*"), recursive=True)):
        name = os.path.relpath(path, TOP)
        if name.startswith(PACKAGE) and name.endswith((".py", ".pyi")) and "call" in kinds:
            of_file = calls_of
        elif name.startswith("python/src/") and name.endswith((".c", ".h")):
            of_file = sites_of
        else:
            continue
        with open(path, encoding="utf-8") as file:
            yield from (site for site in of_file(name, file.read()) if site.kind in kinds)


class PythonMutants:
    """A copy of the package and of the extension's objects, beside the virtual environment that python.sh made."""

    def __init__(self, folder, build, most_seconds):
        """Files of tests that take longer than `most_seconds` are left out where they do not name what is changed."""
        self.build, self.folder, self.most_seconds = os.path.abspath(build), os.path.abspath(folder), most_seconds
        self.package = os.path.join(self.folder, "package", "hipmm")
        script = os.path.join(TOP, "python", "tests", "python.sh")  # makes the virtual environment and the package
        env = {**os.environ, "top_srcdir": TOP, "top_builddir": self.build, "HIPMM_PLUGIN_PATH": os.path.join(self.build, "plugins")}
        status, output = run(["sh", script, "--collect-only"], TOP, None, env)
        made = os.path.join(self.build, "python", "package", "hipmm")
        if status or not os.path.exists(made):
            raise SystemExit(f"the tests of Python cannot be run:\n{output[-2000:]}")
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(made, self.package)
        os.makedirs(os.path.join(self.folder, "work"))
        command = os.path.join(self.package, "bin", "hipmm")  # finds its libraries by its place
        os.unlink(command)
        os.symlink(os.path.join(self.build, "hipmm"), command)
        self.python = glob.glob(os.path.join(self.build, "python", "venv-*", "bin", "python"))[0]
        self.tests = sorted(glob.glob(os.path.join(TOP, "python", "tests", "test_*.py")))
        self.texts = {}
        for test in self.tests:
            with open(test, encoding="utf-8") as file:
                self.texts[test] = file.read()
        self.sources = sorted(glob.glob(os.path.join(TOP, "python", "src", "*.c")))
        for source in self.sources:
            self._compile(source, self._object(source))
        self._link({})
        self.seconds, began = collections.Counter(), time.monotonic()
        result, by = self._test("", WHOLE_SUITE, ["--durations=0", "-vv"])
        self.limit = 3 * (time.monotonic() - began) + 20
        if result != "survived":
            raise SystemExit(f"a test of Python fails without a change: {by}")

    def _object(self, source):
        return os.path.join(self.folder, os.path.basename(source)[:-2] + ".o")

    def _compile(self, source, target):
        include = [f"-I{os.path.join(TOP, 'include')}", f"-I{os.path.join(TOP, 'python', 'src')}",
                   f"-I{sysconfig.get_path('include')}"]
        return run([os.environ.get("CC", "cc"), "-std=c11", "-O1", "-w", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE",
                    *include, "-c", source, "-o", target], TOP)

    def _link(self, changed):
        libraries = os.path.join(self.build, ".libs")
        objects = [changed.get(source) or self._object(source) for source in self.sources]
        target = os.path.join(self.package, "_hipmm.abi3.so")
        if os.path.lexists(target):
            os.unlink(target)
        status, output = run([os.environ.get("CC", "cc"), "-shared", "-o", target, *objects, f"-L{libraries}", "-lhipmm",
                              f"-Wl,-rpath,{libraries}"], TOP)
        if status:
            raise SystemExit(output)

    def _test(self, word, limit, words=()):
        """(result, the test that noticed). The files that name it most come first, then the quickest."""
        count = {test: len(re.findall(rf"\b{re.escape(word)}\b", text)) if word else 0 for test, text in self.texts.items()}
        files = sorted((test for test in self.tests if count[test] or self.seconds[os.path.basename(test)] <= self.most_seconds),
                       key=lambda test: (-count[test], self.seconds[os.path.basename(test)]))
        env = {name: text for name, text in os.environ.items() if not name.startswith("HIPMM_")}
        env.update(PYTHONPATH=os.path.dirname(self.package), PYTHONDONTWRITEBYTECODE="1", HIPMM_RUNTIME="software",
                   HIPMM_PLUGIN_PATH=os.path.join(self.build, "plugins"), top_srcdir=TOP, top_builddir=self.build)
        status, output = run([self.python, "-m", "pytest", "-q", *words, "-x", "-p", "no:cacheprovider", "-c", "/dev/null",
                              "--rootdir", os.path.join(TOP, "python", "tests"), *files], os.path.join(self.folder, "work"),
                             limit, env)
        for seconds, file in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +\S*?(test_\w+\.py)::", output, re.M):
            self.seconds[file] += float(seconds)
        if status == 0:
            return "survived", ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
        return "killed", failed[1] if failed else "did not end" if status == -1 else output.strip()[-100:]

    def judge(self, site, text):
        """(result, by) with the changed text of the site's file; the package is as it was afterwards."""
        if site.kind == "call":
            inside = os.path.relpath(site.name, PACKAGE) if site.name != STUBS else "__init__.py"
            path = os.path.join(self.package, inside)
            with open(path, encoding="utf-8") as file:
                before = file.read()
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                return self._test(site.qualified.rpartition(".")[2], self.limit)
            finally:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(before)
        return self._judge_source(site, text)

    def _judge_source(self, site, text):
        folder = os.path.join(self.folder, "changed")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(os.path.join(TOP, "python", "src"), folder)
        with open(os.path.join(folder, os.path.basename(site.name)), "w", encoding="utf-8") as file:
            file.write(text)
        changed = {}
        for source in self.sources if site.name.endswith(".h") else [os.path.join(TOP, site.name)]:
            changed[source] = self._object(source) + ".changed"
            status, output = self._compile(os.path.join(folder, os.path.basename(source)), changed[source])
            if status:
                return "invalid", next((line for line in output.splitlines() if "error" in line), output)[:200]
        if not any(self._differs(source, target) for source, target in changed.items()):
            return "same", ""
        self._link(changed)
        try:
            return self._test(os.path.basename(site.name)[:-2].capitalize(), self.limit)
        finally:
            self._link({})

    def _differs(self, source, target):
        with open(self._object(source), "rb") as before, open(target, "rb") as after:
            return before.read() != after.read()
