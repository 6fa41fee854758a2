# SPDX-License-Identifier: BSD-3-Clause
"""Arrays and matrices in device memory, by fakes over host memory (fake_cupy):
what goes in comes out, where it was; nothing passes the host; the order of
streams.  tests/gpu_arrays.py does the same with CuPy and PyTorch on a GPU."""
import importlib

import numpy as np
import pytest
import scipy.sparse as sp

import fake_cupy
import libspsolve
from fake_cupy import CURRENT, HOST_PASSES, LOG, csr_matrix, ndarray
from libspsolve import Preconditioner, Solver, eigsh, lobpcg, solve


@pytest.fixture
def gpu(monkeypatch):
    with fake_cupy.installed(monkeypatch):
        yield
    assert not HOST_PASSES


@pytest.fixture
def B(rng):
    return rng.standard_normal((400, 3))


@pytest.mark.parametrize("order", "CF")
def test_a_device_array_comes_out_as_one(gpu, poisson, B, order):
    r = solve(csr_matrix(poisson), ndarray(np.array(B, order=order)))
    assert isinstance(r.X, ndarray) and r.all_converged
    assert r.X._a.flags.f_contiguous == (order == "F")
    np.testing.assert_array_equal(r.X._a, solve(poisson, B).X)


def test_a_vector_out_and_x0(gpu, poisson, B):
    b, out = ndarray(B[:, 0].copy()), ndarray(np.zeros(400))
    with Solver(csr_matrix(poisson), 1) as s:
        first = s.solve(b, out=out)
        again = s.solve(b, x0=first.X)
    assert first.X is out and first.X.shape == (400,)
    assert again.iterations == 0
    with pytest.raises(ValueError, match="share memory"), \
            Solver(csr_matrix(poisson), 1) as s:
        s.solve(b, out=b)


def test_a_host_matrix_takes_device_blocks_and_the_reverse(gpu, poisson, B):
    assert isinstance(solve(poisson, ndarray(B)).X, ndarray)
    assert isinstance(solve(csr_matrix(poisson), B).X, np.ndarray)


def test_arrays_of_others_come_through_the_interface_or_dlpack(gpu, poisson,
                                                               B):
    class Interface:
        __cuda_array_interface__ = ndarray(B).__cuda_array_interface__

    class Capsule:
        array = B

        def __dlpack_device__(self):
            return (2, 0)
    expected = solve(poisson, B).X
    for other in (Interface(), Capsule()):
        r = solve(poisson, other)
        assert isinstance(r.X, ndarray)
        np.testing.assert_array_equal(r.X._a, expected)


def test_the_library_waits_for_the_caller_and_the_reverse(gpu, poisson, B):
    caller = CURRENT[-1].ptr
    with Solver(csr_matrix(poisson), 3) as s:
        own = s._context.queue.pointer
        assert own != caller
        LOG.clear()
        s.solve(ndarray(B))
        assert LOG == [("wait", own, caller), ("wait", caller, own)]
        with fake_cupy.Stream():
            other = CURRENT[-1].ptr
            LOG.clear()
            s.solve(ndarray(B))
        assert LOG == [("wait", own, other), ("wait", other, own)]
        LOG.clear()
        s.update(ndarray(2 * poisson.data))
        assert LOG == [("wait", own, caller), ("wait", caller, own)]


def test_a_solve_imports_and_converts_nothing(gpu, monkeypatch, poisson, B):
    """An import statement, or a conversion, took microseconds of every call,
    however small the system."""
    def never(*arguments, **named):
        raise AssertionError("a solve with arrays of doubles came here")
    with Solver(csr_matrix(poisson), 3) as s:
        B, out = ndarray(B), ndarray(np.zeros((400, 3)))
        s.solve(B, out=out)
        monkeypatch.setattr(importlib, "import_module", never)
        monkeypatch.setattr(ndarray, "astype", never)
        assert s.solve(B, out=out).all_converged
        assert s.solve(B).all_converged


