# SPDX-License-Identifier: BSD-3-Clause
"""Sparse matrices of SciPy, CuPy and PyTorch as CSR arrays of the library, in
the memory where they lie: offsets of 64 bits, columns of 32 bits, values in
double precision."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from ._arrays import address, number_kind
from ._context import Context
from ._errors import MatrixError, Note, warn
from ._packages import (NUMPY, is_sparse_tensor, maker, package_of,
                        taken)
from ._structs import Csr, Dtype, Own, Place, Property

MOST_COLUMNS = 2**31 - 1


class Arrays(NamedTuple):
    """The CSR arrays of a matrix; for a complex one those of its real form,
    in which an entry a + i b is the block [a -b; b a]."""

    shape: Tuple[int, int]
    indptr: Any
    indices: Any
    values: Any
    is_complex: bool
    widened: int = 0        # bytes of offsets of 32 bits that were widened


def is_sparse(A: Any) -> bool:
    """Returns whether A is a sparse matrix or a tuple (data, indices,
    indptr)."""
    return hasattr(A, "tocsr") or is_sparse_tensor(A) or \
        (isinstance(A, tuple) and len(A) == 3)


def _parts(A: Any) -> Tuple[Any, Any, Any, Tuple[int, int]]:
    if isinstance(A, tuple):
        data, indices, indptr = map(taken, A)
        n = indptr.shape[0] - 1
        return data, indices, indptr, (n, n)
    if len(A.shape) != 2:
        raise ValueError(f"A has {len(A.shape)} dimensions; 2 are expected")
    shape = int(A.shape[0]), int(A.shape[1])
    package = maker(A)
    if package is None:
        C = A.tocsr()
        return C.data, C.indices, C.indptr, shape
    data, indices, indptr = map(taken, package.parts(A))
    return data, indices, indptr, shape


def _integers(a: Any, kind: type, name: str) -> np.ndarray:
    a = np.asarray(a)
    if a.dtype.kind not in "iu" or a.ndim != 1:
        raise TypeError(f"{name} of A must be a one-dimensional array of "
                        "integers")
    return np.ascontiguousarray(a, dtype=kind)


def real_values(data: Any) -> Any:
    """Returns values as float64 or complex128, contiguous, copied only if
    they are not; in device memory only as float64."""
    data = taken(data)
    package = package_of(data)
    kind = number_kind(package.dtype(data), "A")
    if package is not NUMPY:
        if kind is np.complex128:
            raise TypeError("A is complex and in the memory of a GPU, where "
                            "numbers are real: copy it to the host")
        return package.converted(data, kind)
    if data.dtype.kind in "iu" and data.size:
        lost = int(np.count_nonzero((data > 2**53) | (data < -2**53)))
        if lost:
            warn(f"{lost} integers beyond 2^53 were rounded", Note)
    return np.ascontiguousarray(data, dtype=kind)


def _in_rows(upper: np.ndarray, lower: np.ndarray, indptr: np.ndarray
             ) -> np.ndarray:
    """Returns the rows of the real form: for each row of A its entries in
    `upper`, then those in `lower`, a number of 16 or 8 bytes for two."""
    counts = np.diff(indptr)
    both = np.empty(2 * upper.size, dtype=upper.dtype)
    at = np.repeat(indptr[:-1], counts) + np.arange(indptr[-1])
    both[at] = upper
    both[at + np.repeat(counts, counts)] = lower
    return both


def _real_form(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    upper = values.conj()
    lower = np.empty_like(values)
    lower.real, lower.imag = values.imag, values.real
    return _in_rows(upper, lower, indptr).view(np.float64)


def _real_pattern(indptr: np.ndarray, indices: np.ndarray
                  ) -> Tuple[np.ndarray, np.ndarray]:
    pairs = np.empty((indices.size, 2), dtype=np.int32)
    pairs[:, 0] = 2 * indices
    pairs[:, 1] = pairs[:, 0] + 1
    pair = pairs.ravel().view(np.int64)
    twice = np.repeat(2 * np.diff(indptr), 2)
    return (np.concatenate(([0], np.cumsum(twice))),
            _in_rows(pair, pair, indptr).view(np.int32))


def _check(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray,
           shape: Tuple[int, int]) -> None:
    if indptr.size != shape[0] + 1 or indptr[0] != 0 or \
            min(indices.size, values.size) < indptr[-1] or \
            (indptr[1:] < indptr[:-1]).any():
        raise ValueError("the CSR arrays of A do not fit each other")


def _check_columns(indices: np.ndarray, shape: Tuple[int, int]) -> None:
    """Checks column numbers before they are converted to 32 bits; the
    library checks those that are not converted."""
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        raise ValueError(f"a column number of A is not in 0 to {shape[1] - 1}")


def arrays_of(A: Any) -> Arrays:
    """The arrays of A in the library's types.

    Those of a SciPy csr matrix are used as they are if they have these types:
    columns of 32 bits and values in double precision do.

    >>> arrays_of(([2.0, 3.0], [0, 1], [0, 1, 2])).values
    array([2., 3.])
    """
    data, indices, indptr, shape = _parts(A)
    if max(shape) > MOST_COLUMNS:
        raise ValueError(f"A is {shape[0]} x {shape[1]}; at most 2^31 - 1 rows "
                         "and columns are possible")
    if package_of(data) is not NUMPY:
        return _device_arrays(data, indices, indptr, shape)
    widened = 0 if np.asarray(indptr).dtype == np.int64 else 8 * len(indptr)
    indptr = _integers(indptr, np.int64, "indptr")
    wide = np.asarray(indices)
    values = real_values(data)
    _check(indptr, wide, values, shape)
    if wide.dtype != np.int32 or values.dtype == np.complex128:
        _check_columns(wide, shape)
    indices = _integers(wide, np.int32, "indices")[:indptr[-1]]
    values = values[:indptr[-1]]
    if values.dtype != np.complex128:
        return Arrays(shape, indptr, indices, values, False, widened)
    if 2 * max(shape) > MOST_COLUMNS:
        raise ValueError("the real form of the complex A has more than 2^31 - "
                         "1 rows")
    real = _real_form(values, indptr)
    offsets, columns = _real_pattern(indptr, indices)
    return Arrays((2 * shape[0], 2 * shape[1]), offsets, columns, real, True)


def _device_arrays(data: Any, indices: Any, indptr: Any,
                   shape: Tuple[int, int]) -> Arrays:
    """Returns the result of arrays_of for arrays in device memory.  The
    library checks offsets and columns there; columns of 64 bits are checked
    here, before they are converted."""
    package = package_of(data)
    offsets, wide = package.dtype(indptr), package.dtype(indices)
    if offsets.kind not in "iu" or wide.kind not in "iu":
        raise TypeError("offsets and columns of A must be integers")
    if indptr.shape != (shape[0] + 1,) or indices.shape != data.shape or \
            data.ndim != 1:
        raise ValueError("the CSR arrays of A do not fit each other")
    if wide.itemsize > 4 and data.shape[0] and \
            (int(indices.min()) < 0 or int(indices.max()) >= shape[1]):
        raise ValueError(f"a column number of A is not in 0 to {shape[1] - 1}")
    widened = 0 if offsets == np.int64 else 8 * (shape[0] + 1)
    return Arrays(shape, package.converted(indptr, np.int64),
                  package.converted(indices, np.int32), real_values(data),
                  False, widened)


def _equal(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    return bool((package_of(b).from_any(a, b) == b).all())


class Matrix:
    """A csr of the library that uses the memory of Python arrays."""

    def __init__(self, context: Context, A: Any, props: int,
                 name: str = "A") -> None:
        self.arrays = a = arrays_of(A)
        self.is_complex = a.is_complex
        self.name = name
        self._check_finite(a.values)
        place = package_of(a.values).place
        if place not in (context.place, Place.HOST):
            raise TypeError(f"{name} is in the memory of a GPU: device='cuda', "
                            "or nothing, is expected")
        self.handle = context.make(
            "sps_csr_wrap", context.handle, *a.shape, a.values.shape[0],
            address(a.indptr), address(a.indices), address(a.values),
            Dtype.F64, place, Own.BORROW)
        context.borrow(self.handle, a)
        if a.widened:
            context.told.append(
                f"{name}: its offsets of 32 bits were widened to 64 bits once, "
                f"a copy of {a.widened} bytes")
        if a.is_complex:
            props |= Property.INTERLEAVED
        if props:
            self._csr().props |= props

    def _csr(self) -> Csr:
        return ctypes.cast(self.handle, ctypes.POINTER(Csr)).contents

    def _check_finite(self, values: Any) -> None:
        """Raises MatrixError for a value that is not finite; in that case
        the sum is not finite either, and the arrays pass the host."""
        with np.errstate(all="ignore"):
            if np.isfinite(float(values.sum())):
                return
        a, half = self.arrays, 1 + self.is_complex
        values, indices, indptr = (NUMPY.from_any(part, None) for part in
                                   (values, a.indices, a.indptr))
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size == 0:
            return
        p = wrong[0]
        row = np.searchsorted(indptr, p, "right") - 1
        raise MatrixError(
            f"{self.name} has a value that is not finite, {values[p]}, in row "
            f"{row // half}, column {indices[p] // half}, counted from 0")

    def new_values(self, values: Any) -> Any:
        """Returns the values for sps_operator_set_values, from an array or a
        matrix with the same pattern."""
        new = self._new_values(values)
        self._check_finite(new)
        return new

    def _new_values(self, values: Any) -> Any:
        if is_sparse(values):
            return self._values_of(arrays_of(values))
        new = real_values(values)
        if new.ndim != 1:
            raise ValueError("values must be a sparse matrix, or one array in "
                             "the order of its CSR form")
        if package_of(new).dtype(new) == np.complex128 and not self.is_complex:
            raise TypeError("the values are complex and A is real")
        if self.is_complex:
            new = self._complex_values(new)
        if new.shape != self.arrays.values.shape:
            raise ValueError(f"{new.shape[0]} values for a matrix of "
                             f"{self.arrays.values.shape[0]} entries")
        return new

    def _complex_values(self, new: np.ndarray) -> np.ndarray:
        indptr = self.arrays.indptr[::2] // 4
        if new.size != indptr[-1]:
            raise ValueError(f"{new.size} values for a matrix of {indptr[-1]} "
                             "entries")
        return _real_form(new.astype(np.complex128, copy=False), indptr)

    def _values_of(self, other: Arrays) -> np.ndarray:
        old = self.arrays
        if other.is_complex != self.is_complex:
            kinds = ("real", "complex")[::1 if other.is_complex else -1]
            raise TypeError(f"the solver was made for a {kinds[0]} matrix, "
                            f"and this one is {kinds[1]}: make one for a "
                            "complex matrix, whose imaginary part may be 0")
        if other.shape != old.shape or \
                not _equal(other.indptr, old.indptr) or \
                not _equal(other.indices, old.indices):
            raise ValueError("the matrix has another pattern; make a new "
                             "solver for it")
        return other.values


def properties(assume_a: Optional[str]) -> int:
    """Returns the properties of A that the caller declares, in the words of
    scipy.linalg.solve."""
    if assume_a is None:
        return 0
    words = {"gen": 0, "general": 0,
             "sym": Property.SYMMETRIC, "symmetric": Property.SYMMETRIC,
             "pos": Property.SYMMETRIC | Property.SPD,
             "positive definite": Property.SYMMETRIC | Property.SPD}
    if assume_a not in words:
        raise ValueError(f"assume_a={assume_a!r}: unknown; use 'gen', 'sym' "
                         "or 'pos'")
    return int(words[assume_a])
