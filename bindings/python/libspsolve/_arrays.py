# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as blocks of the library, without a copy where it can be."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from ._context import Context
from ._library import lib
from ._packages import (DOUBLE, NUMPY, is_sparse_tensor, maker, package_of,
                        taken)
from ._structs import Order, Place


def dense(value: Any, name: str) -> Any:
    """Returns value as an array of float64 or complex128 with 1 or 2
    dimensions, where it lies; in device memory only as float64."""
    if type(value) is np.ndarray and value.dtype is DOUBLE and \
            1 <= value.ndim <= 2:
        return value
    made_by = maker(value)
    if made_by is not None and made_by.is_block(value):
        return value
    if hasattr(value, "tocsr") or is_sparse_tensor(value):
        raise TypeError(f"{name} is sparse; give a dense array")
    a = taken(value)
    if a.ndim not in (1, 2):
        raise ValueError(f"{name} has {a.ndim} dimensions; a vector of n or an "
                         "array of n x k numbers is expected")
    package = package_of(a)
    kind = number_kind(package.dtype(a), name)
    if kind is np.complex128 and package is not NUMPY:
        raise TypeError(f"{name} is complex and in the memory of a GPU, where "
                        "numbers are real: copy it to the host")
    return package.as_type(a, kind)


def number_kind(dtype: np.dtype, name: str) -> type:
    """Returns the type to compute in, float64 or complex128; raises
    TypeError for other numbers and objects."""
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return np.float64
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return np.complex128
    raise TypeError(f"{name} has the type {dtype}; real and complex numbers in "
                    "at most double precision, integers and booleans can be "
                    "used")


def address(a: Any) -> int:
    return package_of(a).address(a)


