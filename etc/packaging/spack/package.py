# Untried: nobody has built this recipe.
# SPDX-License-Identifier: MIT
# pylint: skip-file
import os

from spack.package import *


class Hipmm(AutotoolsPackage):
    """GPU memory from stacks of resources that a JSON file describes."""

    license("MIT")

    # The recipe lies in hipmm's own tree: `spack dev-build hipmm@develop` there builds that tree.
    version("develop")

    variant("cuda", default=False, description="Build the runtime for NVIDIA's GPUs")
    variant("sqlite", default=True, description="Read databases of Nsight Systems, rocprofv3 and PyTorch")

    depends_on("c", type="build")
    depends_on("autoconf@2.69:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type=("build", "link", "run"))
    depends_on("pkgconfig", type="build")
    depends_on("hip@5.2:", type="build")
    depends_on("jansson@2.10:")
    depends_on("sqlite@3.31:", when="+sqlite")
    depends_on("cuda@12:", type="build", when="+cuda")

    def configure_args(self):
        spec = self.spec
        cuda = spec["cuda"].prefix if spec.satisfies("+cuda") else "no"
        return [
            f"--with-cuda={cuda}",
            *self.with_or_without("sqlite"),
            "HIP_CFLAGS=-isystem " + os.path.join(spec["hip"].prefix, "include"),
        ]
