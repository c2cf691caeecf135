# SPDX-License-Identifier: MIT
"""The libraries that are linked into a wheel: where their sources are, and what a wheel says of them. Run by python/wheel.sh.

    bundle.py fetch FOLDER            puts the sources there unless they are there, verifies their checksums, and prints their names
    bundle.py describe WHEEL LIBRARIES
        adds to an unpacked wheel the licences, and an SBOM (CycloneDX, PEP 770) that says which files contain which library;
        LIBRARIES has what was compiled: lib/NAME.a, src/NAME-VERSION
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
import uuid
from importlib import metadata

LIBRARIES = {
    "jansson": {
        "version": "2.14",
        "url": "http://deb.debian.org/debian/pool/main/j/jansson/jansson_2.14.orig.tar.gz",
        "sha256": "c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b",
        "licence": "MIT",
        "texts": {"LICENSE": "LICENSE"},
    },
    # What is built with libtool may have it under its own terms: the exception is in the first comment of ltdl.c.
    "ltdl": {
        "version": "2.4.7",
        "url": "http://deb.debian.org/debian/pool/main/libt/libtool/libtool_2.4.7.orig.tar.xz",
        "sha256": "dd637e270439b208907ceead3f163470ed2ce5723ef97ffbda6463c64b57128a",
        "licence": "LGPL-2.0-or-later WITH Libtool-exception",
        "texts": {"ltdl.c": "NOTICE", "COPYING.LIB": "COPYING.LIB"},
    },
}


def fetch(folder):
    for name, library in LIBRARIES.items():
        file = folder / library["url"].rpartition("/")[2]
        if not file.exists():
            try:
                with urllib.request.urlopen(library["url"], timeout=60) as answer:
                    file.write_bytes(answer.read())
            except (OSError, urllib.error.URLError) as error:
                sys.exit(
                    f"{library['url']} cannot be fetched ({error}); where there is no network, put the file into a folder "
                    "and name it: SOURCES=FOLDER"
                )
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != library["sha256"]:
            sys.exit(f"{file} is not the source of {name} {library['version']}: its SHA-256 is {found}, not {library['sha256']}")
        print(file.name)


def texts_of(binary):
    return set(re.findall(rb"[\x20-\x7e]{16,}(?=\0)", binary))


def files_with(wheel, archive):
    """The files of the wheel that contain the library: at least three of its long texts. Paths in the wheel."""
    texts = texts_of(archive.read_bytes())
    elf = [path for path in sorted(wheel.rglob("*")) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    return [str(path.relative_to(wheel)) for path in elf if len(texts & texts_of(path.read_bytes())) >= 3]


def add_licences(info, name, library, source):
    folder = info / "licenses" / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for file, kept in library["texts"].items():
        if file.endswith(".c"):
            comment = re.match(r"/\*.*?\*/", (source / file).read_text(encoding="utf-8"), re.DOTALL)
            (folder / kept).write_text(comment.group(0) + "\n")
        else:
            shutil.copyfile(source / file, folder / kept)
        lines.append(f"License-File: {name}/{kept}\n")
    text = (info / "METADATA").read_text(encoding="utf-8")
    head, body = text.split("\n\n", 1)
    (info / "METADATA").write_text(f"{head}\n{''.join(lines)}\n{body}", encoding="utf-8")


def component(name, library, files):
    download = {"url": library["url"], "hashes": [{"alg": "SHA-256", "content": library["sha256"]}]}
    return {
        "type": "library",
        "bom-ref": f"{name}@{library['version']}",
        "name": "libltdl" if name == "ltdl" else name,
        "version": library["version"],
        "licenses": [{"expression": library["licence"]}],
        "purl": f"pkg:generic/{name}@{library['version']}?checksum=sha256:{library['sha256']}",
        "externalReferences": [{"type": "source-distribution", **download}],
        "evidence": {"occurrences": [{"location": file} for file in files]},
    }


def describe(wheel, built):
    [info] = wheel.glob("*.dist-info")
    version = re.search(r"^Version: (.*)$", (info / "METADATA").read_text(encoding="utf-8"), re.MULTILINE).group(1)
    components = []
    for name, library in LIBRARIES.items():
        [source] = [path.parent for path in (built / "src").rglob(next(iter(library["texts"]))) if name in str(path.parent.name)]
        files = files_with(wheel, built / "lib" / f"lib{name}.a")
        if not files:
            sys.exit(f"no file of the wheel contains {name}, which should be linked into libhipmm")
        add_licences(info, name, library, source)
        components.append(component(name, library, files))
    own = f"pkg:pypi/hipmm@{version}"
    tools = [{"type": "application", "name": name, "version": metadata.version(name)} for name in ("ziglang", "setuptools")]
    now = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            "tools": {"components": tools},
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "hipmm",
                "version": version,
                "licenses": [{"expression": "MIT"}],
                "purl": own,
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in components]}],
    }
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom)).urn
    (info / "sboms").mkdir(exist_ok=True)
    (info / "sboms" / "hipmm.cdx.json").write_text(json.dumps(bom, indent=2) + "\n")


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    {"fetch": fetch, "describe": describe}[command](*map(pathlib.Path, folders))
