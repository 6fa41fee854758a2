# SPDX-License-Identifier: BSD-3-Clause
"""Options by keyword.  Names, ranges and texts are those of the library, which
finds them in its own table; this package knows none of them."""
from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from typing import (Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple,
                    Optional)

import numpy as np

from ._arrays import Block, columns, dense, interleave
from ._callbacks import Progress, monitor_function
from ._context import Context
from ._errors import error
from ._library import lib, text
from ._structs import OptionInfo, OptionType

BLOCKS = ("nullspace_basis", "coords", "constraints", "near_null_basis")


class Option(NamedTuple):
    """Description of an option of solvers."""

    name: str
    aliases: List[str]
    type: str                 #: word, name, file, real, integer or boolean
    low: float
    high: float
    words: List[str]
    default: str
    unit: str
    group: str
    readers: List[str]        #: methods that use it; none: general
    help: str


def _names(kind: str) -> List[str]:
    names: List[str] = []
    while True:
        name = lib.sps_list(None, kind.encode(), len(names))
        if name is None:
            return names
        names.append(text(name))


def _words(words: str) -> List[str]:
    """Returns the list of words, in which @kind is replaced by all names of
    that kind."""
    found: List[str] = []
    for word in words.split():
        found += _names(word[1:]) if word.startswith("@") else [word]
    return found


def _describe(name: str) -> Option:
    info = OptionInfo(struct_size=ctypes.sizeof(OptionInfo))
    lib.sps_option_information(None, name.encode(), info)
    return Option(text(info.name), text(info.aliases).split(),
                  OptionType(info.type).name.lower(), info.low, info.high,
                  _words(text(info.words)), text(info.default_value),
                  text(info.unit), text(info.group),
                  text(info.readers).split(), text(info.help))


def options() -> Dict[str, Option]:
    """All options that solve, Solver, Preconditioner and eigsh take by
    keyword.

    >>> options()["rtol"].default
    '1e-8'
    >>> "block_cg" in options()["solver"].words
    True
    """
    return {name: _describe(name) for name in _names("option")}


@lru_cache(maxsize=None)
def _names_of() -> Dict[str, str]:
    """The name of the option that each name and alias stands for."""
    return {word: name for name, option in options().items()
            for word in [name] + option.aliases}


@lru_cache(maxsize=None)
def of_eigenvalues() -> FrozenSet[str]:
    """The options that only eigsh and lobpcg use."""
    return frozenset(name for name, option in options().items()
                     if option.group == "Eigenvalues") | {"constraints"}


def once(values: Mapping[str, Any]) -> None:
    """Raises TypeError if two names of one option are given."""
    seen: Dict[str, str] = {}
    for word in [word for word in values if values[word] is not None]:
        name = _names_of().get(word, word)
        if name in seen:
            raise TypeError(f"{seen[name]} and {word} are one option: give "
                            "one of them")
        seen[name] = word


def _text(name: str, value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    raise TypeError(f"{name}={value!r}: a word, a number or a boolean is "
                    "expected")


# What the command has as options.
ELSEWHERE = {
    "laplacian": "scipy.sparse.csgraph.laplacian(A) makes the Laplacian of a "
                 "graph, whose null space nullspace='components' names",
    "rigid_body": "nullspace_basis=libspsolve.rigid_body(coords) excludes the "
                  "rigid body modes of a structure",
}


class Options:
    """A handle of options, set from keywords."""

    def __init__(self, context: Context, values: Mapping[str, Any],
                 callback: Optional[Callable[[Progress], Any]] = None) -> None:
        self.context = context
        once(values)
        self.handle = context.make("sps_options_create", context.handle)
        for name, value in values.items():
            if value is None:
                continue
            if name == "nullspace_basis" or name == "nullspace" and \
                    value in ("constant", "components"):
                context.null_is_named = True
            if name in BLOCKS:
                self.set_block(name, value)
            else:
                self.set(name, value)
        if callback is not None:
            self.set_monitor(callback)

    def set(self, name: str, value: Any) -> None:
        context = self.context.handle
        try:
            status = lib.sps_options_set(context, self.handle, name.encode(),
                                         _text(name, value).encode())
        except TypeError:
            self.know(name)
            raise
        if status:
            why = error(status, text(lib.sps_context_error(context)))
            self.know(name)
            raise why

    def know(self, name: str) -> None:
        """Raises TypeError unless there is an option of that name, with the
        library's text if it suggests another one."""
        context = self.context.handle
        if lib.sps_option_information(
                context, name.encode(),
                OptionInfo(struct_size=ctypes.sizeof(OptionInfo))) == 0:
            return
        said = text(lib.sps_context_error(context))
        raise TypeError(
            said if "did you mean" in said else f'no option "{name}"; ' +
            ELSEWHERE.get(name, "libspsolve.options() has their names"))

    def set_block(self, name: str, value: Any) -> None:
        array = dense(value, name)
        if array.dtype == np.complex128:
            if name == "coords":
                raise TypeError("coords is complex; coordinates are real")
            array = interleave(array)
        block = Block(self.context, columns(array))
        block.put(self.context)
        self.context.check(lib.sps_options_set_block(
            self.context.handle, self.handle, name.encode(), block.handle))

    def set_monitor(self, callback: Callable[[Progress], Any]) -> None:
        call = monitor_function(callback, self.context.raised)
        self.context.borrow(self.handle, call)
        self.context.check(lib.sps_options_set_monitor(
            self.context.handle, self.handle, call, None))
