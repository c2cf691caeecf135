# SPDX-License-Identifier: MIT
"""links.py FOLDER: every link in the pages of the built site leads to a file of it, and to an anchor that is there.
links.py --external TOP: every address in the documents of the tree answers; this needs a network.

Each link that fails is printed, and the exit status is 1."""

import html.parser
import pathlib
import re
import sys
import urllib.error
import urllib.parse
import urllib.request


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def internal(folder):
    """The links that lead nowhere, and the parts of the reference that are empty."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                yield f"{path.relative_to(folder)}: {link}: no such file"
            elif target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(folder)}: {link}: no such anchor"
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    for anchor in ("c.hipmm_allocate", "_CPPv4N5hipmm6bufferE", "hipmm.Buffer.resize", "maximum_size"):
        if anchor not in anchors:
            yield f"no page has {anchor}: a part of the reference is missing"


def external(top):
    where = {}
    for page in [*top.glob("[CRS]*.md"), *top.glob("doc/*.md")]:
        text = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
        for address in re.findall(r"https?://[^\s)>\]`\"]+", text):
            where.setdefault(address.rstrip(".,:;"), page.name)
    for address, page in where.items():
        request = urllib.request.Request(address, headers={"User-Agent": "Mozilla/5.0 (a check of links)"})
        try:
            urllib.request.urlopen(request, timeout=20).close()
        except (OSError, urllib.error.URLError) as error:
            yield f"{page}: {address}: {error}"
    print(f"{len(where)} addresses")


if sys.argv[1:2] == ["--external"]:
    bad = list(external(pathlib.Path(sys.argv[2])))
else:
    bad = list(internal(pathlib.Path(sys.argv[1]).resolve()))
print("".join(f"{line}\n" for line in bad), end="")
sys.exit(bool(bad))
