# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions with the library's text, and categories of warnings."""
from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, Dict, Optional, Type

from ._structs import Status

if TYPE_CHECKING:
    from ._result import EigenResult, LinearResult


class Error(Exception):
    """A call of the library failed; ``status`` says in which way.

    The text is that of the library, which names the value and what to do.
    """

    status: Status = Status.EBUG


class InvalidArgument(Error, ValueError):
    """An argument or the value of an option is not valid."""

    status = Status.EINVAL


class ShapeError(Error, ValueError):
    """Shapes do not match."""

    status = Status.ESHAPE


class MatrixError(Error, ValueError):
    """The matrix is not usable."""

    status = Status.EMATRIX


class UnfitError(Error, ValueError):
    """The method does not fit the problem."""

    status = Status.EUNFIT


class OutOfMemory(Error, MemoryError):
    """The host, or the device, has not enough memory."""

    status = Status.ENOMEM


class DeviceError(Error, RuntimeError):
    """The GPU failed, or the module for it is absent."""

    status = Status.EDEVICE


class NotConverged(Error, ArithmeticError):
    """Raised by ``raise_if_not_converged``; ``result`` has the best iterate."""

    status = Status.OK

    def __init__(self, text: str, result: Any) -> None:
        super().__init__(text)
        self.result = result


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a solve; ``result`` has the best iterates, or is None if
    the set-up was interrupted."""

    def __init__(self, result: "Optional[LinearResult | EigenResult]") -> None:
        super().__init__("the solve was interrupted")
        self.result = result


class SpsolveWarning(UserWarning):
    """Category of all warnings of this package."""


class Note(SpsolveWarning):
    """Something that the library did and the caller may want to know of."""


class ConvergenceWarning(SpsolveWarning):
    """Some columns or pairs have not converged."""


_CLASSES: Dict[int, Type[Error]] = {
    Status.EINVAL: InvalidArgument,
    Status.ESHAPE: ShapeError,
    Status.EMATRIX: MatrixError,
    Status.EUNFIT: UnfitError,
    Status.ENOMEM: OutOfMemory,
    Status.EDEVMEM: OutOfMemory,
    Status.EDEVICE: DeviceError,
    Status.EABSENT: DeviceError,
}


# What texts of the library name as it is in C.
_WORDS = {"if it is symmetric, declare it SPS_SYMMETRIC":
          "if it is symmetric, declare it by assume_a='sym'",
          'sps_list(ctx, "eigensolver", i) lists them':
          "auto, lobpcg and others that options()['solver'] describes are; "
          "solve() has this one if it is for A X = B",
          'sps_list("solver") names them':
          "libspsolve.options()['solver'].words are known; eigsh() and "
          "lobpcg() find eigenvalues"}


def error(status: int, text: str) -> Error:
    """Returns the exception for a status that is not OK."""
    for word, here in _WORDS.items():
        text = text.replace(word, here)
    e = _CLASSES.get(status, Error)(text)
    if status in list(Status):
        e.status = Status(status)
    return e


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(text: str, category: Type[Warning]) -> None:
    """Warns; the line reported is the last one outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
