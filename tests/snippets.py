# SPDX-License-Identifier: MIT
"""snippets.py TOP WORK [PAGE...]: checks each block of code of the pages, or of some pages.

What a block is checked for depends on its language:

- json: `hipmm check` accepts it as a graph. It becomes the page's hipmm.json.
- c, cpp: a program is compiled and run, and becomes the page's ./program; a part of one is compiled within a function.
- python: it runs, with python/tests/fakes.py for PyTorch, CuPy, Numba and cuda.core. With a comment "# name.py" in its
  first line it becomes that file; a later block may run it then.
- sh: it runs. None of its commands fails.
- none, with "$ command" in its first line: the commands print what the page says. "…" stands for anything, alone on a line
  for any lines.
- none otherwise: it is a text.

The blocks of a page run in one folder in their order, which has the tree's folders beside it. Comments of HTML above a block:

<!-- not run: needs a GPU -->   the block is only parsed, for this reason.
<!-- with: code -->             code in the block's language that readers need not see, such as declarations.
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

TOP, WORK = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
HAS_PYTHON = (WORK / "python/hipmm/_hipmm.abi3.so").exists()
HEADERS = ("hipmm", "inspect", "memory", "reserve", "share", "span", "spill", "stream", "buffer", "vector", "torch")
SECONDS = 60


class Failed(Exception):
    """The block does not do what it should: the reason, and what was printed."""


class Missing(Exception):
    """What the block needs is not installed here."""


class Block:
    def __init__(self, page, line, language, text, comments):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.marks = {}
        for comment in comments:
            if match := re.match(r"(not run|with): ?(.*)", comment, re.S):
                self.marks[match[1]] = match[2].strip("\n")
        if self.language == "" and text.startswith("$ "):
            self.language = "console"

    @property
    def context(self):
        return self.marks.get("with", "")


def blocks_of(page):
    """The blocks of a page, each with the comments directly above it."""
    found, comments, lines = [], [], iter(enumerate(page.read_text().split("\n"), 1))
    for number, line in lines:
        if fence := re.match(r"( *)(`{3,})(\w*)", line):
            inside = itertools.takewhile(lambda pair: pair[1].strip() != fence[2], lines)
            text = "\n".join(part.removeprefix(fence[1]) for _, part in inside)
            found.append(Block(page, number, fence[3], text + "\n", comments))
            comments = []
        elif line.startswith("<!--"):
            while not line.rstrip().endswith("-->"):
                line += "\n" + next(lines)[1]
            comments.append(line.rstrip()[4:-3].strip(" "))
        elif line.strip():
            comments = []
    return found


class Page:
    """Runs the blocks of a page in a folder of its own."""

    def __init__(self, path):
        self.path, self.name = path, str(path.relative_to(TOP))
        self.blocks = blocks_of(path)
        self.folder = WORK / "pages" / self.name.replace("/", "-")
        self.folder.mkdir(parents=True)
        for part in TOP.iterdir():
            if part.is_dir() and not part.name.startswith((".", "build", "core")):
                (self.folder / part.name).symlink_to(part)
        (self.folder / "hipmm.json").write_text('{"stack": ["pool", "device"]}\n')
        self.environment = {
            **os.environ,
            "HOME": str(self.folder),
            "HIPMM_RUNTIME": "software",
            "HIPMM_SOFTWARE": "devices=2",
            "HIPMM_TORCH": "pluggable",  # the stand-in has no headers for the bridge
            "LC_ALL": "C.UTF-8",
        }

    def command(self, *words, input=None):
        """Runs a command: its exit status, and what it prints to either stream."""
        try:
            ended = subprocess.run(
                words,
                cwd=self.folder,
                env=self.environment,
                input=input,
                stdin=subprocess.DEVNULL if input is None else None,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"takes more than {SECONDS} s") from None
        return ended.returncode, ended.stdout

    def must(self, *words, input=None):
        status, printed = self.command(*words, input=input)
        if status != 0:
            raise Failed(f"exit status {status}\n{printed}")
        return printed

    # ---- The languages

    def json(self, block):
        (self.folder / "hipmm.json").write_text(block.text)
        self.must("hipmm", "check", "hipmm.json")

    def compiled(self, block, compiler, suffix, flags):
        if not compiler:
            raise Missing("a C++ compiler")
        if "main(" in block.text:
            source = self.folder / f"program.{suffix}"
            source.write_text(block.context + block.text)
            self.must(*compiler, *flags, "-Wall", "-Wextra", "-Werror", source.name, "-o", "program", *self.flags(suffix, block.text))
            self.must("./program")
            return
        includes = re.findall(r"^#include.*\n", block.context + "\n" + block.text, re.M)
        headers = ["<hipmm/hipmm.hpp>"] if suffix == "cpp" else [f"<hipmm/{name}.h>" for name in HEADERS]
        context, text = (re.sub(r"(?m)^#include.*\n?", "", part) for part in (block.context, block.text))
        source = "".join(f"#include {name}\n" for name in headers) + "".join(includes)
        source += f"{context}\nint part(void);\nint part(void)\n{{\n{text}}}\n"
        self.must(
            *compiler, *flags, "-Wall", "-Werror", "-Wno-unused", "-Wno-unused-result", "-Wno-return-type",
            "-fsyntax-only", "-x", "c++" if suffix == "cpp" else "c", "-", *self.flags(suffix, source), input=source,
        )  # fmt: skip

    def flags(self, suffix, text):
        of_26 = re.search(r"<rmm/mr/\w+\.hpp>", text)
        name = "hipmm" if suffix == "c" else "hipmm-rmm26" if of_26 else "hipmm-rmm"
        return shlex.split(self.must(os.environ.get("PKG_CONFIG") or "pkg-config", "--cflags", "--libs", name))

    def c(self, block):
        self.compiled(block, shlex.split(os.environ.get("CC") or "cc"), "c", ["-std=gnu11"])

    def cpp(self, block):
        self.compiled(block, shlex.split(os.environ.get("CXX") or ""), "cpp", ["-std=c++17"])

    def python(self, block):
        self.needs("python")
        name = re.match(r".*# (\w+\.py)\n", block.text)
        (self.folder / (name[1] if name else "block.py")).write_text(block.context + "\n" + block.text)
        later = self.blocks[self.blocks.index(block) + 1 :]
        if name and any(
            name[1] in other.text and other.language in ("sh", "console") and "not run" not in other.marks for other in later
        ):
            return
        status, printed = self.command("python", name[1] if name else "block.py")
        if (package := re.search(r"ModuleNotFoundError: No module named '(\w+)", printed)) and package[1] != "hipmm":
            raise Missing(f"Python's package {package[1]}")
        if status != 0:
            raise Failed(f"exit status {status}\n{printed}")

    def needs(self, text):
        if re.search(r"\bpython", text) and not HAS_PYTHON:
            raise Missing("Python's headers (Debian and Ubuntu: python3-dev)")
        if "c++ " in text and not os.environ.get("CXX"):
            raise Missing("a C++ compiler")

    def sh(self, block):
        self.needs(block.text)
        self.must("sh", "-eu", "-c", block.context + "\n" + block.text)

    def console(self, block):
        self.needs(block.text)
        if block.context:
            self.must("sh", "-eu", "-c", block.context)
        for part in re.split(r"(?m)^\$ ", block.text)[1:]:
            command, _, wanted = part.partition("\n")
            status, printed = self.command("sh", "-c", command)
            if status >= 126 or (status != 0 and not wanted):
                raise Failed(f"{command}: exit status {status}\n{printed}")
            if wanted and not matches(wanted, printed):
                raise Failed(f"{command} prints other text than the page:\n{printed}")

    # ---- The page

    def parse(self, block):
        """For a block that does not run."""
        if len(block.marks["not run"].split()) < 2:
            raise Failed('a reason is missing in "<!-- not run: REASON -->"')
        try:
            if block.language == "json":
                json.loads(block.text)
            elif block.language == "python":
                compile(block.text, self.name, "exec")
        except ValueError as error:
            raise Failed(f"is no {block.language}: {error}") from None
        except SyntaxError as error:
            raise Failed(f"is no Python: {error}") from None
        if block.language == "sh":
            self.must("sh", "-n", "-c", block.text)

    def check(self):
        """For each block its kind of result, and a line about it if it is not "run" or "text"."""
        for block in self.blocks:
            where = f"{self.name}:{block.line}"
            graph = (self.folder / "hipmm.json").read_bytes()
            try:
                if "not run" in block.marks:
                    self.parse(block)
                    yield "not run", f"{where}: not run: {block.marks['not run']}"
                elif block.language == "":
                    yield "text", ""
                elif block.language in ("json", "c", "cpp", "python", "sh", "console"):
                    getattr(self, block.language)(block)
                    yield "run", ""
                else:
                    raise Failed(f"nothing runs {block.language}: write <!-- not run: REASON --> above the block")
            except Missing as what:
                yield "skipped", f"SKIPPED: {where}: {what} is missing"
            except Failed as problem:
                yield "failed", f"FAIL: {where} ({block.language}): {problem}"
            finally:
                if block.context:  # readers do not see the graph that it may have written
                    (self.folder / "hipmm.json").write_bytes(graph)


def matches(wanted, printed):
    """Whether a text is what a page says. Addresses and the numbers of processes differ from run to run."""

    def plain(text):
        return re.sub(r"0x[0-9a-f]+|(?<=process )\d+", "…", text.rstrip("\n"))

    pattern = re.escape(plain(wanted) + "\n")
    pattern = re.sub(r"(?m)^(\\ )*…\\\n", "(.*\n)*?", pattern).replace("…", ".*")
    return re.fullmatch(pattern, plain(printed) + "\n") is not None


def main():
    pages = [TOP / name for name in sys.argv[3:]]
    for folder in ([] if pages else (".", "doc", "etc", "plugins", "python", "tests", "tools")):
        found = (TOP / folder).glob("[CRS]*.md" if folder == "." else "**/*.md")
        pages += sorted(path for path in found if "template" not in path.parts)
    counts = dict.fromkeys(("run", "not run", "text", "skipped", "failed"), 0)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for results in threads.map(lambda path: list(Page(path).check()), pages):
            for kind, line in results:
                counts[kind] += 1
                if line:
                    print(line)
    print(f"blocks of {len(pages)} pages: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit(counts["failed"] > 0 or counts["run"] == 0)


if __name__ == "__main__":
    main()
