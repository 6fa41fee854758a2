#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""CuPy on a GPU: cg one after another, A @ X by cuSPARSE, block operations by
cuBLAS.

    cupy_peers.py cg [-N 160] [-columns 16]
    cupy_peers.py blocks [-n 4000000] [-k 1,4,8,16,32,64]
    cupy_peers.py spmm [-N 160] [-k 1,4,8,16,32,64]

The same protocol as spbench: warm-up, then medians; the copy bandwidth is
measured in the same run.  Blocks are row-major: X'Y is the gemm of two
column-major k x n arrays.
"""
import sys
import time

import cupy as cp
import cupyx.scipy.sparse as sp
from cupyx.scipy.sparse.linalg import cg


def poisson7(n):
    """Assembled on the device: 7 diagonals with the box faces cut out."""
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
        try:
            x, info = cg(A, b, rtol=1e-8, atol=0, maxiter=20000,
                         callback=step)
        except TypeError:                    # older name
            x, info = cg(A, b, tol=1e-8, atol=0, maxiter=20000,
                         callback=step)
        cp.cuda.Device().synchronize()
        total += time.perf_counter() - start
        assert info == 0
        most = max(most, count[0])
        worst = max(worst, float(cp.linalg.norm(b - A @ x) /
                                 cp.linalg.norm(b)))
    print("cupy cg, poisson7 %d^3, %d in turn: %.3f s, at most %d iterations, "
          "residual %.1e" % (n, columns, total, most, worst))


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
            cp.matmul(X, C, out=D)           # gemm, and Y += D apart: CuPy
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
    print("cuSPARSE through CuPy, poisson7 %d^3\n\n| k | ms | floor% |\n"
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
    jobs = {"cg": run_cg, "blocks": run_blocks, "spmm": run_spmm}
    if not words or words[0] not in jobs:
        sys.exit(__doc__)
    jobs[words[0]](dict(zip(words[1::2], words[2::2])))


if __name__ == "__main__":
    main()
