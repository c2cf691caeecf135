# SPDX-License-Identifier: MIT
"""Which lines of core/ and plugins/ a test program runs, and which objects have code of a line: a mutant concerns these
alone. A second build of the same commands, with gcov's instrumentation; a program runs there once, when first asked for."""
import hashlib
import json
import os
import re
import shutil
import subprocess

from programs import Limits, run_program
from workspace import TOP

FLAGS = " -O0 --coverage -fprofile-update=prefer-atomic"


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def identity(path):
    status = os.stat(path)
    return f"{status.st_mtime_ns}/{status.st_size}"


def modified(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


class LineCoverage:
    def __init__(self, workspace, commands):
        self.workspace, self.commands = workspace, commands
        self.folder = os.path.join(workspace.tree, "build-coverage")
        self.records, self.listed = os.path.join(self.folder, "lines"), {}
        self.listed_file = os.path.join(self.records, "listed.json")
        self.programs = {}
        if os.path.exists(self.listed_file):
            with open(self.listed_file, encoding="utf-8") as file:
                self.listed = json.load(file)

    def update(self):
        """Brings the build in line with the other one: what is not compiled of core/ or plugins/ is copied."""
        outputs = {os.path.normpath(name) for name in self.commands.commands}
        for place, _, files in os.walk(self.workspace.build):
            inside = os.path.relpath(place, self.workspace.build)
            os.makedirs(os.path.join(self.folder, inside), exist_ok=True)
            for name in files:
                path = os.path.normpath(os.path.join(inside, name))
                source, copy = os.path.join(place, name), os.path.join(self.folder, path)
                if path not in outputs and modified(source) != modified(copy):
                    shutil.copy2(source, copy)
        os.makedirs(self.records, exist_ok=True)
        wrapper = os.path.join(self.folder, "coverage.o")
        if not os.path.exists(wrapper):
            subprocess.run(["gcc", "-O1", "-fPIC", "-c", os.path.join(TOP, "tests", "coverage.c"), "-o", wrapper], check=True)
        self.link_flags = f" --coverage -Wl,--wrap=_exit,--wrap=abort,{wrapper}"
        for kind in ("compile", "archive", "link"):
            for command in self.commands.commands.values():
                if command.kind == kind:
                    self._make(command)

    def _make(self, command):
        output = os.path.join(self.folder, command.output)
        if command.kind == "compile":
            source = re.findall(r"([\w./-]+\.(?:c|cpp|cc))(?=\s|$)", command.text)[-1]
            inputs = [os.path.join(self.workspace.tree, name) for name in command.inputs]
            if not re.match(r"(\.\./)?(core|plugins)/", source):
                built = os.path.join(self.workspace.build, command.output)
                if modified(built) != modified(output):
                    shutil.copy2(built, output)
                return
            made = modified(re.sub(r"\.o$", ".gcno", output))
        else:
            inputs, made = [os.path.join(self.folder, name) for name in command.inputs], modified(output)
        if made and made >= max(map(modified, inputs), default=0):
            return
        extra = {"compile": FLAGS, "archive": "", "link": self.link_flags}[command.kind]
        done = subprocess.run(re.sub(r"^ccache ", "", command.text) + extra, shell=True, cwd=self.folder, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode:
            raise SystemExit(f"{command.output} cannot be made with instrumentation:\n{done.stdout[-2000:]}")

    def _measure(self, program):
        """Runs the program once: {file: the lines that ran}."""
        for place, _, files in os.walk(self.folder):
            for name in files:
                if name.endswith(".gcda"):
                    os.remove(os.path.join(place, name))
        run_program(os.path.join(self.folder, program), self.folder, self.workspace.environment(self.folder),
                    Limits(300, 300))
        counts = [os.path.relpath(os.path.join(place, name), self.folder)
                  for place, _, files in os.walk(self.folder) for name in files if name.endswith(".gcda")]
        ran = {}
        for first in range(0, len(counts), 100):
            text = subprocess.run(["gcov", "-j", "-t", *counts[first:first + 100]], cwd=self.folder, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            for line in text.splitlines():
                self._take(json.loads(line), ran)
        return {name: sorted(lines) for name, lines in ran.items()}

    def _take(self, counted, ran):
        made_from = re.sub(r"\.gcda$", ".o", counted["data_file"])
        for file in counted["files"]:
            name = os.path.normpath(os.path.join("build", file["file"]))
            if not name.startswith(("core/", "plugins/")):
                continue
            digest = digest_of(os.path.join(self.workspace.tree, name))
            known = self.listed.get(name)
            if not known or known["digest"] != digest:
                known = self.listed[name] = {"digest": digest, "lines": {}}
            for line in file["lines"]:
                objects = known["lines"].setdefault(str(line["line_number"]), [])
                if made_from not in objects:
                    objects.append(made_from)
                if line["count"]:
                    ran.setdefault(name, set()).add(line["line_number"])

    def _record(self, program, name):
        """What the program runs; measured again if the program or the file has changed since."""
        stamp = identity(os.path.join(self.workspace.build, program))
        path = os.path.join(self.records, program.replace("/", "_") + ".json")
        if program not in self.programs and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.programs[program] = json.load(file)
        record = self.programs.get(program)
        digest = digest_of(os.path.join(self.workspace.tree, name))
        if not record or record["stamp"] != stamp or record["digests"].get(name, digest) != digest:
            ran = self._measure(program)
            digests = {file: digest_of(os.path.join(self.workspace.tree, file)) for file in ran}
            record = self.programs[program] = {"stamp": stamp, "digests": digests, "ran": ran}
            for file, value in ((path, record), (self.listed_file, self.listed)):
                with open(file, "w", encoding="utf-8") as out:
                    json.dump(value, out)
        return record

    def near(self, name, line):
        """The line, if it has code of its own; else the lines with code around it."""
        listed = sorted(map(int, self.listed.get(name, {"lines": {}})["lines"]))
        before, after = [at for at in listed if at <= line], [at for at in listed if at > line]
        return {line} if before[-1:] == [line] else set(before[-1:] + after[:1])

    def runs(self, program, site):
        ran = self._record(program, site.name)["ran"].get(site.name, [])
        return any(not self.near(site.name, number + 1).isdisjoint(ran) for number in site.changes)

    def objects_of(self, site):
        """The objects that have code of the site. Of a header these are told by its lines, if they have code."""
        lines = self.listed.get(site.name, {"lines": {}})["lines"]
        numbers = [str(number + 1) for number in site.changes]
        if site.name.endswith(".h") and all(number in lines for number in numbers):
            return {name for number in numbers for name in lines[number]}
        return set(self.commands.compiled_from[site.name])