def interleave(a: np.ndarray) -> np.ndarray:
    """Returns a complex array as a real one of twice as many rows: rows 2 i and
    2 i + 1 are the real and the imaginary part of row i.

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


def columns(a: Any) -> Any:
    """Returns a vector as an array of one column, without a copy."""
    return a[:, None] if a.ndim == 1 else a


def _step(sizes: Any, strides: Any, where: int) -> Optional[int]:
    (n, k), (outer, inner) = sizes, strides
    if where % 8 or (k > 1 and inner != 8):
        return None
    if n <= 1:
        return k
    step, rest = divmod(outer, 8)
    return step if rest == 0 and step >= k else None


def row_step(a: Any) -> Optional[int]:
    """Returns the number of doubles from one row to the next if the k
    numbers of a row are side by side and rows do not overlap, else None."""
    package = package_of(a)
    return _step(a.shape, package.strides(a), package.address(a))


def column_step(a: Any) -> Optional[int]:
    """Returns the number of doubles from one column to the next if the n
    numbers of a column are side by side and columns do not overlap, else
    None."""
    package = package_of(a)
    return _step(a.shape[::-1], package.strides(a)[::-1], package.address(a))


def empty(n: int, k: int, like: Any, by_columns: bool = False) -> Any:
    """Returns an uninitialised array of the package of `like`; one of NumPy
    in C order begins at a multiple of 256 bytes, so that the library need
    not copy it."""
    package = package_of(like)
    if by_columns:
        return package.empty((k, n), like).T
    if package is not NUMPY:
        return package.empty((n, k), like)
    room = np.empty(n * k + 32)
    first = (-address(room) % 256) // 8
    return room[first:first + n * k].reshape(n, k)


def empty_like(a: Any) -> Any:
    """Returns an uninitialised array of the shape and the order of a."""
    by_columns = row_step(a) is None and column_step(a) is not None
    return empty(a.shape[0], a.shape[1], a, by_columns)


def extent(a: Any) -> Tuple[int, int]:
    """Returns the first address of an array, and the one after its last
    number."""
    package = package_of(a)
    first = package.address(a)
    if 0 in a.shape:
        return first, first
    steps = [(size - 1) * step
             for size, step in zip(a.shape, package.strides(a))]
    return (first + sum(s for s in steps if s < 0),
            first + sum(s for s in steps if s > 0) +
            package.dtype(a).itemsize)


def overlap(a: Any, b: Any) -> bool:
    """Returns whether the memory of two arrays overlaps."""
    if type(a) is type(b) is np.ndarray:
        return np.may_share_memory(a, b)
    (low, high), (first, last) = extent(a), extent(b)
    return package_of(a).place == package_of(b).place and \
        low < last and first < high


def overlaps_itself(a: Any) -> bool:
    """Returns whether numbers of an array may lie at the same place."""
    package = package_of(a)
    end = package.dtype(a).itemsize
    for step, size in sorted((abs(step), size) for step, size in
                             zip(package.strides(a), a.shape) if size > 1):
        if step < end:
            return True
        end += step * (size - 1)
    return False


def usable(context: Context, array: Any) -> Tuple[Optional[int], int]:
    """Returns row_step and address of an array that the library can use
    where it is, else None and 0."""
    package = package_of(array)
    if package.place != context.place:
        return None, 0
    where = package.address(array)
    step = _step(array.shape, package.strides(array), where)
    return (None, 0) if step is None else (step, where)


class Block:
    """A block of the library and the array whose numbers it has.

    The numbers of an array in row-major order are used where they are, if that
    is the memory of the context; others are copied by ``put`` and ``get`` to
    and from memory of the library.  ``keep`` holds the array as long as the
    block is.
    """

    def __init__(self, context: Context, array: Any, keep: bool = True,
                 spot: Any = None) -> None:
        package = package_of(array)
        if package.dtype(array) != DOUBLE or array.ndim != 2:
            raise TypeError("a block has two dimensions of doubles")
        if package.place not in (context.place, Place.HOST):
            raise TypeError("an array is in the memory of a GPU, and the "
                            "solver on the host: device='cuda' makes one "
                            "there")
        n, k = array.shape
        self.array = array
        self.place = package.place
        step, where = spot or usable(context, array)
        self.wrapped = step is not None
        if self.wrapped:
            self.handle = context.make("sps_block_wrap", context.handle, n, k,
                                       where, step)
            if keep:
                context.borrow(self.handle, array)
        else:
            self.handle = context.make("sps_block_create", context.handle, n,
                                       k)

    def layout(self, array: Any) -> Optional[Tuple[int, Order]]:
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
            with context.queue.using():
                array = package_of(array).copy(array)
            context.borrow(self.handle, array)
        self._transfer(context, lib.sps_block_set, array)

    def get(self, context: Context) -> None:
        if self.wrapped:
            return
        array = self.array
        if self.layout(array) is None:
            array = empty(array.shape[0], array.shape[1], array)
        self._transfer(context, lib.sps_block_get, array)
        if array is not self.array:
            with context.queue.using():
                self.array[...] = array

    def _transfer(self, context: Context, function: Any, array: Any) -> None:
        layout = self.layout(array)
        assert layout is not None
        context.check(function(self.handle, 0, array.shape[1], address(array),
                               layout[0], layout[1], self.place))


class Slot:
    """The blocks that have served for one argument of solve, at most MOST.
    One of them is used again if the array lies at the same place, or is
    copied and has the same shape.  No array is held between solves."""

    MOST = 4        # results that a program keeps lie at places of their own

    def __init__(self) -> None:
        self.blocks: Dict[Any, Block] = {}
        self.block: Any = None

    def take(self, context: Context, array: Any, spot: Any = None) -> Block:
        """Returns a block for the array; `spot` is the result of spot() for
        it, if that is known."""
        block = self.blocks.get(spot) if spot else None
        if block is None:
            used = usable(context, array)
            key = spot if spot and used[1] else \
                (package_of(array).place, array.shape, used)
            block = self.blocks.get(key) or self.add(context, array, key, used)
        block.array = array
        self.block = block
        return block

    def add(self, context: Context, array: Any, key: Any,
            used: Any) -> Block:
        if used[0] is None or len(self.blocks) >= self.MOST or \
                not all(block.wrapped for block in self.blocks.values()):
            self.drop(context)
        block = self.blocks[key] = Block(context, array, False, used)
        return block

    def release(self, context: Context) -> None:
        """Called after a solve: lets go of the array."""
        block, self.block = self.block, None
        if block is not None:
            block.array = None
            if not block.wrapped:
                context.borrowed.pop(id(block.handle), None)

    def drop(self, context: Context) -> None:
        for block in self.blocks.values():
            context.destroy(block.handle)
        self.blocks.clear()