def test_values_and_matrices_are_updated_in_place(gpu, poisson, B):
    with Solver(csr_matrix(poisson), 3) as s:
        first = s.solve(ndarray(B)).X._a
        s.update(csr_matrix(2 * poisson))
        np.testing.assert_allclose(2 * s.solve(ndarray(B)).X._a, first,
                                   rtol=1e-6)
        with pytest.raises(ValueError, match="another pattern"):
            s.update(csr_matrix(sp.identity(400)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(gpu, poisson, value):
    wrong = poisson.copy()
    wrong[3, 4] = value
    where = "^A has a value that is not finite.*row 3, column 4, counted"
    with pytest.raises(libspsolve.MatrixError, match=where):
        Solver(csr_matrix(wrong))
    with Solver(csr_matrix(poisson)) as s:
        with pytest.raises(libspsolve.MatrixError, match=where):
            s.update(ndarray(wrong.data))
    HOST_PASSES.clear()             # of the arrays that the text is from


def test_functions_get_device_arrays(gpu, poisson, B):
    A = csr_matrix(poisson)
    r = solve(lambda X: A @ X, ndarray(B), assume_a="pos",
              M=lambda R: R * 0.25)
    assert r.all_converged and isinstance(r.X, ndarray)
    with pytest.raises(ValueError, match="returned an array of the shape"):
        solve(lambda X: X[:3], ndarray(B))


def test_preconditioners_and_pairs(gpu, poisson, B):
    with Preconditioner(csr_matrix(poisson), "jacobi") as M:
        np.testing.assert_allclose((M @ ndarray(B))._a, B / 4)
    w, V = eigsh(csr_matrix(poisson), 3)
    assert isinstance(V, ndarray)
    np.testing.assert_allclose(w, eigsh(poisson, 3).w, rtol=1e-9)
    w, V = lobpcg(csr_matrix(poisson), ndarray(B), largest=False, tol=1e-6,
                  maxiter=300)
    assert isinstance(V, ndarray)
    np.testing.assert_allclose(w, eigsh(poisson, 3).w, rtol=1e-8)


def test_offsets_are_widened_once_and_it_is_told(gpu, poisson, B):
    for A in (poisson, csr_matrix(poisson)):
        with Solver(A, 3) as s:
            told = [n for n in s.solve(B).notes if "widened" in n]
            assert told == ["A: its offsets of 32 bits were widened to 64 bits "
                            "once, a copy of 3208 bytes"]
            assert not [n for n in s.solve(B).notes if "widened" in n]
    wide = (poisson.data, poisson.indices, poisson.indptr.astype(np.int64))
    assert not [n for n in solve(wide, B).notes if "widened" in n]


def test_what_cannot_be_used_on_a_gpu_is_named(gpu, poisson, B):
    A = csr_matrix(poisson)
    with pytest.raises(TypeError, match="B is complex and in the memory of a"):
        solve(A, ndarray(B * 1j))
    A.data = ndarray(poisson.data * 1j)
    with pytest.raises(TypeError, match="A is complex and in the memory of a"):
        solve(A, B)
    with pytest.raises(TypeError, match="device='cpu', and an argument"):
        solve(poisson, ndarray(B), device="cpu")
    A = csr_matrix(poisson)
    A.indices = ndarray(poisson.indices.astype(np.int64) + 2**40)
    with pytest.raises(ValueError, match="not in 0 to 399"):
        solve(A, B)


def test_a_solver_on_the_host_refuses_device_arrays(monkeypatch, poisson, B):
    with Solver(poisson, 3) as s, fake_cupy.installed(monkeypatch):
        monkeypatch.setattr(libspsolve._packages, "DEVICE",
                            libspsolve._structs.Place.CUDA)
        with pytest.raises(TypeError, match="device='cuda' makes one"):
            s.solve(ndarray(B))


torch = pytest.mark.skipif("not __import__('importlib').util.find_spec("
                           "'torch')", reason="no PyTorch")


@torch
def test_tensors_in_host_memory_come_out_as_tensors(poisson, B):
    import torch
    A = torch.sparse_csr_tensor(
        torch.from_numpy(poisson.indptr), torch.from_numpy(poisson.indices),
        torch.from_numpy(poisson.data), poisson.shape)
    expected = solve(poisson, B).X
    for matrix in (A, poisson):
        X, info = solve(matrix, torch.from_numpy(B))
        assert isinstance(X, torch.Tensor) and info == 0
        np.testing.assert_array_equal(X.numpy(), expected)
    out = torch.zeros(400, 3, dtype=torch.float64)
    with Solver(A, 3) as s:
        assert s.solve(torch.from_numpy(B), out=out).X is out
    np.testing.assert_array_equal(out.numpy(), expected)
    w, V = eigsh(A.to_sparse_coo(), 3)
    assert isinstance(V, torch.Tensor)
