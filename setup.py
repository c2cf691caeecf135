# SPDX-License-Identifier: MIT
"""Builds the C parts of the Python distribution: libhipmm, its plugins and the command `hipmm` by configure and make, and
the extension hipmm._hipmm against them. pyproject.toml has the rest. CONFIGURE_FLAGS has more arguments for configure, and
STRIP names another strip, as for python/wheel.sh, which compiles for other processors.

With HIPMM_SYSTEM=1, which is for packages of a distribution, only the extension is built: it is linked with the libhipmm that
the linker finds (LIBRARY_PATH), and the package uses the command `hipmm` of the system."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent


def unsupported():
    """Why hipmm cannot be built here, or None."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return (
            "this is a free-threaded build of Python, which has no stable ABI and is not supported; "
            "use the usual build of the same version"
        )
    if sys.platform != "linux":
        return f"it needs Linux with glibc, and this is {sys.platform}"
    if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
        return "it needs glibc, as the drivers of GPUs do, and this Python's C library is musl (Alpine); use a Debian or Fedora image"
    if " " in str(ROOT):
        return f"Automake cannot build in a folder with a space in its path: {ROOT}; move it, or set TMPDIR to another folder"
    return None


if unsupported():
    sys.exit(f"hipmm cannot be built: {unsupported()}")

import setuptools  # noqa: E402
from setuptools.command.build_ext import build_ext  # noqa: E402

IS_SYSTEM = os.environ.get("HIPMM_SYSTEM") == "1"
SOURCES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("python/src/*.c"))


def init_arguments():
    """The arguments of AC_INIT: name, version, where to report a fault, name of the archive, URL."""
    found = re.search(r"^AC_INIT\((.*?)\)$", (ROOT / "configure.ac").read_text(), re.MULTILINE | re.DOTALL)
    arguments = re.findall(r"\[([^]]*)\]", found.group(1))
    return arguments + [""] * (5 - len(arguments))


VERSION, URL = init_arguments()[1], init_arguments()[4]


def description():
    """README.md, whose links and pictures lead to files of the sources: to those of the project's URL, if it has one."""

    def absolute(link):
        picture, text, target = link.groups()
        if re.match(r"[a-z]+:|#", target):
            return link.group(0)
        if not URL:
            return "" if picture else text
        return f"{picture}[{text}]({URL}/{'raw' if picture else 'blob'}/v{VERSION}/{target})"

    return re.sub(r"(!?)\[([^][]*)\]\(([^) ]+)\)", absolute, (ROOT / "README.md").read_text(encoding="utf-8"))


def licence():
    """As PEP 639 has it, for a setuptools that knows it; Debian 12's does not."""
    return {"license_expression" if int(setuptools.__version__.partition(".")[0]) >= 77 else "license": "MIT"}


def cuda_flags():
    """Where CUDA's headers are, unless configure finds them: those of the build requirement."""
    if os.environ.get("CUDA_PATH") or os.path.exists("/usr/local/cuda/include/cuda.h"):
        return []
    for folder in sys.path:
        if os.path.exists(os.path.join(folder, "nvidia/cuda_runtime/include/cuda.h")):
            return ["--with-cuda=" + os.path.join(folder, "nvidia/cuda_runtime")]
    return []


