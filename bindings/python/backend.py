# SPDX-License-Identifier: BSD-3-Clause
"""The build backend: setuptools, and from PyPI those libraries that this system
lacks.  setup.py builds with them.

  lapacke.h   scipy-openblas32: OpenBLAS with LAPACKE.  All its names begin with
              scipy_, so that it meets no other OpenBLAS in the process.  The
              package carries the library and its licenses.
  zlib.h      cmeel-zlib: the header, and the library to link with.  Nothing of
              it is carried: libz.so.1 is on every Linux that has a Python, and
              manylinux wheels may expect it.

SPSOLVE_PYPI=yes takes both from there whatever the system has (wheels for other
machines), SPSOLVE_PYPI=no neither.  LAPACKE_LIBS and ZLIB_LIBS name others.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

from setuptools import build_meta
from setuptools.build_meta import *     # noqa: F401,F403  (the other hooks)

# header: its package in pkg-config, variable of configure, distribution
LIBRARIES = {
    "lapacke.h": ("lapacke", "LAPACKE_LIBS", "scipy-openblas32>=0.3.24"),
    "zlib.h": ("zlib", "ZLIB_LIBS", "cmeel-zlib"),
}
HEADER = "scipy_openblas32/include/lapacke.h"
OPENBLAS = "scipy_openblas32/lib/libscipy_openblas.so"
OPENBLAS_LICENSE = "scipy_openblas32-*.dist-info/**/LICENSE.txt"
ZLIB_HEADER = "cmeel.prefix/include/zlib.h"
ZLIB = "cmeel.prefix/lib*/libz.so"
ALIASES = "spsolve_names.h"
MADE = {".git", ".libs", ".deps", "__pycache__", "autom4te.cache", "stage",
        "Makefile", "config.status", "libtool", "libspsolve.pc", "dist"}


def is_made(folder, names):
    """What builds leave in a source tree, and virtual environments in it."""
    return [n for n in names if n in MADE or
            n.endswith((".o", ".lo", ".la", ".log", ".trs", ".egg-info")) or
            n.startswith("libspsolve-") or
            (n.startswith("build") and n != "build-aux" and
             os.path.isdir(os.path.join(folder, n))) or
            os.path.exists(os.path.join(folder, n, "pyvenv.cfg"))]


def succeeds(command, text=""):
    try:
        return subprocess.run(command, input=text, text=True,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def on_system(header):
    package, variable, _ = LIBRARIES[header]
    if os.environ.get(variable):
        return True
    words = " ".join(os.environ.get(name, default) for name, default in
                     (("CC", "cc"), ("CPPFLAGS", ""), ("CFLAGS", "")))
    return succeeds(["pkg-config", "--exists", package]) or succeeds(
        shlex.split(words) + ["-E", "-x", "c", "-"], f"#include <{header}>\n")


def from_pypi(header):
    choice = os.environ.get("SPSOLVE_PYPI")
    if choice not in (None, "", "yes", "no"):
        raise ValueError(f"SPSOLVE_PYPI is yes or no, not {choice}")
    return choice == "yes" or choice != "no" and not on_system(header)


def get_requires_for_build_wheel(config_settings=None):
    return build_meta.get_requires_for_build_wheel(config_settings) + [
        library[2] for header, library in LIBRARIES.items()
        if from_pypi(header)]


def file_of(pattern):
    """Returns the path of a file of an installed distribution, whose place
    in site-packages is given as a pattern."""
    for folder in sys.path:
        found = glob.glob(os.path.join(folder, pattern), recursive=True)
        if found:
            return found[0]
    raise FileNotFoundError(f"there is no {pattern} in {sys.path}")


def write_aliases(header, to):
    """Writes a header by which LAPACKE_dposv means scipy_LAPACKE_dposv, and
    so on."""
    with open(header, encoding="utf-8") as f:
        names = re.findall(r"\bscipy_(LAPACKE_\w+)\s*\(", f.read())
    names += ["openblas_get_num_threads", "openblas_set_num_threads"]
    with open(to, "w", encoding="utf-8") as f:
        f.writelines(f"#define {name} scipy_{name}\n" for name in names)


def switches(folder):
    """Returns variables for configure.  Files that they name are written to
    the folder."""
    found = []
    if from_pypi("lapacke.h"):
        header = file_of(HEADER)
        library = file_of(OPENBLAS)
        aliases = os.path.join(folder, ALIASES)
        write_aliases(header, aliases)
        found += [f"LAPACKE_CFLAGS=-I{os.path.dirname(header)} "
                  f"-include {aliases}",
                  f"LAPACKE_LIBS=-L{os.path.dirname(library)} "
                  "-lscipy_openblas"]
    if from_pypi("zlib.h"):
        include = os.path.dirname(file_of(ZLIB_HEADER))
        folder = os.path.dirname(file_of(ZLIB))
        found += [f"ZLIB_CFLAGS=-I{include}", f"ZLIB_LIBS=-L{folder} -lz"]
    return found


def carried():
    """Returns {file to copy: its path in the package}: the library of PyPI
    that the built one loads, and the text of its licenses."""
    if not from_pypi("lapacke.h"):
        return {}
    return {
        file_of(OPENBLAS): "libscipy_openblas.so",
        file_of(OPENBLAS_LICENSE): "licenses/libscipy_openblas.txt",
    }
