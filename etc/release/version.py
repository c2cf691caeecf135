#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hipmm's version. configure.ac has it, and what is built takes it from there. Files that nothing builds from a template have
copies: COPIES names them, and PAGES finds those in names of packages, as in hipmm-X.Y.Z.tar.xz.

  version.py                      prints the version
  version.py check                fails for a copy that differs, and for a copy that neither COPIES nor PAGES finds
  version.py set VERSION [DATE]   writes the version to configure.ac and the copies, and the date of the release

Called by tests/check-release.sh and etc/release/release.sh."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = re.compile(r"^AC_INIT\(\[hipmm\], \[([^]]*)\](?:, .*)?\)$", re.M)
NUMBER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d?)\.(0|[1-9]\d?)")  # below 100: HIPMM_VERSION is one number

# file, pattern whose group is the copy, part of the version
COPIES = [
    ("include/hipmm/version.h", r"^#define HIPMM_VERSION_MAJOR (.*)$", 0),
    ("include/hipmm/version.h", r"^#define HIPMM_VERSION_MINOR (.*)$", 1),
    ("include/hipmm/version.h", r"^#define HIPMM_VERSION_PATCH (.*)$", 2),
    ("tools/rust/Cargo.toml", r'^version = "(.*)"$', None),
    ("CITATION.cff", r"^version: (.*)$", None),
]
PAGES = re.compile(r"\b(?:lib)?hipmm0?(?:-[a-z]+)?[-_ =@/]{1,2}(\d+\.\d+\.\d+)(?![\w]|\.\d)")
# Files with the history of versions, and data
EXEMPT = re.compile(r"CHANGELOG\.md|configure(\.ac)?|tests/check-release\.sh|tests/data/.*|.*\.(xz|pickle|sqlite|svg|png)")


def part(version, which):
    return version if which is None else version.split(".")[which]


def source():
    found = SOURCE.findall((ROOT / "configure.ac").read_text())
    if len(found) != 1 or not NUMBER.fullmatch(found[0]):
        sys.exit("configure.ac needs one line AC_INIT([hipmm], [X.Y.Z])")
    return found[0]


def texts():
    """The text files of a clone, by path. Elsewhere a build can have left copies of its own, so only those of COPIES are looked at."""
    names = {file for file, _, _ in COPIES}
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)  # nothing, of another user's clone
        names.update(os.fsdecode(listed.stdout).split("\0"))
    for name in sorted(names):
        if (ROOT / name).is_file() and not EXEMPT.fullmatch(name):
            try:
                yield name, (ROOT / name).read_text()
            except UnicodeDecodeError:
                pass


def rows(name):
    return [(re.compile(pattern, re.M), which) for file, pattern, which in COPIES if file == name]


def check(version):
    wrong = []
    for file, pattern, _ in COPIES:
        if not re.search(pattern, (ROOT / file).read_text(), re.M):
            wrong.append(f"{file}: no line matches {pattern}")
    for name, text in texts():
        places = [(match, which) for pattern, which in rows(name) for match in pattern.finditer(text)]
        places += [(match, None) for match in PAGES.finditer(text)]
        known = {match.start(1) for match, _ in places}
        said = [(match, f"{match[0]!r} where the version is {version}; run version.py set {version}")
                for match, which in places if match[1] != part(version, which)]
        said += [(match, f"a copy of the version {version}; take it from configure.ac, or add a row to COPIES in version.py")
                 for match in re.finditer(rf"(?<![\w.])(?P<copy>{re.escape(version)})(?![\w]|\.\d)", text)
                 if match.start() not in known]
        wrong += [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {words}" for match, words in said]
    return wrong


def put(name, text, pattern, words):
    changed = pattern.sub(lambda match: text[match.start() : match.start(1)] + words + text[match.end(1) : match.end()], text)
    if changed != text:
        (ROOT / name).write_text(changed)
    return changed


def set_version(version, date):
    if not NUMBER.fullmatch(version):
        sys.exit(f"{version!r} is not a version; write three numbers with dots, such as 0.2.0, the last two below 100")
    put("configure.ac", (ROOT / "configure.ac").read_text(), SOURCE, version)
    for name, text in texts():
        for pattern, which in rows(name):
            text = put(name, text, pattern, part(version, which))
        text = put(name, text, PAGES, version)
        if date and name == "CITATION.cff":
            put(name, text, re.compile(r"^version: .*(\n(?:date-released: .*\n)?)", re.M), f"\ndate-released: {date}\n")


def main(arguments):
    match arguments:
        case []:
            print(source())
        case ["check"]:
            wrong = check(source())
            print(*wrong, sep="\n", end="\n" if wrong else "")
            return bool(wrong)
        case ["set", version, *date] if len(date) < 2:
            set_version(version, *date or [None])
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


sys.exit(main(sys.argv[1:]))
