# SPDX-License-Identifier: BSD-3-Clause
"""Examples in docstrings and in doc/python.md run as they stand."""
import doctest
import importlib
import os
import pkgutil
import warnings

import pytest

import libspsolve

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "..", "doc", "python.md")
# A wheel has a library there that is no module.
MODULES = ["libspsolve"] + [
    "libspsolve." + m.name for m in pkgutil.iter_modules(libspsolve.__path__)
    if not m.name.startswith("lib")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_every_public_name_has_a_docstring_and_most_an_example():
    examples = 0
    for name in libspsolve.__all__:
        text = getattr(libspsolve, name).__doc__
        assert text, name
        examples += ">>>" in text
    assert examples >= 6


@pytest.mark.skipif(not os.path.exists(PAGE), reason="no doc/python.md")
def test_the_page(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", libspsolve.SpsolveWarning)
        failed, tried = doctest.testfile(
            PAGE, module_relative=False, encoding="utf-8",
            optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0 and tried > 20
