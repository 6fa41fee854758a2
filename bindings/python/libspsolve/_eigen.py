# SPDX-License-Identifier: BSD-3-Clause
"""A x = lambda M x."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Union

import numpy as np

from ._arrays import Block, address, columns, dense, empty
from ._callbacks import callable_or_none, is_operator, size_of, user_operator
from ._context import Context, width
from ._errors import ConvergenceWarning, ShapeError, warn
from ._library import lib
from ._matrix import Matrix, is_sparse
from ._options import Options
from ._packages import COMPLEX, given, package_of
from ._progress import Callback, Display, Recorder
from ._result import EigenResult, eigen_result
from ._structs import EigenData, Order, Place, Property, Stop
from ._system import System

WHICH = {"SA": "smallest", "LA": "largest", "smallest": "smallest",
         "largest": "largest"}


def _choice(which: Optional[str], sigma: Optional[float]) -> Dict[str, Any]:
    """Returns the options which and sigma, given in SciPy's words or the
    library's."""
    if which in (None, "LM", "nearest") and sigma is not None:
        return {"which": "nearest", "sigma": float(sigma)}
    if which == "nearest":
        raise ValueError("which='nearest' needs sigma, the number to which "
                         "eigenvalues are nearest")
    if sigma is not None:
        raise ValueError(f"which={which!r} with sigma: pairs nearest to sigma "
                         "are found; omit which, or sigma")
    if which == "SM":
        return {"which": "nearest", "sigma": 0.0}
    which = "SA" if which is None else which
    if which not in WHICH:
        raise ValueError(
            f"which={which!r}: unknown; use 'SA' (smallest), 'LA' (largest) or "
            "'SM' (nearest to 0); for those nearest to a number give sigma")
    return {"which": WHICH[which]}


class _EigenSystem(System):
    """A and M; M may be a matrix or an operator."""

    def __init__(self, A: Any, M: Any, **arguments: Any) -> None:
        # The library checks whether a matrix is symmetric; an operator has to
        # be declared so.
        declared = None if is_sparse(A) else "sym"
        super().__init__(A, assume_a=declared, **arguments)
        if self.dtype is COMPLEX:
            raise TypeError("A is complex; eigenpairs are found of real "
                            "symmetric matrices")
        self._mass = M
        self._mass_matrix: Optional[Matrix] = None
        if M is not None and is_sparse(M):
            self._mass_matrix = Matrix(self._context, M, 0, "M")
            if self._mass_matrix.is_complex:
                raise TypeError("M is complex; eigenpairs are found of real "
                                "symmetric matrices")
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

    def find(self, k: int, X: Any, options: Dict[str, Any],
             precond: Any, callback: Callback) -> EigenResult:
        data = EigenData(struct_size=ctypes.sizeof(EigenData))
        with self._interruptible() as guard, self._context as context:
            T = self._take_precond(precond, options)
            chosen = Options(context, options, callback)
            with context.ordered(X, *self._arrays()):
                op = self._operator(self._A, self._matrix, k, chosen)
                mass = self._mass_operator(k, chosen)
                solver = context.make("sps_solver_create_eigen", op, mass, T,
                                      k, chosen.handle)
                self._run(context, solver, X, data)
            result = eigen_result(data, X, context.take_notes())
            guard.result = result
        return result

    @staticmethod
    def _run(context: Context, solver: Any, X: Any,
             data: EigenData) -> None:
        block = Block(context, X)
        block.put(context)
        context.check(lib.sps_solver_eigen(solver, block.handle, None, data))
        block.get(context)


def _guess(v0: Any, k: int, system: _EigenSystem) -> Any:
    """Returns the initial guess, an n x k array in the memory where v0 or A
    is; zero columns are replaced by random ones."""
    n = system.shape[0]
    guess = None if v0 is None else columns(dense(v0, "v0"))
    arrays = system._arrays()
    like = guess if guess is not None else \
        arrays[2] if arrays else np.empty(0)
    X = empty(n, k, like)
    X[...] = 0.0
    if guess is None:
        return X
    package, shape = package_of(guess), tuple(guess.shape)
    if package.dtype(guess) != np.float64 or shape[0] != n or shape[1] > k:
        raise ShapeError(f"v0 has the shape {shape}; at most {k} real "
                         f"columns of {n} rows are expected")
    X[:, :shape[1]] = guess
    return X


def _pairs(A: Any, k: int, M: Any, v0: Any, chosen: Dict[str, Any],
           precond: Any, n: Optional[int], callback: Callback, progress: bool,
           device: Optional[str], threads: int, seed: int) -> EigenResult:
    callable_or_none(callback)
    k = width(k, "k")
    with _EigenSystem(A, M, n=n, device=device, threads=threads, seed=seed,
                      like=v0) as system:
        X = _guess(v0, k, system)
        display = Display(callback) if progress else None
        try:
            result = system.find(k, X, chosen, precond, display or callback)
        finally:
            if display is not None:
                display.close()
    result.V = given(result.V, A if v0 is None else v0)
    if not result.all_converged and result.stop != Stop.INTERRUPTED:
        warn(result.shortfall(), ConvergenceWarning)
    return result


