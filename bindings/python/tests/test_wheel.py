# SPDX-License-Identifier: BSD-3-Clause
"""A wheel with a library that has no row in LICENSES.md, or no text of its
license, is refused; so is one with a license that may not be carried."""
import os
import shutil
import sys
import zipfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
if not os.path.exists(os.path.join(PACKAGE, "check_wheel.py")):
    pytest.skip("no check_wheel.py", allow_module_level=True)
sys.path.insert(0, PACKAGE)
import check_wheel      # noqa: E402

BLAS = "libspsolve/libscipy_openblas.so"
TEXT = "libspsolve/licenses/libscipy_openblas.txt"
TEXTS = ("Redistributions in binary form must reproduce.  "
         "GCC RUNTIME LIBRARY EXCEPTION")


@pytest.fixture
def licenses():
    with open(os.path.join(PACKAGE, "LICENSES.md"), encoding="utf-8") as f:
        return f.read()


@pytest.fixture
def faults(tmp_path, licenses):
    """Returns the faults of a wheel with our library and these files."""
    def faults(table=licenses, **files):
        path = tmp_path / "libspsolve-0-py3-none-any.whl"
        files = {name.replace("__", "/"): text for name, text in files.items()}
        files["libspsolve/libspsolve.so.0"] = "ELF"
        files["libspsolve/LICENSE"] = "BSD"
        files["libspsolve-0.dist-info/licenses/LICENSES.md"] = table
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
        return check_wheel.faults(path)
    return faults


def test_alone_and_with_openblas(faults):
    assert faults() == []
    assert faults(**{BLAS: "ELF", TEXT: TEXTS}) == []


def test_library_without_row(faults):
    for name in ("libspsolve.libs/libgfortran-91cc3cb1.so.3.0.0",
                 "libspsolve/libz.so.1", "libspsolve/libquadmath.so"):
        assert "has no row" in faults(**{name: "ELF"})[0]


def test_text_missing_or_incomplete(faults):
    assert faults(**{BLAS: "ELF"}) == [
        "licenses/libscipy_openblas.txt is not in the wheel"]
    only_bsd = {BLAS: "ELF", TEXT: TEXTS.replace("EXCEPTION", "")}
    assert "GCC-exception" in faults(**only_bsd)[0]


def test_license_that_may_not_be_carried(faults, licenses):
    files = {BLAS: "ELF", TEXT: TEXTS}
    gpl = licenses.replace("GPL-3.0-or-later WITH GCC-exception-3.1",
                           "GPL-3.0-or-later")
    assert gpl != licenses
    assert "may not be carried" in faults(gpl, **files)[0]
    files[TEXT] = TEXTS + " under the CeCILL-C license"
    assert "CeCILL" in faults(**files)[0]


def test_sources_are_copied_without_what_builds_leave(tmp_path):
    """The commands of the page make a virtual environment in the tree, of
    more than 200 MB."""
    backend = pytest.importorskip("backend")
    for name in ("lib/spsolve.h", "build-aux/ltmain.sh", "build-cuda/a.c",
                 "venv/pyvenv.cfg", "venv/bin/python", ".git/HEAD",
                 "lib/a.lo"):
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copytree(tmp_path / "from", tmp_path / "to",
                    ignore=backend.is_made)
    kept = sorted(str(path.relative_to(tmp_path / "to"))
                  for path in (tmp_path / "to").rglob("*") if path.is_file())
    assert kept == ["build-aux/ltmain.sh", "lib/spsolve.h"]


def test_backend_carries_texts(monkeypatch):
    """Each library that the backend copies comes with its text, and has a
    row."""
    backend = pytest.importorskip("backend")
    monkeypatch.setenv("SPSOLVE_PYPI", "yes")
    monkeypatch.setattr(backend, "file_of", lambda pattern: pattern)
    names = set(backend.carried().values())
    libraries = {check_wheel.stem(n) for n in names if ".so" in n}
    assert libraries
    assert {f"licenses/{name}.txt" for name in libraries} <= names


def test_what_the_system_has_is_not_taken_from_pypi(monkeypatch):
    backend = pytest.importorskip("backend")
    for name in ("SPSOLVE_PYPI", "LAPACKE_LIBS", "ZLIB_LIBS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(backend, "succeeds", lambda *args: True)
    assert not backend.from_pypi("lapacke.h")
    monkeypatch.setattr(backend, "succeeds", lambda *args: False)
    assert backend.from_pypi("lapacke.h") and backend.from_pypi("zlib.h")
    monkeypatch.setenv("LAPACKE_LIBS", "-lmkl_rt")
    assert not backend.from_pypi("lapacke.h")
    monkeypatch.setenv("SPSOLVE_PYPI", "no")
    assert not backend.from_pypi("zlib.h")


def test_names_of_openblas(tmp_path):
    backend = pytest.importorskip("backend")
    header, to = tmp_path / "lapacke.h", tmp_path / "names.h"
    header.write_text("int scipy_LAPACKE_dposv( int a );\n")
    backend.write_aliases(header, to)
    lines = to.read_text().splitlines()
    assert "#define LAPACKE_dposv scipy_LAPACKE_dposv" in lines
    assert ("#define openblas_set_num_threads scipy_openblas_set_num_threads"
            in lines)
