# SPDX-License-Identifier: MIT
"""The commands by which a build folder was made, read from what `make V=1` printed. After a change of one source file
only the commands that the change concerns run again, without make and libtool: a tenth of the time."""
import collections
import json
import os
import re
import subprocess

KEPT = ".before-mutation"  # beside what a mutant replaced
DEPENDENCY_FLAGS = re.compile(r" -MT \S+| -MD| -MP| -MF \S+")


class Command:
    """`kind` is compile, link or archive. `inputs`: the files that it reads, in the build folder or, of the sources,
    in the tree."""

    def __init__(self, kind, text, output, inputs, depends=""):
        self.kind, self.text, self.output, self.inputs, self.depends = kind, text, output, inputs, depends


def thin(archive):
    return re.sub(r"\.a$", ".thin.a", archive)


class Reader:
    """Makes commands of the lines that make printed. Programs are linked with thin archives beside those of libtool: these
    take over each new object. Some objects of an archive are links that libtool removes again: to an object whose name is
    there twice, and to those of an archive inside."""

    def __init__(self, compilers, commands):
        self.compilers, self.commands, self.links = compilers, commands, {}

    def object_behind(self, name):
        if inside := re.search(r"\.lax/([^/]+\.a)/([^/]+)$", name):
            archives = (command for command in self.commands.values() if command.kind == "archive")
            return next(input for command in archives if os.path.basename(command.output) == inside.group(1)
                        for input in command.inputs if os.path.basename(input) == inside.group(2))
        return self.links.get(name, name)

    def read(self, line):
        """The command of the line, or None."""
        text = re.sub(r"^libtool: (compile|link): +", "", line).split(" &&")[0].replace(" >/dev/null 2>&1", "").strip()
        words = text.split()
        if line.startswith("libtool: link: ln "):
            self.links[words[2]] = words[1]
            return None
        if words[:1] == ["ar"] and words[1:2] == ["cr"]:
            archive, objects = words[2], [self.object_behind(word) for word in words[3:]]
            text = f"rm -f {thin(archive)}; ar crT {thin(archive)} {' '.join(objects)}"
            return Command("archive", text, os.path.normpath(archive), objects)
        output = re.search(r" -o (\S+)", text)
        if not output or not text.startswith(self.compilers):
            return None
        if " -c " not in text:
            inputs = [word for word in words if re.search(r"\.(o|a)$", word)]
            return Command("link", re.sub(r"\.a(?= |$)", ".thin.a", text), output.group(1), inputs)
        depends = re.search(r" -MF (\S+)", text)
        return Command("compile", DEPENDENCY_FLAGS.sub("", text), output.group(1), [], depends.group(1) if depends else "")


def sources_in(path):
    """The files of the tree in what -MD wrote; make has renamed it meanwhile."""
    for name in (re.sub(r"Tpo$", "Po", path), re.sub(r"Tpo$", "Plo", path)):
        if os.path.isfile(name):
            with open(name, encoding="utf-8") as file:
                text = file.read()
            inside = (word for word in text.replace("\\\n", " ").split() if word.startswith("../") and word[-1] != ":")
            return sorted({os.path.normpath(word[3:]) for word in inside})
    return []


