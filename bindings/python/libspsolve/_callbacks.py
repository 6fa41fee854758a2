# SPDX-License-Identifier: BSD-3-Clause
"""Functions and LinearOperators as operators and preconditioners of the
library, and monitors.  What a callback raises ends the solve, and is raised
again by it."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, List, NamedTuple, Optional

import numpy as np

from ._arrays import refuse_device
from ._context import Context
from ._library import Apply, Monitor, text

Product = Callable[[np.ndarray], Any]


class Progress(NamedTuple):
    """What a callback is told after an iteration."""

    iteration: int
    residuals: np.ndarray     #: of every column, relative, not yet verified
    worst: float
    median: float
    converged: int            #: columns below their tolerance
    width: int                #: search directions
    seconds: float            #: since the solve began
    event: str                #: "" or what has just happened


def is_operator(A: Any) -> bool:
    """Whether A is a function or has products like a LinearOperator."""
    return callable(A) or hasattr(A, "matmat") or hasattr(A, "matvec")


def product_of(A: Any, name: str) -> Product:
    """A as a function of n x k arrays."""
    refuse_device(A, name)
    kind = getattr(A, "dtype", None)
    if kind is not None and np.dtype(kind).kind == "c":
        raise TypeError(f"{name} is a complex operator; only complex sparse "
                        "matrices can be used, which have an equivalent real "
                        "form")
    if hasattr(A, "matmat"):
        return A.matmat
    if hasattr(A, "matvec"):
        return lambda X: np.column_stack([A.matvec(x) for x in X.T])
    if callable(A):
        return A
    if hasattr(A, "__matmul__"):
        return lambda X: A @ X
    raise TypeError(f"{name} is a {type(A).__name__}; a sparse matrix, a "
                    "LinearOperator or a function is expected")


def _view(address: int, n: int, k: int, step: int) -> np.ndarray:
    if n == 0:
        return np.empty((0, k))
    count = 8 * ((n - 1) * step + k)
    memory: Any = (ctypes.c_char * count).from_address(address)
    return np.ndarray((n, k), np.float64, memory, strides=(8 * step, 8))


def _store(product: Any, y: np.ndarray, alpha: float, beta: float,
           name: str) -> None:
    """y = alpha product + beta y"""
    product = np.asarray(product)
    if product.shape != y.shape:
        raise ValueError(f"{name} returned an array of the shape "
                         f"{product.shape}; {y.shape} is expected")
    if product.dtype.kind == "c":
        raise TypeError(f"{name} returned complex numbers")
    if alpha != 1.0:
        product = alpha * product
    if beta != 0.0:
        product = product + beta * y
    y[...] = product


def apply_function(function: Product, raised: List[BaseException],
                   name: str, rows: Optional[int] = None) -> Any:
    """A sps_apply_fn; the arrays that the function gets are valid during the
    call, and read-only; they have as many rows as its result, or `rows`."""
    def call(alpha: float, X: int, ldx: int, beta: float, Y: int, ldy: int,
             n: int, k: int, stream: Any, data: Any) -> int:
        try:
            x = _view(X, n if rows is None else rows, k, ldx)
            x.flags.writeable = False
            _store(function(x), _view(Y, n, k, ldy), alpha, beta, name)
            return 0
        except BaseException as e:  # noqa: B902 - must not pass through C
            raised.append(e)
            return 1
    return Apply(call)


def _host_only(context: Context, name: str) -> None:
    if not context.on_host:
        raise TypeError(f"{name} is a function, which this version can call "
                        "with device='cpu' only")


def user_operator(context: Context, A: Any, n: int, props: int) -> Any:
    """A handle of an operator that calls A."""
    _host_only(context, "A")
    call = apply_function(product_of(A, "A"), context.raised, "A")
    handle = context.make("sps_operator_user", context.handle, n, call, None,
                          props)
    context.borrow(handle, call)
    return handle


def adjoint_of(A: Any) -> Optional[Product]:
    """The adjoint of A as a function of m x k arrays, or None."""
    if hasattr(A, "rmatmat"):
        return A.rmatmat
    if hasattr(A, "rmatvec"):
        return lambda Y: np.column_stack([A.rmatvec(y) for y in Y.T])
    return None


def user_pair(context: Context, A: Any, shape: Any) -> Any:
    """A handle of an operator that calls A and its adjoint."""
    _host_only(context, "A")
    adjoint = adjoint_of(A)
    if adjoint is None:
        raise TypeError("least squares need the adjoint of A: a LinearOperator "
                        "with rmatvec or rmatmat")
    calls = (apply_function(product_of(A, "A"), context.raised, "A", shape[1]),
             apply_function(adjoint, context.raised, "the adjoint of A",
                            shape[0]))
    handle = context.make("sps_operator_user_pair", context.handle, *shape,
                          *calls, None)
    context.borrow(handle, calls)
    return handle


def user_precond(context: Context, M: Any, n: int) -> Any:
    """A handle of a preconditioner that calls M."""
    _host_only(context, "M")
    call = apply_function(product_of(M, "M"), context.raised, "M")
    handle = context.make("sps_precond_user", context.handle, n, call, None)
    context.borrow(handle, call)
    return handle


def monitor_function(callback: Callable[[Progress], Any],
                     raised: List[BaseException]) -> Any:
    """A sps_monitor_fn."""
    def call(pointer: Any, data: Any) -> bool:
        try:
            p = pointer.contents
            return callback(Progress(
                p.iteration, np.array(p.residual[:p.k]), p.worst, p.median,
                p.converged, p.width, p.seconds, text(p.event))) is not False
        except BaseException as e:  # noqa: B902
            raised.append(e)
            return False
    return Monitor(call)


def size_of(A: Any, n: Optional[int]) -> int:
    """Rows of an operator; a plain function needs n."""
    shape = getattr(A, "shape", None)
    if shape is None:
        if n is None:
            raise TypeError("A is a function: give its number of rows, n=")
        return int(n)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"A has the shape {tuple(shape)}; it must be square, "
                         "but for lsqr and lsmr")
    return int(shape[0])
