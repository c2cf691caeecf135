#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a build of hipmm consists of and depends on, as a CycloneDX 1.6 document on standard output:

  sbom.py INSTALLED TIME [FILE...]

INSTALLED is a folder of `make install DESTDIR=INSTALLED`: the libraries that its files are linked to are the dependencies. TIME
is the time of the commit in seconds (SOURCE_DATE_EPOCH). The FILEs, such as the tarball, get their hashes. The licence of hipmm
is what the sources say. A library of unknown licence, and a source without a licence, are errors. Called by
etc/release/release.sh."""

import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from bundle import LIBRARIES as BUNDLED  # noqa: E402 # whose licences wheels name too

SOURCES = (".c", ".h", ".hpp", ".cpp", ".cu", ".py", ".sh", ".m4", ".ac", ".am", ".inc", ".map", ".toml", ".yml")

# soname without its number: name, licence as SPDX writes it, what it is for
LIBRARIES = {
    "ld-linux-x86-64.so": None,  # of the C library
    "ld-linux-aarch64.so": None,
    "libm.so": None,
    "libc.so": ("glibc", "LGPL-2.1-or-later", "the C library"),
    "libgcc_s.so": ("gcc", "GPL-3.0-or-later WITH GCC-exception-3.1", "the compiler's library"),
    "libjansson.so": ("jansson", BUNDLED["jansson"]["licence"], "reads graphs"),
    "libltdl.so": ("libtool", BUNDLED["ltdl"]["licence"], "opens plugins"),
    "libsqlite3.so": ("sqlite", "blessing", "reads the logs of profilers (hipmm convert)"),
}
# Opened when a program runs; no file of hipmm is linked to them.
OPENED = {
    "libamdhip64": ("hip", "MIT", "AMD's HIP runtime, for AMD GPUs"),
    "libcuda": ("nvidia-driver", "LicenseRef-NVIDIA-Driver", "NVIDIA's driver, for NVIDIA GPUs"),
}


def run(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def needed(folder):
    """The sonames that files below the folder are linked to, without hipmm's own."""
    names = set()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.open("rb").read(4) == b"\x7fELF":
            names.update(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", str(file))))
    if not names:
        sys.exit(f"{folder}: no file in it is a program or a library; name a folder of make install DESTDIR=...")
    return sorted(name for name in names if not name.startswith("libhipmm"))


def installed_version(soname):
    """The version of the Debian package that has the library, where there is one."""
    for line in run("ldconfig", "-p").splitlines() or run("/sbin/ldconfig", "-p").splitlines():
        if line.strip().startswith(soname + " "):
            path = pathlib.Path(line.split(" => ")[1])
            for name in dict.fromkeys([str(path), str(path.resolve()), str(path.resolve()).removeprefix("/usr")]):
                package = run("dpkg-query", "-S", name).split(": ")[0].split(",")[0]
                if package:
                    return run("dpkg-query", "-W", "-f", "${Version}", package)
    return None


def own_licence():
    listed = run("git", "-C", str(ROOT), "ls-files", "-z").split("\0")
    sources = [name for name in listed if name.endswith(SOURCES) and (ROOT / name).is_file()]
    if not sources:
        sys.exit(f"{ROOT} is no clone, whose sources tell the licence")
    found = {}
    for name in sources:
        text = (ROOT / name).read_text(errors="replace")
        if text.strip():
            said = re.search(r"SPDX-License-Identifier: ([^\s*]+)", text)
            found.setdefault(said and said[1], []).append(name)
    if None in found:
        sys.exit("no SPDX-License-Identifier in " + ", ".join(found[None][:5]))
    return " AND ".join(sorted(found)), len(sources)


def licence(expression):
    return [{"expression": expression}]


def component(name, of, what, scope, version, key, value):
    entry = {"type": "library", "bom-ref": name, "name": name, "description": what, "scope": scope, "licenses": licence(of)}
    entry |= {"version": version} if version else {}
    return entry | {"properties": [{"name": key, "value": value}]}


def main(installed, seconds, *files):
    version = run(sys.executable, str(ROOT / "etc/release/version.py")).strip()
    commit = run("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    expression, n_sources = own_licence()
    components, required = [], []
    for soname in needed(pathlib.Path(installed)):
        stem = re.sub(r"(\.so)[.\d]*$", r"\1", soname)
        if stem not in LIBRARIES:
            sys.exit(f"{soname}: a file of hipmm is linked to it; add its name and licence to LIBRARIES in etc/release/sbom.py")
        if LIBRARIES[stem]:
            name, of, what = LIBRARIES[stem]
            components.append(component(name, of, what, "required", installed_version(soname), "soname", soname))
            required.append(name)
    components += [component(name, of, what, "optional", None, "opened at run time", stem)
                   for stem, (name, of, what) in OPENED.items()]
    for file in map(pathlib.Path, files):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        components.append({"type": "file", "bom-ref": file.name, "name": file.name, "licenses": licence(expression),
                           "hashes": [{"alg": "SHA-256", "content": digest}]})
    json.dump({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, 'hipmm ' + commit)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library", "bom-ref": "hipmm", "name": "hipmm", "version": version, "licenses": licence(expression),
                "properties": [{"name": "commit", "value": commit}, {"name": "sources that name a licence", "value": str(n_sources)}],
            },
        },
        "components": components,
        "dependencies": [{"ref": "hipmm", "dependsOn": required}],
    }, sys.stdout, indent=1)
    print()


if len(sys.argv) < 3 or not sys.argv[2].isdigit():
    print(__doc__, file=sys.stderr)
    sys.exit(2)
main(*sys.argv[1:])
