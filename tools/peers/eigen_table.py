#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the smallest eigenvalues of real matrices by solve, by SciPy's
eigsh, and known values.

    eigen_table.py FOLDER RESULTS.tsv -device cpu|cuda|scipy|inner [-solve PATH]
                   [-count 8] [-seconds 120] [-rtol 1e-7] [-only pairs|single|
                   graphs] [-names A,B,...] [-largest N] [-threads N]
                   [-table OUT.md] [-sigma X] [-more P]

FOLDER contains INDEX.tsv (name class rows ... definiteness), NAME.mtx.gz, and
README.md with a table of pairs "K, M" and one of lowest eigenvalues.  Problems:
every pair; every matrix alone that is SPD and of the class "SPD structural" or
has known eigenvalues; every graph, by its Laplacian (a matrix named _laplacian
is used as it is), of which the count smallest non-zero eigenvalues are wanted.

    solve -A K -M M -eigs 8 -rtol 1e-7          pairs
    solve -A A -eigs 8                          alone
    solve -A A -laplacian -eigs 8               graphs

scipy: eigsh in shift-invert mode, sigma 0 (pairs, alone) or just below 0
(Laplacians, without isolated vertices, with as many additional eigenvalues as
there are components); the time includes the factorisation.

inner: also eigsh, with another inverse, for problems on which `scipy` takes too
long.  Graphs are solved component by component: up to 400 vertices by
LAPACK, larger ones by conjugate gradients preconditioned with the degrees, to
1e-12, the constant vector projected out.  Other problems, scaled to a unit
diagonal of M (of A), use SuperLU in its symmetric mode with one step of
refinement; where all pivots are on the diagonal their signs count the
eigenvalues below -sigma X (Sylvester's law); with -more P that many pairs are
computed, of which the smallest are kept.

One line of RESULTS for each run; (name, device) pairs that are already there
are skipped, so that an interrupted run can be continued.  -table compares the
devices: for each the seconds (set-up, iteration and verification; eigsh:
factorisation and iteration) and the largest relative difference from the
README's values, up to the digits given there, and from SciPy's beyond them
(where it agrees on those digits).  Exit code 1 when a problem that is not
rejected was reported as converged but differs by more than 1e-6 from the known
values (a verified value below SciPy's is one that eigsh missed: single-vector
Lanczos does not find multiple eigenvalues).
"""
import gzip
import multiprocessing
import os
import re
import resource
import sys
import time

from peer_runs import Results, options, read_table, report

HEAD = ("name kind device n exit status solver precond iterations converged "
        "nullspace residual seconds message values").split()


MEMORY = 8 << 30                 # of SciPy's factorisation


# ---------------------------------------------------------------- problems

def readme(folder):
    """Returns pairs [(K, M)] and {name or "K, M": [eigenvalue as text]}."""
    pairs, known, part = [], {}, ""
    with open(os.path.join(folder, "README.md")) as f:
        for line in f:
            if line.startswith("#"):
                part = line
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if not line.startswith("| ") or set(line) <= set("|- \n"):
                continue
            if "pairs" in part and "," in cells[0]:
                pairs.append(tuple(cells[0].split(", ")))
            elif "eigenvalues" in part and cells[0] != "problem":
                text = re.sub(r"\(res.*\)", "", cells[1])
                if "multiplicity" in text:      # "1 with multiplicity ..."
                    text = ", ".join([text.split()[0]] * 8)
                known[cells[0]] = [v.strip() for v in text.split(",")]
    return pairs, known


def problems(folder, opt):
    """Returns (kind, K, M) in order of size."""
    rows = {r["name"]: r for r in read_table(os.path.join(folder,
                                                          "INDEX.tsv"))}
    pairs, known = readme(folder)
    found = [("pairs", k, m) for k, m in pairs]
    for name, r in rows.items():
        if r["class"] == "graph":
            found.append(("graphs", name, ""))
        elif name in known or (r["definiteness"].startswith("SPD") and
                               r["class"].startswith("SPD structural")):
            found.append(("single", name, ""))
    names = set(filter(None, opt["names"].split(",")))
    found = [p for p in found
             if (not opt["only"] or p[0] in opt["only"].split(",")) and
             (not names or p[1] in names) and p[1] in rows and
             int(rows[p[1]]["rows"]) <= opt["largest"]]
    found.sort(key=lambda p: int(rows[p[1]]["nnz_full"]))
    return found, known


def title(problem):
    return problem[1] + (", " + problem[2] if problem[2] else "")


# ----------------------------------------------------------- this library

def run_solve(problem, folder, opt):
    kind, k, m = problem
    words = [opt["solve"], "-A", os.path.join(folder, k + ".mtx.gz"), "-eigs",
             str(opt["count"]), "-rtol", str(opt["rtol"]), "-device",
             opt["device"], "-maxtime", str(opt["seconds"]), "-threads",
             str(opt["threads"])]
    if m:
        words += ["-M", os.path.join(folder, m + ".mtx.gz")]
    if kind == "graphs":
        words += (["-nullspace", "components"] if k.endswith("_laplacian")
                  else ["-laplacian"])
    code, r, said, _ = report(words)
    spent = r.get("seconds", {})
    row = {"n": r.get("n"), "exit": code,
           "status": r.get("status", "?"), "solver": r.get("solver"),
           "precond": r.get("precond"), "iterations": r.get("iterations"),
           "converged": r.get("columns_converged"),
           "nullspace": r.get("nullspace_dimension"),
           "residual": r.get("max_relative_residual"),
           "seconds": "%.3f" % sum(spent.get(part) or 0 for part in
                                   ("setup", "solve", "verify")),
           "message": said.replace(folder + "/", "")
                         .replace("spsolve: ", "", 1).replace("\t", " ")
                         .replace("\n", " ")[:160],
           "values": ",".join("%.12g" % v for v in
                              r.get("eigenvalues") or [] if v is not None)}
    return row


# ------------------------------------------------------------------ SciPy's

def read_matrix(folder, name):
    import scipy.io
    with gzip.open(os.path.join(folder, name + ".mtx.gz"), "rb") as f:
        A = scipy.io.mmread(f).tocsc()
    return A.astype(complex if A.dtype.kind == "c" else float)


def laplacian(A):
    """Returns L without isolated vertices, and its components."""
    import numpy as np
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components
    A = A.maximum(A.T).tolil()
    A.setdiag(0)
    A = A.tocsc()
    A.eliminate_zeros()
    if (A.data < 0).any():
        raise ValueError("negative weights")
    kept = np.flatnonzero(np.diff(A.indptr) > 0)
    A = A[kept][:, kept]
    d = np.asarray(A.sum(axis=1)).ravel()
    return sp.diags(d).tocsc() - A, connected_components(A, False)[0]


def eigsh_worker(problem, folder, count, pipe):
    import numpy as np
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import eigsh
    kind, k, m = problem
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        A = read_matrix(folder, k)
        M = read_matrix(folder, m) if m else None
        zeros, sigma = 0, 0.0
        if kind == "graphs":
            A, zeros = ((A, connected_components(A, False)[0])
                        if k.endswith("_laplacian") else laplacian(A))
            sigma = -1e-3 * float(A.diagonal().mean())
        elif abs(A - A.T).max() > 1e-9 * abs(A).max():
            raise ValueError("not symmetric")
        want = count + zeros
        start = time.monotonic()
        if want >= A.shape[0]:
            raise ValueError("too few rows")
        values = eigsh(A, want, M, sigma=sigma, which="LM",
                       v0=np.random.default_rng(1).random(A.shape[0]),
                       return_eigenvectors=True)[0]
        seconds = time.monotonic() - start
        values = np.sort(values)[zeros:]
        pipe.send(("converged", seconds, A.shape[0],
                   ",".join("%.12g" % v for v in values), "", zeros))
    except Exception as e:              # SciPy failed: keep its message
        pipe.send(("failed", 0.0, "", "", str(e).replace("\n", " ")[:120], ""))


def cg_inverse(L):
    """Returns L^+ for a connected graph, and [number of steps]."""
    import numpy as np
    from scipy.sparse.linalg import LinearOperator
    n, d, steps = L.shape[0], 1 / L.diagonal(), [0]

    def solve(b):
        r = b - b.mean()
        x, size = np.zeros(n), np.linalg.norm(r)
        if size < 1e-13:
            return x
        z = d * r
        p, rz = z.copy(), r @ z
        while np.linalg.norm(r) > 1e-12 * size and steps[0] < 10**6:
            q = L @ p
            a = rz / (p @ q)
            x, r = x + a * p, r - a * q
            z, before = d * r, rz
            rz = r @ z
            p = z + rz / before * p
            steps[0] += 1
        return x - x.mean()
    return LinearOperator(L.shape, matvec=solve), steps


def inner_graph(L, count):
    import numpy as np
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import eigsh
    parts, label = connected_components(L, False)
    found, all_steps = [], 0
    order = np.argsort(label, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(label))[:-1]):
        C = L[rows][:, rows].tocsr()
        if len(rows) <= 400:
            found += list(np.linalg.eigvalsh(C.toarray())[1:count + 1])
            continue
        inverse, steps = cg_inverse(C)
        start = np.random.default_rng(1).standard_normal(len(rows))
        found += list(eigsh(C, count, sigma=0, OPinv=inverse, which="LM",
                            v0=start - start.mean(), ncv=max(40, 3 * count),
                            tol=1e-9, return_eigenvectors=False))
        all_steps += steps[0]
    return found, "%d components, %d steps of cg" % (parts, all_steps), parts


def inner_factored(A, M, count, sigma):
    import numpy as np
    import scipy.sparse as sp
    from scipy.sparse.linalg import LinearOperator, eigsh, splu
    D = sp.diags(1 / np.sqrt(abs((A if M is None else M).diagonal())))
    A, M = D @ A @ D, D @ D if M is None else D @ M @ D
    C = (A - sigma * M).tocsc()
    lu = splu(C, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
              options={"SymmetricMode": True})

    def solve(b):
        x = lu.solve(b)
        return x + lu.solve(b - C @ x)
    inverse = LinearOperator(C.shape, matvec=solve)
    start = np.random.default_rng(1).standard_normal(C.shape[0])
    found = eigsh(A, count, M, sigma=sigma, OPinv=inverse, which="LM",
                  v0=start, ncv=max(40, 5 * count // 2), tol=0,
                  return_eigenvectors=False)
    text = "factors of %d entries" % lu.L.nnz
    if (lu.perm_r == lu.perm_c).all():
        text += "; %d eigenvalues below sigma %.12g" % (
            (lu.U.diagonal() < 0).sum(), sigma)
    return found, text, 0


def inner_worker(problem, folder, opt, pipe):
    kind, k, m = problem
    try:
        A = read_matrix(folder, k)
        M = read_matrix(folder, m) if m else None
        start = time.monotonic()
        if kind == "graphs":
            L = A if k.endswith("_laplacian") else laplacian(A)[0]
            found, text, zeros = inner_graph(L.tocsr(), opt["count"])
        else:
            found, text, zeros = inner_factored(
                A, M, max(opt["count"], opt["more"]), opt["sigma"])
        seconds = time.monotonic() - start
        values = ",".join("%.12g" % v for v in sorted(found)[:opt["count"]])
        pipe.send(("converged", seconds, A.shape[0], values, text, zeros))
    except Exception as e:
        pipe.send(("failed", 0.0, "", "", str(e).replace("\n", " ")[:120], ""))


def run_scipy(problem, folder, opt):
    here, there = multiprocessing.Pipe(False)
    p = multiprocessing.Process(
        target=inner_worker if opt["device"] == "inner" else eigsh_worker,
        args=(problem, folder, opt if opt["device"] == "inner"
              else opt["count"], there))
    p.start()
    there.close()
    answer = None
    try:
        if here.poll(opt["seconds"]):
            answer = here.recv()
    except EOFError:
        pass
    why = "time" if p.is_alive() and answer is None else "killed"
    p.kill()
    p.join()
    if answer is None:
        return {"status": why, "seconds": "%.3f" % opt["seconds"]}
    return {"status": answer[0], "seconds": "%.3f" % answer[1],
            "n": answer[2], "values": answer[3], "message": answer[4],
            "nullspace": answer[5]}


# --------------------------------------------------------------- comparison

def digits(text):
    """Returns the relative rounding of a printed value."""
    figures = len(re.sub(r"e.*|[.-]", "", text).lstrip("0"))
    return 0.5 * 10.0 ** (1 - figures)


def difference(values, reference):
    """Returns the largest relative difference of sorted values; reference as
    text."""
    worst = 0.0
    for v, r in zip(sorted(values), reference):
        gap = abs(v - float(r)) / max(abs(float(r)), 1e-300)
        worst = max(worst, gap - digits(r))
    return max(worst, 0.0)


def numbers(row):
    return [float(v) for v in (row or {}).get("values", "").split(",") if v]


def references(known, scipy):
    """Returns the known values, extended by SciPy's if it agrees with all of
    them."""
    theirs = [v for v in (scipy or {}).get("values", "").split(",") if v]
    if not known:
        return theirs
    if difference([float(v) for v in theirs], known) > 1e-6:
        return known
    return known + theirs[len(known):]


def refused(row):
    return row is not None and row["exit"] in ("2", "3")


def verdict(row, known, scipy):
    """Returns the text of one device's cell, and whether the result is
    wrong."""
    if row is None:
        return "-", False
    if refused(row):
        return "refused", False
    values = numbers(row)
    reference = references(known, scipy)
    text = "%.2f s" % float(row["seconds"])
    if row["status"] != "converged":
        text += ", %s (%s of 8)" % (row["status"], row["converged"])
    if not values or not reference:
        return text, False
    gap = difference(values, reference)
    if row["status"] == "converged" and gap > 1e-6 and all(
            v <= float(r) * (1 + 1e-6)
            for v, r in zip(sorted(values), reference)):
        return text + ", eigsh missed some", False
    wrong = row["status"] == "converged" and gap > 1e-6
    return text + ", %.1g" % gap + (" **differs**" if wrong else ""), wrong


def make_table(folder, rows, opt):
    found, known = problems(folder, opt)
    at = {(r["name"], r["device"]): r for r in rows}
    devices = [d for d in ("cpu", "cuda") if any(r["device"] == d
                                                 for r in rows)]
    lines = ["| problem | n | " + " | ".join(devices) + " | method | eigsh |",
             "|---" * (len(devices) + 4) + "|"]
    wrong = 0
    said = []
    for p in found:
        name = title(p)
        if not any((name, d) in at for d in devices):
            continue
        scipy, inner = at.get((name, "scipy")), at.get((name, "inner"))
        if inner and inner["values"]:
            scipy = inner
        cells = []
        for d in devices:
            text, bad = verdict(at.get((name, d)), known.get(name), scipy)
            cells.append(text)
            wrong += bad
            if refused(at.get((name, d))):
                said.append((name, at[name, d]["message"]))
        one = next(at[name, d] for d in devices if (name, d) in at)
        their = ("-" if scipy is None else "%.2f s" % float(scipy["seconds"])
                 if scipy["status"] == "converged" else
                 scipy["status"] + " " + (scipy["message"] or ""))
        lines.append("| %s | %s | %s | %s, %s | %s |" % (
            name, one["n"], " | ".join(cells), one["solver"] or "-",
            one["precond"] or "-", their))
    lines += ["", "Refused:", ""]
    lines += ["- %s: %s" % s for s in dict(said).items()]
    with open(opt["table"], "w") as f:
        f.write("\n".join(lines) + "\n")
    return wrong


def main():
    opt, (folder, path) = options(
        {"solve": "spsolve", "device": "cpu", "count": 8, "seconds": 120.0,
         "rtol": 1e-7, "only": "", "names": "", "largest": 10**9,
         "table": "", "threads": 0, "sigma": 0.0, "more": 0}, __doc__, 2, 2)
    results = Results(path, HEAD)
    run = run_scipy if opt["device"] in ("scipy", "inner") else run_solve
    for p in problems(folder, opt)[0]:
        if not results.has(name=title(p), device=opt["device"]):
            results.add(dict(run(p, folder, opt), name=title(p), kind=p[0],
                             device=opt["device"]))
    wrong = 0
    if opt["table"]:
        wrong = make_table(folder, results.lines, opt)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
