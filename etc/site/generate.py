# SPDX-License-Identifier: MIT
"""generate.py TOP BUILD OUTPUT: gathers the sources of the site in OUTPUT.

Pages and the files to which they link are copied, in the folders that they have, so that their links hold. The Python
reference comes from the package's sources and stubs and from the extension's tables of methods; none of them is imported.
Types, options and the command come from the manual pages, which the command makes.
"""

import ast
import pathlib
import re
import shutil
import subprocess
import sys

TOP, BUILD, OUTPUT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
REFERENCE = OUTPUT / "reference"


def heading(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}\n\n"


def indented(text: str, by: int) -> str:
    return "".join(" " * by * bool(line.strip()) + line for line in text.splitlines(keepends=True))


# ---- Pages


def copy_pages() -> None:
    for page in [*TOP.glob("[CRS]*.md"), *TOP.glob("doc/*.md")]:
        text = page.read_text()
        for link in {"", *re.findall(r"\]\(([^):#]+)", text)}:
            source = (page.parent / link).resolve() if link else page
            if source.is_file():
                target = OUTPUT / source.relative_to(TOP)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


# ---- Manual pages: each section of mandoc's HTML under a heading of the site


def manual_page(name: str, title: str) -> None:
    ended = subprocess.run(
        ["mandoc", "-T", "html", "-O", "fragment", BUILD / "doc/man" / name], capture_output=True, text=True, check=True
    )
    body = ended.stdout.partition('<div class="manual-text">')[2].rpartition("</div>\n<table")[0]
    text = heading(title, "=")
    for part in re.split(r"(<h[12] class=.*?</h[12]>)", re.sub(r"</?section[^>]*>\n?", "", body), flags=re.S):
        if match := re.match(r"<h([12]).*?<a [^>]*>(.*?)</a>", part, re.S):
            words = match[2].replace("\n", " ")
            text += heading(words if match[1] == "2" else words.capitalize(), "-~"[int(match[1]) - 1])
        elif part.strip():
            text += ".. raw:: html\n\n" + indented(part.strip("\n"), 3) + "\n\n"
    (REFERENCE / (name.rpartition(".")[0] + ".rst")).write_text(text)


# ---- C++


def cpp_reference() -> None:
    """What each header is for, and the members of the namespace that all of them are in."""
    text = heading("C++", "=") + ":doc:`/doc/cpp` is the guide.\n\n"
    for header in sorted((TOP / "include/hipmm/cpp").glob("*.hpp")) + [TOP / "include/hipmm/rmm.hpp"]:
        if header.name != "thrust_policy.hpp":
            name = header.relative_to(TOP / "include")
            text += heading(str(name), "-") + f".. doxygenfile:: {name}\n"
            text += "   :sections: briefdescription detaileddescription\n\n"
    text += heading("The namespace hipmm", "-") + ".. doxygennamespace:: hipmm\n"
    (REFERENCE / "cpp.rst").write_text(text)


# ---- Python


def native_docs() -> dict[str, str]:
    """The texts of the extension's tables: "Stream.wait" and "flush_log" by their rows, "Stream" by its slot."""
    docs: dict[str, str] = {}
    for source in sorted((TOP / "python/src").glob("*.c")):
        owner = {"buffer": "Buffer", "resource": "Resource", "stream": "Stream", "view": "View"}.get(source.stem)
        text = source.read_text()
        string = r'"(?:[^"\\]|\\.)*"'
        for name, words in re.findall(rf'{{(?:"(\w+)",\s*[\w(][^"}}]*|Py_tp_doc,\s*)((?:{string}\s*)+)', text):
            words = "".join(ast.literal_eval(part) for part in re.findall(string, words, re.S))
            name = f"{owner}.{name}" if owner and name else owner or name
            docs.setdefault(name, words.partition("--\n\n")[2] or words)
    return docs


def prose(text: str) -> str:
    """A docstring as reStructuredText: `code` stays code, and nothing else is a mark."""
    parts = re.split(r"(`[^`]*`)", text)
    parts = [f"`{part}`" if i % 2 else re.sub(r"([\\*|_])", r"\\\1", part) for i, part in enumerate(parts)]
    text = "".join(parts)

    def example(match: re.Match[str]) -> str:
        return "\n\n::\n\n" + re.sub(r"\\([\\*|_])", r"\1", match[1])

    return re.sub(r"(?:^|\n\n)(    .*?)(?=\n\n|\Z)", example, text, flags=re.S)


