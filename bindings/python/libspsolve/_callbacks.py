# SPDX-License-Identifier: BSD-3-Clause
"""Functions and LinearOperators as operators and preconditioners of the
library, and monitors.  What a callback raises ends the solve, and is raised
again by it."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, List, NamedTuple, Optional

import numpy as np

from ._context import Context
from ._library import Apply, Monitor, text
from ._packages import NUMPY, Holder, importer, package_of

Product = Callable[[Any], Any]


class Progress(NamedTuple):
    """The argument of a monitor callback, called after each iteration."""

    iteration: int
    residuals: np.ndarray     #: of every column, relative, not yet verified
    worst: float
    median: float
    converged: int            #: columns below their tolerance
    width: int                #: search directions
    seconds: float            #: since the solve began
    event: str                #: "" or what has just happened


def is_operator(A: Any) -> bool:
    """Returns whether A is a function or has products like a LinearOperator."""
    return callable(A) or hasattr(A, "matmat") or hasattr(A, "matvec")


def product_of(A: Any, name: str) -> Product:
    """Returns A as a function of n x k arrays."""
    if "complex" in str(getattr(A, "dtype", "")):
        raise TypeError(f"{name} is a complex operator; only complex sparse "
                        "matrices can be used, which have an equivalent real "
                        "form")
    if hasattr(A, "matmat"):
        return A.matmat
    if hasattr(A, "matvec"):
        return by_columns(A.matvec)
    if callable(A):
        return A
    if hasattr(A, "__matmul__"):
        return lambda X: A @ X
    factors = ("; its solve() makes one: LinearOperator(A.shape, M.solve)"
               if name == "M" and hasattr(A, "solve") else "")
    raise TypeError(f"{name} is a {type(A).__name__}; a sparse matrix, a "
                    f"LinearOperator or a function is expected{factors}")


def by_columns(product: Product) -> Product:
    """Returns a function of n x k arrays, made of one of vectors."""
    def block(X: Any) -> Any:
        return package_of(X).module.stack([product(x) for x in X.T], 1)
    return block


def _view(address: int, n: int, k: int, step: int) -> np.ndarray:
    if n == 0:
        return np.empty((0, k))
    count = 8 * ((n - 1) * step + k)
    memory: Any = (ctypes.c_char * count).from_address(address)
    return np.ndarray((n, k), np.float64, memory, strides=(8 * step, 8))


def _store(product: Any, y: Any, alpha: float, beta: float,
           name: str) -> None:
    """y = alpha product + beta y"""
    package = package_of(y)
    product = package.from_any(np.asarray(product) if package is NUMPY
                               else product, y)
    if tuple(product.shape) != tuple(y.shape):
        raise ValueError(f"{name} returned an array of the shape "
                         f"{tuple(product.shape)}; {tuple(y.shape)} is "
                         "expected")
    if "complex" in str(product.dtype):
        raise TypeError(f"{name} returned complex numbers")
    if alpha != 1.0:
        product = alpha * product
    if beta != 0.0:
        product = product + beta * y
    y[...] = product


def apply_function(context: Context, function: Product, name: str,
                   rows: Optional[int] = None) -> Any:
    """Returns a sps_apply_fn that calls a Python function.  The arrays that
    the function gets are valid during the call, and on the host read-only;
    they have as many rows as its result, or `rows`."""
    device = context.queue.package
    if device is None and not context.on_host:
        device = importer()
    ordinal = context.queue.ordinal

    def on_host(alpha: float, X: int, ldx: int, beta: float, Y: int, ldy: int,
                m: int, n: int, k: int) -> None:
        x = _view(X, m, k, ldx)
        x.flags.writeable = False
        _store(function(x), _view(Y, n, k, ldy), alpha, beta, name)

    def on_gpu(alpha: float, X: int, ldx: int, beta: float, Y: int, ldy: int,
               m: int, n: int, k: int) -> None:
        x, y = (device.view(Holder(*block), ordinal)
                for block in ((X, m, k, ldx), (Y, n, k, ldy)))
        _store(function(x), y, alpha, beta, name)

    def call(alpha: float, X: int, ldx: int, beta: float, Y: int, ldy: int,
             n: int, k: int, stream: Any, data: Any) -> int:
        m = n if rows is None else rows
        try:
            if device is None:
                on_host(alpha, X, ldx, beta, Y, ldy, m, n, k)
            else:
                with device.using(stream or 0, ordinal):
                    on_gpu(alpha, X, ldx, beta, Y, ldy, m, n, k)
            return 0
        except BaseException as e:  # noqa: B902 - must not pass through C
            context.raised.append(e)
            return 1
    return Apply(call)


def user_operator(context: Context, A: Any, n: int, props: int) -> Any:
    """Makes an operator that calls A; returns its handle."""
    call = apply_function(context, product_of(A, "A"), "A")
    handle = context.make("sps_operator_user", context.handle, n, call, None,
                          props)
    context.borrow(handle, call)
    return handle


NO_ADJOINT = ("least squares need the adjoint of A: a LinearOperator with "
              "rmatvec or rmatmat")


def adjoint_of(A: Any) -> Optional[Product]:
    """Returns the adjoint of A as a function of m x k arrays, or None."""
    if hasattr(A, "rmatmat"):
        def adjoint(X: Any) -> Any:
            try:
                try:
                    return A.rmatmat(X)
                except TypeError:       # older SciPy's, where rmatvec is
                    A.rmatvec(X[:, 0])  # missing, whose own error says so
                    raise
            except NotImplementedError as e:
                raise TypeError(NO_ADJOINT) from e
        return adjoint
    if hasattr(A, "rmatvec"):
        return by_columns(A.rmatvec)
    return None


def user_pair(context: Context, A: Any, shape: Any) -> Any:
    """Makes an operator that calls A and its adjoint; returns its handle."""
    adjoint = adjoint_of(A)
    if adjoint is None:
        raise TypeError(NO_ADJOINT)
    calls = (apply_function(context, product_of(A, "A"), "A", shape[1]),
             apply_function(context, adjoint, "the adjoint of A", shape[0]))
    handle = context.make("sps_operator_user_pair", context.handle, *shape,
                          *calls, None)
    context.borrow(handle, calls)
    return handle


def user_precond(context: Context, M: Any, n: int) -> Any:
    """Makes a preconditioner that calls M; returns its handle."""
    call = apply_function(context, product_of(M, "M"), "M")
    handle = context.make("sps_precond_user", context.handle, n, call, None)
    context.borrow(handle, call)
    return handle


def callable_or_none(callback: Any) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback={callback!r}: a function of one argument, "
                        "a Progress, is expected")


def monitor_function(callback: Callable[[Progress], Any],
                     raised: List[BaseException]) -> Any:
    """Returns a sps_monitor_fn that calls a callback."""
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
    """Returns the number of rows of an operator; for a plain function it
    must be given as n."""
    shape = getattr(A, "shape", None)
    if shape is None:
        if n is None:
            raise TypeError("A is a function: give its number of rows, n=")
        return int(n)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"A has the shape {tuple(shape)}; it must be square, "
                         "except for lsqr and lsmr")
    return int(shape[0])
