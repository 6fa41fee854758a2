# SPDX-License-Identifier: BSD-3-Clause
"""Builds libspsolve.so.0 into the package.

The sources are those in the folder `source` of an sdist, else the tree that
this folder is in, else what SPSOLVE_SOURCE names.  They are copied and built in
a temporary folder.  Environment variables:

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
SONAME = "libspsolve.so.0"
MODULE = "spsolve_cuda.so"
NEEDED = ("gcc make pkg-config liblapacke-dev libopenblas-dev zlib1g-dev "
          "autoconf automake libtool")
MADE = {".git", ".libs", ".deps", "__pycache__", "autom4te.cache", "stage",
        "Makefile", "config.status", "libtool", "libspsolve.pc", "dist"}


def source():
    for folder in (os.path.join(HERE, "source"),
                   os.path.join(HERE, "..", ".."),
                   os.environ.get("SPSOLVE_SOURCE", "")):
        if folder and os.path.exists(os.path.join(folder, "lib", "spsolve.h")):
            return os.path.abspath(folder)
    raise SetupError("the sources of the library are not there: install from a "
                     "whole checkout or tarball, or let SPSOLVE_SOURCE name "
                     "it")


def is_made(folder, names):
    """What builds leave in a source tree."""
    return [n for n in names if n in MADE or
            n.endswith((".o", ".lo", ".la", ".log", ".trs", ".egg-info")) or
            n.startswith("libspsolve-") or
            (n.startswith("build") and n != "build-aux" and
             os.path.isdir(os.path.join(folder, n)))]


def copy_source(to):
    shutil.copytree(source(), to, ignore=is_made)


def run(folder, *command):
    print("+", *command, flush=True)
    environment = dict(os.environ)
    environment.setdefault("CFLAGS", "-O3")
    try:
        subprocess.run(command, cwd=folder, env=environment, check=True,
                       stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as e:
        raise SetupError(f"libspsolve was not built: {e}.  It needs (names of "
                         f"Debian's packages) {NEEDED}") from e


def cuda():
    """What --with-cuda gets, "no" by default."""
    return os.environ.get("SPSOLVE_CUDA") or "no"


def switches():
    return ["--prefix=/usr", "--libdir=/usr/lib", f"--with-cuda={cuda()}"] + \
        shlex.split(os.environ.get("SPSOLVE_CONFIGURE", ""))


def install_targets():
    """Installed ones, since those of the build folder may look into it."""
    module = [] if cuda() == "no" else ["install-spsolvemoduleLTLIBRARIES"]
    return ["install-libLTLIBRARIES"] + module


def build_library(to):
    """Configures and makes a copy of the sources; the library, the module for
    GPUs if there is one, and the license go to the folder."""
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "libspsolve")
        copy_source(tree)
        if not os.path.exists(os.path.join(tree, "configure")):
            run(tree, "sh", "./autogen.sh")
        run(tree, "sh", "./configure", "-q", "--disable-dependency-tracking",
            *switches())
        cores = len(os.sched_getaffinity(0))
        run(tree, "make", f"-j{cores}", f"DESTDIR={folder}/to",
            *install_targets())
        files = [f"{folder}/to/usr/lib/{SONAME}", f"{tree}/LICENSE"]
        if cuda() != "no":
            files.append(f"{folder}/to/usr/lib/spsolve/{MODULE}")
        for file in files:
            shutil.copy(file, to)


class BuildPackage(build_py):
    """Not in an editable installation, for which SPSOLVE_LIBRARY names a
    library that was built before."""

    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            build_library(os.path.join(self.build_lib, "libspsolve"))


class Sdist(sdist):
    """With the sources of the library in the folder `source`."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        copy_source(os.path.join(base_dir, "source"))


class Platform(Distribution):
    """Its files depend on the platform, though nothing is an extension."""

    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """Of this platform, for every Python."""

    def get_tag(self):
        return ("py3", "none") + super().get_tag()[2:]


if not sys.platform.startswith("linux"):
    raise SetupError("libspsolve runs on Linux")
setup(distclass=Platform, cmdclass={
    "build_py": BuildPackage, "sdist": Sdist, "bdist_wheel": Wheel})
