# SPDX-License-Identifier: BSD-3-Clause
"""A x = lambda M x."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, Optional, Union

import numpy as np

from ._arrays import Block, columns, dense
from ._callbacks import is_operator, size_of, user_operator
from ._context import Context, c_int
from ._errors import ConvergenceWarning, ShapeError, warn
from ._library import lib
from ._matrix import Matrix, is_sparse
from ._options import Options
from ._progress import Callback, Display
from ._result import EigenResult, eigen_result
from ._structs import EigenData, Property, Stop
from ._system import System

WHICH = {"SA": "smallest", "LA": "largest", "smallest": "smallest",
         "largest": "largest"}


def _choice(which: Optional[str], sigma: Optional[float]) -> Dict[str, Any]:
    """The options which and sigma, of SciPy's words or the library's."""
    if which in (None, "LM", "nearest") and sigma is not None:
        return {"which": "nearest", "sigma": float(sigma)}
    if which == "nearest":
        raise ValueError("which='nearest' needs sigma")
    if sigma is not None:
        raise ValueError(f"which={which!r} with sigma: pairs nearest to sigma "
                         "are found, for which leave which out")
    if which == "SM":
        return {"which": "nearest", "sigma": 0.0}
    which = "SA" if which is None else which
    if which not in WHICH:
        raise ValueError(
            f"which={which!r}: known are 'SA' (smallest), 'LA' (largest) and "
            "'SM' (nearest to 0); for those nearest to a number give sigma")
    return {"which": WHICH[which]}


class _EigenSystem(System):
    """A and M, of which M may be a matrix or an operator."""

    def __init__(self, A: Any, M: Any, **arguments: Any) -> None:
        # Of a matrix symmetry is checked, of an operator it is declared.
        declared = None if is_sparse(A) else "sym"
        super().__init__(A, assume_a=declared, **arguments)
        if self.dtype == np.complex128:
            raise TypeError("A is complex; eigenpairs are found of real "
                            "symmetric matrices")
        self._mass = M
        self._mass_matrix: Optional[Matrix] = None
        if M is not None and is_sparse(M):
            self._mass_matrix = Matrix(self._context, M, 0)
            if self._mass_matrix.is_complex:
                raise TypeError("M is complex")
            self._check_mass(self._mass_matrix.arrays.shape)
        elif M is not None and is_operator(M):
            self._check_mass((size_of(M, self._n),) * 2)
        elif M is not None:
            raise TypeError(f"M is a {type(M).__name__}; a sparse matrix, a "
                            "LinearOperator or a function is expected")

    def _check_mass(self, shape: Any) -> None:
        if tuple(shape) != (self._n, self._n):
            raise ShapeError(f"M has the shape {tuple(shape)}; {self.shape} is "
                             "expected")

    def _mass_operator(self, width: int, options: Options) -> Any:
        if self._mass is None:
            return None
        if self._mass_matrix is None:
            return user_operator(self._context, self._mass, self._n,
                                 Property.SYMMETRIC | Property.SPD)
        return self._operator(self._mass, self._mass_matrix, width, options)

    def find(self, k: int, X: np.ndarray, options: Dict[str, Any],
             precond: Any, callback: Callback) -> EigenResult:
        data = EigenData(struct_size=ctypes.sizeof(EigenData))
        with self._interruptible() as guard, self._context as context:
            T = self._take_precond(precond, options)
            chosen = Options(context, options, callback)
            op = self._operator(self._A, self._matrix, k, chosen)
            mass = self._mass_operator(k, chosen)
            solver = context.make("sps_solver_create_eigen", op, mass, T, k,
                                  chosen.handle)
            self._run(context, solver, X, data)
            result = eigen_result(data, X, context.take_notes())
            guard.result = result
        return result

    @staticmethod
    def _run(context: Context, solver: Any, X: np.ndarray,
             data: EigenData) -> None:
        block = Block(context, X)
        block.put(context)
        context.check(lib.sps_solver_eigen(solver, block.handle, None, data))
        block.get(context)


def _guess(v0: Any, n: int, k: int) -> np.ndarray:
    """An n x k array; zero columns are replaced by random ones."""
    X = np.zeros((n, k))
    if v0 is None:
        return X
    given = columns(dense(v0, "v0"))
    if given.dtype != np.float64 or given.shape[0] != n or given.shape[1] > k:
        raise ShapeError(f"v0 has the shape {given.shape}; at most {k} real "
                         f"columns of {n} rows are expected")
    X[:, :given.shape[1]] = given
    return X


def eigsh(A: Any, k: int = 6, M: Any = None, sigma: Optional[float] = None,
          which: Optional[str] = None, v0: Any = None,
          maxiter: Optional[int] = None, tol: float = 0.0,
          return_eigenvectors: bool = True, *, precond: Any = None,
          n: Optional[int] = None, callback: Callback = None,
          progress: bool = False, device: str = "cpu", threads: int = 0,
          seed: int = 1, **options: Any) -> Union[EigenResult, np.ndarray]:
    """k eigenpairs of A x = lambda M x, A symmetric, M positive definite.

    Parameters
    ----------
    A : n x n symmetric sparse matrix, LinearOperator or function
    k : int
    M : sparse matrix, LinearOperator or function, optional
        None is the identity.
    sigma : float, optional
        Pairs nearest to it, by factors of A - sigma M.
    which : {'SA', 'LA', 'SM'}, optional
        Smallest (also without sigma; SciPy's default is 'LM', which is not
        known here), largest, nearest to 0.  The library's words smallest,
        largest and nearest are accepted.
    v0 : array, n or n x j with j <= k, optional
        Guess of the first eigenvectors.
    maxiter, tol :
        Options max_iterations and rtol; 0 is the library's default, 1e-8.
    return_eigenvectors : bool
        False: the eigenvalues alone are returned.
    precond : str or operator, optional
        Name of a preconditioner, or an approximation of the inverse of A.
    n, callback, progress, device, threads, seed, **options :
        As of Solver; ``verify_count=True`` looks for missed pairs.

    Returns
    -------
    EigenResult
        ``w, V = eigsh(A, k)`` unpacks it as SciPy's eigsh returns: w ascending
        (k), V (n x k) M-orthonormal.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(200, 200))
    >>> w, V = eigsh(A, k=3)
    >>> exact = 2 - 2 * np.cos(np.arange(1, 4) * np.pi / 201)
    >>> np.allclose(w, exact, rtol=1e-9), V.shape
    (True, (200, 3))
    """
    chosen = dict(options, **_choice(which, sigma))
    if maxiter is not None:
        chosen["max_iterations"] = maxiter
    if tol:
        chosen["rtol"] = tol
    with _EigenSystem(A, M, n=n, device=device, threads=threads,
                      seed=seed) as system:
        k = c_int(k, "k")
        X = _guess(v0, system.shape[0], max(k, 1))
        display = Display(callback) if progress else None
        try:
            result = system.find(k, X, chosen, precond, display or callback)
        finally:
            if display is not None:
                display.close()
    if not result.all_converged and result.stop != Stop.INTERRUPTED:
        warn(result.shortfall(), ConvergenceWarning)
    return result if return_eigenvectors else result.w
