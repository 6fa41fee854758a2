# SPDX-License-Identifier: BSD-3-Clause
"""The package with CuPy and PyTorch on a GPU; a script, since it wants one.

    SPSOLVE_LIBRARY=.../libspsolve.so.0 PYTHONPATH=bindings/python \\
        python3 bindings/python/tests/gpu_arrays.py [POINTS]

Kinds and orders of arrays, bytes that pass the host, streams that are delayed,
updates, functions, pairs; a line for each, and the exit status says whether all
were as they should be.  POINTS (default 24) along each side of the box."""
import ctypes
import sys
import time
import traceback

import numpy as np

import libspsolve
from libspsolve import Preconditioner, Solver, eigsh, lobpcg, solve
from libspsolve._arrays import Block, address
from libspsolve._library import lib
from libspsolve._structs import Order, Place, ResultData

CHECKS = []
K = 8


def check(f):
    CHECKS.append(f)
    return f


def poisson(m):
    """Returns data, indices, indptr and n of the 7-point Laplacian, by NumPy
    alone."""
    i = np.arange(m**3).reshape(m, m, m)
    rows, columns = [i.ravel()], [i.ravel()]
    for axis in range(3):
        a = np.moveaxis(i, axis, 0)
        for one, other in ((a[1:], a[:-1]), (a[:-1], a[1:])):
            rows.append(one.ravel())
            columns.append(other.ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((column, row))
    row, column = row[order], column[order]
    data = np.where(row == column, 6.0, -1.0)
    indptr = np.searchsorted(row, np.arange(m**3 + 1))
    return data, column.astype(np.int32), indptr.astype(np.int32), m**3


class OfCupy:
    def __init__(self, parts):
        import cupy
        from cupyx.scipy.sparse import csr_matrix
        data, indices, indptr, self.n = parts
        self.xp = cupy
        self.A = csr_matrix(tuple(map(cupy.asarray, (data, indices, indptr))),
                            (self.n, self.n))

    def array(self, a, order="C"):
        return self.xp.asarray(a, order=order)

    def host(self, a):
        return self.xp.asnumpy(a)

    def kind(self):
        return self.xp.ndarray

    def values(self):
        return self.A.data

    def delayed(self, work):
        """work() behind some 50 ms of other work on a stream that does not
        wait for the default one; what is used inside is current."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        big = self.xp.ones((8192, 8192))
        self.xp.cuda.Device().synchronize()
        with stream:
            for _ in range(2):
                big = big @ big * 1e-9
            return work()

    def wait(self):
        self.xp.cuda.Device().synchronize()


class OfTorch:
    def __init__(self, parts):
        import torch
        data, indices, indptr, self.n = parts
        self.xp = torch
        self.A = torch.sparse_csr_tensor(
            *(torch.from_numpy(a).cuda() for a in (indptr, indices, data)),
            (self.n, self.n), check_invariants=False)

    def array(self, a, order="C"):
        tensor = self.xp.from_numpy(np.ascontiguousarray(a)).cuda()
        return tensor if order == "C" else tensor.T.contiguous().T

    def host(self, a):
        return a.cpu().numpy()

    def kind(self):
        return self.xp.Tensor

    def values(self):
        return self.A.values()

    def delayed(self, work):
        stream = self.xp.cuda.Stream()
        big = self.xp.ones((8192, 8192), dtype=self.xp.float64, device="cuda")
        self.xp.cuda.synchronize()
        with self.xp.cuda.stream(stream):
            for _ in range(2):
                big = big @ big * 1e-9
            return work()

    def wait(self):
        self.xp.cuda.synchronize()


def draw(n, k=K):
    return np.random.default_rng(1).standard_normal((n, k))


@check
def kinds_and_orders(x, host):
    B = draw(x.n)
    with Solver(host, K, device="cuda", rtol=1e-10) as s:
        right = s.solve(B).X
    for order in "CF":
        r = solve(x.A, x.array(B, order), rtol=1e-10)
        assert isinstance(r.X, x.kind()) and r.all_converged
        assert np.abs(x.host(r.X) - right).max() < 1e-7
    assert isinstance(solve(x.A, x.array(B[:, 0])).X, x.kind())


@check
def bytes_that_pass_the_host(x, host):
    """No bytes of blocks and of the matrix are copied to the host, with a
    named method and with solver auto."""
    B, late = x.array(draw(x.n)), x.array(draw(x.n), "F")
    matrix, block = 12 * 7 * x.n, 8 * K * x.n
    with Solver(x.A, K, solver="block_cg", precond="amg",
                assume_a="pos") as s:
        up, down = moved(s)
        told = f"matrix {matrix} bytes, block {block}; set-up {up} up, {down} "
        told += "down"
        assert up + down < 0.25 * matrix, told
        assert s.solve(B).all_converged
        after = moved(s)
        s.solve(late)
        last = moved(s)
        told += "; a solve %d up, %d down" % (after[0] - up, after[1] - down)
        assert last[0] + last[1] - up - down < 0.25 * block, told
    with Solver(x.A, K) as s:
        assert s.solve(B).all_converged
        told += "; solver auto %d up, %d down in all" % moved(s)
        assert sum(moved(s)) < 0.15 * matrix, told
    return told


def moved(s):
    facts = s.information
    return facts["bytes_to_device"], facts["bytes_to_host"]


@check
def arrays_that_are_still_being_written(x, host):
    """B is still being written on the current stream when solve is called,
    and X is used there at once."""
    B = draw(x.n)
    with Solver(x.A, K) as s:
        right = x.host(s.solve(x.array(B)).X)
        late = x.array(np.zeros_like(B))
        source = x.array(B)

        def work():
            late[...] = source
            X = s.solve(late).X
            return X * 2.0
        twice = x.delayed(work)
        x.wait()
        assert np.array_equal(x.host(twice), 2 * right)
        out = x.array(np.zeros_like(B))

        def work():
            for _ in range(2):
                late[...] = source
                s.solve(late, out=out)
                late[...] = 0.0         # after the solve has read it
            return out + 0.0
        got = x.delayed(work)
        x.wait()
        assert np.array_equal(x.host(got), right)


@check
def values_that_are_not_finite(x, host):
    new = x.values() * 1.0
    new[5] = float("nan")
    with Solver(x.A, K) as s:
        try:
            s.update(new)
        except libspsolve.MatrixError as e:
            return str(e)
    raise AssertionError("nan was taken")


@check
def values_that_are_still_being_written(x, host):
    B = x.array(draw(x.n))
    new = x.values() * 0.0

    def work():
        new[...] = x.values() * 2.0
        with Solver(x.A, K, rtol=1e-10) as s:
            s.update(new)
            return s.solve(B).X
    half = x.delayed(work)
    x.wait()
    right = x.host(solve(x.A, B, rtol=1e-10).X)
    assert np.abs(2 * x.host(half) - right).max() < 1e-6


@check
def functions(x, host):
    A, B = x.A, x.array(draw(x.n))
    r = solve(lambda X: A @ X, B, assume_a="pos", M=lambda R: R / 6.0)
    assert r.all_converged and isinstance(r.X, x.kind())


@check
def preconditioners_and_pairs(x, host):
    R = draw(x.n)
    with Preconditioner(x.A, "jacobi", width=K) as M:
        assert np.allclose(x.host(M @ x.array(R)), R / 6)
    w, V = eigsh(x.A, 4)
    assert isinstance(V, x.kind()) and tuple(V.shape) == (x.n, 4)
    v, U = lobpcg(x.A, x.array(draw(x.n, 4)), M="amg", largest=False,
                  tol=1e-7, maxiter=300)
    assert np.allclose(w, v, rtol=1e-7)


@check
def other_arrays_by_dlpack(x, host):
    class Capsule:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **arguments):
            return self.a.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()
    B = draw(x.n)
    X = solve(x.A, Capsule(x.array(B))).X
    assert hasattr(X, "__cuda_array_interface__")


def minima(first, second, calls=200):
    """Returns the microseconds of the fastest call of each of two functions,
    called alternately."""
    times = ([], [])
    for _ in range(calls):
        for f, t in zip((first, second), times):
            begin = time.perf_counter()
            f()
            t.append((time.perf_counter() - begin) * 1e6)
    return [(min(t), sorted(t)[calls // 2]) for t in times]


@check
def at_most_100_microseconds_more_than_c(x, host):
    """Compares the time of s.solve(B, out=X) with that of sps_solver_linear
    with all its arguments made before; both give the same bits.  Both begin
    with X = 0 and take one step: a solve that begins with the solution would
    take none."""
    B = x.array(draw(x.n))
    zeros = x.array(np.zeros((x.n, K)))
    out, other = x.array(np.zeros((x.n, K))), x.array(np.zeros((x.n, K)))
    data = ResultData(struct_size=ctypes.sizeof(ResultData))
    with Solver(x.A, K, solver="cg", M="jacobi", max_iterations=1, rtol=0.9,
                assume_a="pos") as s:
        blocks = Block(s._context, B), Block(s._context, other)
        zero = address(zeros)
        x.wait()

        def c():
            lib.sps_block_set(blocks[1].handle, 0, K, zero, K,
                              Order.ROW_MAJOR, Place.CUDA)
            lib.sps_solver_linear(s._solver, blocks[0].handle,
                                  blocks[1].handle, data)
        bare, ours = minima(c, lambda: s.solve(B, out=out))
        steps = data.iterations, s.solve(B).iterations
        new = minima(c, lambda: s.solve(B))[1]
        same = np.array_equal(x.host(out), x.host(other))
        s._context.destroy(blocks[1].handle)
        s._context.destroy(blocks[0].handle)
    told = ("fastest and median us: C %.0f %.0f, Python %.0f %.0f, with a new "
            "X %.0f %.0f" % (*bare, *ours, *new))
    assert steps == (1, 1), "steps of C and of Python: %d, %d" % steps
    assert same, "other bits than those of the C call; " + told
    assert max(ours[0], new[0]) - bare[0] <= 100, told
    return told


def main():
    parts = poisson(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
    host = parts[:3]
    failures = 0
    for kind in (OfCupy, OfTorch):
        try:
            x = kind(parts)
        except ImportError as e:
            print(f"skip {kind.__name__}: {e}")
            continue
        for f in CHECKS:
            begin = time.perf_counter()
            try:
                said = f(x, host) or ""
            except Exception:
                failures += 1
                said = "FAILED\n" + traceback.format_exc(limit=-3)
            print(f"{kind.__name__} {f.__name__} "
                  f"({time.perf_counter() - begin:.2f} s) {said}", flush=True)
    print(f"libspsolve {libspsolve.library_version()}: {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
