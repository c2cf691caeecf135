#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts each defect that hipmm once had back into a copy of the tree, and demands that its test fails.

    tests/lab/mutation/defects.py [--folder FOLDER] [--build BUILD] [NAME…]

A file of defects/ is a unified diff. The lines before it say what the defect did ("Defect: …"), what to build
("Build: …"), which test must fail ("Test: …"), and whether by not ending in time ("Hangs: yes"): with any other defect
that tells nothing, since the machine may be slow. The test must pass first without the defect. Ends with "N passed,
N failed"; a defect that its test does not notice, or that no longer applies, is a failure."""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from workspace import HERE, Workspace


class Defect:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.path, self.name = path, os.path.basename(path).removesuffix(".patch")
        header = dict(re.findall(r"^(Defect|Build|Test|Hangs): (.*)$", text, re.M))
        self.targets, self.test = header["Build"].split(), header["Test"]
        self.hangs = header.get("Hangs") == "yes"
        self.files = re.findall(r"^\+\+\+ b/(.*)$", text, re.M)

    def try_in(self, workspace):
        """What is wrong, or nothing."""
        if workspace.make([*self.targets, self.test])[0]:
            return "the tree does not build"
        status, _, usual = workspace.test(self.test)
        if status:
            return f"{self.test} fails without the defect"
        try:
            patch = subprocess.run(["patch", "-s", "-p1", "-i", self.path], cwd=workspace.tree, capture_output=True,
                                   text=True, check=False)
            if patch.returncode:
                return f"does not apply: {patch.stdout.strip()}"
            status, output = workspace.make([*self.targets, self.test])
            if status:
                return f"does not build: {output[:300]}"
            status, output, seconds = workspace.test(self.test, max(8, 10 * usual))
        finally:
            workspace.restore(self.files)
        failed = re.findall(r"^not ok \d+ - (\S+)", output, re.M)
        how = {0: "passes", -1: f"does not end in {seconds:.0f} s"}.get(status, f"fails, {len(failed)} cases: {failed[:1]}")
        print(f"{self.name}: {self.test} {how}", flush=True)
        if status == -1 and not self.hangs:
            return f"{self.test} does not end"
        return None if status else f"{self.test} does not notice it"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", help="where the copy goes, and stays; a temporary folder otherwise")
    parser.add_argument("--build", default="build", help="the build whose objects the copy takes over")
    options = parser.parse_intermixed_args()
    folder = options.folder or tempfile.mkdtemp(prefix="hipmm-defects.")
    defects = [Defect(path) for path in sorted(glob.glob(os.path.join(HERE, "defects", "*.patch")))]
    results = []
    try:
        workspace = Workspace(folder, options.build)
        for defect in defects:
            if not options.names or defect.name in options.names:
                results.append(defect.try_in(workspace))
                if results[-1]:
                    print(f"FAIL: {defect.name}: {results[-1]}", flush=True)
    finally:
        if not options.folder:
            shutil.rmtree(folder)
    failed = sum(map(bool, results))
    print(f"{len(results) - failed} passed, {failed} failed")
    return failed > 0 or not results


if __name__ == "__main__":
    sys.exit(main())
