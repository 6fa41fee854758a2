# SPDX-License-Identifier: BSD-3-Clause
"""progress=True: how far a solve is, by tqdm where that is installed, else by a
line on the standard error once a second."""
from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional

import numpy as np

from ._callbacks import Progress

Callback = Optional[Callable[[Progress], Any]]


class _Lines:
    """Prints progress where tqdm is not installed, with those methods of
    tqdm that are used here."""

    def __init__(self, unit: str) -> None:
        self.count = 0
        self.told = 0.0

    def update(self, more: int) -> None:
        self.count += more

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.text = text

    def tell(self, seconds: float) -> None:
        if seconds - self.told >= 1:
            self.told = seconds
            print(f"iteration {self.count}: {self.text}", file=sys.stderr)

    def close(self) -> None:
        pass


def _make() -> Any:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return _Lines(unit="it")
    return tqdm(unit="it")


class Display:
    """A callback that shows the progress, and then calls the caller's."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.bar: Any = None

    def __call__(self, p: Progress) -> Any:
        if self.bar is None:
            self.bar = _make()
            self.last = 0
        self.bar.set_postfix_str(
            f"{p.converged}/{p.residuals.size} converged, largest residual "
            f"{p.worst:.1e}", refresh=False)
        self.bar.update(p.iteration - self.last)
        self.last = p.iteration
        if isinstance(self.bar, _Lines):
            self.bar.tell(p.seconds)
        return self.callback(p) if self.callback is not None else None

    def close(self) -> None:
        """Called at the end of a solve; the next one gets a new line."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class Recorder:
    """A callback that keeps the residuals of every iteration, and then calls
    the caller's."""

    def __init__(self, callback: Callback, history: List[np.ndarray]) -> None:
        self.callback = callback
        self.history = history

    def __call__(self, p: Progress) -> Any:
        self.history.append(p.residuals)
        return self.callback(p) if self.callback is not None else None
