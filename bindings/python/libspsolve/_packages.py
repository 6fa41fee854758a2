# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy, CuPy and PyTorch: where they lie, and what is done to them
without leaving that place.

Arrays of other packages in device memory come through
__cuda_array_interface__ or DLPack, whose imports by CuPy and PyTorch wait for
the stream that writes them.

The library works on a stream of its own.  Before a call that stream waits for
the caller's current one, by an event, and after it the caller's waits for the
library's: arrays that are still being written are read when they are complete,
and results may be used at once, without the host waiting.
"""
from __future__ import annotations

import ctypes
import importlib
import sys
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, ContextManager, Dict, List, Optional, Set, Tuple

import numpy as np

from ._structs import Place

DEVICE = Place.CUDA     # where arrays of a __cuda_array_interface__ are
_CUDA, _MANAGED = 2, 13                 # of DLPack
DOUBLE = np.dtype(np.float64)
COMPLEX = np.dtype(np.complex128)
_FIRST = ctypes.c_char.from_buffer
_ADDRESS = ctypes.addressof


class Arrays:
    """Functions that are the same for arrays of NumPy and CuPy."""

    module: Any

    def strides(self, a: Any) -> Tuple[int, ...]:
        return a.strides

    def dtype(self, a: Any) -> np.dtype:
        return a.dtype

    def converted(self, a: Any, kind: Any) -> Any:
        """Returns a if it has that type and is contiguous, else a contiguous
        copy of that type."""
        return self.module.ascontiguousarray(a, dtype=kind)

    def as_type(self, a: Any, kind: Any) -> Any:
        return a.astype(kind, copy=False)

    def copy(self, a: Any) -> Any:
        """Returns a copy in C order."""
        return a.copy()

    def clear(self, a: Any) -> None:
        a.fill(0.0)


class Numpy(Arrays):
    """Functions for arrays in host memory."""

    place = Place.HOST
    module = np

    def address(self, a: Any) -> int:
        """Returns the address of an array, from its buffer if it has one, in
        a third of the time of the general way; arrays that are empty,
        read-only or not in C order have none."""
        try:
            return _ADDRESS(_FIRST(a))
        except (TypeError, ValueError):
            return a.__array_interface__["data"][0]

    def writeable(self, a: Any) -> bool:
        return a.flags.writeable

    def empty(self, shape: Any, like: Any) -> Any:
        return np.empty(shape)

    def from_any(self, a: Any, like: Any) -> Any:
        """Returns a on the device of `like`."""
        package = package_of(a)
        return a if package is self else package.to_host(a)


class Device:
    """Functions for arrays in device memory."""

    name = ""

    @property
    def place(self) -> Place:
        return DEVICE

    @property
    def module(self) -> Any:
        """The package, from sys.modules: an import statement takes 3 us even
        if it is loaded, and a solve asks ten times."""
        return sys.modules.get(self.name) or importlib.import_module(self.name)

    def is_block(self, value: Any) -> bool:
        """Returns whether an object of the package is used as it is: an
        array of doubles in device memory with one or two dimensions."""
        raise NotImplementedError

    def spot(self, a: Any) -> Any:
        """See the function of this name."""
        raise NotImplementedError

    def writeable(self, a: Any) -> bool:
        return True

    def stream(self, ordinal: int) -> Any:
        """Makes a new stream, which does not wait for the default one."""
        raise NotImplementedError

    def pointer(self, stream: Any) -> int:
        raise NotImplementedError

    def current(self, ordinal: int) -> Any:
        raise NotImplementedError

    def external(self, pointer: int, ordinal: int) -> Any:
        """Returns the stream at an address as an object of the package."""
        raise NotImplementedError

    def here(self) -> int:
        """Returns the number of the current GPU."""
        raise NotImplementedError

    def number(self, device: Any) -> int:
        raise NotImplementedError

    def ordinal(self, value: Any) -> int:
        """Returns the number of the GPU of an array or a matrix, else of the
        current one."""
        if hasattr(value, "tocsr"):         # whose own device is not known
            value = value.tocsr().data
        device = getattr(value, "device", None)
        return self.here() if device is None else self.number(device)

    def event(self, ordinal: int) -> Any:
        raise NotImplementedError

    def record(self, stream: Any, event: Any) -> None:
        raise NotImplementedError

    def between(self, own: Any, ordinal: int, event: Any,
                after: bool) -> None:
        """Makes stream `own` wait for the current one or, if `after`, the
        current one for `own`.  The event may be used again at once, since a
        wait refers to what was recorded last before it."""
        first, second = self.current(ordinal), own
        if after:
            first, second = second, first
        if self.pointer(first) != self.pointer(second):
            self.record(first, event)
            second.wait_event(event)


class Cupy(Device, Arrays):
    name = "cupy"

    def is_block(self, value: Any) -> bool:
        return type(value) is self.module.ndarray and \
            value.dtype is DOUBLE and 1 <= value.ndim <= 2

    def address(self, a: Any) -> int:
        return int(a.data.ptr)

    def spot(self, a: Any) -> Any:
        shape = a.shape
        by_rows = (8,) if len(shape) == 1 else (8 * shape[1], 8)
        return (a.data.ptr, shape) if a.strides == by_rows else None

    def number(self, device: Any) -> int:
        return int(device.id)

    def here(self) -> int:
        return int(self.module.cuda.Device().id)

    def event(self, ordinal: int) -> Any:
        with self.module.cuda.Device(ordinal):
            return self.module.cuda.Event(disable_timing=True)

    def record(self, stream: Any, event: Any) -> None:
        stream.record(event)

    def empty(self, shape: Any, like: Any) -> Any:
        return self.module.empty(shape, dtype=np.float64)

    def from_any(self, a: Any, like: Any) -> Any:
        return self.module.asarray(a)

    def to_host(self, a: Any) -> np.ndarray:
        return self.module.asnumpy(a)

    def parts(self, A: Any) -> Tuple[Any, Any, Any]:
        C = A.tocsr()
        return C.data, C.indices, C.indptr

    def take(self, value: Any) -> Any:
        """An array of another package, where it is."""
        if hasattr(value, "__cuda_array_interface__"):
            return self.module.asarray(value)
        return self.module.from_dlpack(value)

    def stream(self, ordinal: int) -> Any:
        with self.module.cuda.Device(ordinal):
            return self.module.cuda.Stream(non_blocking=True)

    def pointer(self, stream: Any) -> int:
        return int(stream.ptr)

    def current(self, ordinal: int) -> Any:
        return self.module.cuda.get_current_stream(ordinal)

    def external(self, pointer: int, ordinal: int) -> Any:
        return self.module.cuda.ExternalStream(pointer, ordinal)

    def using(self, pointer: int, ordinal: int) -> ContextManager[Any]:
        return self.external(pointer, ordinal)

    def view(self, holder: Any, ordinal: int) -> Any:
        return self.module.asarray(holder)


@lru_cache(maxsize=None)
def _name_of(kind: Any) -> str:
    return np.dtype(kind).name


@lru_cache(maxsize=None)
def _torch_dtype(kind: Any) -> np.dtype:
    name = str(kind).split(".")[-1]
    return np.dtype(object if name == "bfloat16" else name)


class Torch(Device):
    name = "torch"

    def is_block(self, value: Any) -> bool:
        module = self.module
        return value.dtype is module.float64 and value.is_cuda and \
            value.layout is module.strided and not value.requires_grad and \
            1 <= value.ndim <= 2

    def address(self, a: Any) -> int:
        return a.data_ptr()

    def spot(self, a: Any) -> Any:
        return (a.data_ptr(), a.shape) if a.is_contiguous() else None

    def strides(self, a: Any) -> Tuple[int, ...]:
        size = a.element_size()
        return tuple(size * step for step in a.stride())

    def dtype(self, a: Any) -> np.dtype:
        return _torch_dtype(a.dtype)

    def number(self, device: Any) -> int:
        return int(device.index)

    def here(self) -> int:
        return int(self.module.cuda.current_device())

    def _type(self, kind: Any) -> Any:
        return getattr(self.module, _name_of(kind))

    def converted(self, a: Any, kind: Any) -> Any:
        return a.detach().to(self._type(kind)).contiguous()

    def as_type(self, a: Any, kind: Any) -> Any:
        return a.detach().to(self._type(kind))

    def copy(self, a: Any) -> Any:
        return a.detach().clone(
            memory_format=self.module.contiguous_format)

    def clear(self, a: Any) -> None:
        a.zero_()

    def event(self, ordinal: int) -> Any:
        return self.module.cuda.Event()

    def record(self, stream: Any, event: Any) -> None:
        event.record(stream)

    def empty(self, shape: Any, like: Any) -> Any:
        return self.module.empty(shape, dtype=self.module.float64,
                                 device=like.device)

    def from_any(self, a: Any, like: Any) -> Any:
        return self.module.as_tensor(a, device=like.device)

    def to_host(self, a: Any) -> np.ndarray:
        return a.detach().cpu().numpy()

    def parts(self, A: Any) -> Tuple[Any, Any, Any]:
        C = A.detach()
        if C.layout != self.module.sparse_csr:
            C = C.to_sparse_csr()
        return C.values(), C.col_indices(), C.crow_indices()

    def take(self, value: Any) -> Any:
        if hasattr(value, "__cuda_array_interface__"):
            return self.module.as_tensor(value, device="cuda")
        return self.module.from_dlpack(value)

    def stream(self, ordinal: int) -> Any:
        return self.module.cuda.Stream(ordinal)

    def pointer(self, stream: Any) -> int:
        return int(stream.cuda_stream)

    def current(self, ordinal: int) -> Any:
        return self.module.cuda.current_stream(ordinal)

    def external(self, pointer: int, ordinal: int) -> Any:
        return self.module.cuda.ExternalStream(pointer, ordinal)

    def using(self, pointer: int, ordinal: int) -> ContextManager[Any]:
        return self.module.cuda.stream(self.external(pointer, ordinal))

    def view(self, holder: Any, ordinal: int) -> Any:
        return self.module.as_tensor(holder, device=f"cuda:{ordinal}")


class Holder:
    """Describes n x k doubles in device memory, so that a package can import
    them."""

    def __init__(self, address: int, n: int, k: int, step: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (n, k), "strides": (8 * step, 8), "typestr": "<f8",
            "data": (address, False), "version": 2}


NUMPY = Numpy()
PACKAGES: List[Any] = [Cupy(), Torch()]


def _roots(kind: Any) -> Set[str]:
    """Returns the names of the packages of a class and of its base classes."""
    return {c.__module__.split(".")[0] for c in kind.__mro__}


@lru_cache(maxsize=256)
def _is_scipy(kind: Any) -> bool:
    return "scipy" in _roots(kind)


@lru_cache(maxsize=256)
def _maker_of(kind: Any) -> Optional[Any]:
    roots = _roots(kind)
    for package in PACKAGES:
        if package.name in roots or package.name + "x" in roots:
            return package
    return None


def maker(value: Any) -> Optional[Any]:
    """Returns the package (CuPy or PyTorch) that made the value, or None."""
    kind: Any = type(value)
    return _maker_of(kind)


def is_torch_on_host(value: Any) -> bool:
    package = maker(value)
    if package is None or package.name != "torch":
        return False
    where = getattr(value, "device", None)
    return where is not None and where.type == "cpu"


def is_sparse_tensor(value: Any) -> bool:
    package = maker(value)
    if package is None or package.name != "torch":
        return False
    layout = getattr(value, "layout", None)
    return layout is not None and layout != package.module.strided


def package_of(a: Any) -> Any:
    """Returns the package of an array which `taken` has returned."""
    if type(a) is np.ndarray:
        return NUMPY
    return maker(a) or NUMPY


def spot(a: Any) -> Any:
    """Returns address and shape of an array of doubles in C order that can
    be written to and is used as it is; None for anything else."""
    if type(a) is np.ndarray:
        if a.dtype is not DOUBLE:
            return None
        try:
            return _ADDRESS(_FIRST(a)), a.shape
        except (TypeError, ValueError):
            return None
    package = maker(a)
    return package.spot(a) if package and package.is_block(a) else None


def on_device(value: Any) -> bool:
    """Returns whether an array, or the arrays of a matrix, are in device
    memory."""
    if type(value) is np.ndarray:
        return False
    if maker(value) is not None:
        return not is_torch_on_host(value)
    if isinstance(value, tuple):
        return any(on_device(part) for part in value)
    if _is_scipy(type(value)):
        return False
    if hasattr(value, "__cuda_array_interface__"):
        return True
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and not isinstance(value, np.ndarray) and \
        where()[0] in (_CUDA, _MANAGED)


def importer() -> Any:
    """Returns a package that can import arrays of other packages: one that
    the program uses if there is one, else one that is installed."""
    for package in PACKAGES:
        if package.name in sys.modules:
            return package
    for package in PACKAGES:
        try:
            package.module
        except ImportError:
            continue
        return package
    raise TypeError("arrays in device memory are used through CuPy or PyTorch, "
                    "neither of which is installed")


def home(value: Any) -> Tuple[Any, int]:
    """Returns the package of a value in device memory, and the number of the
    GPU."""
    if isinstance(value, tuple):
        value = value[0]
    package = maker(value)
    if package is None:
        package = importer()
        return package, package.here()
    return package, package.ordinal(value)


def taken(value: Any) -> Any:
    """Returns value as an array of NumPy, CuPy or PyTorch, where it lies;
    tensors in host memory become views of NumPy."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("an array is masked, and numbers under a mask are not "
                        "left out: give value.filled(0) or value.data")
    package = maker(value)
    if package is None:
        if on_device(value):
            return importer().take(value)
        return np.asarray(value)
    return value.detach().numpy() if is_torch_on_host(value) else value


