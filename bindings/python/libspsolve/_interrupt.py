# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C during a call of the library.

Python's own signal handler only sets a flag, which is looked at when the call
has returned.  Therefore, while a solve runs in the main thread, the numbers of
signals are also written to a pipe (signal.set_wakeup_fd); a thread that reads
it calls sps_cancel, upon which the solve ends at its next iteration with the
best iterate.  The handler that was installed before is called afterwards.
Nothing is called for each iteration.
"""
from __future__ import annotations

import os
import signal
import threading
from threading import get_ident, main_thread

try:        # the same functions without enumerations, which take longer
    import _signal as quick
except ImportError:
    import signal as quick      # type: ignore[no-redef]
from types import TracebackType
from typing import Any, Callable, List, Optional, Type, Union

from ._errors import Interrupted
from ._library import lib

_MARK = 0       # no signal has this number
SIGINT = int(signal.SIGINT)


class _Watcher:
    """Owns the pipe and the thread that reads it, and lists the contexts in
    whose calls the main thread is: several if a callback solves a system of
    its own."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)
        self.lock = threading.Lock()
        self.contexts: List[Any] = []
        self.forward = -1
        self.emptied = threading.Event()
        threading.Thread(target=self.run, name="libspsolve signals",
                         daemon=True).start()

    def run(self) -> None:
        while True:
            for number in os.read(self.reading, 64):
                self.take(number)

    def take(self, number: int) -> None:
        if number == _MARK:
            self.emptied.set()
            return
        with self.lock:
            if number == signal.SIGINT:
                for context in self.contexts:
                    lib.sps_cancel(context, True)
            if self.forward >= 0:
                try:
                    os.write(self.forward, bytes([number]))
                except OSError:
                    pass

    def drain(self) -> None:
        """Waits until all numbers written so far have been read."""
        self.emptied.clear()
        try:
            os.write(self.writing, bytes([_MARK]))
        except OSError:
            return
        self.emptied.wait(1.0)


_watcher: Optional[_Watcher] = None


def _forget() -> None:
    global _watcher
    _watcher = None             # the thread does not exist in a forked child


os.register_at_fork(after_in_child=_forget)


def _get_watcher() -> _Watcher:
    global _watcher
    if _watcher is None:
        _watcher = _Watcher()
    return _watcher


class Interruptible:
    """Context manager around calls of the library with one context.

    Leaving it raises Interrupted if Ctrl-C was pressed and Python's own handler
    was in force; another handler is called.  ``result`` is what the exception
    gets.  Without effect in other threads than the main one, and where SIGINT
    has no handler in Python.
    """

    __slots__ = ("context", "result", "before", "fd", "caught", "watcher")

    def __init__(self, context: Any) -> None:
        self.context = context
        self.result: Any = None
        self.before: Union[Callable[..., Any], None] = None
        self.caught: Optional[Any] = None

    def __enter__(self) -> "Interruptible":
        if get_ident() != main_thread().ident:
            return self
        handler = quick.getsignal(SIGINT)
        if not callable(handler):
            return self
        self.watcher = watcher = _watcher or _get_watcher()
        try:
            quick.signal(SIGINT, self.catch)
        except ValueError:      # an interpreter that is not the main one
            return self
        self.before = handler   # from here on Ctrl-C raises nothing
        watcher.contexts.append(self.context)
        self.fd = quick.set_wakeup_fd(watcher.writing,
                                      warn_on_full_buffer=False)
        if self.fd != watcher.writing:
            watcher.forward = self.fd
        return self

    def catch(self, number: int, frame: Any) -> None:
        self.caught = (number, frame)
        lib.sps_cancel(self.context, True)

    def restore(self) -> None:
        watcher = self.watcher
        try:
            quick.set_wakeup_fd(self.fd, warn_on_full_buffer=False)
        except (ValueError, OSError):   # a callback has closed it
            quick.set_wakeup_fd(-1)
        with watcher.lock:
            watcher.contexts.pop()
            if not watcher.contexts:
                watcher.forward = -1
        if self.caught:
            watcher.drain()
            lib.sps_cancel(self.context, False)
        quick.signal(SIGINT, self.before)

    def __exit__(self, kind: Optional[Type[BaseException]],
                 value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.before is None:
            return
        self.restore()
        if not self.caught:
            return
        if self.before is signal.default_int_handler:
            raise Interrupted(self.result) from value
        self.before(*self.caught)
