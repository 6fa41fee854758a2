# SPDX-License-Identifier: BSD-3-Clause
"""Finds and loads libspsolve.so.0 and declares the functions that are used.

The library named by the environment variable SPSOLVE_LIBRARY is taken, else
the one in the folder of this package, else that of the system.  ctypes.CDLL
releases the global interpreter lock during each call and takes it again in
callbacks.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int,
                    c_int64, c_size_t, c_uint, c_void_p)
from typing import Any, Dict, List, Optional, Tuple

from . import _structs as s

SONAME = "libspsolve.so.0"
OLDEST = (0, 2)

Handle = c_void_p
HandleRef = POINTER(c_void_p)
Array = c_void_p        # numbers of the caller, by their address
Apply = CFUNCTYPE(c_int, c_double, c_void_p, c_int64, c_double, c_void_p,
                  c_int64, c_int64, c_int, c_void_p, c_void_p)
Monitor = CFUNCTYPE(c_bool, POINTER(s.ProgressData), c_void_p)

# name: (result, arguments); enumerations are int.
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "sps_status_string": (c_char_p, [c_int]),
    "sps_stop_string": (c_char_p, [c_int]),
    "sps_version": (c_char_p, []),
    "sps_context_options_init": (None, [POINTER(s.ContextOptions), c_size_t]),
    "sps_context_create": (c_int, [POINTER(s.ContextOptions), HandleRef,
                                   POINTER(c_char_p)]),
    "sps_context_destroy": (None, [HandleRef]),
    "sps_context_error": (c_char_p, [Handle]),
    "sps_context_note": (c_char_p, [Handle, c_int]),
    "sps_context_information": (c_int, [Handle, POINTER(s.ContextInfo)]),
    "sps_cancel": (None, [Handle, c_bool]),
    "sps_context_sync": (c_int, [Handle]),
    "sps_csr_wrap": (c_int, [Handle, c_int64, c_int64, c_int64, Array, Array,
                             Array, c_int, c_int, c_int, HandleRef]),
    "sps_csr_destroy": (None, [Handle, HandleRef]),
    "sps_block_create": (c_int, [Handle, c_int64, c_int, HandleRef]),
    "sps_block_wrap": (c_int, [Handle, c_int64, c_int, Array, c_int64,
                               HandleRef]),
    "sps_block_set": (c_int, [Handle, c_int, c_int, Array, c_int64, c_int,
                              c_int]),
    "sps_block_get": (c_int, [Handle, c_int, c_int, Array, c_int64, c_int,
                              c_int]),
    "sps_block_shape": (None, [Handle, POINTER(c_int64), POINTER(c_int)]),
    "sps_block_rigid_body": (c_int, [Handle, HandleRef]),
    "sps_block_destroy": (None, [HandleRef]),
    "sps_options_create": (c_int, [Handle, HandleRef]),
    "sps_options_destroy": (None, [Handle, HandleRef]),
    "sps_options_set": (c_int, [Handle, Handle, c_char_p, c_char_p]),
    "sps_options_set_block": (c_int, [Handle, Handle, c_char_p, Handle]),
    "sps_options_set_monitor": (c_int, [Handle, Handle, Monitor, c_void_p]),
    "sps_option_information": (c_int, [Handle, c_char_p,
                                       POINTER(s.OptionInfo)]),
    "sps_list": (c_char_p, [Handle, c_char_p, c_int]),
    "sps_operator_csr": (c_int, [Handle, Handle, c_int, Handle, HandleRef]),
    "sps_operator_user": (c_int, [Handle, c_int64, Apply, c_void_p, c_uint,
                                  HandleRef]),
    "sps_operator_user_pair": (c_int, [Handle, c_int64, c_int64, Apply, Apply,
                                       c_void_p, HandleRef]),
    "sps_operator_set_values": (c_int, [Handle, Array, c_int]),
    "sps_operator_destroy": (None, [HandleRef]),
    "sps_precond_create": (c_int, [Handle, c_int, Handle, HandleRef]),
    "sps_precond_user": (c_int, [Handle, c_int64, Apply, c_void_p, HandleRef]),
    "sps_precond_update": (c_int, [Handle]),
    "sps_precond_apply": (c_int, [Handle, Handle, Handle]),
    "sps_precond_name": (c_char_p, [Handle]),
    "sps_precond_describe": (c_size_t, [Handle, c_char_p, c_size_t]),
    "sps_precond_destroy": (None, [HandleRef]),
    "sps_solver_create": (c_int, [Handle, Handle, c_int, Handle, HandleRef]),
    "sps_solver_linear": (c_int, [Handle, Handle, Handle,
                                  POINTER(s.ResultData)]),
    "sps_solver_create_eigen": (c_int, [Handle, Handle, Handle, c_int, Handle,
                                        HandleRef]),
    "sps_solver_eigen": (c_int, [Handle, Handle, Array, POINTER(s.EigenData)]),
    "sps_solver_describe": (c_size_t, [Handle, c_char_p, c_size_t]),
    "sps_solver_destroy": (None, [HandleRef]),
}


def path() -> str:
    """Returns the file to be loaded; the system searches for a name without
    a folder."""
    named = os.environ.get("SPSOLVE_LIBRARY")
    if named:
        return named
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    return beside if os.path.exists(beside) else SONAME


def _open(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as e:
        raise ImportError(
            f"libspsolve cannot be loaded: {e}; `pip install "
            "./bindings/python` builds it into the package, and the "
            "environment variable SPSOLVE_LIBRARY names another one") from e


def _declare(loaded: ctypes.CDLL, name: str) -> None:
    for function, (result, arguments) in PROTOTYPES.items():
        try:
            f = getattr(loaded, function)
        except AttributeError:
            raise ImportError(f"{name} has no {function}: it is older than "
                              "this package") from None
        f.restype = result
        f.argtypes = arguments


def _check_version(loaded: ctypes.CDLL, name: str) -> None:
    version = (loaded.sps_version() or b"").decode()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise ImportError(f"{name} is libspsolve {version}; this package needs "
                          f"{OLDEST[0]}.{OLDEST[1]} or later")


def load(name: Optional[str] = None) -> ctypes.CDLL:
    """Loads the library, checks its version and declares its functions."""
    name = name or path()
    loaded = _open(name)
    _declare(loaded, name)
    _check_version(loaded, name)
    return loaded


lib = load()


def description(function: Any, handle: Any) -> str:
    """Returns what sps_..._describe writes of an object."""
    size = function(handle, None, 0) + 1
    buffer = ctypes.create_string_buffer(size)
    function(handle, buffer, size)
    return text(buffer.value).rstrip("\n")


def text(value: Optional[bytes]) -> str:
    """Returns a C string as a str, empty for NULL."""
    return (value or b"").decode("utf-8", "replace")
