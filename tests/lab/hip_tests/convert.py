# SPDX-License-Identifier: MIT
"""Turns each kernel<<<configuration>>>(arguments) of a source file into a call of include/hip/hip_runtime.h."""
import re


def kernel_start(text, end):
    """Where the expression before `end` begins: a name, with the arguments of a template or in parentheses."""
    at = end
    while at > 0 and text[at - 1] in " \n\t":
        at -= 1
    while at > 0:
        char = text[at - 1]
        if char.isalnum() or char in "_:":
            at -= 1
        elif char in ">)":
            opening, depth = {">": "<", ")": "("}[char], 0
            while at > 0:
                at -= 1
                depth += {char: 1, opening: -1}.get(text[at], 0)
                if not depth:
                    break
        else:
            break
    return at


def is_text(line):
    """In a comment or a string."""
    return "//" in line or line.strip().startswith("*") or line.count('"') % 2 == 1


def configuration_end(text, at):
    """The match of the ">>>(" that closes what begins at `at`."""
    depth = 0
    while True:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if not depth and (end := re.compile(r">\s*>\s*>\s*\(").match(text, at)):
            return end
        at += 1


def convert(text):
    done = ""
    while (at := text.find("<<<")) >= 0:
        if is_text(text[text.rfind("\n", 0, at) + 1:at]):
            done += text[:at + 3]
            text = text[at + 3:]
            continue
        start, end = kernel_start(text, at), configuration_end(text, at + 3)
        kernel, configuration = text[start:at].strip(), text[at + 3:end.start()]
        done += text[:start] + f"::host_kernel::launch(::host_kernel::configure({configuration}), " \
                               f"[=](auto... each) {{ {kernel}(each...); }})("
        text = text[end.end():]
    return done + text
