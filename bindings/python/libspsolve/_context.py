# SPDX-License-Identifier: BSD-3-Clause
"""A context of the library with the handles that were made in it."""
from __future__ import annotations

import ctypes
import operator
import re
import sys
import threading
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import (Any, ContextManager, Dict, Iterator, List, NoReturn,
                    Tuple)

from ._errors import InvalidArgument, Note, error, warn
from ._library import lib, text
from ._packages import Queue
from ._structs import ContextInfo, ContextOptions, Place

PLACES = {"auto": Place.AUTO, "cpu": Place.HOST, "cuda": Place.CUDA}

MOST_WIDE = 1024        # columns of a solve, and eigenpairs

# Notes that begin so tell what the library chose when the choice was left to
# it, or what it built.  They are in the notes of a result, and no warnings.
CHOICES = re.compile(r"solver auto:|auto:|preconditioner auto:|"
                     r"which=largest: the preconditioner|amg: \d+ levels|"
                     r"amg: levels in double precision, because")
# Those that confirm what the caller has named.
NULL_SPACE = re.compile(r"(null space of|the given null space, of) dimension "
                        r"\d+.* is projected away")


def _options(device: str, threads: int, seed: int,
             queue: Queue) -> ContextOptions:
    if device not in PLACES:
        raise ValueError(f"device={device!r}: unknown; use one of "
                         + ", ".join(map(repr, PLACES)))
    options = ContextOptions()
    lib.sps_context_options_init(options, ctypes.sizeof(options))
    options.place = PLACES[device]
    options.threads = c_int(threads, "threads")
    options.seed = _seed(seed)
    if queue.pointer is not None:
        options.stream = queue.pointer
        options.device = queue.ordinal
    return options


def _seed(value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"seed={value!r}: a whole number is expected")
    seed = operator.index(value)
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed={seed}: 0 to 2^64 - 1 are possible")
    return seed


def width(value: Any, name: str, text: str = "") -> int:
    """Returns value as a number of columns; raises InvalidArgument that says
    `text`, or names the argument, if there cannot be so many."""
    k = c_int(value, name)
    if not 1 <= k <= MOST_WIDE:
        raise InvalidArgument(
            f"{text or f'{name}={k}'}: 1 to {MOST_WIDE} are possible at once"
            + (f"; call it for parts of at most {MOST_WIDE} in turn"
               if k > MOST_WIDE else ""))
    return k


def c_int(value: Any, name: str) -> int:
    """Returns value as a C int, whose range the library checks; raises
    TypeError if it is not a whole number."""
    try:
        return max(-2**31, min(operator.index(value), 2**31 - 1))
    except TypeError:
        raise TypeError(f"{name}={value!r}: a whole number is expected"
                        ) from None


@lru_cache(maxsize=None)
def _maker(function: str) -> Tuple[Any, str]:
    """Returns the function sps_<object>_<verb> of the library, and the
    object."""
    return getattr(lib, function), function.split("_")[1]


@lru_cache(maxsize=None)
def _destroyer(kind: str) -> Tuple[Any, bool]:
    """Returns the function that destroys such objects, and whether the
    context is its first argument."""
    return getattr(lib, f"sps_{kind}_destroy"), kind in ("csr", "options")


_NOTHING = nullcontext()


class Ordered:
    """See Context.ordered."""

    __slots__ = ("context", "packages")

    def __init__(self, context: "Context", arrays: Any) -> None:
        self.context = context
        self.packages = context.queue.packages(arrays)

    def __enter__(self) -> None:
        self.context.queue.before(self.packages)

    def __exit__(self, *exception: Any) -> None:
        if not self.context.queue.after(self.packages):
            lib.sps_context_sync(self.context.handle)


