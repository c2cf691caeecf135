# SPDX-License-Identifier: MIT
"""Builds the C parts of the Python distribution: libhipmm, its plugins and the command `hipmm` by configure and make, and
the extension hipmm._hipmm against them. pyproject.toml has the rest.

With HIPMM_SYSTEM=1, which is for packages of a distribution, only the extension is built: it is linked with the libhipmm that
the linker finds (LIBRARY_PATH), and the package uses the command `hipmm` of the system."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit(
        "hipmm: this is a free-threaded build of Python, which has no stable ABI and is not supported; "
        "use the usual build of the same version"
    )

from setuptools import Extension, setup  # noqa: E402
from setuptools.command.build_ext import build_ext  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent
IS_SYSTEM = os.environ.get("HIPMM_SYSTEM") == "1"
SOURCES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("python/src/*.c"))


def version():
    text = (ROOT / "configure.ac").read_text()
    return re.search(r"AC_INIT\(\[hipmm\], \[([^]]+)\]\)", text).group(1)


def cuda_flags():
    """Where CUDA's headers are, unless configure finds them: those of the build requirement."""
    if os.environ.get("CUDA_PATH") or os.path.exists("/usr/local/cuda/include/cuda.h"):
        return []
    for folder in sys.path:
        if os.path.exists(os.path.join(folder, "nvidia/cuda_runtime/include/cuda.h")):
            return ["--with-cuda=" + os.path.join(folder, "nvidia/cuda_runtime")]
    return []


class BuildAll(build_ext):
    """Installs the C parts into the package's folders bin and lib, where libhipmm finds its plugins beside itself."""

    PREFIX = "/usr/local"

    def run(self):
        build = pathlib.Path(self.build_temp).resolve() / "native"
        build.mkdir(parents=True, exist_ok=True)
        installed = build / "installed"
        self._make(build, installed)
        self._copy(installed, pathlib.Path(self.get_ext_fullpath("hipmm._hipmm")).resolve().parent)
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
                str(ROOT / "configure"),
                "-q",
                f"--prefix={self.PREFIX}",
                f"--libdir={self.PREFIX}/lib",
                "--sysconfdir=/etc",
                "--without-sqlite",  # else the wheel would depend on what the build machine has
                *cuda_flags(),
            )
        run("make", "-s", "-j", jobs)
        run("make", "-s", "install", f"DESTDIR={installed}")

    def _copy(self, installed, package):
        source = installed / self.PREFIX[1:]
        for folder in ("bin", "lib"):
            shutil.rmtree(package / folder, ignore_errors=True)
        (package / "bin").mkdir(parents=True)
        shutil.copy2(source / "bin/hipmm", package / "bin/hipmm")
        shutil.copytree(source / "lib/hipmm", package / "lib/hipmm")
        shutil.copy2((source / "lib/libhipmm.so").resolve(), package / "lib/libhipmm.so.0")
        for file in [package / "bin/hipmm", *package.glob("lib/**/*.so*")]:
            subprocess.run(["strip", "--strip-unneeded", str(file)], check=False)


setup(
    version=version(),
    ext_modules=[
        Extension(
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
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
    cmdclass={} if IS_SYSTEM else {"build_ext": BuildAll},
    entry_points={} if IS_SYSTEM else {"console_scripts": ["hipmm = hipmm._command:main"]},
)