def given(X: np.ndarray, like: Any) -> Any:
    """Returns a result as the caller expects it: X, or X as a tensor if the
    caller's argument `like` was a tensor in host memory."""
    package = maker(like)
    if isinstance(X, np.ndarray) and package and is_torch_on_host(like):
        return package.module.from_numpy(X)
    return X


def in_use() -> Optional[Any]:
    """Returns a package that the program has imported and that has a GPU, or
    None."""
    for package in PACKAGES:
        if package.name in sys.modules and package.module.cuda.is_available():
            return package
    return None


class Queue:
    """The stream of a context on a GPU. It is one of a package's streams, so
    that it can wait for others of that package.  Without a package it is the
    library's own, and the host must wait for its end."""

    def __init__(self, package: Any = None, ordinal: int = 0) -> None:
        self.package = package
        self.ordinal = ordinal
        self.stream = package.stream(ordinal) if package else None
        self.pointer = package.pointer(self.stream) if package else None

        self.ends: Dict[str, Any] = {}

    def packages(self, arrays: Any) -> List[Any]:
        """Returns the packages of the arrays, and the queue's own, whose
        arrays callbacks may use."""
        own = self.package
        found = [own] if own else []
        for a in arrays:
            package = package_of(a)
            if package is not own and package is not NUMPY and \
                    package not in found:
                found.append(package)
        return found

    def _end(self, package: Any) -> Any:
        """Returns the stream as an object of the package, and an event for
        it."""
        end = self.ends.get(package.name)
        if end is None:
            end = self.ends[package.name] = (
                package.external(self.pointer, self.ordinal),
                package.event(self.ordinal))
        return end

    def before(self, packages: List[Any]) -> None:
        """Makes the library wait for the current streams of the packages."""
        for package in packages:
            if self.pointer is None:
                package.current(self.ordinal).synchronize()
            else:
                own, event = self._end(package)
                package.between(own, self.ordinal, event, after=False)

    def after(self, packages: List[Any]) -> bool:
        """Makes the current streams wait for the library; returns False if
        the host has to wait."""
        for package in packages:
            if self.pointer is None:
                return False
            own, event = self._end(package)
            package.between(own, self.ordinal, event, after=True)
        return True

    def using(self) -> ContextManager[Any]:
        """Context manager: work of the package inside it goes to the
        library's stream."""
        if self.package is None:
            return nullcontext()
        return self.package.using(self.pointer, self.ordinal)
