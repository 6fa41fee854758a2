# SPDX-License-Identifier: BSD-3-Clause
"""Stands for CuPy in tests, with those parts that the package uses.  Its arrays
are in host memory, but NumPy cannot take them; its streams and events record
what waits for what."""
import contextlib
import sys
import types

import numpy as np
import scipy.sparse as sp

import libspsolve
from libspsolve import _context, _packages
from libspsolve._structs import Place

LOG = []                # of streams: ("wait", who, for whom)
HOST_PASSES = []        # copies to the host
CURRENT = []            # the stack of current streams


class Event:
    def __init__(self, disable_timing=False):
        self.stream = None


class Stream:
    count = 100

    def __init__(self, non_blocking=False):
        Stream.count += 1
        self.ptr = Stream.count

    def record(self, event):
        event.stream = self

    def wait_event(self, event):
        LOG.append(("wait", self.ptr, event.stream.ptr))

    def synchronize(self):
        LOG.append(("synchronize", self.ptr))

    def __enter__(self):
        CURRENT.append(self)

    def __exit__(self, *exception):
        CURRENT.pop()


class ExternalStream(Stream):
    def __init__(self, ptr, device_id=-1):
        self.ptr = ptr


class Device:
    id = 0

    def __init__(self, number=0):
        assert number == 0

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


def plain(value):
    return value._a if isinstance(value, ndarray) else value


class ndarray:
    device = Device()

    def __init__(self, a):
        self._a = a

    @property
    def __cuda_array_interface__(self):
        known = self._a.__array_interface__
        contiguous = self._a.flags.c_contiguous
        return {"shape": known["shape"], "typestr": known["typestr"],
                "data": known["data"], "version": 3, "stream": 1,
                "strides": None if contiguous else self._a.strides}

    def __array__(self, *arguments):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    shape = property(lambda self: self._a.shape)
    strides = property(lambda self: self._a.strides)
    data = property(lambda self: types.SimpleNamespace(
        ptr=self._a.__array_interface__["data"][0]))
    ndim = property(lambda self: self._a.ndim)
    dtype = property(lambda self: self._a.dtype)
    T = property(lambda self: ndarray(self._a.T))

    def __getitem__(self, key):
        return ndarray(self._a[key])

    def __setitem__(self, key, value):
        assert isinstance(value, (ndarray, float))
        self._a[key] = plain(value)

    def __iter__(self):
        return (ndarray(row) for row in self._a)

    def fill(self, value):
        self._a.fill(value)

    def astype(self, kind, copy=True):
        return ndarray(self._a.astype(kind, copy=copy))

    def copy(self):
        return ndarray(self._a.copy())

    def __eq__(self, other):
        return ndarray(self._a == other._a)

    def __add__(self, other):
        return ndarray(self._a + plain(other))

    def __mul__(self, other):
        return ndarray(self._a * plain(other))

    __rmul__ = __mul__

    def __bool__(self):
        return bool(self._a)

    def __int__(self):
        return int(self._a)

    def __float__(self):
        return float(self._a)

    def sum(self):
        return ndarray(self._a.sum())

    def all(self):
        return ndarray(self._a.all())

    def min(self):
        return ndarray(self._a.min())

    def max(self):
        return ndarray(self._a.max())


def asarray(value):
    if isinstance(value, ndarray):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        known = dict(value.__cuda_array_interface__)
        holder = types.SimpleNamespace(__array_interface__=known)
        return ndarray(np.asarray(holder))
    return ndarray(np.array(value))


def asnumpy(value):
    HOST_PASSES.append(value.shape)
    return value._a.copy()


class csr_matrix:
    """Stands for cupyx.scipy.sparse.csr_matrix, which does not know its
    device."""

    @property
    def device(self):
        raise NotImplementedError

    def __init__(self, A):
        A = sp.csr_matrix(A)
        self.shape = A.shape
        self.data, self.indices, self.indptr = (
            ndarray(part.copy()) for part in (A.data, A.indices, A.indptr))

    def tocsr(self):
        return self

    def __matmul__(self, X):
        A = sp.csr_matrix((self.data._a, self.indices._a, self.indptr._a),
                          self.shape)
        return ndarray(A @ X._a)


csr_matrix.__module__ = "cupyx.scipy.sparse"
ndarray.__module__ = "cupy"


def module():
    made = types.ModuleType("cupy")
    made.ndarray, made.asarray, made.asnumpy = ndarray, asarray, asnumpy
    made.from_dlpack = lambda value: ndarray(np.from_dlpack(value.array))
    made.ascontiguousarray = lambda a, dtype=None: ndarray(
        np.ascontiguousarray(a._a, dtype))
    made.empty = lambda shape, dtype=float: ndarray(np.empty(shape, dtype))
    made.stack = lambda parts, axis=0: ndarray(
        np.stack([p._a for p in parts], axis))
    made.cuda = types.SimpleNamespace(
        Stream=Stream, ExternalStream=ExternalStream, Device=Device,
        Event=Event,
        get_current_stream=lambda number=-1: CURRENT[-1],
        is_available=lambda: True)
    return made


@contextlib.contextmanager
def installed(monkeypatch):
    """Makes the package take fake arrays for device arrays.  Contexts for
    device="cuda" are on the host, without the options of streams."""
    monkeypatch.setitem(sys.modules, "cupy", module())
    monkeypatch.setattr(_packages, "DEVICE", Place.HOST)
    monkeypatch.setitem(_context.PLACES, "cuda", Place.HOST)
    del LOG[:], HOST_PASSES[:], CURRENT[:]
    CURRENT.append(Stream())
    yield libspsolve