class BuildCommands:
    """`build` is the build folder, one level below the tree. What was learned stays in build/commands.json: make prints
    only what it does."""

    def __init__(self, build):
        self.build, self.commands = build, {}
        self.kept_file = os.path.join(build, "commands.json")
        if os.path.exists(self.kept_file):
            with open(self.kept_file, encoding="utf-8") as file:
                self.commands = {row["output"]: Command(**row) for row in json.load(file)}
        self._index()

    def learn(self, output):
        with open(os.path.join(self.build, "Makefile"), encoding="utf-8") as file:
            found = dict(re.findall(r"^(CC|CXX) = (.*)$", file.read(), re.M))
        compilers = tuple(f"{compiler} " for compiler in found.values() if compiler)
        reader = Reader(compilers, self.commands)
        for line in output.replace("\\\n", " ").split("\n"):
            if command := reader.read(line):
                self.commands[command.output] = command
                if command.kind == "archive":
                    self.run(command.output)
        for command in self.commands.values():
            if command.kind == "compile":
                command.inputs = sources_in(os.path.join(self.build, command.depends))
        with open(self.kept_file, "w", encoding="utf-8") as file:
            json.dump([vars(command) for command in self.commands.values()], file)
        self._index()

    def _index(self):
        self.compiled_from = collections.defaultdict(list)
        for command in self.commands.values():
            for name in command.inputs if command.kind == "compile" else ():
                self.compiled_from[name].append(command.output)
        self.closures = {}

    def objects_in(self, output):
        """All objects that a program, a library or an archive is linked of."""
        if output not in self.closures:
            command, found = self.commands.get(output), set()
            for name in (os.path.normpath(name) for name in command.inputs) if command else ():
                found |= {name} if name.endswith(".o") else self.objects_in(name)
            self.closures[output] = found
        return self.closures[output]

    def outputs_of(self, targets):
        """The libraries that make's targets stand for."""
        libraries = [name for name, command in self.commands.items() if command.kind == "link" and name.endswith(".so")]
        found = set()
        for target in targets:
            folder, name = os.path.split(target)
            prefix = {"all": "plugins/", "check-plugins": "tests/"}.get(target, f"{folder}/.libs/{name[:-3]}.so")
            found |= {library for library in libraries if library.startswith(prefix)}
        return sorted(found)

    def run(self, output, extra=""):
        """The exit status and what the command printed."""
        text = re.sub(r"^ccache ", "", self.commands[output].text) + extra
        done = subprocess.run(text, shell=True, cwd=self.build, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        return done.returncode, done.stdout


class DoesNotCompile(Exception):
    pass


class Mutant:
    """A change of one source file. What it touches is kept beside itself, and put back at the end."""

    def __init__(self, commands, tree, name, text):
        self.commands, self.tree, self.name, self.text = commands, tree, name, text
        self.changed, self.compiled, self.linked, self.kept = set(), set(), set(), []

    def __enter__(self):
        self._keep(os.path.join(self.tree, self.name))
        with open(os.path.join(self.tree, self.name), "w", encoding="utf-8") as file:
            file.write(self.text)
        return self

    def __exit__(self, *_):
        for path in reversed(self.kept):
            os.replace(path + KEPT, path)

    def _keep(self, path):
        os.replace(path, path + KEPT)
        self.kept.append(path)

    def _compile(self, objects):
        for name in sorted(objects - self.compiled):
            path = os.path.join(self.commands.build, name)
            self._keep(path)
            status, output = self.commands.run(name)
            if status:
                raise DoesNotCompile(output)
            self.compiled.add(name)
            with open(path, "rb") as new, open(path + KEPT, "rb") as old:
                if new.read() != old.read():
                    self.changed.add(name)

    def build_for(self, program, libraries, objects):
        """Builds what the program and the plugins have of the objects. False: all of it is the same machine code."""
        outputs = [*libraries, program]
        for output in outputs:
            self._compile(self.commands.objects_in(output) & objects)
        is_other = False
        for output in outputs:
            if self.commands.objects_in(output) & self.changed:
                is_other = True
                if output not in self.linked:
                    self._keep(os.path.join(self.commands.build, output))
                    status, text = self.commands.run(output)
                    if status:
                        raise DoesNotCompile(text)
                    self.linked.add(output)
        return is_other


def put_back(folder):
    """What a mutant left that was ended in the middle."""
    for place, _, files in os.walk(folder):
        for name in files:
            if name.endswith(KEPT):
                os.replace(os.path.join(place, name), os.path.join(place, name[:-len(KEPT)]))
