# SPDX-License-Identifier: MIT
"""The step of prove.py that runs Python programs which know nothing of hipmm under `hipmm run`, whose hook gives hipmm to
PyTorch, CuPy and Numba when they are imported."""

import json
import sys

from proof import mib
from steps_programs import needs


def hooked(proof, script, *words):
    """The program under `hipmm run`: how it ended, what it printed, and its report, whose functions and memory count."""
    file = proof.folder / f"hook-{script}.json"
    command = ["run", "--strict", f"--report={file}", "--json", "--", sys.executable, "-B",
               proof.bundle / "tests/lab/gpu" / script, *words]
    done = proof.hipmm(*command, limit=90)
    lines = file.read_text().splitlines() if file.exists() else []
    reports = [report for report in map(json.loads, lines) if report["functions"]]
    return done, done.json() or {}, reports[0] if reports else {"functions": {}, "memory": []}


def served(proof, name, framework, done, report):
    """Whether the framework's allocations are in the report, and came from hipmm once each."""
    calls = report["functions"].get(f"{framework}: malloc", {"calls": 0, "failed": 0})
    proof.check(f"{name}: runs under hipmm run", done.status == 0, done.last_words())
    proof.check(f"{name}: its memory is hipmm's", calls["calls"] > 0 and not calls["failed"], f"{report}")
    peaks = [memory["peak_requested_bytes"] for memory in report["memory"] if memory["kind"] == "device"]
    proof.check(f"{name}: the report has its peak", peaks and peaks[0] > 0, f"{report['memory']}")


def pytorch(proof):
    """tests/lab/gpu/torch_train.py by itself, with hipmm.torch.use(), and as it is under hipmm run."""
    words = ["--steps", "15"]
    plain = proof.python("torch_train.py", "--allocator", "native", *words, limit=60)
    used = proof.python("torch_train.py", "--allocator", "hipmm", *words, limit=60)
    done, under, report = hooked(proof, "torch_train.py", "--allocator", "native", *words)
    served(proof, "PyTorch", "torch", done, report)
    alone, with_use = plain.json() or {}, used.json() or {}
    losses = [each.get("losses") for each in (alone, with_use, under)]
    proof.check("PyTorch: the same losses by itself, with use() and under hipmm run",
                losses[0] and losses[0] == losses[1] == losses[2], f"{losses}")
    held = [each.get("most_bytes_reserved", 0) for each in (with_use, under)]
    proof.check("PyTorch: holds under hipmm run what it holds with use()", held[1] and abs(held[1] - held[0]) <= held[0] / 50,
                f"{held} bytes")
    allocated = [each.get("most_bytes_allocated", 0) for each in (with_use, under)]
    proof.check("PyTorch: torch.cuda.max_memory_allocated() is the same", allocated[1] and allocated[0] == allocated[1],
                f"{allocated} bytes")
    peaks = [memory.get("peak_reserved_bytes", 0) for memory in report["memory"] if memory["kind"] == "device"]
    proof.check("PyTorch: the report's peak is torch.cuda.max_memory_reserved()", peaks and peaks[0] >= held[1] > 0,
                f"{peaks} and {held[1]} bytes")
    figures = proof.table("GPT-2 small, 15 steps", ["how", "steps/s", "most reserved MiB", "most allocated MiB"])
    for how, each in (("by itself", alone), ("hipmm.torch.use()", with_use), ("hipmm run", under)):
        figures.append([how, str(each.get("steps_per_second")), mib(each.get("most_bytes_reserved")),
                        mib(each.get("most_bytes_allocated"))])


def hook(proof):
    if needs(proof, "PyTorch", "torch"):
        pytorch(proof)
    if needs(proof, "CuPy", "cupy"):
        plain = proof.python("cupy_work.py", "--allocator", "pool", "--rounds", 10, limit=60)
        done, under, report = hooked(proof, "cupy_work.py", "--allocator", "pool", "--rounds", "10")
        served(proof, "CuPy", "cupy", done, report)
        results = [(each or {}).get("result") for each in (plain.json(), under)]
        proof.check("CuPy: the same results", results[0] and results[0] == results[1], f"{results}")
    if needs(proof, "Numba", "numba"):
        done, under, report = hooked(proof, "numba_work.py", "--plain")
        served(proof, "Numba", "numba", done, report)
        proof.check("Numba: results are right", under and all(under.values()), f"{under}")
