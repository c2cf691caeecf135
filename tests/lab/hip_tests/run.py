# SPDX-License-Identifier: MIT
"""run.py BUILD alone|run [FILTER...]: each case in a process of its own; called by run.sh. A case is

pass        fail: a check failed      crash: ended by a signal (6 is also the tests' own abort())
timeout     missing: calls a function of HIP that software.so does not have
gpu         needs more of a GPU than kernels of independent threads      unserved: `hipmm run` could not serve the program

known.txt has the cases that do not pass, with the ways in which they may end and the reasons, and the functions that are
missing; what else does not pass, or ends in another way, is a failure, and so is a row of one mode whose case passes."""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def known_cases():
    """(mode, FOLDER/FILE, CASE) -> ways to end, and why; and the functions that may be missing."""
    known, missing = {}, set()
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("#") or not line:
                continue
            fields = line.split("\t")
            if fields[0] == "missing":
                missing.add(fields[1])
            elif fields[0] != "unbuilt":
                known[tuple(fields[:3])] = fields[3].split(", "), fields[4]
    return known, missing


class Runner:
    def __init__(self, build, mode, folder):
        self.build, self.mode = build, mode
        self.programs = os.path.join(build, "bin")
        self.limit = os.environ.get("LIMIT", "60")
        software = os.path.join(build, "hipmm", "plugins", "runtimes", "software", ".libs", "software.so")
        for name in ("software.so", "libamdhip64.so", "libamdhip64.so.6"):
            os.symlink(software, os.path.join(folder, name))
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("HIPMM_")}
        self.env.update(LC_ALL="C", HIPMM_SOFTWARE="devices=2,memory=16GiB", HIP_CATCH_EXCLUDE_FILE="/nonexistent",
                        LD_LIBRARY_PATH=folder + ":" + os.path.join(build, "lib"))
        self.front = []
        if mode == "run":
            config = os.path.join(folder, "hipmm.json")
            with open(config, "w", encoding="utf-8") as file:
                file.write(os.environ.get("GRAPH", '{"stack": ["pool", "device"]}'))
            self.env.update(HIPMM_RUNTIME="software", HIPMM_PLUGIN_PATH=os.path.join(build, "hipmm", "plugins"))
            self.front = [os.path.join(build, "hipmm", "hipmm"), "run", "--config", config, "--"]

    def cases(self):
        """[program, case] of all; kept until a program is built anew."""
        cache = os.path.join(self.build, "cases.json")
        programs = sorted(path for path in glob.glob(self.programs + "/*/*") if os.path.isfile(path) and os.access(path, os.X_OK))
        if os.path.exists(cache) and os.path.getmtime(cache) > max(map(os.path.getmtime, programs)):
            with open(cache, encoding="utf-8") as file:
                return json.load(file)
        found = []
        for program in programs:
            listed = subprocess.run([program, "--list-test-names-only"], capture_output=True, env=self.env, check=False)
            names = [line.strip() for line in listed.stdout.decode().splitlines() if line.strip()]
            if not names and listed.returncode:  # without a case, as where all are another platform's, it is 0
                sys.exit(f"{program} does not start")
            found += [[os.path.relpath(program, self.programs), name] for name in names]
        with open(cache, "w", encoding="utf-8") as file:
            json.dump(found, file)
        return found

    def run(self, case):
        program, name = case
        for char in "\\,[*":
            name = name.replace(char, "\\" + char)
        command = ["timeout", "-s", "KILL", self.limit, *self.front, os.path.join(self.programs, program), name]
        with tempfile.TemporaryFile("w+", errors="replace") as file, tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                  env=self.env, cwd=folder, check=False)
            file.seek(0)
            output = file.read(400000)
        return self.judge(done.returncode, output), output

    def judge(self, status, output):
        if match := re.search(r"^(?:missing|undefined symbol): (\w+)", output, re.M):
            return "missing " + match[1]
        if re.search(r"^HOST_KERNEL_NEEDS_GPU", output, re.M):
            return "gpu"
        if status in (137, -9):
            return "timeout"
        if self.mode == "run" and "goes on without hipmm" in output:
            return "unserved"
        if not status:
            return "empty" if "No test cases matched" in output or "No tests ran" in output else "pass"
        return "fail" if 0 < status < 128 else f"crash {status - 128 if status > 0 else -status}"


def keep_outputs(folder, results):
    for (program, name), (what, output) in results.items():
        if what != "pass":
            path = os.path.join(folder, program + "." + re.sub(r"[^\w.-]", "_", name)[:150])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{what}\n{output}")


def print_table(mode, results):
    """One line a folder, and one for all."""
    kinds = ("pass", "fail", "missing", "gpu", "crash", "timeout", "unserved", "empty")
    counts = collections.defaultdict(collections.Counter)
    for (program, _), (what, _) in results.items():
        for group in (program.split("/")[0], "all"):
            counts[group][what.split()[0]] += 1
    print(f"\n{mode:24}" + "".join(f"{kind:>9}" for kind in kinds))
    for group in sorted(counts, key=lambda name: (name == "all", name)):
        print(f"{group:24}" + "".join(f"{counts[group][kind]:9}" for kind in kinds))
    missing = collections.Counter(what.split()[1] for what, _ in results.values() if what.startswith("missing"))
    print("missing: " + ", ".join(f"{name} {count}" for name, count in missing.most_common()))


def main():
    build, mode, filters = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    known, may_miss = known_cases()
    with tempfile.TemporaryDirectory(prefix="hipmm-hip-tests.") as folder:
        runner = Runner(build, mode, folder)
        cases = [case for case in runner.cases() if not filters or any(part in ":".join(case) for part in filters)]
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
            results = {tuple(case): result for case, result in zip(cases, pool.map(runner.run, cases))}
    keep_outputs(os.path.join(build, "out", mode), results)
    print_table(mode, results)
    counts = collections.Counter()
    for (program, name), (what, _) in sorted(results.items()):
        kind, *function = what.split()
        if kind == "pass" and (mode, program, name) in known:
            counts["failed"] += 1
            print(f"FAIL: passes now, so its row in known.txt goes\t{program}\t{name}")
            continue
        if kind in ("pass", "gpu") or kind == "missing" and function[0] in may_miss:
            counts["passed" if kind == "pass" else "missing"] += 1
            continue
        ways, why = known.get((mode, program, name)) or known.get(("both", program, name)) or ((), "")
        if what not in ways:
            why = ""
        counts["explained" if why else "failed"] += 1
        print(f"{'' if why else 'FAIL: '}{what}\t{program}\t{name}" + (f"\t{why}" if why else ""))
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "missing", "explained", "failed")))
    return counts["failed"] > 0 or not results


if __name__ == "__main__":
    sys.exit(main())
