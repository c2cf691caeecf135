# SPDX-License-Identifier: MIT
"""What figures.py and growth.py share: they run the programs of a build and write into doc/. Standard library only."""

import json
import lzma
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "doc" / "performance.md"
CORES = len(os.sched_getaffinity(0))
RUNTIME = os.environ.get("HIPMM_RUNTIME", "software")
MIMALLOC_PLACES = ["libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"]

median = statistics.median


def say(text):
    print(text, file=sys.stderr, flush=True)


def preloads(library):
    """Whether the dynamic linker finds it; it only warns when it does not."""
    environment = {**os.environ, "LD_PRELOAD": library}
    return not subprocess.run(["/bin/true"], env=environment, stderr=subprocess.PIPE, check=False).stderr


class Bench:
    """A build tree, and a folder for the graphs and traces of this run."""

    def __init__(self, build):
        self.build = Path(build).resolve()
        for program in "hipmm", "tests/lab/bench/host_malloc":
            if not (self.build / program).exists():
                raise SystemExit(f"{self.build / program} is not built; `make -C BUILD figures` builds it")
        self.folder = Path(tempfile.mkdtemp(prefix="hipmm-bench."))
        named = os.environ.get("MIMALLOC")
        self.mimalloc = next(filter(preloads, [named] if named else MIMALLOC_PLACES), None)
        self.host_name = "mimalloc" if self.mimalloc else "glibc"
        # The logs are of a card that has more than the software device has by itself.
        self.environment = {"HIPMM_SOFTWARE": "memory=64GiB", **os.environ, "HIPMM_RUNTIME": RUNTIME}
        self.environment["HIPMM_PLUGIN_PATH"] = f"{self.build}/plugins:{self.build}/tests/lab/bench/.libs"
        self.default = self.graph("pool", "device")

    def close(self):
        shutil.rmtree(self.folder)

    def graph(self, *stack):
        """The file of a straight stack, under the name of what stands in it."""
        name = "-".join(part if isinstance(part, str) else "-".join(map(str, part.values())) for part in stack)
        path = self.folder / (name.replace("/", "_") + ".json")
        path.write_text(json.dumps({"version": 1, "stack": list(stack)}))
        return str(path)

    def run(self, command, **environment):
        words = [str(word) for word in command]
        environment = {**self.environment, **environment}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.stderr or done.stdout}")
        return json.loads(done.stdout)

    def bench(self, workload, *options, config=None, **environment):
        command = [self.build / "hipmm", "bench", "--json", "--workload", workload, *options]
        return self.run(command + ["--config", config or self.default], **environment)

    def compare(self, workload, configs, *options):
        command = [self.build / "hipmm", "bench", "--json", "--workload", workload, *options, "--compare", *configs]
        return self.run(command)["configurations"]

    def replay(self, trace, passes, config=None):
        command = [self.build / "hipmm", "replay", "--json", "--repeat", passes]
        return self.run(command + ["--config", config or self.default, trace])

    def host(self, workload, threads=1, live=1000, max_bytes=64 << 20, seconds=0.3):
        """ns of an operation of the process's malloc."""
        preload = {"LD_PRELOAD": self.mimalloc} if self.mimalloc else {}
        command = [self.build / "tests/lab/bench/host_malloc", workload, threads, live, max_bytes, seconds]
        return self.run(command, **preload)["ns_per_op"]

    def metadata(self, threads, streams, live, max_bytes, *options, **environment):
        command = [self.build / "tests/lab/bench/metadata", self.default, threads, streams, live, max_bytes]
        return self.run(command + list(options), **environment)

    def trace(self, path):
        """The trace as a file that can be read often."""
        path = Path(path)
        if path.suffix != ".xz":
            return path
        plain = self.folder / path.stem
        if not plain.exists():
            with lzma.open(path) as packed, open(plain, "wb") as file:
                shutil.copyfileobj(packed, file)
        return plain


# ---- The document


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def version():
    """The revision, and the hash of the pool's sources: of this clone, or of that which bundle.sh put here."""
    try:
        revision, *_, pool = (ROOT / "version").read_text().splitlines()
        return revision if revision.startswith("not ") else revision.split()[0], pool.split()[-1]
    except OSError:
        git = ["git", "-C", ROOT, "describe", "--always", "--dirty"]
        said = subprocess.run(git, capture_output=True, text=True, check=False)
        return said.stdout.strip() if said.returncode == 0 else "not from a repository", pool_hash()


def pool_hash():
    done = subprocess.run(["sh", ROOT / "tests/lab/bench/pool_hash.sh"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine(bench):
    """What a table says of its measurement; sentence() makes a sentence of it."""
    revision, pool = version()
    return {"date": time.strftime("%Y-%m-%d"), "revision": revision, "pool": pool, "processor": processor(),
            "cores": CORES, "load": round(os.getloadavg()[0], 1), "runtime": RUNTIME, "beside": bench.host_name}


def sentence(on):
    """tests/check-docs.sh looks for its words on the pool."""
    age = "" if on["pool"] == pool_hash() else ", of an older pool"
    return (f"Measured on {on['date']}: revision {on['revision']}, pool `{on['pool']}`{age}; {on['processor']}, "
            f"{on['cores']} core{'' if on['cores'] == 1 else 's'} (load {on['load']} before), runtime `{on['runtime']}`, "
            f"beside {on['beside']}.")


def table(head, rows):
    """Numbers stand right: every column but the first, unless its head begins with a space."""
    lines = ["| " + " | ".join(cell.strip() for cell in head) + " |"]
    left = [i == 0 or cell.startswith(" ") for i, cell in enumerate(head)]
    lines.append("|" + "|".join("---" if is_left else "--:" for is_left in left) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def with_earlier_rows(text, earlier):
    """The table, with those rows of the earlier one whose first cell it lacks: of logs that were not measured now."""
    name_of = lambda row: row.split("|")[1].strip()
    known = {name_of(row) for row in text.splitlines() if row.startswith("|")}
    kept = [row for row in earlier.splitlines() if row.startswith("| ") and name_of(row) not in known]
    return "\n".join([text, *kept])


def section(name):
    """What stands between the marks of the section."""
    return DOCUMENT.read_text().partition(f"<!-- {name}: measured -->\n")[2].partition(f"<!-- {name}: end -->")[0]


def write_section(name, text, keeps_rows=False):
    """Puts the text between the marks of the section, if the document has it, and prints it."""
    print(f"## {name}\n\n{text}\n", flush=True)
    begin, end = f"<!-- {name}: measured -->\n", f"<!-- {name}: end -->"
    document = DOCUMENT.read_text()
    if begin not in document or end not in document:
        return
    before, rest = document.split(begin, 1)
    earlier, after = rest.split(end, 1)
    if keeps_rows:
        text = with_earlier_rows(text, earlier)
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n\n{end}{after}")