class BuildAll(build_ext):
    """Installs the C parts into the package's folders bin, include and lib, where libhipmm finds its plugins beside itself."""

    PREFIX = "/usr/local"

    def run(self):
        build = pathlib.Path(self.build_temp).resolve() / "native"
        build.mkdir(parents=True, exist_ok=True)
        installed = build / "installed"
        self._make(build, installed)
        self._copy(installed / self.PREFIX[1:], pathlib.Path(self.get_ext_fullpath("hipmm._hipmm")).resolve().parent)
        self.extensions[0].library_dirs = [str(installed / self.PREFIX[1:] / "lib")]
        super().run()

    def _make(self, build, installed):
        jobs = str(len(os.sched_getaffinity(0)))
        run = lambda *command, folder=build: subprocess.run(command, cwd=folder, check=True)  # noqa: E731
        if not (ROOT / "configure").exists():
            if shutil.which("autoreconf") is None:
                sys.exit('hipmm: autoreconf is missing; README.md, "To build by hand", names what a build needs')
            run("autoreconf", "-fi", folder=ROOT)
        if not (build / "config.status").exists():
            run(
                os.path.relpath(ROOT / "configure", build),  # absolute paths would be in what is compiled
                "-q",
                f"--prefix={self.PREFIX}",
                f"--libdir={self.PREFIX}/lib",
                "--sysconfdir=/etc",
                "--without-sqlite",  # else the wheel would depend on what the build machine has
                *cuda_flags(),
                *shlex.split(os.environ.get("CONFIGURE_FLAGS", "")),
            )
        run("make", "-s", "-j", jobs)
        run("make", "-s", "install", f"DESTDIR={installed}")
        missing = re.search(r'#define HIPMM_NVIDIA "no: (.*)"', (build / "config.h").read_text())
        if missing:
            print(f"hipmm: nvidia.so, for NVIDIA GPUs, is left out: {missing.group(1)}", file=sys.stderr)

    def _copy(self, source, package):
        for folder in ("bin", "include", "lib"):
            shutil.rmtree(package / folder, ignore_errors=True)
        (package / "bin").mkdir(parents=True)
        shutil.copy2(source / "bin/hipmm", package / "bin/hipmm")
        for folder in ("include", "lib/hipmm", "lib/cmake", "lib/pkgconfig"):
            shutil.copytree(source / folder, package / folder)
        # A wheel has no symbolic links, so the libraries have one name each, that of the loader.
        for name in ("libhipmm.so", "librmm_compat.so"):
            shutil.copy2((source / "lib" / name).resolve(), package / "lib" / f"{name}.0")
        config = package / "lib/cmake/hipmm/hipmmConfig.cmake"
        config.write_text(config.read_text().replace('libhipmm.so"', 'libhipmm.so.0"'))
        for file in (package / "lib/pkgconfig").iterdir():
            text = file.read_text().replace(self.PREFIX, "${pcfiledir}/../..")
            text = re.sub(r"^((Requires|Libs)\.private:|schema=).*\n", "", text, flags=re.MULTILINE)  # which a wheel has not
            file.write_text(re.sub(r"-l(hipmm|rmm_compat)\b", r"-l:lib\1.so.0", text))
        for file in [package / "bin/hipmm", *package.glob("lib/*.so.0"), *package.glob("lib/hipmm/**/*.so")]:
            subprocess.run([os.environ.get("STRIP", "strip"), "--strip-unneeded", str(file)], check=False)


setuptools.setup(
    version=VERSION,
    long_description=description(),
    long_description_content_type="text/markdown",
    project_urls={"Source": URL, "Changelog": f"{URL}/blob/v{VERSION}/CHANGELOG.md"} if URL else {},
    **licence(),
    ext_modules=[
        setuptools.Extension(
            "hipmm._hipmm",
            SOURCES,
            include_dirs=["include"],
            define_macros=[("_GNU_SOURCE", None)],
            libraries=["hipmm"],
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-fno-plt"],
            extra_link_args=[] if IS_SYSTEM else ["-Wl,-rpath,$ORIGIN/lib"],
            py_limited_api=True,
        )
    ],
    # The extension uses the buffer protocol, which the stable ABI has since 3.11. So a wheel of 3.10 is for 3.10 only.
    options={"bdist_wheel": {"py_limited_api": "cp311"} if sys.version_info >= (3, 11) else {}},
    cmdclass={} if IS_SYSTEM else {"build_ext": BuildAll},
    entry_points={} if IS_SYSTEM else {"console_scripts": ["hipmm = hipmm._command:main"]},
)