def eigsh(A: Any, k: int = 6, M: Any = None, sigma: Optional[float] = None,
          which: Optional[str] = None, v0: Any = None,
          maxiter: Optional[int] = None, tol: float = 0.0,
          return_eigenvectors: bool = True, *, precond: Any = None,
          n: Optional[int] = None, callback: Callback = None,
          progress: bool = False, device: Optional[str] = None,
          threads: int = 0, seed: int = 1, **options: Any) -> Union[EigenResult, np.ndarray]:
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
        chosen["maxiter"] = maxiter
    if tol:
        if "rtol" in options:
            raise TypeError("tol and rtol are one option: give one of them")
        chosen["rtol"] = tol
    result = _pairs(A, k, M, v0, chosen, precond, n, callback, progress,
                    device, threads, seed)
    return result if return_eigenvectors else result.w


def rigid_body(coords: Any) -> np.ndarray:
    """The rigid body modes of a structure: the null space of the stiffness
    matrix of one that nothing holds, for the option ``nullspace_basis``.

    Parameters
    ----------
    coords : array, m x 2 or m x 3
        Coordinates of the nodes, on the host; the 2 or 3 displacements of a
        node are consecutive unknowns.

    Returns
    -------
    array, 2 m x 3 or 3 m x 6
        Orthonormal columns; fewer of them, with a Note, where all nodes lie on
        a line.

    Examples
    --------
    >>> import numpy as np
    >>> R = rigid_body([[0, 0], [1, 0], [0, 1]])
    >>> R.shape, np.allclose(R.T @ R, np.eye(3))
    ((6, 3), True)
    """
    xyz = dense(coords, "coords")
    if not isinstance(xyz, np.ndarray) or xyz.ndim != 2 or \
            xyz.dtype != np.float64:
        raise TypeError("coords must be real, on the host, with a row for each "
                        "node")
    context = Context("cpu", 1, 1)
    try:
        given_block = Block(context, xyz)
        given_block.put(context)
        modes = context.make("sps_block_rigid_body", given_block.handle)
        n, q = ctypes.c_int64(), ctypes.c_int()
        lib.sps_block_shape(modes, n, q)
        R = np.empty((n.value, q.value))
        context.check(lib.sps_block_get(modes, 0, q.value, address(R), q.value,
                                        Order.ROW_MAJOR, Place.HOST))
        context.take_notes()
        return R
    finally:
        context.close()


def lobpcg(A: Any, X: Any, B: Any = None, M: Any = None, Y: Any = None,
           tol: Optional[float] = None, maxiter: Optional[int] = None,
           largest: bool = True, verbosityLevel: int = 0,
           retLambdaHistory: bool = False,
           retResidualNormsHistory: bool = False, *,
           n: Optional[int] = None, callback: Callback = None,
           device: Optional[str] = None, threads: int = 0, seed: int = 1,
           **options: Any) -> Any:
    """Eigenpairs of A x = lambda B x by LOBPCG, with the arguments of
    scipy.sparse.linalg.lobpcg.

    Parameters
    ----------
    A, B : sparse matrix, LinearOperator or function
        Symmetric; B positive definite, None is the identity.
    X : array, n x k
        Guess of the eigenvectors, which is not changed.
    M : str or operator, optional
        Approximates the inverse of A, or the name of a preconditioner.
    Y : array, n x q, optional
        The pairs are B-orthogonal to its columns.
    tol : float, optional
        A pair has converged when ``||A x - w B x|| <= tol ||B x||``; SciPy's
        default, n times the root of the precision.
    maxiter : int, optional
        20, as SciPy's.
    largest : bool
        False: the smallest eigenvalues.
    verbosityLevel : int
        Above 0: shows the progress.
    retResidualNormsHistory : bool
        ``w, V, history``: of each iteration the k residuals as callbacks are
        told them, relative to ``|w| ||B x||``.  ``retLambdaHistory`` is refused.
    n, callback, device, threads, seed, **options
        As of eigsh.

    Returns
    -------
    EigenResult
        ``w, V = lobpcg(A, X)`` unpacks it: w descending if ``largest``.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([np.arange(1.0, 101.0)], [0])
    >>> X = np.random.default_rng(1).standard_normal((100, 3))
    >>> w, V = lobpcg(A, X, largest=False, tol=1e-9, maxiter=200)
    >>> np.round(w, 6), V.shape
    (array([1., 2., 3.]), (100, 3))
    """
    if retLambdaHistory:
        raise TypeError("retLambdaHistory is not supported: the iteration "
                        "reports residuals, but no eigenvalues")
    guess = columns(dense(X, "X"))
    rows, k = guess.shape
    if hasattr(A, "shape") and rows != A.shape[0]:
        raise ShapeError(f"X has {rows} rows, A has {A.shape[0]}")
    history: List[np.ndarray] = []
    chosen: Dict[str, Any] = dict(
        solver="lobpcg", max_iterations=20 if maxiter is None else maxiter,
        which="largest" if largest else "smallest", constraints=Y,
        atol=rows * np.sqrt(np.finfo(float).eps) if tol is None else tol,
        rtol=1e-16)
    chosen.update(options)
    result = _pairs(A, k, B, guess, chosen, M, rows if n is None else n,
                    Recorder(callback, history), verbosityLevel > 0, device,
                    threads, seed)
    if largest:
        result._reverse()
    result.V = given(result.V, X)
    if retResidualNormsHistory:
        return result.w, result.V, history
    return result
