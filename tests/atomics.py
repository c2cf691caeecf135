#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""atomics.py: doc/memory-order.md has each atomic variable of core, plugins and tools, with the orders that are used.

Called by check-atomics.sh, in the source folder. A variable is named as in the operation's first argument, without what it
is a field of; functions with (), fences as `fence`. Without an argument for it an operation is sequentially consistent.
`--list` prints all of them in the form of the page's rows."""

import collections
import pathlib
import re
import sys

OPERATION = re.compile(
    r"\b(?:atomic_(?:load|store|exchange|fetch_[a-z]+|compare_exchange_[a-z]+|flag_[a-z]+(?:_and_set)?)(?:_explicit)?"
    r"|__atomic_[a-z_]+|atomic_[a-z]+_fence)\s*\("
)
ORDER = re.compile(r"(?:memory_order_|__ATOMIC_)(relaxed|consume|acquire|release|acq_rel|seq_cst)", re.I)
ORDERS = ["relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"]
PATTERNS = ["count", "option", "hint", "owner", "first", "publish", "lock", "claim", "reference", "sequence", "fence", "rare"]


def arguments_at(text, start):
    """The arguments of a call from behind its parenthesis on: the first, and all."""
    depth, at, first = 0, start, None
    while depth or text[at] != ")":
        if text[at] == "," and not depth and first is None:
            first = text[start:at]
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        at += 1
    return text[start:at] if first is None else first, text[start:at]


def name_of(argument):
    for inside, left in ((r"\[[^][]*\]", ""), (r"\([^()]*\)", "\0")):
        while re.search(inside, argument):
            argument = re.sub(inside, left, argument)
    return re.split(r"->|\.", argument)[-1].strip("& \n").replace("\0", "()")


def used(root):
    """{(stem, name): orders}"""
    found = collections.defaultdict(set)
    for folder in ("core", "plugins", "tools"):
        for file in sorted((root / folder).rglob("*.[ch]")):
            text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
            for match in OPERATION.finditer(text):
                first, every = arguments_at(text, match.end())
                orders = {order.lower() for order in ORDER.findall(every)} or {"seq_cst"}
                name = "fence" if "_fence" in match.group() else name_of(first)
                found[str(file.relative_to(root).with_suffix("")), name] |= orders
    return found


def rows(page):
    """(stem, names, orders, pattern) of each row of the tables."""
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and re.fullmatch(r"`(core|plugins|tools)/[^`]*`", cells[0]):
            yield cells[0].strip("`"), re.findall(r"`([^`]+)`", cells[1]), cells[2].split(", "), cells[3]


def main():
    root = pathlib.Path(".")
    found = used(root)
    if "--list" in sys.argv:
        for (stem, name), orders in sorted(found.items()):
            print("| `%s` | `%s` | %s |  |  |" % (stem, name, ", ".join(order for order in ORDERS if order in orders)))
        return 0
    wrong, listed = [], set()
    for stem, names, orders, pattern in rows(root / "doc/memory-order.md"):
        there = set()
        for name in names:
            if (stem, name) not in found:
                wrong.append("%s: the page has `%s`, which is no atomic variable there" % (stem, name))
            elif (stem, name) in listed:
                wrong.append("%s: the page has `%s` twice" % (stem, name))
            listed.add((stem, name))
            there |= found.get((stem, name), set())
        if there and there != set(orders):
            wanted = ", ".join(order for order in ORDERS if order in there)
            wrong.append("%s: %s: the page says %s, the code %s" % (stem, ", ".join(names), ", ".join(orders), wanted))
        if pattern not in PATTERNS:
            wrong.append("%s: %s: %s is no pattern of the page" % (stem, ", ".join(names), pattern))
    for stem, name in sorted(set(found) - listed):
        wrong.append("%s: the page lacks `%s` (%s)" % (stem, name, ", ".join(sorted(found[stem, name]))))
    print("\n".join(wrong) or "%d atomic variables are on the page" % len(found))
    return bool(wrong) or len(found) < 200


sys.exit(main())
