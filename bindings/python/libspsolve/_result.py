# SPDX-License-Identifier: BSD-3-Clause
"""Results: copies of what the library reports, none of which it shares."""
from __future__ import annotations

from ctypes import string_at
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from ._errors import NotConverged
from ._library import lib, text
from ._structs import EigenData, ResultData, Seconds, Stop


PHASES = tuple(name for name, *_ in Seconds._fields_)


_STOPS = {int(stop): stop for stop in Stop}


def _stop(number: int) -> Stop:
    """Returns the reason as a Stop; an unknown number, of a later version of
    the library, becomes a reason that is known here."""
    return _STOPS.get(number) or (Stop.CONVERGED if number > 0
                                  else Stop.BREAKDOWN)


def _reals(pointer: Any, count: int) -> np.ndarray:
    return np.array(pointer[:count], dtype=np.float64)


@dataclass
class _Result:
    """Attributes and methods that results of systems and of eigenproblems
    share."""

    converged: np.ndarray      #: k booleans, verified
    residuals: np.ndarray      #: k, recomputed from A, B and X
    backward_errors: np.ndarray
    stops: List[Stop]          #: why each column or pair ended
    stop: Stop
    iterations: int
    restarts: int
    norm_A: float              #: a lower estimate of the 2-norm
    nullspace: int             #: dimension of the null space left out
    applies_A: int             #: products with blocks
    applies_M: int
    solver: str
    precond: str
    kernel: str
    seconds: Dict[str, float]  #: by phase
    notes: Tuple[str, ...] = field(default=())
    #: Argument history=True: a row of residuals for each iteration, as the
    #: method knew them; else empty.
    history: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def reason(self) -> str:
        """The reason for the end of the solve, in words."""
        return text(lib.sps_stop_string(self.stop))

    @property
    def reasons(self) -> List[str]:
        """The reason for the end of each column or pair, in words."""
        return [text(lib.sps_stop_string(stop)) for stop in self.stops]

    @property
    def all_converged(self) -> bool:
        return self.stop > 0

    def shortfall(self) -> str:
        """A line that says what has not converged."""
        return (f"{int(np.sum(~self.converged))} of {self.converged.size} "
                f"{self._what} have not converged: {self.reason} "
                f"(largest {self._largest()}, {self.iterations} iterations)")

    def raise_if_not_converged(self) -> None:
        """Raises NotConverged, with this result, unless everything has
        converged."""
        if not self.all_converged:
            raise NotConverged(self.shortfall(), self)

    def plot(self, ax: Any = None) -> Any:
        """Draws the residuals by matplotlib, which must be installed: of every
        iteration where ``history=True`` was given, else the final ones of each
        column or pair.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            None: the current one.

        Returns
        -------
        Axes
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError("plot() needs matplotlib: pip install "
                                  "matplotlib") from None
            ax = pyplot.gca()
        ax.set_yscale("log")
        ax.set_ylabel("relative residual")
        if self.history.size:
            steps = np.arange(1, len(self.history) + 1)
            ax.plot(steps, self.history, color="tab:blue", alpha=0.4,
                    linewidth=0.8)
            ax.plot(steps, self.history.max(axis=1), color="tab:red",
                    label="largest")
            ax.legend()
            ax.set_xlabel("iteration")
        else:
            for mask, color in ((self.converged, "tab:blue"),
                                (~self.converged, "tab:red")):
                where = np.flatnonzero(mask)
                ax.plot(where, self.residuals[where], "o", color=color)
            ax.set_xlabel(self._what)
        ax.set_title(self.reason)
        return ax

    _what = "columns"
    _pair = "X", "info"        # what SciPy's functions return

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._pair)

    def __getitem__(self, i: int) -> Any:
        return getattr(self, self._pair[i])

    def _largest(self) -> str:
        return f"residual {np.max(self.residuals, initial=0.0):.2g}"

    def __repr__(self) -> str:
        return (f"<{type(self).__name__}: {int(np.sum(self.converged))} of "
                f"{self.converged.size} {self._what} converged, "
                f"{self.reason}; {self.iterations} iterations of "
                f"{self.solver} with {self.precond}, largest "
                f"{self._largest()}>")


@dataclass(repr=False)
class LinearResult(_Result):
    """Result of A X = B.

    ``X`` has the shape of B.  ``residuals`` are ||b - A x|| / ||b|| of each
    column, computed in twice the working precision after the iteration, and
    ``converged`` is decided by them alone.  It unpacks as the solvers of SciPy
    return: ``x, info = solve(A, b)``, where info is 0 if all columns have
    converged, else the number of iterations, or -1 if there was none.

    ``X``, ``converged``, ``residuals``, ``backward_errors``
        Arrays; the last are ||b - A x|| / (||A|| ||x|| + ||b||).
    ``stop``, ``reason``, ``stops``, ``reasons``
        Why the solve and each column ended, as Stop and in words.
    ``iterations``, ``restarts``
        The latter: how often the residual was replaced by b - A x.
    ``solver``, ``precond``, ``kernel``
        What was used.
    ``seconds``
        Wall time of ``setup`` (making the solver, at its first solve, and new
        values), ``solve`` and ``verify``; of the solve, products with A
        (``spmm``), the preconditioner (``precond``), products of blocks
        (``gram``) and of small matrices (``small``).
    ``notes``
        What the library did and chose.
    ``normal_residuals``
        Of least squares, ||A'r - d^2 x|| / (||A|| ||r||), which is 0 of a
        solution; else empty.
    ``nullspace``, ``removed``, ``worst_in_range``
        Dimension of the null space that was projected out, the part of B in
        it, and the largest residual without that part.
    ``norm_A``, ``min_width``, ``applies_A``, ``applies_M``, ``in_doubles``
        A lower bound of the 2-norm; the fewest search directions; products
        with blocks; whether residuals are in double precision, since A is a
        function.
    ``history``
        With ``history=True`` a row of residuals for each iteration.
    """

    X: Any = field(default_factory=lambda: np.empty(0))
    min_width: int = field(default_factory=int)
    #: ||part of B in the null space|| / ||B||
    removed: float = field(default_factory=float)
    worst_in_range: float = field(default_factory=float)
    #: A is a function: residuals in double
    in_doubles: bool = field(default_factory=bool)
    #: Of least squares: ||A'r - d^2 x|| / (||A|| ||r||) of each column, which
    #: is 0 of a least-squares solution; else empty.
    normal_residuals: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __getattr__(self, name: str) -> Any:
        """Called for an attribute that has not been read yet: makes all of
        them, once."""
        if name not in type(self).__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        copy = self.__dict__.get("_copy")
        facts = _facts(copy) if copy is not None else {}
        for key, value in facts.items():
            self.__dict__.setdefault(key, value)
        self.__dict__.pop("_copy", None)    # last: other threads may read, too
        if name not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__[name]

    def __getstate__(self) -> Dict[str, Any]:
        if "_copy" in self.__dict__:
            self.norm_A
        return self.__dict__

    def _largest(self) -> str:
        told = super()._largest()
        if not self.normal_residuals.size:
            return told
        return (f"{told}, of the normal equations "
                f"{np.max(self.normal_residuals):.2g}")

    @property
    def info(self) -> int:
        if self.all_converged:
            return 0
        return self.iterations or -1


@dataclass(repr=False)
class EigenResult(_Result):
    """Result of an eigenproblem: ``w, V = eigsh(A, k)``.

    ``w`` are the eigenvalues in ascending order, the columns of ``V`` the
    eigenvectors.  ``residuals`` are ``||A x - w M x|| / (|w| ||M x||)``;
    an eigenvalue lies within ``bounds`` of each w (infinite: unknown).

    ``orthogonality``
        The largest entry of V'MV - I.
    ``missed``
        With ``verify_count=True`` how many eigenvalues are missing; else -1.
    ``nullspace``
        Dimension of the null space that was left out.

    The other facts are those of LinearResult.
    """

    w: np.ndarray = field(default_factory=lambda: np.empty(0))
    V: Any = field(default_factory=lambda: np.empty((0, 0)))
    bounds: np.ndarray = field(default_factory=lambda: np.empty(0))
    applies_precond: int = 0
    norm_M: float = 0.0
    orthogonality: float = 0.0
    missed: int = -1           #: option verify_count: eigenvalues missed
    _what = "pairs"
    _pair = "w", "V"

    def _take(self, order: List[int]) -> None:
        """Puts the pairs in another order."""
        for name in ("w", "converged", "residuals", "backward_errors",
                     "bounds"):
            setattr(self, name, getattr(self, name)[order])
        self.V = self.V[:, order]
        self.stops = [self.stops[i] for i in order]

    def _reverse(self) -> None:
        self._take(list(range(len(self.w)))[::-1])


def _common(r: Any, numbers: Any, names: Any) -> Dict[str, Any]:
    """Returns the attributes that both kinds of results take from the struct
    r, from the numbers of the columns' reasons, and from the names of
    method, preconditioner and kernel."""
    stops = [_stop(number) for number in numbers]
    solver, precond, kernel = map(text, names)
    return dict(
        converged=np.array([stop > 0 for stop in stops], dtype=bool),
        stops=stops, restarts=r.restarts, norm_A=r.norm_A,
        nullspace=r.nullspace, applies_A=r.applies_A, applies_M=r.applies_M,
        solver=solver, precond=precond, kernel=kernel,
        seconds={name: getattr(r.seconds, name) for name in PHASES})


def _facts(copy: Tuple[Any, ...]) -> Dict[str, Any]:
    """Returns the attributes of a result, made of what `linear_result` has
    copied."""
    r, column, *numbers = copy
    residuals, backwards, normals = (np.frombuffer(one).copy()
                                     for one in numbers)
    return dict(
        _common(r, np.frombuffer(column, np.intc),
                (r.solver, r.precond, r.kernel)),
        residuals=residuals, backward_errors=backwards,
        min_width=r.min_width, removed=r.removed,
        worst_in_range=r.worst_in_range, in_doubles=r.in_doubles,
        normal_residuals=normals, history=np.empty((0, 0)))


def linear_result(r: ResultData, X: Any,
                  notes: Tuple[str, ...]) -> LinearResult:
    """Returns the result of a solve.  It copies what belongs to the solver;
    attributes are made of the copy when one of them is read first, because
    making them takes longer than a small solve.  r is not used again."""
    result = LinearResult.__new__(LinearResult)
    result.X = X
    result.notes = notes
    result.stop = _stop(r.stop)
    result.iterations = r.iterations
    size = 8 * r.k
    result.__dict__["_copy"] = (
        r, string_at(r.column, size // 2), string_at(r.residual, size),
        string_at(r.backward, size),
        string_at(r.normal, size) if r.normal else b"")
    return result


def eigen_result(r: EigenData, V: Any,
                 notes: Tuple[str, ...]) -> EigenResult:
    """Returns the result of an eigenproblem, with the pairs in ascending
    order as in SciPy."""
    k = r.count
    w = _reals(getattr(r, "lambda"), k)
    result = EigenResult(
        **_common(r, r.pair[:k], (r.solver, r.precond, r.kernel)),
        residuals=_reals(r.residual, k), backward_errors=_reals(r.backward, k),
        stop=_stop(r.stop), iterations=r.iterations, notes=notes, w=w, V=V,
        bounds=_reals(r.bound, k), applies_precond=r.applies_precond,
        norm_M=r.norm_M, orthogonality=r.orthogonality, missed=r.missed)
    order = np.argsort(w, kind="stable")
    if not np.array_equal(order, np.arange(k)):
        result._take(order.tolist())
    return result
