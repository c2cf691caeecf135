# SPDX-License-Identifier: MIT
"""A copy of the tree with a build of it, in which one file at a time is changed, built and tested. Used by mutate.py
and defects.py. Nothing is ever written into the tree itself."""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, folder, limit=None, env=None):
    """The exit status and the output; status -1 if it ran past the limit. Its process group ends with it."""
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return -1, output


class Workspace:
    """`folder` is made, or used again. The copy takes over the objects of the tree's own build, if there is one that
    was configured by a relative path, so that only what changes is compiled; else it is configured with `flags`."""

    def __init__(self, folder, build="build", flags=()):
        self.tree = os.path.abspath(folder)
        self.build = os.path.join(self.tree, "build")
        if not os.path.exists(os.path.join(self.build, "config.status")):
            self._copy(build, flags)
            for target in "all", "check-plugins":  # `all` is a make of its own, and two would build the same object
                status, output = self.make([target])
                if status:
                    raise SystemExit(f"the copy does not build:\n{output[-2000:]}")

    def _copy(self, build, flags):
        os.makedirs(self.tree, exist_ok=True)
        listed = [entry for entry in os.listdir(TOP)
                  if not entry.startswith((".git", "build", "dist")) or entry == "build-aux"]
        subprocess.run(["cp", "-a", *listed, self.tree], cwd=TOP, check=True)
        if not flags and self._is_relocatable(os.path.join(TOP, build)):
            subprocess.run(["cp", "-a", os.path.join(TOP, build), self.build], check=True)
            return
        os.makedirs(self.build, exist_ok=True)
        if not os.path.exists(os.path.join(self.tree, "configure")):
            subprocess.run(["autoreconf", "-fi"], cwd=self.tree, check=True)
        subprocess.run(["../configure", "-q", "CFLAGS=-O1 -g0", "CXXFLAGS=-O1 -g0", *flags], cwd=self.build, check=True)

    @staticmethod
    def _is_relocatable(build):
        try:
            with open(os.path.join(build, "Makefile"), encoding="utf-8") as file:
                return "\nsrcdir = ..\n" in file.read()
        except OSError:
            return False

    def path(self, name):
        return os.path.join(self.tree, name)

    def make(self, targets):
        return run(["make", "-s", "-j", os.environ.get("JOBS", "1"), *targets], self.build)

    def restore(self, names):
        for name in names:
            shutil.copyfile(os.path.join(TOP, name), self.path(name))

    def objects(self, name):
        """A number for the machine code that the file became: two equal ones mean that a change changed nothing."""
        digest = hashlib.sha256()
        folder, stem = os.path.split(os.path.splitext(name)[0])
        for place, _, files in sorted(os.walk(os.path.join(self.build, folder))):
            for file in sorted(files):
                if file.endswith(".o") and (file == stem + ".o" or file.endswith("-" + stem + ".o")):
                    bare = os.path.join(self.tree, "bare.o")
                    subprocess.run(["objcopy", "--strip-debug", os.path.join(place, file), bare], check=True)
                    with open(bare, "rb") as code:
                        digest.update(file.encode() + code.read())
        return digest.hexdigest()

    def environment(self, build=None):
        build = build or self.build
        env = {key: value for key, value in os.environ.items() if not re.match("HIPMM_(?!TEST_)", key)}
        env.update(HIPMM_PLUGIN_PATH=os.path.join(build, "plugins"), CMOCKA_MESSAGE_OUTPUT="TAP",
                   HIPMM_UMF=os.path.join(build, "tests/doors/stand_in/.libs/umf.so"), top_srcdir=self.tree,
                   top_builddir=build)
        return env

    def test(self, program, limit=120):
        """The exit status (0: passed; -1: ran past the limit), the output, and the seconds."""
        began = time.monotonic()
        status, output = run([os.path.join(self.build, program)], self.build, limit, self.environment())
        return status, output, time.monotonic() - began
