# SPDX-License-Identifier: MIT
"""The copy of the tree that mutate.py changes, with a build that is made for speed: no debug information, thin archives,
the fastest linker there is."""
import filecmp
import os
import shutil
import subprocess

from build_commands import put_back
from workspace import TOP, Workspace, run


def sources_of(top):
    """The names of the tree's files: of a clone what git knows or may know, of an archive all but builds."""
    names = []
    if os.path.exists(os.path.join(top, ".git")):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=top, capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
    else:
        names = [os.path.relpath(os.path.join(place, name), top) for place, _, files in os.walk(top) for name in files]
        names = [name for name in names if not name.startswith("build") or name.startswith("build-aux/")]
    return {name for name in names if name and os.path.isfile(os.path.join(top, name))}


class MutantTree(Workspace):
    def __init__(self, folder, flags):
        self.tree, self.flags = os.path.abspath(folder), list(flags)
        self.build = os.path.join(self.tree, "build")
        self.scratch = os.path.join(self.tree, "scratch")
        os.makedirs(self.scratch, exist_ok=True)

    def update(self, programs, commands):
        """Takes over what changed in the tree, and builds what the programs need."""
        put_back(self.tree)
        self._copy_changes()
        if not os.path.exists(os.path.join(self.build, "config.status")):
            self._configure()
        # One after the other: `all` is a make of its own, and two would build the same library at the same time.
        for targets in (["all"], ["check-plugins", *programs]):
            status, output = run(["make", "V=1", "--output-sync=target", "-j", os.environ.get("JOBS", "1"), *targets],
                                 self.build)
            commands.learn(output)
            if status:
                raise SystemExit(f"the copy does not build:\n{output[-3000:]}")

    def _copy_changes(self):
        names = sources_of(TOP)
        for name in names:
            source, copy = os.path.join(TOP, name), os.path.join(self.tree, name)
            if not os.path.exists(copy) or not filecmp.cmp(source, copy, shallow=False):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(source, copy)
        for folder in ("core", "plugins", "include"):
            for place, _, files in os.walk(os.path.join(self.tree, folder)):
                for name in files:
                    path = os.path.join(place, name)
                    if name.endswith((".c", ".h")) and os.path.relpath(path, self.tree) not in names:
                        os.unlink(path)

    def _configure(self):
        os.makedirs(self.build, exist_ok=True)
        if not os.path.exists(os.path.join(self.tree, "configure")):
            subprocess.run(["autoreconf", "-fi"], cwd=self.tree, check=True)
        cache = "ccache " if shutil.which("ccache") else ""
        linker = ["LDFLAGS=-fuse-ld=lld"] if shutil.which("ld.lld") else []
        env = dict(os.environ, CC=cache + os.environ.get("CC", "gcc"),
                   CXX=cache + os.environ.get("CXX", "g++"))
        subprocess.run(["../configure", "-q", "CFLAGS=-O2 -g0 -w", "CXXFLAGS=-O1 -g0 -w", *linker, *self.flags],
                       cwd=self.build, env=env, check=True)

    def environment(self, build=None):
        env = super().environment(build)
        env["TMPDIR"] = self.scratch
        if any("thread" in flag for flag in self.flags):  # as tests/Makefile.inc has it
            env.update(TSAN_OPTIONS="allocator_may_return_null=1:atexit_sleep_ms=10", HIPMM_TEST_RUNS="1",
                       HIPMM_TEST_OPERATIONS="60", HIPMM_TEST_FAULTS="5")
        return env

    def empty_scratch(self):
        """What a program left that was ended."""
        for name in os.listdir(self.scratch):
            path = os.path.join(self.scratch, name)
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
