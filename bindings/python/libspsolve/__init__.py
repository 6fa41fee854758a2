# SPDX-License-Identifier: BSD-3-Clause
"""Sparse systems with many right-hand sides, and eigenvalues.

>>> import numpy as np, scipy.sparse as sp
>>> import libspsolve
>>> A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(1000, 1000))
>>> r = libspsolve.solve(A, np.ones((1000, 4)))
>>> bool(r.converged.all())
True

``solve``, ``lsqr``, ``lsmr``, ``eigsh`` and ``lobpcg`` have the shapes of
scipy.sparse.linalg; ``Solver`` keeps the memory of many solves;
``Preconditioner`` is for SciPy's ``M=``.  Arrays and matrices are of NumPy and
SciPy, CuPy, or PyTorch; those in the memory of a GPU are used there.  Every
result is verified: residuals are computed again from A, B and X.
"""
from ._callbacks import Progress
from ._eigen import eigsh, lobpcg, rigid_body
from ._errors import (ConvergenceWarning, DeviceError, Error, Interrupted,
                      InvalidArgument, MatrixError, Note, NotConverged,
                      OutOfMemory, ShapeError, SpsolveWarning, UnfitError)
from ._library import lib as _lib
from ._linear import Preconditioner, Solver, lsmr, lsqr, solve
from ._options import Option, options
from ._result import EigenResult, LinearResult
from ._structs import Status, Stop

__version__ = "0.2.0"


def library_version() -> str:
    """Version of the library that was loaded.

    >>> library_version().split(".")[0]
    '0'
    """
    return _lib.sps_version().decode()


__all__ = [
    "ConvergenceWarning", "DeviceError", "EigenResult", "Error", "Interrupted",
    "InvalidArgument", "LinearResult", "MatrixError", "Note", "NotConverged",
    "Option", "OutOfMemory", "Preconditioner", "Progress", "ShapeError",
    "Solver", "SpsolveWarning", "Status", "Stop", "UnfitError", "eigsh",
    "library_version", "lobpcg", "lsmr", "lsqr", "options", "rigid_body",
    "solve",
]
