# SPDX-License-Identifier: MIT
"""setuptools as the build backend, which also asks for CUDA's headers where they are of use and missing: where NVIDIA's
driver is, as etc/quickstart does. nvidia.so is compiled with them; nothing of CUDA is linked. A build without isolation,
such as a distribution's, gets nothing from this: it finds the headers or leaves nvidia.so out."""

import ctypes
import os

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def _has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def get_requires_for_build_wheel(config_settings=None):
    requires = build_meta.get_requires_for_build_wheel(config_settings)
    folders = (os.environ.get("CUDA_PATH") or "/usr/local/cuda") + "/include", "/usr/include"
    if _has_driver() and not any(os.path.exists(folder + "/cuda.h") for folder in folders):
        requires.append("nvidia-cuda-runtime-cu12")
    return requires
