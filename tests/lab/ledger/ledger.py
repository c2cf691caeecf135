# SPDX-License-Identifier: MIT
"""What passes alone and not under `hipmm run`: the cases of other projects' tests, measured, and the reason of each.

    ledger.py record FOLDER…        takes the results SUITE-native.txt and SUITE-run.txt that tests/lab/gpu/suites.sh wrote into
                                    results.txt, and writes the page doc/stops.md
    ledger.py check [FOLDER…]       fails for a case without a reason, a reason whose case passes, a page that is not of these
                                    tables; and for the results in the folders likewise
    ledger.py page                  writes the page

results.txt: what was measured, by suite (made by `record`). reasons.txt: SUITE<tab>CASE<tab>REASON, written by hand. A row is taken
out when its case passes. HIP's own tests have their reasons in tests/lab/hip_tests/known.txt, RMM's in tests/lab/gpu/rmm_own.py;
the programs that run these tests check the rows.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(TOP, "tests", "lab", "gpu"))

import outcomes  # noqa: E402
import rmm_own  # noqa: E402

RESULTS, REASONS = os.path.join(HERE, "results.txt"), os.path.join(HERE, "reasons.txt")
KNOWN = os.path.join(TOP, "tests", "lab", "hip_tests", "known.txt")
PAGE = os.environ.get("LEDGER_PAGE", os.path.join(TOP, "doc", "stops.md"))

SUITES = {
    "residents": "Programs that start, stop and share in unusual ways (`tests/lab/gpu/residents.py`)",
    "samples": "CUDA's samples (`tests/lab/gpu/suites.sh` samples)",
    "cuda": "PyTorch's `test_cuda.py`",
    "trees": "PyTorch's `test_cudagraph_trees.py`",
    "mp": "PyTorch's `test_multiprocessing.py`, the CUDA cases",
    "multi": "PyTorch's `test_cuda_multigpu.py`",
    "cupy": "CuPy's `cuda_tests`: memory, streams, graphs, devices, pinned memory",
    "jax": "JAX's tests of memory and arrays, with `XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async`",
    "jax-default": "JAX's tests of memory and arrays, with its default allocator",
    "numba": "numba-cuda's `cudadrv`",
}


class Mistake(Exception):
    pass


def rows(file):
    """The fields of each line that is no comment."""
    if not os.path.exists(file):
        return []
    with open(file, encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("#")]


class Suite:
    """What was measured of a suite. `lost` and `gained`: what became of a case under `hipmm run`, by its name."""

    def __init__(self, facts="", native=None, under=None):
        self.facts, self.native, self.under, self.lost, self.gained = facts, native or {}, under or {}, {}, []

    @classmethod
    def of(cls, folder, name):
        native, under = (os.path.join(folder, f"{name}-{way}.txt") for way in ("native", "run"))
        alone, with_hipmm = outcomes.read(native), outcomes.read(under)
        for file, results in ((native, alone), (under, with_hipmm)):
            if not any(outcome == "passed" for outcome, _ in results.values()):
                raise Mistake(f"{file}: no case passed")
            if set(alone) != set(with_hipmm) and not outcomes.is_over(file):
                raise Mistake(f"{file}: was cut off before its last case; run it again in the same folder, and it goes on")
        suite = cls("", outcomes.counts(alone), outcomes.counts(with_hipmm))
        lost, suite.gained = outcomes.lost_and_gained(alone, with_hipmm)
        suite.lost = {case: _said(*found) for case, found in lost.items()}
        suite.passed = {case for case, (outcome, _) in with_hipmm.items() if outcome == "passed"}
        facts = os.path.join(folder, f"{name}-facts.txt")
        if os.path.exists(facts):
            with open(facts, encoding="utf-8") as file:
                suite.facts = ", ".join(file.read().split("\n")).strip(", ")
        return suite


def _said(outcome, why):
    why = why.partition(" Traceback (most recent call last)")[0].replace("\t", " ").replace("|", "/")
    return f"{outcome}: {why[:160].strip()}" if why else outcome


def found_in(folders):
    """The suites of which the folders have both ways, measured."""
    suites = {}
    for folder in folders:
        names = {file[: -len("-run.txt")] for file in os.listdir(folder) if file.endswith("-run.txt")}
        for name in sorted(name for name in names if os.path.exists(os.path.join(folder, f"{name}-native.txt"))):
            if name not in SUITES:
                raise Mistake(f"{folder}/{name}-run.txt: no suite is called {name}; known are {', '.join(SUITES)}")
            suites[name] = Suite.of(folder, name)
    if folders and not suites:
        raise Mistake(f"no SUITE-native.txt with its SUITE-run.txt in {' '.join(folders)}")
    return suites


# ---- The tables


def _counts(text):
    return {name: int(count) for name, count in (word.split("=") for word in text.split())}


def read_results():
    suites = {}
    for number, (kind, name, *fields) in enumerate(rows(RESULTS)):
        if kind == "suite":
            suites[name] = Suite(fields[0], _counts(fields[1]), _counts(fields[2]))
        elif kind == "lost":
            suites[name].lost[fields[0]] = fields[1]
        elif kind == "gained":
            suites[name].gained.append(fields[0])
        else:
            raise Mistake(f"{RESULTS}: row {number + 1} begins with {kind}")
    return suites


def write_results(suites):
    with open(RESULTS, "w", encoding="utf-8") as file:
        file.write("# Made by `ledger.py record`; reasons.txt has the reasons.\n"
                   "# suite NAME FACTS NATIVE UNDER, lost NAME CASE WHAT, gained NAME CASE, with tabs between.\n")
        for name in sorted(suites, key=list(SUITES).index):
            suite = suites[name]
            counts = ("\t".join(" ".join(f"{kind}={count}" for kind, count in way.items()) for way in (suite.native, suite.under)))
            file.write(f"suite\t{name}\t{suite.facts}\t{counts}\n")
            for case, what in sorted(suite.lost.items()):
                file.write(f"lost\t{name}\t{case}\t{what}\n")
            for case in sorted(suite.gained):
                file.write(f"gained\t{name}\t{case}\n")


def read_reasons():
    reasons = {}
    for row in rows(REASONS):
        if len(row) != 3 or row[0] not in SUITES or not row[2].strip():
            raise Mistake(f"{REASONS}: a row is SUITE<tab>CASE<tab>REASON, not {row}")
        reasons[row[0], row[1]] = row[2]
    return reasons


# ---- The page


def _hip_rows():
    return [(f"{row[1]}: {row[2]}", row[4]) for row in rows(KNOWN) if row[0] == "run"]


def _table(head, lines):
    return ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(line) + " |" for line in lines)]


def _short(case):
    return "`" + case.rpartition("::" if "::" in case else "/")[2] + "`"


def page(suites, reasons):
    lines = [
        "# What stops under hipmm run",
        "",
        "Each case here passes without hipmm and does not pass under `hipmm run`, with the reason. The list may only shrink: a case",
        "without a reason fails the check, and so does a reason whose case passes again. `tests/lab/ledger/ledger.py` makes this page",
        "from results of tests that other projects wrote, alone and under `hipmm run` with `etc/hipmm.json`.",
        "",
        "## What was run",
    ]
    table = []
    for name, what in SUITES.items():
        if name in suites:
            suite = suites[name]
            table.append([what, suite.facts or "-", str(suite.native.get("passed", 0)),
                          str(suite.under.get("passed", 0)), str(len(suite.lost))])
        else:
            table.append([what, "not measured yet", "-", "-", "-"])
    table.append(["HIP's own tests of ROCm 6.3 (`tests/lab/hip_tests/run.sh`)", "software device, [figures](../tests/lab/hip_tests/README.md)", "-", "-", str(len(_hip_rows()))])
    table.append(["RMM's C++ tests over hipmm's resources (`tests/lab/gpu/rmm_own.py`)", "software device, GPU", "-", "-", str(len(rmm_own.KNOWN))])
    lines += _table(["suite", "on", "pass alone", "pass under run", "stop"], table)
    lines += ["", "A case can also pass only under `hipmm run`, so the columns need not differ by what stops. `make check` runs the cases of",
              "`residents.py` that need no GPU. The rest is run on a machine with a GPU:", "", "<!-- not run: needs a GPU, CuPy and JAX -->", "```sh",
              "CUPY=/path/cupy JAX=/path/jax sh tests/lab/gpu/suites.sh RESULTS residents cupy jax    # in a bundle, see tests/lab/gpu",
              "python3 tests/lab/ledger/ledger.py record RESULTS                                      # in a clone", "```", "", "## What stops"]
    for name, what in SUITES.items():
        cases = sorted(set(case for suite, case in reasons if suite == name) | set(suites[name].lost if name in suites else ()))
        if cases:
            lost = suites[name].lost if name in suites else {}
            lines += ["", f"**{what}**"]
            lines += _table(["case", "what it says", "reason"],
                            [[_short(case), lost.get(case, "-"), reasons.get((name, case), "**no reason yet**")] for case in cases])
    lines += ["", "**HIP's own tests**", *_table(["case", "reason"], [[f"`{case}`", why] for case, why in _hip_rows()])]
    lines += ["", "**RMM's C++ tests**", *_table(["case", "reason"], [[f"`{case}`", why] for case, why in sorted(rmm_own.KNOWN.items())])]
    return "\n".join(lines) + "\n"


# ---- The command


def mistakes(measured, reasons):
    """What the measured suites and the reasons say of each other that does not go together."""
    for name, suite in measured.items():
        for case, what in sorted(suite.lost.items()):
            if (name, case) not in reasons:
                yield f"{name}: {case} passes alone and not under hipmm run ({what}): mend it, or give the reason in {REASONS}"
        for case in sorted(case for of, case in reasons if of == name):
            passes = case in suite.passed if hasattr(suite, "passed") else case not in suite.lost
            if passes:
                yield f"{name}: {case} passes now: take its row out of {REASONS}"


def check(folders):
    recorded, reasons = read_results(), read_reasons()
    found = list(mistakes(recorded, reasons)) + list(mistakes(found_in(folders), reasons))
    with open(PAGE, encoding="utf-8") as file:
        if file.read() != page(recorded, reasons):
            found.append(f"{PAGE} is not of these tables: run `{sys.argv[0]} page`")
    for mistake in found:
        print("FAIL: " + mistake)
    return bool(found)


def write_page():
    text = page(read_results(), read_reasons())
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


def record(folders):
    suites = read_results()
    for name, suite in found_in(folders).items():
        before = suites.get(name, Suite())
        suite.facts = suite.facts or before.facts
        count, count_before = sum(suite.native.values()), sum(before.native.values())
        if suite.facts == before.facts and count < count_before:
            raise Mistake(f"{name}: {count} cases, fewer than the {count_before} that are recorded; run them all")
        suites[name] = suite
        print(f"{name}: {suite.native.get('passed', 0)} pass alone, {suite.under.get('passed', 0)} under hipmm run, {len(suite.lost)} stop")
    write_results(suites)
    write_page()
    return check([])


def main():
    words = sys.argv[1:]
    try:
        if words[:1] == ["record"] and len(words) > 1:
            return record(words[1:])
        if words[:1] == ["check"]:
            return check(words[1:])
        if words == ["page"]:
            return write_page()
    except (Mistake, OSError) as mistake:
        sys.exit(f"ledger.py: {mistake}")
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
