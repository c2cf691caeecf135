# SPDX-License-Identifier: MIT
"""What became of each site: the results of all runs, the survivors that explained.txt explains, and those that
survivors.txt lists: they wait for a test."""
import collections
import json
import os

from workspace import HERE


def read_explained():
    """{key of a site: reason}. A reason starts in the first column; the sites that it explains follow, indented."""
    reason, explained, is_site = "", {}, True
    with open(os.path.join(HERE, "explained.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("  "):
                explained[line.strip()] = reason
                is_site = True
            elif line and not line.startswith("#"):
                reason = line if is_site else f"{reason} {line}"
                is_site = False
    return explained


def read_survivors():
    """The keys of survivors.txt, which `mutate.py open` wrote."""
    with open(os.path.join(HERE, "survivors.txt"), encoding="utf-8") as file:
        return {line for line in file.read().splitlines() if line and not line.startswith("#")}


class Results:
    """One line of JSON for each try, in a file that only grows; the last one of a site counts."""

    def __init__(self, path):
        self.path, self.rows, self.survived_once = path, {}, set()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    self._take(json.loads(line))

    def _take(self, row):
        self.rows[row["key"]] = row
        if row["result"] == "survived":
            self.survived_once.add(row["key"])

    def add(self, site, result, by="", diff="", seconds=0.0):
        row = {"key": site.key, "file": site.name, "kind": site.kind, "result": result, "by": by, "diff": diff,
               "seconds": round(seconds, 2)}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self._take(row)
        print(f"{result:8} {seconds:5.1f} s  {site.key}" + (f"  ({by})" if by else ""), flush=True)

    def of(self, key):
        return self.rows.get(key, {}).get("result")

    def kills(self, name):
        """Which programs noticed how many mutants of the file, and of its folder."""
        of_file, of_folder = collections.Counter(), collections.Counter()
        for row in self.rows.values():
            if row["result"] == "killed":
                program = row["by"].partition(":")[0]
                of_file[program] += row["file"] == name
                of_folder[program] += os.path.dirname(row["file"]) == os.path.dirname(name)
        return of_file, of_folder


COLUMNS = ("killed", "killed since", "explained", "open", "removed", "same code", "invalid")


def verdict(results, row, keys, explained):
    """The column of the report. "removed": it survived, and the line is gone since."""
    if row["key"] not in keys:
        return "removed" if row["key"] in results.survived_once and row["result"] == "survived" else None
    if row["result"] == "survived":
        return "explained" if row["key"] in explained else "open"
    if row["result"] == "killed":
        return "killed since" if row["key"] in results.survived_once else "killed"
    return {"same": "same code", "invalid": "invalid"}[row["result"]]


def open_survivors(results, sites):
    """The keys of the sites that survived without an explanation: by this folder's results or, where it has none, by the list."""
    explained, listed = read_explained(), read_survivors()
    return sorted(site.key for site in sites if site.key not in explained and
                  (results.of(site.key) == "survived" or not results.of(site.key) and site.key in listed))


def report(results, sites, with_diffs):
    keys, explained = {site.key for site in sites}, read_explained()
    counts, shown = collections.defaultdict(collections.Counter), []
    for row in results.rows.values():
        if column := verdict(results, row, keys, explained):
            for group in (row["file"], "all: " + row["kind"], "all"):
                counts[group][column] += 1
            if column == "open":
                shown.append(row)
    print(f"{'file':44}{'tried':>8}" + "".join(f"{column:>14}" for column in COLUMNS))
    for group in sorted(counts, key=lambda name: (name.startswith("all"), name)):
        count = counts[group]
        print(f"{group:44}{sum(count.values()):8}" + "".join(f"{count[column]:14}" for column in COLUMNS))
    print(f"{len(keys - set(results.rows))} sites were not tried")
    for key in sorted(set(explained) - keys):
        print(f"explained.txt has a site that is not there: {key}")
    for row in sorted(shown, key=lambda row: row["key"]) if with_diffs else ():
        print(f"\n{row['key']}\n  {row['by']}\n{row['diff']}")
