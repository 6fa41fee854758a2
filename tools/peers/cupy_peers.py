#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times CuPy on a GPU: cg column by column, lobpcg, A @ X by cuSPARSE, block
operations by cuBLAS.

    cupy_peers.py cg [-N 160] [-columns 16]
    cupy_peers.py lobpcg [-N 100] [-pairs 16] [-tol 1e-6] [-seconds 60]
    cupy_peers.py blocks [-n 4000000] [-k 1,4,8,16,32,64]
    cupy_peers.py spmm [-N 160] [-k 1,4,8,16,32,64]

The protocol is that of spbench: warm-up, then medians; the copy bandwidth is
measured in the same run.  Blocks are row-major: X'Y is computed as the gemm of
two column-major k x n arrays.  lobpcg without a preconditioner (CuPy accepts
one but provides none) stops at ||A x - lambda x|| <= tol, a weaker test than
residuals relative to lambda; it is ended after the given number of seconds.
"""
import math
import signal
import sys
import time

import cupy as cp
import cupyx.scipy.sparse as sp
from cupyx.scipy.sparse.linalg import LinearOperator, cg, lobpcg

from peer_runs import tolerance


def poisson7(n):
    """Assembles on the device: 7 diagonals without the entries across box
    faces."""
    size = n ** 3
    i = cp.arange(size, dtype=cp.int64)
    place = [i % n, i // n % n, i // (n * n)]
    rows, cols, vals = [i], [i], [cp.full(size, 6.0)]
    for axis, stride in enumerate((1, n, n * n)):
        for sign, there in ((-1, place[axis] > 0), (1, place[axis] < n - 1)):
            rows.append(i[there])
            cols.append(i[there] + sign * stride)
            vals.append(cp.full(int(there.sum()), -1.0))
    A = sp.coo_matrix((cp.concatenate(vals), (cp.concatenate(rows),
                                              cp.concatenate(cols))),
                      shape=(size, size)).tocsr()
    A.sort_indices()
    return A


def median_ms(run, least=0.2):
    for _ in range(3):
        run()
    cp.cuda.Device().synchronize()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < least:
        a, b = cp.cuda.Event(), cp.cuda.Event()
        a.record()
        run()
        b.record()
        b.synchronize()
        times.append(cp.cuda.get_elapsed_time(a, b))
    return sorted(times)[len(times) // 2]


def copy_bandwidth():
    x = cp.zeros(64 << 20)
    y = cp.empty_like(x)
    return 2 * x.nbytes / median_ms(lambda: cp.copyto(y, x)) * 1e3


def run_cg(opt):
    n, columns = int(opt.get("-N", 160)), int(opt.get("-columns", 16))
    A = poisson7(n)
    B = cp.random.default_rng(1).random((n ** 3, columns)) - 0.5
    cg(A, cp.ascontiguousarray(B[:, 0]), maxiter=3)          # warm
    cp.cuda.Device().synchronize()
    total, most, worst = 0.0, 0, 0.0
    for j in range(columns):
        b = cp.ascontiguousarray(B[:, j])
        count = [0]

        def step(_):
            count[0] += 1
        start = time.perf_counter()
        x, info = cg(A, b, **tolerance(cg, 1e-8), atol=0, maxiter=20000,
                     callback=step)
        cp.cuda.Device().synchronize()
        total += time.perf_counter() - start
        assert info == 0
        most = max(most, count[0])
        worst = max(worst, float(cp.linalg.norm(b - A @ x) /
                                 cp.linalg.norm(b)))
    print("cupy cg, poisson7 %d^3, %d in turn: %.3f s, at most %d iterations, "
          "residual %.1e" % (n, columns, total, most, worst))


def lowest7(n, count):
    """The smallest eigenvalues of the 7-point Laplacian on n^3 points."""
    one = [4 * math.sin(math.pi * i / (2 * n + 2)) ** 2
           for i in range(1, min(n, count) + 1)]
    return sorted(a + b + c for a in one for b in one for c in one)[:count]


class CutOff(Exception):
    pass


def cut_off(*_):
    raise CutOff


def run_lobpcg(opt):
    n, pairs = int(opt.get("-N", 100)), int(opt.get("-pairs", 16))
    tol, seconds = float(opt.get("-tol", 1e-6)), float(opt.get("-seconds", 60))
    A = poisson7(n)
    products = [0]

    def product(X):
        products[0] += 1
        return A @ X
    op = LinearOperator(A.shape, matvec=product, matmat=product,
                        dtype=A.dtype)
    X = cp.random.default_rng(1).random((n ** 3, pairs)) - 0.5
    lobpcg(op, X.copy(), tol=tol, maxiter=3, largest=False)          # warm
    cp.cuda.Device().synchronize()
    products[0] = 0
    signal.signal(signal.SIGALRM, cut_off)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.perf_counter()
    try:
        w, V = lobpcg(op, X, tol=tol, maxiter=5000, largest=False)
        cp.cuda.Device().synchronize()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except CutOff:
        took = time.perf_counter() - start
        print("cupy lobpcg, poisson7 %d^3, %d pairs: cut off after %.1f s and "
              "%d products, %.1f ms each" % (n, pairs, took, products[0],
                                             1e3 * took / products[0]))
        return
    took = time.perf_counter() - start
    order = cp.argsort(w)
    w, V = w[order], V[:, order]
    R = cp.linalg.norm(A @ V - V * w, axis=0) / cp.linalg.norm(V, axis=0)
    error = max(abs(float(a) - b) / b for a, b in zip(w, lowest7(n, pairs)))
    print("cupy lobpcg, poisson7 %d^3, %d pairs to %g: %.2f s, %d products, "
          "%.1f ms each; worst residual %.1e, over lambda %.1e, eigenvalues "
          "wrong by %.1e" % (n, pairs, tol, took, products[0],
                             1e3 * took / products[0], float(R.max()),
                             float((R / cp.abs(w)).max()), error))


def run_blocks(opt):
    n = int(opt.get("-n", 4000000))
    band = copy_bandwidth()
    print("cuBLAS through CuPy, %d rows, copy %.0f GB/s\n" % (n, band / 1e9))
    print("| operation | k | ms | GB/s | TF/s | floor% |")
    print("|---|---|---|---|---|---|")
    for k in map(int, opt.get("-k", "1,4,8,16,32,64").split(",")):
        X = cp.random.default_rng(1).random((n, k))
        Y = cp.random.default_rng(2).random((n, k))
        C = cp.full((k, k), 1e-6)
        G = cp.empty((k, k))
        D = cp.empty((n, k))

        def update():
            cp.matmul(X, C, out=D)           # gemm, then Y += D: CuPy's gemm
            cp.add(Y, D, out=Y)              # has no beta
        # gemm alone is beta = 0: 1 read, 1 write
        for name, blocks, run in (
                ("gram", 2, lambda: cp.matmul(X.T, Y, out=G)),
                ("X C", 2, lambda: cp.matmul(X, C, out=D)),
                ("update", 3, update)):
            ms = median_ms(run)
            moved, flops = 8.0 * n * k * blocks, 2.0 * n * k * k
            least = max(moved / band, flops / 67e12)
            print("| %s | %d | %.4f | %.0f | %.2f | %.1f |" % (
                name, k, ms, moved / ms / 1e6, flops / ms / 1e9,
                100 * least / ms * 1e3), flush=True)


def run_spmm(opt):
    n = int(opt.get("-N", 160))
    A, band = poisson7(n), copy_bandwidth()
    print("cuSPARSE through CuPy, poisson7 %d^3\n\n| k | ms | floor%% |\n"
          "|---|---|---|" % n)
    for k in map(int, opt.get("-k", "1,4,8,16,32,64").split(",")):
        X = cp.asfortranarray(cp.random.default_rng(1).random((n ** 3, k)))
        if k == 1:
            X = X[:, 0]
        ms = median_ms(lambda: A @ X)
        moved = 12.0 * A.nnz + 4.0 * (n ** 3 + 1) + 16.0 * n ** 3 * k
        print("| %d | %.4f | %.1f |" % (k, ms, 100e3 * moved / band / ms),
              flush=True)


def main():
    words = sys.argv[1:]
    jobs = {"cg": run_cg, "lobpcg": run_lobpcg, "blocks": run_blocks,
            "spmm": run_spmm}
    if not words or words[0] not in jobs:
        sys.exit(__doc__)
    jobs[words[0]](dict(zip(words[1::2], words[2::2])))


if __name__ == "__main__":
    main()