class Context:
    """Owns a sps_context, the handles made in it, and the Python objects whose
    memory these use.

    It is closed when the solver that owns it is collected.  Callbacks of the
    caller may refer to that solver: the collector finds such cycles.
    """

    handle = ctypes.c_void_p()

    def __init__(self, device: str, threads: int, seed: int,
                 package: Any = None, ordinal: int = 0) -> None:
        self.handle = ctypes.c_void_p()
        self.handles: List[Tuple[str, ctypes.c_void_p]] = []
        self.borrowed: Dict[int, Any] = {}
        self.raised: List[BaseException] = []
        self.cancelled = False          # by another thread
        self.null_is_named = False      # by an option
        self.seen = 0
        self.told: List[str] = []       # by this package, no warnings
        self.lock = threading.Lock()
        self.user = 0
        self.queue = Queue(package, ordinal)
        why = ctypes.c_char_p()
        status = lib.sps_context_create(
            _options(device, threads, seed, self.queue), self.handle, why)
        if status:
            raise error(status, text(why.value))
        self.place = Place.HOST if device == "cpu" else \
            self.information()["place"]
        self.on_host = self.place == Place.HOST

    # ------------------------------------------------------------- failures

    def check(self, status: int) -> None:
        """Raises the exception of a callback if there was one, else that for
        a status other than OK."""
        if self.raised:
            raised = self.raised[0]
            self.raised.clear()
            raise raised
        if status:
            self.fail(status)

    def fail(self, status: int) -> NoReturn:
        raise error(status, text(lib.sps_context_error(self.handle)))

    def withdraw(self) -> None:
        """Withdraws a request to end the solve that has ended."""
        self.cancelled = False
        lib.sps_cancel(self.handle, False)

    # -------------------------------------------------------------- streams

    def ordered(self, *arrays: Any) -> ContextManager[None]:
        """Context manager: inside it the library waits for what the current
        streams of the arrays' packages write; at its end these wait for the
        library."""
        if self.on_host and self.queue.package is None:
            return _NOTHING
        return Ordered(self, arrays)

    # -------------------------------------------------------------- handles

    def make(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        """Calls sps_<object>_<verb>, whose last argument is the new handle."""
        handle = ctypes.c_void_p()
        call, kind = _maker(function)
        status = call(*arguments, handle)
        if handle:
            self.handles.append((kind, handle))
        if status or self.raised:
            self.check(status)
        return handle

    def borrow(self, handle: ctypes.c_void_p, *objects: Any) -> None:
        """Keeps Python objects alive as long as the handle."""
        self.borrowed[id(handle)] = objects

    def destroy(self, handle: ctypes.c_void_p) -> None:
        for i in range(len(self.handles) - 1, -1, -1):
            if self.handles[i][1] is handle:
                self._destroy(*self.handles.pop(i))
                return

    def _destroy(self, kind: str, handle: ctypes.c_void_p) -> None:
        function, of_context = _destroyer(kind)
        if of_context:
            function(self.handle, handle)
        else:
            function(handle)
        self.borrowed.pop(id(handle), None)

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """Context manager that destroys at its end the handles that were
        made inside it."""
        count = len(self.handles)
        try:
            yield
        finally:
            while len(self.handles) > count:
                self._destroy(*self.handles.pop())

    def close(self) -> None:
        """Destroys all handles, the last one first, and the context."""
        while self.handles:
            self._destroy(*self.handles.pop())
        lib.sps_context_destroy(self.handle)

    def __del__(self, ending: Any = sys.is_finalizing) -> None:
        if self.handle and not ending():
            self.close()

    # -------------------------------------------------------------- threads

    def __enter__(self) -> "Context":
        """Locks the context: one thread at a time can use it, and a callback
        cannot use the context that calls it."""
        me = threading.get_ident()
        if self.user == me:
            raise RuntimeError("a callback may not use the solver that calls "
                               "it")
        self.lock.acquire()
        self.user = me
        if not self.handle:
            self.__exit__()
            raise RuntimeError("this object has been closed, and cannot be "
                               "used any more")
        return self

    def __exit__(self, *exception: Any) -> None:
        self.user = 0
        self.lock.release()

    # ---------------------------------------------------------------- facts

    def information(self) -> Dict[str, Any]:
        info = ContextInfo(struct_size=ctypes.sizeof(ContextInfo))
        self.check(lib.sps_context_information(self.handle, info))
        facts = {name: getattr(info, name) for name, *_ in info._fields_
                 if name != "struct_size"}
        return {name: text(value) if isinstance(value, bytes) else value
                for name, value in facts.items()}

    def take_notes(self) -> Tuple[str, ...]:
        """Returns the notes since the last call.  Those of the library are
        warnings as well, except those about what it chose and what the caller
        asked for."""
        note = lib.sps_context_note(self.handle, self.seen)
        if note is None and not self.told:
            return ()
        notes: List[str] = []
        while note is not None:
            notes.append(text(note))
            self.seen += 1
            note = lib.sps_context_note(self.handle, self.seen)
        for note in notes:
            if not (CHOICES.match(note) or self.null_is_named and
                    NULL_SPACE.match(note)):
                warn(note, Note)
        told, self.told = tuple(self.told), []
        return told + tuple(notes)
