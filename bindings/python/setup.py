# SPDX-License-Identifier: BSD-3-Clause
"""Builds libspsolve.so.0 into the package.

The sources are those in the folder `source` of an sdist, else the tree that
this folder is in, else what SPSOLVE_SOURCE names.  They are copied and built in
a temporary folder.  backend.py finds LAPACKE and zlib, on PyPI if need be.
Environment variables, besides those of backend.py:

  SPSOLVE_CUDA        yes, or the folder of the CUDA toolkit: the module for
                      GPUs is built too
  SPSOLVE_CONFIGURE   more switches of configure
  CFLAGS, CC          as configure takes them; CFLAGS is -O3 by default
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import SetupError

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import backend          # noqa: E402
import check_wheel      # noqa: E402

SONAME = "libspsolve.so.0"
MODULE = "spsolve_cuda.so"
TOOLS = "gcc make"
AUTOTOOLS = "autoconf automake libtool"


def source():
    for folder in (os.path.join(HERE, "source"),
                   os.path.join(HERE, "..", ".."),
                   os.environ.get("SPSOLVE_SOURCE", "")):
        if folder and os.path.exists(os.path.join(folder, "lib", "spsolve.h")):
            return os.path.abspath(folder)
    raise SetupError("the sources of the library are not there: install from a "
                     "whole checkout or tarball, or let SPSOLVE_SOURCE name "
                     "it")


def copy_source(to):
    shutil.copytree(source(), to, ignore=backend.is_made)


def run(folder, *command, needs=TOOLS):
    """Runs a command in the folder.  ld reads LD_RUN_PATH, so that the library
    will find the libraries that lie in the same folder as itself."""
    print("+", *command, flush=True)
    environment = dict(os.environ, LD_RUN_PATH="$ORIGIN")
    environment.setdefault("CFLAGS", "-O3")
    try:
        subprocess.run(command, cwd=folder, env=environment, check=True,
                       stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as e:
        raise SetupError(f"libspsolve was not built: {e}.  If a program is "
                         f"missing, install it: apt install {needs}") from e


def make_configure(tree):
    """Makes configure if the tree has none: tarballs and sdists have it,
    checkouts do not."""
    if os.path.exists(os.path.join(tree, "configure")):
        return
    if not shutil.which("autoreconf"):
        raise SetupError("a checkout has no configure yet, and making it needs "
                         f"Autotools: apt install {AUTOTOOLS}; tarballs and "
                         "sdists have it")
    run(tree, "sh", "./autogen.sh", needs=AUTOTOOLS)


def check_tools():
    """Raises SetupError if there is no C compiler (CC may name one) or no make:
    sooner, and with a clearer text, than configure would."""
    if not (os.environ.get("CC") or shutil.which("cc") or
            shutil.which("gcc")) or not shutil.which("make"):
        raise SetupError("a C compiler and make are needed: apt install "
                         f"{TOOLS}")


def cuda():
    """Returns the value for configure's --with-cuda, "no" by default."""
    return os.environ.get("SPSOLVE_CUDA") or "no"


def switches():
    return ["--prefix=/usr", "--libdir=/usr/lib", f"--with-cuda={cuda()}",
            "--without-mumps", "--without-mpi"] + \
        shlex.split(os.environ.get("SPSOLVE_CONFIGURE", ""))


def install_targets():
    """Returns targets of make that install the library: it is taken from the
    installation because the one in the build folder may refer to that."""
    module = [] if cuda() == "no" else ["install-spsolvemoduleLTLIBRARIES"]
    return ["install-libLTLIBRARIES"] + module


def build_library(to):
    """Configures and makes a copy of the sources; the library, the module for
    GPUs if there is one, and the license go to the folder."""
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "libspsolve")
        copy_source(tree)
        make_configure(tree)
        run(tree, "sh", "./configure", "-q", "--disable-dependency-tracking",
            *backend.switches(folder), *switches())
        cores = len(os.sched_getaffinity(0))
        run(tree, "make", f"-j{cores}", f"DESTDIR={folder}/to",
            *install_targets())
        files = [f"{folder}/to/usr/lib/{SONAME}", f"{tree}/LICENSE"]
        if cuda() != "no":
            files.append(f"{folder}/to/usr/lib/spsolve/{MODULE}")
        for file in files:
            shutil.copy(file, to)
    for file, name in backend.carried().items():
        os.makedirs(os.path.dirname(os.path.join(to, name)), exist_ok=True)
        shutil.copy(file, os.path.join(to, name))


class BuildPackage(build_py):
    """Builds the package with the library in it.  In an editable
    installation the library is not built: there SPSOLVE_LIBRARY names one."""

    def run(self):
        check_tools()
        super().run()
        if not getattr(self, "editable_mode", False):
            build_library(os.path.join(self.build_lib, "libspsolve"))


class Sdist(sdist):
    """Makes an sdist that has the sources of the library in the folder
    `source`, and configure, so that installing it does not need Autotools."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in ("backend.py", "check_wheel.py"):
            shutil.copy(os.path.join(HERE, name), base_dir)
        copy_source(os.path.join(base_dir, "source"))
        make_configure(os.path.join(base_dir, "source"))


class Platform(Distribution):
    """A distribution whose files depend on the platform, although it has no
    extension modules."""

    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """Makes a wheel for this platform and every Python 3; fails if a license
    is missing."""

    def get_tag(self):
        return ("py3", "none") + super().get_tag()[2:]

    def run(self):
        super().run()
        for _, _, path in self.distribution.dist_files:
            if path.endswith(".whl") and check_wheel.faults(path):
                raise SetupError("; ".join(check_wheel.faults(path)))


if not sys.platform.startswith("linux"):
    raise SetupError("libspsolve runs on Linux")
setup(distclass=Platform, cmdclass={
    "build_py": BuildPackage, "sdist": Sdist, "bdist_wheel": Wheel})
