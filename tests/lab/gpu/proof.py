# SPDX-License-Identifier: MIT
"""What the steps of prove.py share: programs of the bundle run with a time limit, checks that are counted, figures that
become a table and JSON. Standard library only."""

import json
import lzma
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LATE = 124  # the status of a program that took too long


class Done:
    """How a program ended: its status, negative after a signal, and what it wrote."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def json(self):
        """What it printed, or its last line of JSON; None if there is none."""
        for text in (self.out, *reversed(self.out.splitlines())):
            try:
                found = json.loads(text)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
        return None

    def last_words(self):
        """Why it failed, in a line."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        how = "took too long" if self.status == LATE else f"status {self.status}"
        return f"{how}: {lines[-1][:300]}" if lines else how


class Proof:
    """A run: where the bundle is, and what has come of it so far."""

    def __init__(self, bundle, seconds):
        self.bundle = Path(bundle).resolve()
        self.runtime = os.environ.get("PROVE_RUNTIME") or "nvidia"
        self.on_gpu = self.runtime != "software"
        self.ends = time.monotonic() + seconds
        self.step_ends = self.ends
        self.folder = Path(tempfile.mkdtemp(prefix="hipmm-prove."))
        self.checks, self.tables, self.notes = [], [], []
        self.environment = self._environment()

    def _environment(self):
        kept = {name: text for name, text in os.environ.items() if not name.startswith("HIPMM_")}
        libraries = [str(self.bundle / "lib"), kept.get("LD_LIBRARY_PATH", "")]
        return {
            **kept,
            "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
            "HIPMM_RUNTIME": self.runtime,
            "HIPMM_PLUGIN_PATH": str(self.bundle / "plugins"),
            "HIPMM_LIBRARY": str(self.bundle / "lib/libhipmm.so.0"),
            "HIPMM_CONFIG": str(self.bundle / "etc/hipmm.json"),
            "CMOCKA_MESSAGE_OUTPUT": "TAP",
            "top_builddir": str(self.bundle),
            "top_srcdir": str(self.bundle),
            "PYTHONPATH": os.pathsep.join([str(self.bundle / "python"), kept.get("PYTHONPATH", "")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    # ---- Running

    def run(self, command, limit=120, **environment):
        """A variable that is None is taken away. The time limit is cut to what the step has left."""
        words = [str(word) for word in command]
        merged = {**self.environment, **environment}
        merged = {name: text for name, text in merged.items() if text is not None}
        limit = max(1.0, min(limit, self.step_ends - time.monotonic()))
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                child = subprocess.Popen(words, env=merged, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                         cwd=self.folder, start_new_session=True)
            except OSError as error:
                return Done(127, "", str(error), 0)
            try:
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                status = LATE
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return Done(status, *texts, time.monotonic() - began)

    def hipmm(self, *words, limit=120, **environment):
        return self.run([self.bundle / "hipmm", *words], limit, **environment)

    def python(self, script, *words, limit=120, **environment):
        return self.run([sys.executable, "-B", self.bundle / "tests/lab/gpu" / script, *words], limit, **environment)

    def python_text(self, text, limit=60):
        return self.run([sys.executable, "-c", text], limit)

    def revision(self):
        """Of the clone that the bundle was made from."""
        file = self.bundle / "version"
        return file.read_text().split("\n")[0] if file.exists() else "?"

    def card(self):
        """The line of `hipmm show` that tells of the first device."""
        devices = self.hipmm("show", limit=60)
        return next((line.strip() for line in devices.out.splitlines() if "device" in line), devices.last_words())

    def has_module(self, name):
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
        return self.python_text(look).status == 0

    def graph(self, *stack, **settings):
        """A file with this stack."""
        text = json.dumps({"version": 1, **settings, "stack": list(stack)})
        path = self.folder / f"{abs(hash(text)):x}.json"
        path.write_text(text)
        return path

    def unpacked(self, trace):
        plain = self.folder / trace.stem
        if not plain.exists():
            with lzma.open(trace) as packed, open(plain, "wb") as file:
                while chunk := packed.read(1 << 22):
                    file.write(chunk)
        return plain

    # ---- What came of it

    def check(self, name, good, detail=""):
        self.checks.append({"name": name, "good": bool(good), "detail": "" if good else str(detail)})
        return bool(good)

    def leave_out(self, name, why):
        self.checks.append({"name": name, "good": None, "detail": why})

    def table(self, title, head):
        table = {"title": title, "head": head, "rows": []}
        self.tables.append(table)
        return table["rows"]

    def tap(self, name, done):
        """A check for each line of a test program's TAP; what it says itself of failures goes along."""
        if match := re.search(r"^1\.\.0 # SKIP ?(.*)", done.out, re.M):
            return self.leave_out(name, match[1])
        failed = 0
        for line in done.out.splitlines():
            if match := re.match(r"(not )?ok \d+ (?:- )?# SKIP (.*)", line) or re.match(
                    r"(not )?ok \d+ - (.*?) # SKIP", line):
                self.leave_out(f"{name}: {match[2]}", "needs what this runtime has not")
            elif match := re.match(r"(not )?ok \d+ -? ?(.*)", line):
                failed += not self.check(f"{name}: {match[2]}", not match[1], self._said(done, match[2]))
        planned = re.search(r"^1\.\.(\d+)", done.out, re.M)
        counted = len(re.findall(r"^(?:not )?ok \d+", done.out, re.M))
        if planned and counted < int(planned[1]) or not planned or (done.status and not failed):
            self.check(f"{name}: ends", False, f"after {counted} tests: {done.last_words()}")

    @staticmethod
    def _said(done, test):
        """The diagnostic lines after `not ok N - TEST`, and the first lines of errors."""
        lines = done.out.splitlines()
        at = next((i for i, line in enumerate(lines) if line.startswith("not ok") and line.endswith(test)), None)
        said = [] if at is None else [line.lstrip("# ") for line in lines[at + 1:at + 4] if line.startswith("#")]
        said += [line for line in done.err.splitlines() if "ERROR" in line][:2]
        return " / ".join(said)[:400]


# ---- Printing


def print_table(table):
    cells = [table["head"], *([str(cell) for cell in row] for row in table["rows"])]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table["head"]))]
    print(f"  {table['title']}")
    for row in cells:
        words = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        print("    " + "  ".join(words).rstrip())


def number(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def mib(value):
    return "-" if value is None else f"{value / (1 << 20):,.0f}"
