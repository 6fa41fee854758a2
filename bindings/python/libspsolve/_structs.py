# SPDX-License-Identifier: BSD-3-Clause
"""Enumerations and structs of spsolve.h as ctypes lays them out.

``tests/test_layout.py`` compiles a program that prints the sizes, offsets and
values of the C compiler and compares them with what stands here.  Options of
solvers are not among the structs: they are set by name (sps_options_set).
"""
from __future__ import annotations

import ctypes
from ctypes import (POINTER, c_bool, c_char, c_char_p, c_double, c_int,
                    c_int32, c_int64, c_size_t, c_uint, c_uint64, c_void_p)
from enum import Enum, IntEnum
from typing import Any, List, Tuple, Type


class Word(IntEnum):
    """Its text is Class.NAME, as before Python 3.11, which has the number."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __format__ = Enum.__format__


class Status(Word):
    """Status of a call (``sps_status``)."""

    OK = 0
    EINVAL = 1
    ESHAPE = 2
    EMATRIX = 3
    EUNFIT = 4
    EPARSE = 5
    EIO = 6
    ENOMEM = 7
    EDEVMEM = 8
    EDEVICE = 9
    EABSENT = 10
    EUSER = 11
    EBUG = 12
    EPEER = 13


class Stop(Word):
    """Why a solve, or one column of it, ended (``sps_stop``).

    Positive values mean converged, verified by the recomputed residual.

    >>> Stop.CONVERGED > 0, Stop.MAX_ITERATIONS > 0
    (True, False)
    >>> print(Stop.CONVERGED)
    Stop.CONVERGED
    """

    RUNNING = 0
    CONVERGED = 1
    MAX_ITERATIONS = -1
    MAX_TIME = -2
    STAGNATED = -3
    BREAKDOWN = -4
    INDEFINITE = -5
    NOT_FINITE = -6
    SINGULAR = -7
    INTERRUPTED = -8
    PRECOND_INDEFINITE = -9
    ROUNDING = -10
    MASS_INDEFINITE = -11
    MISSED = -12
    LEAST_SQUARES = -13
    CONVERGED_LEAST_SQUARES = 2


class Place(IntEnum):
    AUTO = 0
    HOST = 1
    CUDA = 2


class Dtype(IntEnum):
    F64 = 0
    F32 = 1


class Order(IntEnum):
    ROW_MAJOR = 0
    COL_MAJOR = 1


class Own(IntEnum):
    COPY = 0
    BORROW = 1
    ADOPT = 2


class OptionType(IntEnum):
    WORD = 0
    NAME = 1
    FILE = 2
    REAL = 3
    INTEGER = 4
    BOOLEAN = 5
    NATURAL = 6
    SIZE = 7


class Property(IntEnum):
    SYMMETRIC = 1
    SPD = 2
    INTERLEAVED = 4
    SORTED = 8


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("place", c_int),
        ("device", c_int),
        ("stream", c_void_p),
        ("threads", c_int),
        ("seed", c_uint64),
        ("reproducible", c_bool),
        ("across_ranks", c_bool),
        ("host", c_void_p),
        ("gpu", c_void_p),
        ("comm", c_void_p),
        ("comm_seconds", c_double),
        ("max_device_bytes", c_size_t),
    ]


class ContextInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("place", c_int),
        ("threads", c_int),
        ("device", c_char * 96),
        ("module", c_char * 160),
        ("host_bytes", c_size_t),
        ("host_peak", c_size_t),
        ("device_bytes", c_size_t),
        ("device_peak", c_size_t),
        ("device_free", c_size_t),
        ("device_total", c_size_t),
        ("live_objects", c_int64),
        ("module_state", c_char_p),
        ("bytes_to_device", c_int64),
        ("bytes_to_host", c_int64),
    ]


class Csr(ctypes.Structure):
    _fields_ = [
        ("nrow", c_int64),
        ("ncol", c_int64),
        ("nnz", c_int64),
        ("rowptr", POINTER(c_int64)),
        ("col", POINTER(c_int32)),
        ("val", c_void_p),
        ("dtype", c_int),
        ("place", c_int),
        ("own", c_int),
        ("props", c_uint),
        ("struct_size", c_size_t),
        ("first", c_int64),
        ("whole", c_int64),
        ("global", POINTER(c_int64)),
    ]


class ProgressData(ctypes.Structure):
    _fields_ = [
        ("iteration", c_int),
        ("k", c_int),
        ("residual", POINTER(c_double)),
        ("worst", c_double),
        ("median", c_double),
        ("converged", c_int),
        ("width", c_int),
        ("seconds", c_double),
        ("event", c_char_p),
        ("struct_size", c_size_t),
    ]


class OptionInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("aliases", c_char_p),
        ("type", c_int),
        ("low", c_double),
        ("high", c_double),
        ("words", c_char_p),
        ("default_value", c_char_p),
        ("unit", c_char_p),
        ("argument", c_char_p),
        ("group", c_char_p),
        ("readers", c_char_p),
        ("help", c_char_p),
        ("offset", c_size_t),
    ]


class Seconds(ctypes.Structure):
    _fields_ = [(name, c_double) for name in (
        "setup", "solve", "verify", "spmm", "precond", "gram", "small")]


class ResultData(ctypes.Structure):
    """Arrays are addresses, which are read in less time."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("stop", c_int),
        ("k", c_int),
        ("iterations", c_int),
        ("columns_converged", c_int),
        ("restarts", c_int),
        ("applies_A", c_int64),
        ("applies_M", c_int64),
        ("min_width", c_int),
        ("worst_residual", c_double),
        ("worst_backward", c_double),
        ("norm_A", c_double),
        ("removed", c_double),
        ("nullspace", c_int),
        ("residual", c_void_p),
        ("backward", c_void_p),
        ("column", c_void_p),
        ("solver", c_char_p),
        ("precond", c_char_p),
        ("kernel", c_char_p),
        ("seconds", Seconds),
        ("worst_in_range", c_double),
        ("in_doubles", c_bool),
        ("normal", c_void_p),
        ("worst_normal", c_double),
    ]


