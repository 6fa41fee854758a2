# SPDX-License-Identifier: BSD-3-Clause
"""A X = B."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ._arrays import (Block, Slot, columns, complete, dense, empty,
                      empty_like, extent, interleave, overlap,
                      overlaps_itself)
from ._callbacks import callable_or_none
from ._context import Context, c_int, width
from ._errors import ConvergenceWarning, ShapeError, warn
from ._interrupt import Interruptible
from ._library import description, lib
from ._matrix import is_sparse
from ._options import Options, of_eigenvalues
from ._packages import (COMPLEX, DOUBLE, NUMPY, given, package_of, spot,
                        taken)
from ._progress import Callback, Display, Recorder
from ._result import LinearResult, linear_result
from ._structs import ResultData, Stop
from ._system import System


LEAST_SQUARES = ("lsqr", "lsmr")
_RESULT_SIZE = ctypes.sizeof(ResultData)
_INTERRUPTED = int(Stop.INTERRUPTED)


class Solver(System):
    """Solves A X = B again and again, with memory that is taken once.

    Parameters
    ----------
    A : sparse matrix, LinearOperator or function
        n x n, or m x n for ``solver="lsqr"`` and ``"lsmr"``.  A matrix of
        SciPy or CuPy of any format, real or on the host complex, or a sparse
        tensor of PyTorch; its arrays are used where they are if it is csr with
        columns of 32 bits and values in double precision, and must not be
        changed while the solver exists.  Offsets of 32 bits are widened once.
        A function gets an n x k array, valid during the call, and returns A
        times it.  Of an operator that is not declared symmetric the default
        solver is gmres, since auto means conjugate gradients there.
    nrhs : int, optional
        Columns of every B, 1 to 1024.  None: those of the first B, and anew
        for each B of another number of columns.
    M : str or operator, optional
        Name of a preconditioner, or something whose product approximates the
        inverse of A, as in SciPy.  For a symmetric A, whose default solver is
        block_cg, it must be symmetric positive definite, too: factors of
        SciPy's spilu are not, and go with ``solver="gmres"``.
    n : int, optional
        Rows, where A is a plain function.
    assume_a : {'gen', 'sym', 'pos'}, optional
        What is known of A; of a matrix symmetry is found without it.
    callback : function, optional
        Called after each iteration with a Progress; False ends the solve.
    progress : bool
        Shows how far a solve is: by tqdm where it is installed, else by a line
        on the standard error once a second.
    history : bool
        Keeps the residuals of every iteration in the result, for its plot().
    device : {'cpu', 'cuda', 'auto'}, optional
        None: that in whose memory A is.
    threads : int
        Threads on the host; 0: the cores of this process.
    seed : int
        Of random vectors.
    **options
        Options of the library by name: ``rtol``, ``solver``,
        ``max_iterations`` ...  ``libspsolve.options()`` describes them.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(100, 100))
    >>> with Solver(A, nrhs=2, rtol=1e-10) as s:
    ...     first = s.solve(np.ones((100, 2)))
    ...     s.update(2 * A.tocsr())
    ...     second = s.solve(np.ones((100, 2)))
    >>> first.all_converged, second.all_converged
    (True, True)
    >>> np.allclose(first.X, 2 * second.X)
    True
    """

    def __init__(self, A: Any, nrhs: Optional[int] = None, *, M: Any = None,
                 n: Optional[int] = None, assume_a: Optional[str] = None,
                 callback: Callback = None, progress: bool = False,
                 history: bool = False, device: Optional[str] = None,
                 threads: int = 0, seed: int = 1, _like: Any = None,
                 **options: Any) -> None:
        least = options.get("solver") in LEAST_SQUARES
        super().__init__(A, n=n, assume_a=assume_a, device=device,
                         threads=threads, seed=seed, least_squares=least, like=_like)
        context = self._context
        callable_or_none(callback)
        for name in of_eigenvalues().intersection(options):
            raise TypeError(f"{name} has no effect on A X = B: eigsh() and "
                            "lobpcg() use it")
        self._k = 0
        self._op: Any = None
        self._solver: Any = None
        self._fixed = nrhs is not None
        self._slots = Slot(), Slot()
        #: Of the B of a vector or an array, and of its X.
        self._shapes: Dict[Any, Any] = {}
        self._values: Any = None
        self._notes: Tuple[str, ...] = ()
        self._history: List[np.ndarray] = []
        if history:
            callback = Recorder(callback, self._history)
        self._display = Display(callback) if progress else None
        try:
            if _like is not None:
                self._check_rows(_like, "B")
            with self._interruptible(), context:
                if self._matrix is None and not self._props:
                    options.setdefault("solver", "gmres")
                self._precond = self._take_precond(M, options)
                self._options = Options(context, options,
                                        self._display or callback)
                if nrhs is not None:
                    self._build(context, width(nrhs, "nrhs"))
        except BaseException:
            self.close()
            raise

    def _build(self, context: Context, k: int) -> None:
        """Makes the operator, planned for k columns, and the solver."""
        self._shapes.clear()
        if self._k:
            for handle in (self._solver, self._op):
                context.destroy(handle)
            self._k = 0
        with context.ordered(*self._arrays()):
            self._op = self._operator(self._A, self._matrix, k, self._options)
            try:
                if self._values is not None:
                    self._set_values(self._op, self._values)
                self._solver = context.make(
                    "sps_solver_create", self._op, self._precond, k,
                    self._options.handle)
            except BaseException:
                context.destroy(self._op)
                raise
        self._k = k
        self._notes += context.take_notes()
        if self.dtype is DOUBLE:
            self._shapes = {(self._n, k): (self._ncol, k)}
            self._extents = [extent(a) for a in self._arrays()]
            if k == 1:
                self._shapes[self._n,] = (self._ncol,)

    # ------------------------------------------------------------ arguments

    def _real(self, value: Any, name: str, axis: int = 0) -> Any:
        """Returns value as doubles with as many rows as A has along the
        axis, in the real form if A is complex."""
        a = dense(value, name)
        self._check_rows(a, name, axis)
        package = package_of(a)
        if self.dtype is COMPLEX:
            return columns(interleave(package.to_host(a)
                                      if package is not NUMPY else a))
        if package.dtype(a) == COMPLEX:
            raise TypeError(f"{name} is complex and A is real: solve for "
                            f"{name}.real and {name}.imag, as columns of one "
                            "block")
        return columns(a)

    def _check_rows(self, a: Any, name: str, axis: int = 0) -> None:
        if a.shape[0] != self.shape[axis]:
            raise ShapeError(f"{name} has {a.shape[0]} rows, A has "
                             f"{self.shape[axis]}"
                             f"{' columns' if axis else ''}")

    def _check_out(self, out: Any, B: Any, shape: Any) -> None:
        """Raises an exception if X cannot be written to out, as returned by
        `taken`."""
        package = package_of(out)
        if package.dtype(out) != self.dtype or tuple(out.shape) != shape or \
                not package.writeable(out):
            raise TypeError(f"out must be a writeable array of {self.dtype} of "
                            f"the shape {shape}")
        if overlaps_itself(out):
            raise ValueError("numbers of out lie at the same place: give out "
                             "memory of its own, or omit it")
        if any(overlap(out, a) for a in self._arrays()):
            raise ValueError("out shares memory with A, which would be "
                             "overwritten: give out memory of its own")
        if overlap(out, B):
            raise ValueError("out and B share memory: give out memory of its "
                             "own, or omit it")

    def _start(self, B: Any, x0: Any, out: Any) -> Any:
        if out is not None and self.dtype is DOUBLE:
            X = columns(out)
        elif self._n == self._ncol:
            X = empty_like(B)
        else:
            X = empty(self._ncol, B.shape[1], B)
        if x0 is None:
            package_of(X).clear(X)
            return X
        guess = self._real(x0, "x0", 1)
        if guess.shape[1] != B.shape[1]:
            raise ShapeError(f"x0 has {guess.shape[1]} columns, B has "
                             f"{B.shape[1]}")
        X[...] = package_of(X).from_any(guess, X)
        return X

    def _answer(self, X: Any, vector: bool, B: Any, out: Any) -> Any:
        """Returns X in the form that the caller of solve expects."""
        if self.dtype is COMPLEX:
            X = complete(X)
            if out is not None:
                columns(taken(out))[...] = X
        if out is not None:
            return out
        return given(X[:, 0] if vector else X, B)

    # --------------------------------------------------------------- public

    def solve(self, B: Any, x0: Any = None,
              out: Any = None) -> LinearResult:
        """Solves A X = B.

        Parameters
        ----------
        B : array of NumPy, CuPy or PyTorch, n or n x k
            In C or Fortran order; rows that lie apart are used where they are.
            In the memory of a GPU it does not pass the host, and it may still
            be written on the current stream.
        x0 : array of the same shape, optional
            Initial guess.
        out : array of doubles of the same shape, optional
            Receives X and is the X of the result; of a complex A a complex
            array.

        Returns
        -------
        LinearResult
            Its X has the kind, the shape and the order of B.  A column that has not
            converged has its best iterate, and a ConvergenceWarning is given.

        Raises
        ------
        Interrupted
            After Ctrl-C; its ``result`` has the best iterates.

        >>> with Solver(([4.0, 2.0], [0, 1], [0, 1, 2])) as s:
        ...     print(s.solve([4.0, 4.0]).X)
        [1. 2.]
        """
        plain = self._plain(B, out) if x0 is None else None
        b, X, spots, vector = plain or self._arguments(B, x0, out)
        self._history.clear()
        data = ResultData(_RESULT_SIZE)
        with Interruptible(self._context.handle) as guard, \
                self._context as context:
            if b.shape[1] != self._k:
                self._resize(context, b.shape[1])
            self._run(context, b, X, data, spots)
            if context.cancelled or data.stop == _INTERRUPTED:
                context.withdraw()
            notes = self._notes + context.take_notes()
            self._notes = ()
            if plain is None:
                X = self._answer(X, vector, B, out)
            elif out is not None:
                X = out
            elif vector:
                X = X[:, 0]
            guard.result = result = linear_result(data, X, notes)
            if self._history:
                result.history = np.array(self._history)
        if data.stop <= 0 and data.stop != _INTERRUPTED:
            warn(result.shortfall(), ConvergenceWarning)
        return result

    def _plain(self, B: Any, out: Any) -> Any:
        """Returns what `_arguments` returns, without its checks, if B and
        out are arrays of doubles in C order of the right shapes; else None."""
        of_b = spot(B)
        shape = self._shapes.get(of_b[1]) if of_b else None
        if shape is None:
            return None
        if out is None:
            X = empty(self._ncol, self._k, B)
            of_x = spot(X)
        else:
            of_x = spot(out)
            if of_x is None or of_x[1] != shape:
                return None
            begin, other = of_b[0], of_x[0]
            end = other + 8 * self._k * self._ncol
            if begin < end and other < begin + 8 * self._k * self._n:
                return None
            for first, last in self._extents:
                if first < end and other < last:
                    return None
            X = out
        package_of(X).clear(X)
        if len(shape) == 2:
            return B, X, (of_b, of_x), False
        return columns(B), columns(X), (of_b, of_x), True

    def _arguments(self, B: Any, x0: Any, out: Any) -> Any:
        """Returns B and X as arrays of columns, X with the initial guess;
        the results of spot() for both; and whether B is a vector."""
        b = dense(B, "B")
        vector = b.ndim == 1
        shape = self.shape[1:] + tuple(b.shape[1:])
        b = self._real(b, "B")
        if out is not None:
            if not hasattr(out, "dtype"):
                raise TypeError("out must be an array")
            out = taken(out)
            self._check_out(out, b, shape)
        return b, self._start(b, x0, out), (None, None), vector

    def _resize(self, context: Context, k: int) -> None:
        if self._fixed:
            raise ShapeError(
                f"B has {k} column{'s' * (k != 1)}; the solver was made for "
                f"{self._k}: without nrhs it takes every number of columns")
        self._build(context, width(k, "B", f"B has {k} columns"))

    def _run(self, context: Context, b: Any, X: Any, data: ResultData,
             spots: Any) -> None:
        of_b, of_x = self._slots
        try:
            with context.ordered(b, X):
                given_block = of_b.take(context, b, spots[0])
                answer = of_x.take(context, X, spots[1])
                if not given_block.wrapped:
                    given_block.put(context)
                if not answer.wrapped:
                    answer.put(context)
                status = lib.sps_solver_linear(
                    self._solver, given_block.handle, answer.handle, data)
                if self._display is not None:
                    self._display.close()
                if status or context.raised:
                    context.check(status)
                if not answer.wrapped:
                    answer.get(context)
        finally:
            of_b.release(context)
            of_x.release(context)

    def describe(self) -> str:
        """Returns what the preconditioner of the last solve is: of amg the
        levels, else the name."""
        with self._context:
            if not self._k:
                raise ValueError("there is no preconditioner before the first "
                                 "solve: give nrhs, or call solve")
            return description(lib.sps_solver_describe, self._solver)

    def update(self, values: Any) -> None:
        """Sets new values of A, with the same pattern.

        Parameters
        ----------
        values : sparse matrix, or array of nnz numbers
            The array is in the order of the CSR form of A.  The
            preconditioner is computed again at the next solve.
        """
        with self._context:
            new = self._new_values(values)
            if not self._fixed:         # it may have to be made anew
                self._values = package_of(new).copy(new)
            if self._k:
                self._set_values(self._op, new)


def solve(A: Any, B: Any, x0: Any = None, **arguments: Any) -> LinearResult:
    """Solves A X = B once.

    Parameters
    ----------
    A : n x n sparse matrix, LinearOperator or function
    B : array, n or n x k
    x0 : array of the shape of B, optional
        Initial guess.
    **arguments
        Those of Solver: ``M``, ``callback``, ``rtol``, ``maxiter`` ...

    Returns
    -------
    LinearResult
        ``x, info = solve(A, b)`` unpacks it as SciPy's solvers return.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(50, 50))
    >>> r = solve(A, np.eye(50)[:, :3], rtol=1e-10)
    >>> r.converged
    array([ True,  True,  True])
    >>> r.X.shape, bool(r.residuals.max() < 1e-10), r.reason
    ((50, 3), True, 'converged')
    >>> x, info = solve(A, np.ones(50))
    >>> x.shape, info
    ((50,), 0)
    """
    b = dense(B, "B")
    _refuse_of_solver(arguments)
    if "n" not in arguments and callable(A) and not hasattr(A, "shape"):
        arguments["n"] = b.shape[0]
    with Solver(A, _columns(b), _like=b, **arguments) as solver:
        return _as_given(solver.solve(b, x0), B)


def _columns(b: Any) -> int:
    k = 1 if b.ndim == 1 else b.shape[1]
    return width(k, "B", f"B has {k} columns")


def _refuse_of_solver(arguments: Dict[str, Any]) -> None:
    """Refuses what Solver takes, and a function that solves once does not."""
    for name, how in (("nrhs", "B tells how many columns there are"),
                      ("out", "Solver(A).solve(B, out=X) writes to X")):
        if name in arguments:
            raise TypeError(f"{name} is not an argument here: {how}")


def _as_given(result: LinearResult, B: Any) -> LinearResult:
    result.X = given(result.X, B)
    return result


def _named(solver: str, arguments: Dict[str, Any]) -> Dict[str, Any]:
    given_solver = arguments.get("solver", solver)
    if given_solver != solver:
        raise TypeError(f"solver={given_solver!r}: {solver} is the solver of "
                        f"{solver}(); solve() takes others")
    return dict(arguments, solver=solver)


def _least(A: Any, B: Any, damp: float, x0: Any,
           arguments: Dict[str, Any]) -> LinearResult:
    tolerances = [arguments.pop(name) for name in ("atol", "btol")
                  if arguments.get(name) is not None]
    if tolerances:
        arguments.setdefault("rtol", min(tolerances))
    if arguments.get("iter_lim") is not None:
        if "max_iterations" in arguments or "maxiter" in arguments:
            raise TypeError("iter_lim and max_iterations are one option: give "
                            "one of them")
        arguments["max_iterations"] = arguments["iter_lim"]
    arguments.pop("iter_lim", None)
    b = dense(B, "B")
    _refuse_of_solver(arguments)
    with Solver(A, _columns(b), damp=damp, _like=b, **arguments) as solver:
        return _as_given(solver.solve(b, x0), B)


def lsqr(A: Any, B: Any, damp: float = 0.0, x0: Any = None,
         **arguments: Any) -> LinearResult:
    """Minimises ||b - A x||^2 + damp^2 ||x||^2 for every column b of B.

    Parameters
    ----------
    A : m x n sparse matrix, or LinearOperator with rmatvec or rmatmat
        Of any rank; x is the solution of least norm.
    B : array, m or m x k
    damp : float
    x0 : array, n or n x k, optional
        Initial guess.
    **arguments
        Those of Solver: ``rtol``, ``callback`` ...; ``M="jacobi"`` scales the
        columns of A.  ``iter_lim`` of SciPy is max_iterations, and of ``atol``
        and ``btol`` the smaller one is rtol.

    Returns
    -------
    LinearResult
        A column has converged when ||r|| <= rtol ||b||, r = b - A x, or when
        ||A'r - damp^2 x|| <= rtol ||A|| ||r||, as ``normal_residuals`` show.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, info = lsqr(A, [1.0, 2.0, 4.0], rtol=1e-12)
    >>> np.round(x, 6), info
    (array([0.833333, 1.5     ]), 0)
    """
    return _least(A, B, damp, x0, _named("lsqr", arguments))


def lsmr(A: Any, B: Any, damp: float = 0.0, x0: Any = None,
         **arguments: Any) -> LinearResult:
    """Like lsqr, by a method that reduces ||A'r|| in each step, so that it ends
    earlier if no x satisfies A x = b.

    >>> import numpy as np, scipy.sparse as sp
    >>> r = lsmr(sp.csr_array([[3.0, 4.0]]), [25.0])
    >>> np.round(r.X, 6), r.reason
    (array([3., 4.]), 'converged')
    """
    return _least(A, B, damp, x0, _named("lsmr", arguments))


class Preconditioner(System):
    """A preconditioner of the library, usable as ``M=`` of SciPy's solvers.

    Parameters
    ----------
    A : n x n sparse matrix
    precond : str
        Its name: ``libspsolve.options()["precond"].words``.
    width : int
        Columns that are multiplied at once.
    **options
        Those that the preconditioner reads, ``droptol`` for example.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from scipy.sparse.linalg import cg
    >>> A = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(50, 50)).tocsr()
    >>> with Preconditioner(A, "ic0") as M:
    ...     x, info = cg(A, np.ones(50), M=M, atol=0)
    >>> info
    0
    """

    def __init__(self, A: Any, precond: str = "auto", *, width: int = 1,
                 assume_a: Optional[str] = None, device: Optional[str] = None,
                 threads: int = 0, seed: int = 1, **options: Any) -> None:
        if not is_sparse(A):
            raise TypeError(self._refusal(A, "a sparse matrix of SciPy"))
        super().__init__(A, n=None, assume_a=assume_a, device=device,
                         threads=threads, seed=seed)
        context = self._context
        self._width = c_int(width, "width")
        try:
            with self._interruptible(), context:
                chosen = Options(context, dict(options, precond=precond))
                with context.ordered(*self._arrays()):
                    self._op = self._operator(A, self._matrix, self._width,
                                              chosen)
                    self._M = context.make("sps_precond_create", self._op,
                                           self._width, chosen.handle)
                self.notes = context.take_notes()
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The name of the preconditioner in use."""
        with self._context:
            return lib.sps_precond_name(self._M).decode()

    def describe(self) -> str:
        """Returns what was built: the levels of amg, else the name."""
        with self._context:
            return description(lib.sps_precond_describe, self._M)

    def matmat(self, R: Any) -> Any:
        """Returns M R for an n x k array R."""
        a = dense(R, "R")
        if a.shape[0] != self.shape[0]:
            raise ShapeError(f"R has {a.shape[0]} rows, A has {self.shape[0]}")
        is_complex = self.dtype is COMPLEX
        if package_of(a).dtype(a) == np.complex128 and not is_complex:
            raise TypeError("R is complex and A is real: apply M to R.real "
                            "and R.imag")
        r = columns(interleave(a) if is_complex else a)
        Z = empty_like(r)
        with self._context as context, context.ordered(r, Z):
            for first in range(0, r.shape[1], self._width):
                part = slice(first, first + self._width)
                self._apply(context, r[:, part], Z[:, part])
        z = complete(Z) if is_complex else Z
        return given(z[:, 0] if a.ndim == 1 else z, R)

    def _apply(self, context: Context, r: Any, z: Any) -> None:
        with context.temporary():
            R, Z = Block(context, r), Block(context, z)
            R.put(context)
            context.check(lib.sps_precond_apply(self._M, R.handle, Z.handle))
            Z.get(context)

    matvec = matmat
    __call__ = matmat
    __matmul__ = matmat

    def update(self, values: Any) -> None:
        """Computes the preconditioner again from new values of A, given as
        to Solver.update."""
        with self._context as context:
            self._set_values(self._op, self._new_values(values))
            context.check(lib.sps_precond_update(self._M))
