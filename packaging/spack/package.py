# SPDX-License-Identifier: BSD-3-Clause
from spack.package import *


class Libspsolve(AutotoolsPackage, CudaPackage):
    """Sparse linear systems with many right-hand sides, least squares and
    symmetric eigenvalue problems, by iterative methods on CPUs and GPUs."""

    license("BSD-3-Clause")

    version("0.2.0")

    variant("mumps", default=False,
            description="sparse direct factors, in a module")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("lapack")
    depends_on("netlib-lapack+lapacke", when="^[virtuals=lapack] netlib-lapack")
    depends_on("zlib-api")
    depends_on("mumps~mpi", when="+mumps")
    depends_on("metis", when="+mumps")

    conflicts("cuda_arch=none", when="+cuda",
              msg="name the architectures, as cuda_arch=90")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        args = self.with_or_without("mumps", activation_value=lambda v: "yes")
        args.append("--without-mpi")
        if self.spec.satisfies("+cuda"):
            archs = " ".join(self.spec.variants["cuda_arch"].value)
            args += [f"--with-cuda={self.spec['cuda'].prefix}",
                     f"--with-cuda-arch={archs}"]
        else:
            args.append("--without-cuda")
        return args

    @property
    def install_targets(self):
        return ["install", "SOLVE_LINK="]