class EigenData(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("stop", c_int),
        ("count", c_int),
        ("converged", c_int),
        ("block", c_int),
        ("iterations", c_int),
        ("restarts", c_int),
        ("applies_A", c_int64),
        ("applies_M", c_int64),
        ("applies_precond", c_int64),
        ("worst_residual", c_double),
        ("worst_backward", c_double),
        ("norm_A", c_double),
        ("norm_M", c_double),
        ("orthogonality", c_double),
        ("nullspace", c_int),
        ("missed", c_int),
        ("lambda", POINTER(c_double)),
        ("residual", POINTER(c_double)),
        ("backward", POINTER(c_double)),
        ("bound", POINTER(c_double)),
        ("pair", POINTER(c_int)),
        ("solver", c_char_p),
        ("precond", c_char_p),
        ("kernel", c_char_p),
        ("seconds", Seconds),
    ]


# What the test of the layout compares: names in spsolve.h.
STRUCTS: List[Tuple[str, Type[ctypes.Structure]]] = [
    ("sps_context_options", ContextOptions),
    ("sps_context_info", ContextInfo),
    ("sps_csr", Csr),
    ("sps_progress", ProgressData),
    ("sps_option_info", OptionInfo),
    ("sps_seconds", Seconds),
    ("sps_result", ResultData),
    ("sps_eigen_result", EigenData),
]
ENUMS: List[Tuple[str, str, Any]] = [
    ("sps_status", "SPS_", Status),
    ("sps_stop", "SPS_STOP_", Stop),
    ("sps_place", "SPS_", Place),
    ("sps_dtype", "SPS_", Dtype),
    ("sps_order", "SPS_", Order),
    ("sps_own", "SPS_", Own),
    ("sps_option_type", "SPS_OPTION_", OptionType),
    ("", "SPS_", Property),
]
