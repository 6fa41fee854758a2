# SPDX-License-Identifier: BSD-3-Clause
"""A context and an operator: the common base of solvers and preconditioners."""
from __future__ import annotations

from typing import Any, Dict, Optional, Type, TypeVar

import numpy as np

from ._arrays import address
from ._callbacks import (is_operator, size_of, user_operator, user_pair,
                         user_precond)
from ._context import Context
from ._errors import ShapeError
from ._interrupt import Interruptible
from ._library import lib
from ._matrix import Matrix, is_sparse, properties
from ._options import Options
from ._packages import COMPLEX, DOUBLE, home, in_use, on_device, package_of

Self = TypeVar("Self", bound="System")


def _context(A: Any, like: Any, device: Optional[str], threads: int,
             seed: int) -> Context:
    """Makes a context in the memory where A or the array `like` is.  Its
    stream is one of the package of that array or matrix, else of a package
    that the program uses."""
    there = [value for value in (A, like) if on_device(value)]
    if not there:
        package = in_use() if device == "cuda" else None
        return Context(device or "cpu", threads, seed, package,
                       package.here() if package else 0)
    if device == "cpu":
        raise TypeError("device='cpu', and an argument is in the memory of a "
                        "GPU: copy it to the host, or leave device out")
    return Context("cuda", threads, seed, *home(there[0]))


class System:
    """The matrix or operator A in a context of its own.

    Its memory is freed when it is collected; ``with`` and ``close`` do so
    earlier.
    """

    def __init__(self, A: Any, *, n: Optional[int], assume_a: Optional[str],
                 device: Optional[str], threads: int, seed: int,
                 least_squares: bool = False, like: Any = None) -> None:
        self._context = _context(A, like, device, threads, seed)
        self._A = A
        self._props = properties(assume_a)
        self._matrix: Optional[Matrix] = None
        self._pair = False
        self._n: Any = None
        self._ncol: Any = None
        if is_sparse(A):
            self._matrix = Matrix(self._context, A, self._props)
            self._n, self._ncol = self._matrix.arrays.shape
            if n is not None and n != self.shape[0]:
                raise ShapeError(f"n={n}, but A has {self.shape[0]} rows: n is "
                                 "for functions only")
            if self._n != self._ncol and not least_squares:
                raise ShapeError(f"A has {self._n} rows and {self._ncol} "
                                 "columns; it must be square except for lsqr "
                                 "and lsmr")
        elif is_operator(A) and least_squares:
            self._n, self._ncol = getattr(A, "shape", (n, n))
            if self._n is None:
                raise TypeError("A is a function; least squares need its "
                                "adjoint too: a LinearOperator")
            self._pair = True
        elif is_operator(A):
            self._n = self._ncol = size_of(A, n)
        else:
            raise TypeError(self._refusal(A))

    @staticmethod
    def _refusal(A: Any, wanted: str = "a sparse matrix of SciPy, a "
                 "LinearOperator, a function") -> str:
        if isinstance(A, np.ndarray):
            return ("A is dense; scipy.sparse.csr_array(A) makes a sparse "
                    "matrix of it")
        return (f"A is a {type(A).__name__}; {wanted}, or a tuple (data, "
                "indices, indptr) is expected")

    # ---------------------------------------------------------------- parts

    def _operator(self, A: Any, matrix: Optional[Matrix], width: int,
                  options: Options) -> Any:
        context = self._context
        if self._pair:
            return user_pair(context, A, (self._n, self._ncol))
        if matrix is None:
            return user_operator(context, A, self._n, self._props)
        return context.make("sps_operator_csr", context.handle, matrix.handle,
                            width, options.handle)

    def _arrays(self) -> Any:
        """Returns the arrays of A that set-up reads."""
        a = None if self._matrix is None else self._matrix.arrays
        return () if a is None else (a.indptr, a.indices, a.values)

    def _take_precond(self, M: Any, options: Dict[str, Any]) -> Any:
        """Returns a handle of a preconditioner that calls M, or None if M is
        None or a name, which becomes an option."""
        if M is None:
            return None
        if "precond" in options:
            raise TypeError("give M or precond, not both")
        if isinstance(M, str):
            options["precond"] = M
            return None
        shape = getattr(M, "shape", self.shape)
        if tuple(shape) != self.shape:
            raise ShapeError(f"M has the shape {tuple(shape)}; {self.shape} is "
                             "expected")
        if self.dtype is COMPLEX:
            raise TypeError("a complex A needs a preconditioner of the "
                            "library, for example M='ilut'")
        return user_precond(self._context, M, self._n)

    # --------------------------------------------------------------- public

    @property
    def shape(self) -> Any:
        """Numbers of rows and columns of A."""
        half = 2 if self.dtype is COMPLEX else 1
        return self._n // half, self._ncol // half

    @property
    def dtype(self) -> np.dtype:
        """float64 or complex128."""
        is_complex = self._matrix is not None and self._matrix.is_complex
        return COMPLEX if is_complex else DOUBLE

    @property
    def information(self) -> Dict[str, Any]:
        """Returns facts about the context: threads, device, bytes in use and
        their maximum, number of handles that exist."""
        with self._context as context:
            return context.information()

    def cancel(self) -> None:
        """Asks a running solve to end, for example from another thread; its
        result has the stop INTERRUPTED and the best iterates."""
        if self._context.handle:
            self._context.cancelled = True
            lib.sps_cancel(self._context.handle, True)

    def close(self) -> None:
        """Frees all memory; a second call does nothing."""
        if self._context.handle:
            with self._context as context:
                context.close()

    def __enter__(self: Self) -> Self:
        return self

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (f"<{type(self).__name__} of a {rows} x {columns} "
                f"{'operator' if self._matrix is None else 'matrix'} of "
                f"{self.dtype}{'' if self._context.handle else ', closed'}>")

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or "
                        "pickled, since it holds memory of the library: make "
                        "another one from A")

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any,
                 trace: Any) -> None:
        self.close()

    def _interruptible(self) -> Interruptible:
        return Interruptible(self._context.handle)

    def _new_values(self, values: Any) -> Any:
        if self._matrix is None:
            raise TypeError("A is a function and has no values")
        return self._matrix.new_values(values)

    def _set_values(self, operator: Any, values: Any) -> None:
        with self._context.ordered(values):
            self._context.check(lib.sps_operator_set_values(
                operator, address(values), package_of(values).place))