def signature(node: ast.FunctionDef, in_class: bool) -> str:
    arguments = node.args
    if in_class and not any(getattr(mark, "id", "") == "staticmethod" for mark in node.decorator_list):
        del (arguments.posonlyargs or arguments.args)[0]
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(arguments)}){result}"


def is_public(name: str) -> bool:
    return not name.startswith("_")


def members(node: ast.ClassDef, docs: dict[str, str]) -> str:
    text = ""
    groups: dict[str, list[ast.FunctionDef]] = {}
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and is_public(member.name):
            groups.setdefault(member.name, []).append(member)
        elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name) and is_public(member.target.id):
            text += f".. py:attribute:: {member.target.id}\n   :type: {ast.unparse(member.annotation)}\n\n"
    for name, overloads in groups.items():
        marks = {getattr(mark, "id", getattr(mark, "attr", "")) for mark in overloads[0].decorator_list}
        words = ast.get_docstring(overloads[0]) or docs.get(f"{node.name}.{name}", "")
        if "property" in marks:
            text += f".. py:property:: {name}\n"
            if overloads[0].returns:
                text += f"   :type: {ast.unparse(overloads[0].returns)}\n"
        else:
            lines = [signature(overload, True) for overload in overloads]
            text += ".. py:method:: " + "\n               ".join(lines) + "\n"
            text += "   :classmethod:\n" * ("classmethod" in marks) + "   :staticmethod:\n" * ("staticmethod" in marks)
        text += "\n" + indented(prose(words), 3) + "\n\n"
    return text


def described(node: ast.AST, docs: dict[str, str]) -> str:
    """The directive of a function or a class."""
    if isinstance(node, ast.FunctionDef):
        words = ast.get_docstring(node) or docs.get(node.name, "")
        return f".. py:function:: {signature(node, False)}\n\n" + indented(prose(words), 3) + "\n\n"
    bases = ", ".join(map(ast.unparse, node.bases))
    makers = [member for member in node.body if getattr(member, "name", "") in ("__init__", "__new__")]
    arguments = signature(makers[0], True).partition("(")[2].rpartition(")")[0] if makers else ""
    if "Error" in bases or "Exception" in bases:
        text = f".. py:exception:: {node.name}\n\n   Bases: {bases}\n\n"
    else:
        text = f".. py:class:: {node.name}({arguments})\n\n"
    words = ast.get_docstring(node) or docs.get(node.name, "")
    return text + indented(prose(words), 3) + "\n\n" + indented(members(node, docs), 3)


def definitions(path: pathlib.Path) -> dict[str, ast.AST]:
    tree = ast.parse(path.read_text())
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def module_reference(path: pathlib.Path, docs: dict[str, str]) -> str:
    tree = ast.parse(path.read_text())
    found = definitions(path)
    names = [name for name in found if is_public(name)]
    if path.stem == "__init__":
        found = definitions(path.with_name("_hipmm.pyi")) | definitions(path.with_name("_errors.py")) | found
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
    module = "hipmm" if path.stem == "__init__" else f"hipmm.{path.stem}"
    text = heading(module, "-") + f".. py:module:: {module}\n\n" + prose(ast.get_docstring(tree) or "") + "\n\n"
    text += "".join(described(found[name], docs) for name in names if name in found)
    if module != "hipmm":  # a name that the module imports is another module's
        for node in tree.body:
            for alias in node.names if isinstance(node, ast.ImportFrom) and node.level else []:
                text = re.sub(rf"(?m)(^ *\.\. py:.*?[ \[]){alias.name}\b", rf"\1hipmm.{alias.name}", text)
    return text


def python_reference() -> None:
    package = TOP / "python/hipmm"
    docs = native_docs()
    text = heading("Python", "=")
    text += ":doc:`/doc/python` is the guide; :doc:`/doc/rmm` describes ``hipmm.rmm``.\n\n"
    for path in [package / "__init__.py", *sorted(package.glob("[a-z]*.py"))]:
        text += module_reference(path, docs)
    (REFERENCE / "python.rst").write_text(text)


REFERENCE.mkdir(parents=True, exist_ok=True)
copy_pages()
manual_page("hipmm.1", "The command hipmm")
manual_page("hipmm.json.5", "hipmm.json: types and options")
manual_page("hipmm-plugin.7", "Plugins")
cpp_reference()
python_reference()
pages = "".join(f"   c/{path.stem}\n" for path in sorted((REFERENCE / "c").glob("*.rst")))
words = "Each function has a manual page too: ``man hipmm_allocate``."
(REFERENCE / "c.rst").write_text(heading("C", "=") + f"{words}\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}")
