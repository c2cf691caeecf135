# SPDX-License-Identifier: MIT
"""Where a source file can be changed so that a test should notice: a site is a line, and what it becomes. Lines keep
their number. The sources are formatted by clang-format, so patterns on lines are enough; what does not compile is told
apart."""
import collections
import re

WAITS = {  # calls that wait, and what stands for "done" in an expression
    "streams_wait_for_device": "HIPMM_OK", "streams_wait_for_handle": "true", "stream_wait": "true",
    "reuse_synchronize_device": "HIPMM_OK", "hip->StreamWaitEvent": "0", "hip->StreamSynchronize": "0",
    "hip->DeviceSynchronize": "0", "hip->EventRecord": "0", "hip->EventSynchronize": "0", "hip->EventQuery": "0",
}
WORDS = "wait|await|fence|synchronize|lock|unlock|acquire|poll|broadcast|signal|join"
STATEMENT = re.compile(rf"^(\s*)((?:[\w.>\[\]-]*(?<![a-z]))?(?i:{WORDS})(?![a-z])\w*\(.*\));$")
RELEASES = re.compile(r"unlock|release|_close\(")  # without them a test waits for ever, or nothing changes
LOCK = re.compile(r"(pthread_mutex_lock|spin_lock|biased_lock_acquire|pthread_rwlock_wrlock|pthread_rwlock_rdlock)\((.*)\);")
CHECK = re.compile(r"^(\s*)if \((.*)\) (return\b.*;|continue;|break;)$")
ORDERS = [("memory_order_acquire", "memory_order_relaxed"), ("memory_order_release", "memory_order_relaxed"),
          ("memory_order_acq_rel", "memory_order_relaxed"), ("memory_order_seq_cst", "memory_order_relaxed"),
          ("__ATOMIC_ACQUIRE", "__ATOMIC_RELAXED"), ("__ATOMIC_RELEASE", "__ATOMIC_RELAXED"),
          ("__ATOMIC_ACQ_REL", "__ATOMIC_RELAXED"), ("__ATOMIC_SEQ_CST", "__ATOMIC_RELAXED")]
COMPARISONS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == ")]
BOUNDS = [(" + 1", ""), (" - 1", ""), (" + 1", " + 2"), ("++", "--")]
KINDS = ("wait", "lock", "order", "check", "compare", "bound", "overflow", "call")


class Site:
    """`changes`: number of a line -> its text. The key has no number of a line, so that it outlives changes elsewhere in
    the file; where a file has the same line twice, sites_of() numbers them."""

    def __init__(self, name, lines, kind, changes):
        self.name, self.kind, self.changes = name, kind, changes
        first = min(changes)
        self.line = first + 1
        self.key = f"{name}:{kind}: {lines[first].strip()} => {changes[first].strip()}"

    def apply(self, text):
        lines = text.split("\n")
        for number, changed in self.changes.items():
            lines[number] = changed
        return "\n".join(lines)


def code_lines(lines):
    """The numbers of lines that are code: no comments, directives, strings with operators in them, or declarations."""
    inside = False
    for number, line in enumerate(lines):
        stripped = line.strip()
        if inside:
            inside = "*/" not in stripped
            continue
        if stripped.startswith("/*"):
            inside = "*/" not in stripped
            continue
        if stripped and not stripped.startswith(("#", "//", "*", '"', "static_assert", "_Static_assert")):
            yield number


def occurrences(line, pattern):
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/', lambda found: "\0" * len(found.group()), line)
    at = bare.find(pattern)
    while at >= 0:
        yield at
        at = bare.find(pattern, at + 1)


def replaced(line, at, old, new):
    return line[:at] + new + line[at + len(old):]


def call_end(line, start):
    """Behind the parenthesis that closes the one at `start`, or -1 if that is on another line."""
    depth = 0
    for at in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if not depth:
            return at + 1
    return -1


def lock_pair(lines, number, match):
    """A lock and all its releases, up to the end of the function."""
    changes = {number: lines[number].replace(match.group(0), ";")}
    held = match.group(2)
    for other in range(number + 1, len(lines)):
        if lines[other].startswith("}"):
            break
        for call in ("pthread_mutex_unlock", "spin_unlock", "biased_lock_release", "pthread_rwlock_unlock"):
            changes_here = lines[other].replace(f"{call}({held});", ";")
            if changes_here != lines[other]:
                changes[other] = changes_here
    return changes


def sites_of(name, text):
    seen = collections.Counter()
    for site in changes_of(name, text):
        seen[site.key] += 1
        if seen[site.key] > 1:
            site.key += f" #{seen[site.key]}"
        yield site


def changes_of(name, text):
    lines = text.split("\n")

    def site(kind, number, changed):
        return Site(name, lines, kind, changed if isinstance(changed, dict) else {number: changed})

    for number in code_lines(lines):
        line = lines[number]
        if match := LOCK.search(line):
            yield site("lock", number, lock_pair(lines, number, match))
        elif (match := STATEMENT.match(line)) and not RELEASES.search(line):
            yield site("wait", number, match.group(1) + ";")
        for call, done in WAITS.items():
            for at in occurrences(line, call + "("):
                end = call_end(line, at + len(call))
                is_call = line[0] == " " and not re.search(r"[\w>]$", line[:at])
                if end > 0 and is_call:
                    yield site("wait", number, line[:at] + done + line[end:])
        for old, new in ORDERS:
            for at in occurrences(line, old):
                yield site("order", number, replaced(line, at, old, new))
        if match := CHECK.match(line):
            yield site("check", number, match.group(1) + ";")
        for at in occurrences(line, "__builtin_"):
            if "_overflow(" in line[at:]:
                start = line.index("(", at)
                if (end := call_end(line, start)) > 0:
                    yield site("overflow", number, line[:at] + "(" + line[at:end] + " & 0)" + line[end:])
        for kind, pairs in (("compare", COMPARISONS), ("bound", BOUNDS)):
            for old, new in pairs:
                for at in occurrences(line, old):
                    yield site(kind, number, replaced(line, at, old, new))
