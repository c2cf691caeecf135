# SPDX-License-Identifier: MIT
"""Sphinx's settings for the site, whose sources generate.py has gathered in the folder of this run."""

import os
import pathlib

project = "hipmm"
version = release = os.environ["VERSION"]
copyright = "the authors of hipmm"
extensions = ["myst_parser", "breathe"]
root_doc = "README"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 6  # as GitHub makes them
suppress_warnings = ["myst.header"]  # a page may begin below its first level
html_theme = "furo"
html_title = f"hipmm {version}"
html_copy_source = False
highlight_language = "none"  # of blocks that name none
breathe_projects = {"cpp": os.environ["XML"]}
breathe_default_project = "cpp"
breathe_default_members = ("members", "undoc-members")


def navigation() -> str:
    """The tables of contents that README.md gets at its end: one for each caption."""
    text = ""
    for line in pathlib.Path(os.environ["PAGES"]).read_text().splitlines():
        if line.startswith("#"):
            continue
        if "." not in line:
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {line}\n```\n"
        elif line != "README.md" and pathlib.Path(os.environ["SITE_SOURCE"], line).exists():
            text = text[: -len("```\n")] + f"{line.rpartition('.')[0]}\n```\n"
    return text


def add_navigation(app, name, source):
    if name == root_doc:
        source[0] += navigation()


def setup(app):
    app.connect("source-read", add_navigation)
