#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the small matrices of this folder: python3 make.py [FOLDER].

No library is needed and the output is the same everywhere: values are sums of
few rounded numbers, random choices come from a fixed linear congruence."""
import sys


def rng(seed):
    """Numbers in [0, 1), 53 bits of a 64-bit linear congruence."""
    state = seed
    while True:
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        yield (state >> 11) / 2.0**53


def write(path, n, entries, field="real", symmetry="symmetric", about=""):
    """entries: {(i, j): value}, 0-based; of a symmetric one the lower part."""
    with open(path, "w") as f:
        f.write(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n")
        f.write(f"% {about}\n{n} {n} {len(entries)}\n")
        for (i, j), v in sorted(entries.items(), key=lambda e: e[0][::-1]):
            if field == "pattern":
                f.write(f"{i+1} {j+1}\n")
            elif field == "complex":
                f.write(f"{i+1} {j+1} {v.real:.10g} {v.imag:.10g}\n")
            else:
                f.write(f"{i+1} {j+1} {v:.10g}\n")


def grid(shape):
    """Number and right-hand neighbours of each point of a box."""
    size = [1]
    for s in shape:
        size.append(size[-1] * s)
    for p in range(size[-1]):
        yield p, [p + size[d] for d, s in enumerate(shape)
                  if p // size[d] % s + 1 < s]


def poisson(shape, shift=0.0):
    a = {}
    for p, right in grid(shape):
        a[p, p] = 2.0 * len(shape) - shift
        for q in right:
            a[q, p] = -1.0
    return a


def convection(m, wind):
    """Upwind convection-diffusion on an m x m grid."""
    a = {}
    for p, right in grid((m, m)):
        a[p, p] = 4.0 + 2.0 * wind
        for q in right:
            a[p, q] = -1.0
            a[q, p] = -1.0 - wind
    return a


def laplacian(n, edges, parts, seed):
    """Laplacian of a random graph that falls into parts."""
    r, a, w = rng(seed), {}, {}
    for i in range(parts, n):
        w[i, i - parts] = 1
    while len(w) < edges:
        i, j = int(next(r) * n), int(next(r) * n)
        if i > j and i % parts == j % parts:
            w[i, j] = 1 + int(next(r) * 4)
    for i in range(n):
        a[i, i] = 0
    for (i, j), x in w.items():
        a[i, j] = -x
        a[i, i] += x
        a[j, j] += x
    return a


def network(n, chords, seed):
    """Edges of a ring with random chords, each once."""
    r, w = rng(seed), {(i, i - 1): 1 for i in range(1, n)}
    w[n - 1, 0] = 1
    while len(w) < n + chords:
        i, j = int(next(r) * n), int(next(r) * n)
        if i > j:
            w[i, j] = 1
    return w


def elasticity(nx, ny, nu=0.3):
    """Plane strain, bilinear squares, the side x = 0 clamped, 2 numbers a
    node; stiffness by 2 x 2 Gauss points."""
    lam, mu = nu / ((1 + nu) * (1 - 2 * nu)), 0.5 / (1 + nu)
    corner = [(0, 0), (1, 0), (1, 1), (0, 1)]
    points = [0.5 - 0.5 / 3**0.5, 0.5 + 0.5 / 3**0.5]
    k = [[0.0] * 8 for _ in range(8)]
    for x in points:
        for y in points:
            g = [((2 * cx - 1) * (y if cy else 1 - y),
                  (2 * cy - 1) * (x if cx else 1 - x)) for cx, cy in corner]
            for a in range(4):
                for b in range(4):
                    dot = g[a][0] * g[b][0] + g[a][1] * g[b][1]
                    for i in range(2):
                        for j in range(2):
                            k[2*a+i][2*b+j] += 0.25 * (
                                lam * g[a][i] * g[b][j]
                                + mu * g[a][j] * g[b][i]
                                + (mu * dot if i == j else 0))
    number = lambda i, j: (i - 1) * (ny + 1) + j    # i = 0 is clamped
    a = {}
    for ex in range(nx):
        for ey in range(ny):
            node = [(ex + cx, ey + cy) for cx, cy in corner]
            for p in range(4):
                for q in range(4):
                    if node[p][0] == 0 or node[q][0] == 0:
                        continue
                    for i in range(2):
                        for j in range(2):
                            r = 2 * number(*node[p]) + i
                            c = 2 * number(*node[q]) + j
                            if r >= c:
                                a[r, c] = a.get((r, c), 0) + k[2*p+i][2*q+j]
    return {e: round(v, 8) + 0.0 for e, v in a.items()}


def magnetic(m):
    """Grid Laplacian with a field: links carry a phase; Hermitian positive
    definite.  Phases are points of the unit circle with rational parts."""
    phase = [1, (3 + 4j) / 5, (5 + 12j) / 13, (8 + 15j) / 17]
    a = {}
    for p, right in grid((m, m)):
        a[p, p] = 4.1 + 0j
        for q in right:
            turn = phase[p % m % 4] if q == p + m else 1
            a[q, p] = -turn
    return a


def main(folder):
    name = lambda s: f"{folder}/{s}.mtx"
    write(name("poisson2d"), 900, poisson((30, 30)),
          about="5-point Laplacian, 30 x 30")
    write(name("poisson3d"), 1728, poisson((12, 12, 12)),
          about="7-point Laplacian, 12 x 12 x 12")
    write(name("elasticity2d"), 14 * 9 * 2, elasticity(14, 8),
          about="plane strain, 14 x 8 bilinear squares, one side clamped")
    write(name("indefinite"), 400, poisson((20, 20), 1.0),
          about="5-point Laplacian minus the identity: both signs")
    write(name("convection"), 400, convection(20, 0.5), symmetry="general",
          about="upwind convection-diffusion: not symmetric")
    write(name("network"), 300, network(300, 150, 2), field="pattern",
          about="adjacency of a ring with 150 chords")
    write(name("graph"), 300, laplacian(300, 1200, 3, 1), field="integer",
          about="Laplacian of a random graph in 3 parts: singular")
    write(name("hermitian"), 144, magnetic(12), field="complex",
          symmetry="hermitian",
          about="grid Laplacian in a magnetic field, positive definite")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
