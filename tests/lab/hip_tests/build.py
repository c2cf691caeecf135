# SPDX-License-Identifier: MIT
"""build.py CHECKOUT HEADERS BUILD: one host program for each file of tests, in BUILD/bin; called by run.sh. What does
not compile without a GPU compiler is named, with the compiler's messages in BUILD/log."""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

from convert import convert

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("callback context device device_memory errorHandling event executionControl hip_specific kernel memory "
           "multiThread occupancy p2p stream streamperthread synchronization threadfence virtualMemoryManagement")
COMMON = ("hip_test_common.hh", "hip_test_checkers.hh", "resource_guards.hh", "utils.hh")
STUBS = r"""#include <stdio.h>
#include <unistd.h>
static int missing(const char *name) { fprintf(stderr, "missing: %s\n", name); fflush(0); _exit(78); }
"""


class Builder:
    def __init__(self, checkout, headers, build):
        self.source, self.build = os.path.join(checkout, "catch"), build
        self.tree = os.path.join(build, "tests")
        self.flags = ["-std=c++17", "-O0", "-w", "-fPIC", "-pthread", "-D__HIP_PLATFORM_AMD__",
                      "-DHIP_ENABLE_WARP_SYNC_BUILTINS", f'-DKERNELS_PATH="{self.tree}/kernels/"', f"-I{HERE}/include",
                      f"-I{self.tree}/include", f"-I{self.tree}/external/Catch2", f"-I{self.tree}/external/picojson",
                      f"-I{self.tree}/kernels", f"-I{headers}"]
        self.software = os.path.join(build, "hipmm", "plugins", "runtimes", "software", ".libs", "software.so")
        self.headers = headers

    def path(self, *parts):
        path = os.path.join(self.build, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def run(self, log, *command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            with open(self.path("log", log), "a", encoding="utf-8") as file:
                file.write(" ".join(command) + "\n" + done.stdout)
        return done.returncode == 0

    def convert_tree(self):
        if os.path.isdir(self.tree):
            return
        for folder, _, files in os.walk(self.source):
            target = os.path.join(self.tree, os.path.relpath(folder, self.source))
            os.makedirs(target, exist_ok=True)
            for name in files:
                path = os.path.join(folder, name)
                if name == "catch.hpp" or not name.endswith((".cc", ".hh", ".h", ".inl", ".cpp")):
                    shutil.copy(path, target)
                    continue
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                try:
                    text = convert(text)
                except IndexError:  # a macro has a half of the configuration
                    print("not converted:", path)
                with open(os.path.join(target, name), "w", encoding="utf-8") as file:
                    file.write(text)

    def make_libraries(self):
        """The main function with its helpers; and a stub for each function of HIP that software.so lacks, which ends the
        program with the function's name."""
        exported = subprocess.run(["nm", "-D", "--defined-only", self.software], capture_output=True, check=True).stdout
        names = set()
        for header in ("hip_runtime_api.h", "hip_ext.h", "hiprtc.h"):
            with open(os.path.join(self.headers, "hip", header), encoding="utf-8") as file:
                text = file.read()
            functions = set(re.findall(r"\b(_*hip(?:rtc)?[A-Z]\w*)\s*\(", text))
            renamed = {new for old, new in re.findall(r"^#define (\w+) (\w+)$", text, re.M) if old in functions}
            names |= functions | renamed
        missing = sorted(names - set(exported.decode().split()) - {"hipCreateChannelDesc"})
        with open(self.path("missing.c"), "w", encoding="utf-8") as file:
            file.write(STUBS)
            file.writelines(f'int {name}(void) {{ return missing("{name}"); }}\n' for name in missing)
        library = self.path("lib", "libmissing.so")
        shutil.copy(self.software, self.path("lib", "software.so"))
        good = self.run("missing", "gcc", "-w", "-shared", "-fPIC", "-o", library, self.path("missing.c"))
        main = [path for path in glob.glob(f"{self.tree}/hipTestMain/*.cc") if "standalone" not in path]
        main += glob.glob(f"{self.tree}/kernels/*.cpp")
        with open(self.path("common.hh"), "w", encoding="utf-8") as file:
            file.writelines(f"#include <{name}>\n" for name in COMMON)
        header = self.path("common.hh")
        good &= os.path.exists(header + ".gch") or self.run("common", "g++", *self.flags, "-x", "c++-header", header)
        output = self.path("lib", "libtestmain.so")
        if not os.path.exists(output):
            good &= self.run("main", "g++", *self.flags, "-shared", "-o", output, *main, f"{HERE}/channel.cc", "-lstdc++fs")
        if not good:
            sys.exit(f"the main program of the tests does not build: {self.build}/log")

    def compile(self, folder, log, source, output):
        return self.run(log, "g++", *self.flags, "-include", self.path("common.hh"), f"-I{self.tree}/unit/{folder}",
                        "-c", source, "-o", output)

    def common_objects(self, folder):
        """What several files of a folder share, and no test."""
        objects = []
        for source in sorted(glob.glob(f"{self.tree}/unit/{folder}/*.cc")):
            with open(source, encoding="utf-8") as file:
                text = file.read()
            if "TEST_CASE" in text or "int main(" in text:
                continue
            name = os.path.basename(source)
            output = self.path("obj", folder, name + ".o")
            if os.path.exists(output) or self.compile(folder, f"{folder}/{name}", source, output):
                objects.append(output)
        return objects

    def make_program(self, job):
        folder, source, common = job
        name = os.path.splitext(os.path.basename(source))[0]
        program, log, output = self.path("bin", folder, name), f"{folder}/{name}", self.path("obj", folder, name + ".o")
        if os.path.exists(program):
            return True
        library = self.path("lib", "")
        return self.compile(folder, log, source, output) and self.run(
            log, "g++", "-o", program, output, *common, f"-L{library}", "-ltestmain", "-Wl,--no-as-needed",
            self.path("lib", "software.so"), "-lmissing", "-pthread", "-ldl", "-lrt", "-lstdc++fs", "-Wl,-z,lazy",
            f"-Wl,-rpath,{library}")

    def make_programs(self):
        jobs = []
        for folder in os.environ.get("FOLDERS", FOLDERS).split():
            common = self.common_objects(folder)
            for source in sorted(glob.glob(f"{self.tree}/unit/{folder}/*.cc")):
                with open(source, encoding="utf-8") as file:
                    text = file.read()
                if "TEST_CASE" in text and "int main(" not in text:
                    jobs.append((folder, source, common))
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
            results = list(pool.map(self.make_program, jobs))
        missing = [os.path.relpath(job[1], self.tree) for job, built in zip(jobs, results) if not built]
        print(f"{len(jobs) - len(missing)} of {len(jobs)} files of tests were built; not: {', '.join(missing) or 'none'}")
        with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as file:
            known = {line.split("\t")[1] for line in file if line.startswith("unbuilt\t")}
        for name in sorted(set(missing) - known):
            print(f"FAIL: {name} does not build; see {self.build}/log")
        return not set(missing) - known


def main():
    builder = Builder(*map(os.path.abspath, sys.argv[1:4]))
    shutil.rmtree(builder.path("log", "")[:-1], ignore_errors=True)
    builder.convert_tree()
    builder.make_libraries()
    return not builder.make_programs()


if __name__ == "__main__":
    sys.exit(main())
