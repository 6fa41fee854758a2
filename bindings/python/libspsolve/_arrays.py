# SPDX-License-Identifier: BSD-3-Clause
"""NumPy arrays as blocks of the library, without a copy where it can be."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from ._context import Context
from ._library import lib
from ._structs import Order, Place
def refuse_device(value: Any, name: str) -> None:
    """TypeError for arrays and matrices in the memory of a GPU."""
    for part in (value, getattr(value, "data", None)):
        if hasattr(part, "__cuda_array_interface__"):
            raise TypeError(f"{name} is in the memory of a GPU; this version "
                            "takes arrays of NumPy and matrices of SciPy: copy "
                            "it to the host first")


def dense(value: Any, name: str) -> np.ndarray:
    """value as an array of float64 or complex128 with 1 or 2 dimensions."""
    refuse_device(value, name)
    if hasattr(value, "tocsr"):
        raise TypeError(f"{name} is sparse; give a dense array, as of "
                        f"{name}.toarray()")
    a = np.asarray(value)
    if a.ndim not in (1, 2):
        raise ValueError(f"{name} has {a.ndim} dimensions; a vector of n or an "
                         "array of n x k numbers is expected")
    kind = number_kind(a.dtype, name)
    return a.astype(kind, copy=False)


def number_kind(dtype: np.dtype, name: str) -> type:
    """float64 or complex128; TypeError for other numbers and objects."""
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return np.float64
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return np.complex128
    raise TypeError(f"{name} has the type {dtype}; real and complex numbers in "
                    "at most double precision, integers and booleans can be "
                    "used")


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def interleave(a: np.ndarray) -> np.ndarray:
    """Rows 2 i and 2 i + 1 of the result are the real and the imaginary part
    of row i.

    >>> interleave(np.array([[1 + 2j, 3]])).tolist()
    [[1.0, 3.0], [2.0, 0.0]]
    """
    parts = np.stack([a.real, a.imag], axis=1)
    return np.ascontiguousarray(parts.reshape((2 * a.shape[0],) + a.shape[1:]))


def complete(a: np.ndarray) -> np.ndarray:
    """The reverse of interleave.

    >>> complete(np.array([[1.0, 3.0], [2.0, 0.0]])).tolist()
    [[(1+2j), (3+0j)]]
    """
    return a[0::2] + 1j * a[1::2]


def columns(a: np.ndarray) -> np.ndarray:
    """A vector as an array of one column, without a copy."""
    return a[:, np.newaxis] if a.ndim == 1 else a


def row_step(a: np.ndarray) -> Optional[int]:
    """Doubles from row to row if the k numbers of a row are side by side and
    rows do not overlap, else None."""
    n, k = a.shape
    if address(a) % 8:
        return None
    if k > 1 and a.strides[1] != 8:
        return None
    if n <= 1:
        return k
    step, rest = divmod(a.strides[0], 8)
    return step if rest == 0 and step >= k else None


def column_step(a: np.ndarray) -> Optional[int]:
    """The same for the n numbers of a column."""
    return row_step(a.T)


def empty_like(a: np.ndarray) -> np.ndarray:
    """An uninitialised array of the shape and the order of a; one in C order
    begins at a multiple of 256 bytes, where the library need not copy it."""
    n, k = a.shape
    if k > 1 and row_step(a) is None and column_step(a) is not None:
        return np.empty((n, k), order="F")
    room = np.empty(n * k + 32)
    first = (-address(room) % 256) // 8
    return room[first:first + n * k].reshape(n, k)


class Block:
    """A block of the library and the array whose numbers it has.

    The numbers of an array in row-major order are used where they are, if the
    context is on the host; others are copied by ``put`` and ``get`` to and
    from memory of the library.
    """

    def __init__(self, context: Context, array: np.ndarray) -> None:
        if array.dtype != np.float64 or array.ndim != 2:
            raise TypeError("a block has two dimensions of doubles")
        n, k = array.shape
        self.array = array
        step = row_step(array) if context.on_host else None
        self.wrapped = step is not None
        if self.wrapped:
            self.handle = context.make("sps_block_wrap", context.handle, n, k,
                                       address(array), step)
            context.borrow(self.handle, array)
        else:
            self.handle = context.make("sps_block_create", context.handle, n,
                                       k)

    def layout(self, array: np.ndarray) -> Optional[Tuple[int, Order]]:
        step = row_step(array)
        if step is not None:
            return step, Order.ROW_MAJOR
        step = column_step(array)
        return None if step is None else (step, Order.COL_MAJOR)

    def put(self, context: Context) -> None:
        if self.wrapped:
            return
        array = self.array
        if self.layout(array) is None:
            array = array.copy(order="C")
        self._transfer(context, lib.sps_block_set, array)

    def get(self, context: Context) -> None:
        if self.wrapped:
            return
        array = self.array
        if self.layout(array) is None:
            array = np.empty(array.shape)
        self._transfer(context, lib.sps_block_get, array)
        if array is not self.array:
            self.array[...] = array

    def _transfer(self, context: Context, function: Any,
                  array: np.ndarray) -> None:
        layout = self.layout(array)
        assert layout is not None
        context.check(function(self.handle, 0, array.shape[1], address(array),
                               layout[0], layout[1], Place.HOST))
