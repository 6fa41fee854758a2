# SPDX-License-Identifier: BSD-3-Clause
"""Runs `solve` and checks its output independently: X is read back and its
residual computed here, JSON is parsed strictly, signals are sent at random
times, the memory of a dry run is compared with that of a real one.

SPS_TEST_PLACE=cuda runs them on the GPU.  SPS_LONG=1 makes the number of interruptions 50 and the sizes larger."""
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import types

SOLVE = os.path.abspath(os.environ.get("SOLVE", "./tools/spsolve"))
MTXGEN = os.path.abspath(os.environ.get("MTXGEN", "./tools/mtxgen"))
DATA = os.path.join(os.environ.get("srcdir", "."), "data")
LONG = os.environ.get("SPS_LONG", "") not in ("", "0")
BASE = ["-device", os.environ.get("SPS_TEST_PLACE", "cpu")]
MEMBERS = """schema_version status exit_code message solver precond device
    kernel n nnz nrhs iterations columns_converged max_relative_residual
    max_backward_error residuals seconds bytes_device bytes_host options
    notes null_reasons""".split()
SECONDS = "read setup solve verify total spmm precond gram small".split()


def data(name):
    return os.path.join(DATA, name + ".mtx")


def run(*args, code=0, **more):
    p = subprocess.run([SOLVE, *map(str, args)], capture_output=True,
                       timeout=300, **more)
    assert p.returncode == code, \
        f"{args}: exit {p.returncode}, not {code}: {p.stderr.decode()}"
    return p


def strict_json(text):
    def odd(word):
        raise ValueError(f"{word} in JSON")
    report = json.loads(text, parse_constant=odd)
    for m in MEMBERS:
        assert m in report, f"no member {m}"
    for s in SECONDS:
        assert s in report["seconds"], f"no seconds.{s}"
    for m, v in report.items():
        assert v is not None or m in report["null_reasons"], \
            f"{m} is null for no reason"
    assert report["schema_version"] == 2
    return report


def load_json(path):
    with open(path, encoding="utf-8") as f:
        return strict_json(f.read())


def tokens(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        head = f.readline().lower().split()
        body = [line.split() for line in f
                if line.strip() and not line.startswith("%")]
    return head, body


def number(words):
    return complex(*map(float, words)) if len(words) == 2 else \
        float(words[0])


def read_matrix(path):
    """A as rows of (column, value), symmetric files completed."""
    head, body = tokens(path)
    n = int(body[0][0])
    rows = [[] for _ in range(n)]
    assert len(body) == 1 + int(body[0][2])
    for w in body[1:]:
        i, j, v = int(w[0]) - 1, int(w[1]) - 1, number(w[2:])
        rows[i].append((j, v))
        if i != j and head[4] == "symmetric":
            rows[j].append((i, v))
        if i != j and head[4] == "hermitian":
            rows[j].append((i, v.conjugate()))
    return rows


def read_array(path):
    """Columns of an array file; fails unless it is complete."""
    head, body = tokens(path)
    assert head[2] == "array", head
    n, k = map(int, body[0])
    values = [number(w) for w in body[1:]]
    assert len(values) == n * k, f"{path} is cut: {len(values)} of {n * k}"
    return [values[j * n:(j + 1) * n] for j in range(k)]


def write_array(path, columns, field="real"):
    with open(path, "w") as f:
        f.write(f"%%MatrixMarket matrix array {field} general\n"
                f"{len(columns[0])} {len(columns)}\n")
        for c in columns:
            for v in c:
                f.write(f"{v.real!r} {v.imag!r}\n" if field == "complex"
                        else f"{v!r}\n")


def norm(v):
    return sum(abs(x) ** 2 for x in v) ** 0.5


def residuals(rows, X, B):
    return [norm([b[i] - sum(v * x[j] for j, v in row)
                  for i, row in enumerate(rows)]) / norm(b)
            for x, b in zip(X, B)]


def randoms(n, k, seed=7, field="real"):
    r = random.Random(seed)
    one = (lambda: complex(r.uniform(-1, 1), r.uniform(-1, 1))) \
        if field == "complex" else (lambda: r.uniform(-1, 1))
    return [[one() for _ in range(n)] for _ in range(k)]


def poisson(path, m):
    """The 5-point Laplacian of an m x m grid, lower triangle."""
    n = m * m
    with open(path, "w") as f:
        f.write("%%MatrixMarket matrix coordinate real symmetric\n"
                f"{n} {n} {n + 2 * m * (m - 1)}\n")
        for p in range(1, n + 1):
            f.write(f"{p} {p} 4\n")
            if p % m:
                f.write(f"{p + 1} {p} -1\n")
            if p + m <= n:
                f.write(f"{p + m} {p} -1\n")
    return path


class Skip(Exception):
    """Ends a claim that has not been checked; the text says why."""


def no_sanitizer():
    if os.environ.get("SANITIZE_FLAGS"):
        raise Skip("sanitizers count memory of their own")


# ------------------------------------------------------------------- claims

def x_solves_the_system_by_our_own_arithmetic(tmp):
    for name in ("poisson2d", "elasticity2d"):
        rows = read_matrix(data(name))
        B = randoms(len(rows), 3)
        write_array(f"{tmp}/b.mtx", B)
        run("-A", data(name), "-B", f"{tmp}/b.mtx", "-o", f"{tmp}/x.mtx",
            "-rtol", "1e-9", *BASE)
        r = residuals(rows, read_array(f"{tmp}/x.mtx"), B)
        assert max(r) < 1.01e-9, r


def complex_systems_are_read_and_written_complex(tmp):
    rows = read_matrix(data("hermitian"))
    B = randoms(len(rows), 2, field="complex")
    write_array(f"{tmp}/b.mtx", B, "complex")
    run("-A", data("hermitian"), "-B", f"{tmp}/b.mtx", "-o", f"{tmp}/x.mtx",
        "-json", f"{tmp}/r.json", *BASE)
    X = read_array(f"{tmp}/x.mtx")
    assert max(residuals(rows, X, B)) < 1.01e-8
    report = load_json(f"{tmp}/r.json")
    assert report["n"] == len(rows) and report["nnz"] == sum(map(len, rows))
    assert report["complex"] is True


def json_has_every_member_in_every_case(tmp):
    out = f"{tmp}/r.json"
    run("-A", data("poisson3d"), "-nrhs", 16, "-json", out, *BASE)
    r = load_json(out)
    assert r["status"] == "converged" and r["exit_code"] == 0
    assert len(r["residuals"]) == 16 == r["columns_converged"] == r["nrhs"]
    assert max(r["residuals"]) == r["max_relative_residual"] <= 1e-8
    assert r["n"] == 1728 and r["nnz"] == 1728 + 6 * 12 * 12 * 11
    assert r["options"]["nrhs"] == 16 and r["options"]["rtol"] == 1e-8
    t = r["seconds"]
    assert t["total"] >= t["solve"] >= 0.9 * t["spmm"]
    run("-A", data("poisson3d"), "-maxit", 2, "-json", out, *BASE, code=1)
    assert load_json(out)["status"] == "max_iterations"
    run("-A", data("indefinite"), "-json", out, "-solver", "block_cg",
        "-precond", "none", *BASE,
        code=4)
    r = load_json(out)
    assert r["exit_code"] == 4 and r["advice"]
    run("-A", f"{tmp}/nowhere", "-json", out, *BASE, code=3)
    r = load_json(out)
    assert r["exit_code"] == 3 and "nowhere" in r["message"]
    assert r["n"] is None and r["residuals"] == []


def applications_of_a_preconditioner_are_counted(tmp):
    """One per search direction; none where M is a multiple of the identity."""
    out = f"{tmp}/r.json"
    for solver in ("cg", "block_cg", "gmres", "minres"):
        for name, applied in (("elasticity2d", True), ("poisson3d", False)):
            run("-A", data(name), "-nrhs", 3, "-solver", solver, "-precond",
                "jacobi", "-json", out, *BASE)
            r = load_json(out)
            count, its = r["applies_precond"], r["iterations"]
            assert its <= count <= its + 20 if applied else count == 0, \
                (solver, name, count, its)


def odd_names_stay_valid_json(tmp):
    path = os.fsencode(tmp) + b'/a"\\\xff\n\xc3\xa9.mtx'
    with open(data("poisson2d"), "rb") as f, open(path, "wb") as g:
        g.write(f.read())
    p = subprocess.run([os.fsencode(SOLVE), b"-A", path, b"-json", b"-",
                        b"-quiet", b"-device", b"cpu"], capture_output=True)
    assert p.returncode == 0, p.stderr
    strict_json(p.stdout.decode("utf-8"))


def not_finite_becomes_null_with_a_reason(tmp):
    bad = f"{tmp}/nan.mtx"
    with open(bad, "w") as f:
        f.write("%%MatrixMarket matrix coordinate real symmetric\n"
                "2 2 2\n1 1 nan\n2 2 1\n")
    run("-A", bad, *BASE, code=3)
    run("-A", bad, "-allow-nonfinite", "-json", f"{tmp}/r.json", "-precond",
        "none", *BASE, code=4)
    load_json(f"{tmp}/r.json")


def pipes_work_in_and_out(tmp):
    with open(data("poisson2d"), "rb") as f:
        text = f.read()
    p = run("-A", "-", "-o", "-", "-seed", 3, *BASE, input=text)
    with open(f"{tmp}/x.mtx", "wb") as f:
        f.write(p.stdout)
    piped = read_array(f"{tmp}/x.mtx")
    assert b"converged" in p.stderr
    run("-A", "-", "-o", f"{tmp}/y.mtx.gz", "-seed", 3, *BASE,
        input=gzip.compress(text))
    assert read_array(f"{tmp}/y.mtx.gz") == piped
    p = run("-A", data("poisson2d"), "-json", "-", *BASE)
    strict_json(p.stdout)
    assert b"converged" in p.stderr
    p = run("-A", data("poisson2d"), "-json", "-", "-quiet", *BASE)
    assert p.stderr == b""


def a_reader_that_leaves_is_exit_7(tmp):
    big = poisson(f"{tmp}/big.mtx", 60)
    p = subprocess.Popen([SOLVE, "-A", big, "-o", "-", "-nrhs", "16", *BASE],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    p.stderr.read()
    assert p.wait() == 7, p.returncode


def a_guess_that_solves_needs_no_iteration(tmp):
    common = ["-A", data("poisson2d"), "-nrhs", 2, *BASE]
    run(*common, "-o", f"{tmp}/x.mtx", "-rtol", 1e-11)
    run(*common, "-x0", f"{tmp}/x.mtx", "-json", f"{tmp}/r.json")
    assert load_json(f"{tmp}/r.json")["iterations"] == 0


def same_seed_same_bits(tmp):
    for t, name in ((1, "a"), (2, "b")):
        run("-A", data("poisson3d"), "-nrhs", 5, "-threads", t, "-o",
            f"{tmp}/{name}.mtx", *BASE)
    with open(f"{tmp}/a.mtx") as a, open(f"{tmp}/b.mtx") as b:
        assert a.read() == b.read()


def locale_does_no_harm(tmp):
    env = dict(os.environ, LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8")
    run("-A", data("elasticity2d"), "-json", f"{tmp}/r.json", "-rtol", "1e-6",
        *BASE, env=env)
    assert load_json(f"{tmp}/r.json")["options"]["rtol"] == 1e-6


def null_space_is_found_read_and_told(tmp):
    out = f"{tmp}/r.json"
    run("-A", data("graph"), "-nrhs", 4, "-nullspace", "auto", "-json", out,
        *BASE)
    r = load_json(out)
    assert r["nullspace_dimension"] == 3 and r["nullspace_part_of_B"] < 1e-12
    assert r["residual_precision"] == "twofold"
    assert r["max_relative_residual_in_range"] <= 1e-8
    n = r["n"]
    write_array(f"{tmp}/z.mtx", [[float(i % 3 == c) for i in range(n)]
                                 for c in range(3)])
    run("-A", data("graph"), "-nrhs", 4, "-nullspace", f"{tmp}/z.mtx",
        "-json", out, *BASE)
    assert load_json(out)["nullspace_dimension"] == 3


def motions_of(places):
    """Rigid motions of points in space, a number for each coordinate."""
    xyz = list(zip(*places))
    columns = [[float(a == c) for _ in xyz for a in range(3)]
               for c in range(3)]
    for c in range(3):
        a, b = (c + 1) % 3, (c + 2) % 3
        columns.append([-p[b] if r == a else p[a] if r == b else 0.0
                        for p in xyz for r in range(3)])
    return columns


def near_null_vectors_are_read(tmp):
    body, xyz, out = f"{tmp}/body.mtx", f"{tmp}/xyz.mtx", f"{tmp}/r.json"
    subprocess.run([MTXGEN, "elasticity", "10", "-o", body, "-coords", xyz,
                    "-quiet"], check=True)
    modes = motions_of(read_array(xyz))
    write_array(f"{tmp}/modes.mtx", modes)
    write_array(f"{tmp}/short.mtx", [m[:-1] for m in modes])
    took = []
    common = ["-A", body, "-nrhs", 8, "-solver", "block_cg", "-precond", "amg",
              *BASE]
    for words in (["-near-null", f"{tmp}/modes.mtx"],
                  ["-near-null-basis", f"{tmp}/modes.mtx"], ["-coords", xyz],
                  ["-near-null", f"{tmp}/modes.mtx", "-near-null", "auto"]):
        run(*common, "-json", out, *words)
        took.append(load_json(out)["iterations"])
    assert took[0] == took[1] <= took[2] + 1 and took[0] < took[3], took
    p = run(*common, "-near-null", f"{tmp}/short.mtx", code=3)
    assert b"short.mtx" in p.stderr, p.stderr
    p = run(*common, "-near-null", "filtred", code=2)
    assert b"nor is there such a file" in p.stderr, p.stderr


def monitor_and_plot_tell_the_history(tmp):
    run("-A", data("poisson2d"), "-nrhs", 4, f"-monitor={tmp}/m.tsv", "-plot",
        f"{tmp}/p.svg", "-json", f"{tmp}/r.json", *BASE)
    with open(f"{tmp}/m.tsv") as f:
        table = [line.split() for line in f if not line.startswith("#")]
    r = load_json(f"{tmp}/r.json")
    assert int(table[-1][0]) == r["iterations"]
    assert all(len(row) == 6 + 4 for row in table)
    assert float(table[-1][2]) <= 1e-8
    import xml.etree.ElementTree
    root = xml.etree.ElementTree.parse(f"{tmp}/p.svg").getroot()
    assert root.tag.endswith("svg")
    text = "".join(root.itertext())
    for word in ("worst", "median", "best", "tolerance", "poisson2d"):
        assert word in text, word
    for eigs, curves in ((5, 5), (100, 34)):      # of many only every third
        run("-A", data("poisson2d"), "-eigs", eigs, "-solver", "lobpcg",
            "-plot", f"{tmp}/e.svg", *BASE)
        root = xml.etree.ElementTree.parse(f"{tmp}/e.svg").getroot()
        drawn = [p for p in root.iter() if p.get("class") == "pair"]
        assert len(drawn) == curves, len(drawn)
        assert "pair 1" in "".join(root.itertext())


def terminals_see_a_line_of_progress(tmp):
    import pty
    big = poisson(f"{tmp}/big.mtx", 110)
    master, slave = pty.openpty()
    env = dict(os.environ, TERM="xterm")
    p = subprocess.Popen([SOLVE, "-A", big, "-nrhs", "8", *BASE], env=env,
                         stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert p.wait() == 0
    assert b"setting up" in seen and b"\r" in seen, seen[:200]
    assert seen.rstrip().endswith(b"\x1b[K"), "the line is left behind"


def dry_run_tells_the_memory_of_a_real_run(tmp):
    out = f"{tmp}/r.json"
    no_sanitizer()
    for m, k in ((100, 8), (200, 16), (400 if LONG else 250, 32)):
        big = poisson(f"{tmp}/big.mtx", m)
        common = ["-A", big, "-nrhs", k, "-json", out, "-maxit", 5, "-o",
                  f"{tmp}/x.mtx", "-factors", "never", *BASE]
        p = run(*common, "-dry-run")
        assert b"spmm" in p.stdout, "no bids"
        said = load_json(out)
        assert said["status"] == "dry_run" and said["iterations"] is None
        assert not os.path.exists(f"{tmp}/x.mtx")
        run(*common, code=1)
        real = load_json(out)
        ratio = said["bytes_host"] / real["bytes_host"]
        print(f"    n {m * m}, k {k}: dry run {said['bytes_host']}, real "
              f"{real['bytes_host']}, ratio {ratio:.3f}")
        os.unlink(f"{tmp}/x.mtx")
        # The writer's buffers are counted in full, for the longest numbers, but
        # used only as far as needed: some 2 MB, which matters in a small run.
        assert ratio >= 0.9, ratio
        assert said["bytes_host"] <= 1.1 * real["bytes_host"] + (2 << 20)
        assert abs(said["bytes_device"] - real["bytes_device"]) <= \
            0.1 * real["bytes_device"]


def a_matrix_beyond_the_gpu_is_streamed(tmp):
    """The same bits as with all of the GPU; what stays there, what is copied
    and how long that takes is told."""
    if BASE[1] != "cuda":
        raise Skip("a GPU is needed")
    m, out, x = f"{tmp}/e.mtx", f"{tmp}/r.json", f"{tmp}/x.mtx"
    subprocess.run([MTXGEN, "elasticity", "32", "-perturb", "1", "-shift",
                    "1", "-o", m, "-quiet"], check=True)
    most = 120 << 20
    common = ["-A", m, "-nrhs", 2, "-json", out, "-solver", "block_cg",
              "-precond", "jacobi", *BASE]
    limit = ["-maxdevmem", most]
    run(*common, "-kernel", "spmm.plain", "-o", x)
    with open(x, "rb") as f:
        right = f.read()
    for words in ["-dry-run"], ["-explain"]:
        p = run(*common, *limit, *words)
        said = re.search(rb"in host memory: (\d+) bytes stay on the GPU, (\d+) "
                         rb"are copied there in each product; predicted (\S+) s",
                         p.stdout)
        assert said, p.stdout
        stay, copied = int(said[1]), int(said[2])
        entries = load_json(out)["nnz"]
        print(f"    {stay} bytes stay, {copied} copied, {said[3].decode()} s")
        assert 8 * entries <= stay + copied <= 12 * entries
        assert stay > 0 and copied > 4 << 20
        assert copied / 100e9 <= float(said[3]) <= copied / 5e9 + 1e-3
    run(*common, *limit, "-o", x)
    report = load_json(out)
    assert report["kernel"] == "spmm.stream", report["kernel"]
    assert report["status"] == "converged"
    assert report["bytes_device"] <= most
    assert any("stays in host memory" in n for n in report["notes"])
    with open(x, "rb") as f:
        assert f.read() == right, "other bits"


def the_report_names_the_problem_and_counts(tmp):
    """One of a thing is told in the singular; damping is told."""
    with open(f"{tmp}/m.mtx", "w", encoding="ascii") as f:
        f.write("%%MatrixMarket matrix coordinate real general\n"
                "1 1 2\n1 1 0.5\n1 1 0.5\n")
    with open(f"{tmp}/zero.mtx", "w", encoding="ascii") as f:
        f.write("%%MatrixMarket matrix coordinate real general\n"
                "2 2 1\n1 1 2\n")
    said = run("-A", f"{tmp}/m.mtx", "-solver", "cg", *BASE).stdout
    assert b": A X = B\n" in said, said
    assert b": 1 row, 1 entry, " in said, said
    assert b"summed 1 duplicate entry\n" in said, said
    said = run("-A", f"{tmp}/m.mtx", "-damp", "0.5", *BASE).stdout
    assert b": min ||A X - B||^2 + d^2 ||X||^2\n" in said, said
    said = run("-A", f"{tmp}/zero.mtx", "-solver", "cg", "-precond", "jacobi",
               *BASE).stdout
    assert b"jacobi: 1 diagonal entry is zero; " in said, said
    if BASE[1] == "cpu":
        said = run("-A", f"{tmp}/m.mtx").stdout
        assert b"since 1 row and 1 column are" in b" ".join(said.split()), said


def explain_tells_the_preconditioner(tmp):
    """That of the solve: of amg the levels, as many as its note says."""
    m = poisson(f"{tmp}/m.mtx", 40)
    for words in (["-solver", "cg", "-precond", "amg"], ["-precond", "amg"],
                  ["-eigs", 2, "-precond", "amg"]):
        said = run("-A", m, *words, "-explain", *BASE).stdout
        assert said.count(b"\npreconditioner amg: ") == 1, said
        table = said.split(b"\nlevel ")[1].split(b"\n")[1:-1]
        assert len(table) > 1 and table[0].split()[1] == b"1600", said
        assert [int(row.split()[0]) for row in table] == \
            list(range(len(table))), said
    for name in b"jacobi", b"none":
        said = run("-A", m, "-solver", "cg", "-precond", name.decode(),
                   "-explain", *BASE).stdout
        assert said.endswith(b"\npreconditioner " + name + b"\n"), said


def host_memory_is_limited(tmp):
    """Of blocks, whose requests are small, and of factors, which another
    library allocates."""
    if BASE[1] != "cpu":
        raise Skip("memory of the host")
    m = poisson(f"{tmp}/m.mtx", 100)
    for words in (["-solver", "cg", "-nrhs", 16],
                  ["-solver", "gmres", "-precond", "factor"]):
        p = subprocess.run([SOLVE, "-A", m, *map(str, words), *BASE],
                           capture_output=True)
        if b"no module for them" in p.stderr:
            continue
        assert p.returncode == 0, p.stderr
        p = run("-A", m, *words, "-maxmem", "5M", *BASE, code=5)
        assert b"5242880 are available in total" in p.stderr, p.stderr


def dry_run_predicts_factors(tmp):
    """Nothing is factored: what is told of a large grid appears at once."""
    m, out = poisson(f"{tmp}/m.mtx", 300), f"{tmp}/r.json"
    common = ["-A", m, "-nrhs", 4, "-precond", "factor", "-json", out, *BASE]
    p = subprocess.run([SOLVE, *map(str, common)], capture_output=True)
    if b"no module for them" in p.stderr:
        raise Skip("no factor module")
    real = load_json(out)
    p = run(*common, "-dry-run")
    said = load_json(out)
    assert b"factor: predicted, not computed: " in p.stdout, p.stdout
    print(f"    host {said['bytes_host']} of {real['bytes_host']}, set-up "
          f"{said['seconds']['setup']} of {real['seconds']['setup']}")
    assert said["bytes_host"] >= 0.9 * real["bytes_host"]
    p = run("-A", m, "-nrhs", 4, "-precond", "factor", "-dry-run", "-solver",
            "cg", "-maxmem", "50M", *BASE, code=5)
    assert b"the factors" in p.stderr, p.stderr


def dry_run_counts_dense_factors_of_least_squares(tmp):
    if BASE[1] != "cpu":
        raise Skip("memory of the host")
    m, out = f"{tmp}/least.mtx", f"{tmp}/r.json"
    subprocess.run([MTXGEN, "leastsquares", "3000", "600", "-cond", "1e7",
                    "-o", m, "-quiet"], check=True)
    no_sanitizer()
    common = ["-A", m, "-nrhs", 300, "-rtol", 1e-9, "-json", out, *BASE]
    p = run(*common, "-dry-run")
    assert b"in the first step" not in p.stdout, p.stdout
    said = load_json(out)
    run(*common)
    real = load_json(out)
    assert real["solver"] == "dense_qr", real["solver"]
    ratio = said["bytes_host"] / real["bytes_host"]
    print(f"    dry run {said['bytes_host']}, real {real['bytes_host']}, "
          f"ratio {ratio:.3f}")
    assert 0.9 <= ratio <= 1.1, ratio


def dry_run_says_what_it_does_not_count(tmp):
    m = poisson(f"{tmp}/small.mtx", 20)
    for words, first, note in (([], True, False),
                               (["-solver", "gmres"], False, False),
                               (["-solver", "gmres", "-precision", "single_basis"],
                                False, True)):
        p = run("-A", m, "-nrhs", 4, "-dry-run", *words, *BASE)
        line = [x for x in p.stdout.decode().splitlines() if "dry run:" in x]
        assert len(line) == 1, p.stdout
        assert ("first step of auto" in line[0]) == first, line
        assert ("except as a note says" in line[0]) == note, line
        assert (b"MB more" in p.stdout) == note, p.stdout


def shift(path, n):
    """Cyclic shift matrix: GMRES makes no progress before step n."""
    with open(path, "w") as f:
        f.write("%%MatrixMarket matrix coordinate real general\n"
                f"{n} {n} {n}\n")
        for i in range(n):
            f.write(f"{i + 1} {(i + 1) % n + 1} 1\n")
    with open(path + ".b", "w") as f:
        f.write(f"%%MatrixMarket matrix array real general\n{n} 1\n1\n" +
                "0\n" * (n - 1))
    return ["-A", path, "-B", path + ".b", "-solver", "gmres", "-precond",
            "none"]


def short_cycles_are_named_where_they_stagnate(tmp):
    words = shift(f"{tmp}/shift.mtx", 40)
    p = run(*words, "-restart", 10, *BASE, code=1)
    assert b"a longer -restart" in p.stdout, p.stdout
    assert b"stagnated: no further progress;" in p.stdout, p.stdout
    assert b"or a cycle gained nothing" in p.stdout, p.stdout
    assert b"in 40 iterations" in run(*words, *BASE).stdout
    p = run("-A", poisson(f"{tmp}/p.mtx", 10), "-rtol", "1e-300", "-solver",
            "gmres", "-restart", 1000, *BASE, code=1)
    assert b"try next" in p.stdout and b"-restart" not in p.stdout, p.stdout


def eigen_memory(args, tmp):
    """Host bytes: predicted by a dry run of -eigs, and of the actual run."""
    out, told = f"{tmp}/r.json", []
    for word in (["-dry-run"], []):
        run(*args, "-json", out, "-quiet", *word, *BASE)
        told.append(load_json(out)["bytes_host"])
    return told


def dry_run_tells_the_memory_of_eigenpairs(tmp):
    no_sanitizer()
    big = poisson(f"{tmp}/big.mtx", 30)           # 900 rows
    large = poisson(f"{tmp}/large.mtx", 110)
    # Work rows of the factorisation have room for n entries, but few are used.
    for args in ((big, "-eigs", 190),             # LAPACK: 4 n^2 numbers
                 (big, "-eigs", 8, "-precond", "ilut", "-verify-count"),
                 (big, "-eigs", 8, "-sigma", 1.7),
                 (big, "-eigs", 8, "-which", "largest", "-solver", "lobpcg"),
                 (big, "-eigs", 100),
                 (large, "-eigs", 16)):           # factors
        said, real = eigen_memory(("-A", *args), tmp)
        print(f"    {args[1:]}: dry run {said}, real {real}")
        assert real <= 1.1 * said, "more than was said"
        # A search for missed pairs may have sparse factors in place of the
        # dense ones that a dry run counts.  Up to 2 MB may be code.
        loose = args[0] == large or "-verify-count" in args
        assert said - (2 << 20) <= (1.3 if loose else 1.15) * real, "far less"


def memory_of_multigrid(system, words, tmp):
    """Bytes on the host and on the GPU: of a dry run, and of one iteration."""
    out, told = f"{tmp}/r.json", []
    for more, code in ((["-dry-run"], 0), (["-maxit", 1], 1)):
        run("-A", system, "-nrhs", 16, "-solver", "block_cg", "-precond", "amg",
            "-json", out, *words, *more, *BASE, code=code)
        told.append(load_json(out))
    return [[t[place] for t in told] for place in ("bytes_host", "bytes_device")]


def dry_run_tells_the_memory_of_multigrid(tmp):
    no_sanitizer()
    body = f"{tmp}/body.mtx"
    subprocess.run([MTXGEN, "elasticity", "12", "-o", body, "-coords",
                    f"{tmp}/xyz.mtx", "-quiet"], check=True)
    for system, words in ((poisson(f"{tmp}/big.mtx", 250), []),
                          (body, ["-coords", f"{tmp}/xyz.mtx"])):
        host, device = memory_of_multigrid(system, words, tmp)
        print(f"    dry run {host[0]} and {device[0]}, real {host[1]} and "
              f"{device[1]}")
        assert 1 / 1.15 <= host[0] / host[1] <= 1.15, host
        assert abs(device[0] - device[1]) <= 0.15 * device[1], device


def limited(args, out):
    """The report of a run that a time limit ended: 0.3 s, halved until this
    machine cannot finish within it."""
    limit = 0.3
    while limit > 0.005:
        p = subprocess.run([SOLVE, *map(str, args), "-maxtime", str(limit),
                            "-json", out, *BASE], capture_output=True,
                           timeout=300)
        if p.returncode != 0:
            assert p.returncode == 1, (args, p.returncode, p.stderr)
            return load_json(out)
        limit /= 2
    raise AssertionError(f"{args}: done within {2 * limit} s")


def time_limit_reaches_eigenpairs_and_their_count(tmp):
    # The limit expires after reading, whatever the load of the machine.
    small = poisson(f"{tmp}/small.mtx", 40)       # LAPACK without the limit
    big = poisson(f"{tmp}/big.mtx", 60)
    for args in (["-A", small, "-eigs", 330],
                 ["-A", big, "-eigs", 8, "-which", "largest", "-rtol", "1e-13",
                  "-verify-count"]):
        r = limited(args, f"{tmp}/r.json")
        took = r["seconds"]["solve"] + r["seconds"]["verify"]
        print(f"    {args[2:]}: {r['status']}, {took:.1f} s")
        assert r["status"] == "max_time" and r["solver"] == "lobpcg"
        assert took < 10, r["seconds"]


def a_limit_of_time_is_that_of_the_whole_run(tmp):
    """Reading, estimates, preconditioners: here each exceeds the limit."""
    out, big = f"{tmp}/r.json", poisson(f"{tmp}/big.mtx", 220)
    os.mkfifo(f"{tmp}/fifo")
    p = run("-A", f"{tmp}/fifo", "-maxtime", 0.3, "-json", out, *BASE, code=1)
    r = load_json(out)
    assert r["status"] == "max_time" and r["seconds"]["total"] < 10, r
    for words in (["-precond", "ilut", "-droptol", "1e-12", "-fill", "1000"],
                  ["-precond", "fsai", "-power", 3, "-solver", "block_cg"],
                  ["-precond", "isai", "-solver", "gmres"],
                  ["-solver", "block_cg"]):
        words += ["-A", big, "-nrhs", 16, "-json", out, "-o", f"{tmp}/x.mtx"]
        began = time.time()
        run(*words, "-dry-run", *BASE)
        set_up = load_json(out)["seconds"]["setup"]
        run(*words, "-rtol", "1e-14", "-maxtime",
            load_json(out)["seconds"]["read"] + 0.3 * set_up, *BASE, code=1)
        r = load_json(out)
        print(f"    {words[:2]}: set-up {set_up:.2f} s; with a limit "
              f"{r['status']}, {r['iterations']} iterations, "
              f"{r['seconds']['total']:.2f} s")
        assert r["status"] == "max_time", r["status"]
        if r["iterations"] is not None:
            assert r["iterations"] > 0 and r["max_relative_residual"] < 1
            assert len(read_array(f"{tmp}/x.mtx")) == 16


def interrupted(tmp, big, k, number, delay):
    """One run ended by a signal; returns whether it was solving."""
    out, x, mon = f"{tmp}/r.json", f"{tmp}/x.mtx", f"{tmp}/m.tsv"
    for f in (out, x, mon):
        if os.path.exists(f):
            os.unlink(f)
    p = subprocess.Popen([SOLVE, "-A", big, "-nrhs", str(k), "-o", x, "-json",
                          out, f"-monitor={mon}", "-quiet", "-precond", "none",
                          "-rtol", "1e-15", "-norm", "backward", *BASE],
                         stderr=subprocess.PIPE)
    while not os.path.exists(mon) and p.poll() is None:
        time.sleep(0.001)
    time.sleep(delay)
    began = time.time()
    p.send_signal(number)
    p.stderr.read()
    code = p.wait()
    waited = time.time() - began
    report = load_json(out)
    if code in (0, 1):
        return False                       # it was done before
    assert code == 128 + number == report["exit_code"], (code, number)
    assert report["status"] == "interrupted"
    left = [f for f in os.listdir(tmp) if "tmp" in f]
    assert not left, left
    if report["iterations"] is None:
        assert not os.path.exists(x)
    else:
        assert len(read_array(x)) == k
        assert len(report["residuals"]) == k
        assert waited < 10, waited
    return True


def interruption_leaves_the_best_iterate(tmp):
    big = poisson(f"{tmp}/big.mtx", 400)
    r, hit, late, wanted = random.Random(11), 0, 0, 50 if LONG else 8
    span = 1.0                # of time; shrinks where solves are faster
    os.mkdir(f"{tmp}/out")
    while hit < wanted and late < 4 * wanted:
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU,
                  signal.SIGHUP)[hit % 4 if hit < 8 else 0]
        if interrupted(f"{tmp}/out", big, 4, number, r.uniform(0, span)):
            hit += 1
        else:
            late, span = late + 1, 0.8 * span
    print(f"    {hit} runs were ended by the signal, {late} were done before")
    assert hit == wanted


def signalled_in_a_phase(m, out, pause):
    """Sends SIGINT while factors of m are analysed or computed, and a second
    one after `pause` seconds unless that is None.  Returns the exit status and
    the seconds that the process lived after its last signal."""
    p = subprocess.Popen([SOLVE, "-A", m, "-solver", "gmres", "-precond",
                          "factor", "-json", out, "-quiet", *BASE],
                         stderr=subprocess.DEVNULL)
    while p.poll() is None:
        with open(f"/proc/{p.pid}/maps", encoding="utf-8") as f:
            if "spsolve_factor.so" in f.read():
                break
        time.sleep(0.002)
    time.sleep(0.1)
    p.send_signal(signal.SIGINT)
    if pause is not None:
        time.sleep(pause)
        p.send_signal(signal.SIGINT)
    began = time.time()
    return p.wait(), time.time() - began


def interruption_waits_for_a_phase_of_factors(tmp):
    """The phase goes on to its end, and no other one is begun; a second signal
    ends the process."""
    if b"factor module: absent" in run("-version").stdout:
        raise Skip("no factor module")
    if not os.path.exists("/proc/self/maps"):
        raise Skip("no /proc")
    m, out = poisson(f"{tmp}/big.mtx", 400), f"{tmp}/r.json"
    code, waited = signalled_in_a_phase(m, out, None)
    r = load_json(out)
    assert code == 130 == r["exit_code"], (code, r["status"])
    assert r["status"] == "interrupted" and not r["iterations"]
    print(f"    the phase ended {waited:.2f} s after the signal")
    for _ in range(5):
        if os.path.exists(out):     # of a run that ended before the second one
            os.unlink(out)
        code, waited = signalled_in_a_phase(m, out, 0.01)
        if code == -signal.SIGINT:
            break
    assert code == -signal.SIGINT and waited < 2, (code, waited)
    assert not os.path.exists(out)


def interruption_while_reading_ends_at_once(tmp):
    p = subprocess.Popen([SOLVE, "-A", "-", "-o", f"{tmp}/x.mtx", "-json",
                          f"{tmp}/r.json", f"-monitor={tmp}/m.tsv", *BASE],
                         stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    while not os.path.exists(f"{tmp}/m.tsv") and p.poll() is None:
        time.sleep(0.001)
    p.stdin.write(b"%%MatrixMarket matrix coordinate real general\n9 9 9\n")
    p.stdin.flush()
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    p.stdin.write(b"1 1 1\n")
    p.stdin.flush()                        # the file has not ended
    text = p.stderr.read().decode()
    assert p.wait() == 130, p.returncode
    assert "interrupted while reading" in text, text
    r = load_json(f"{tmp}/r.json")
    assert r["status"] == "interrupted" and r["exit_code"] == 130
    assert not os.path.exists(f"{tmp}/x.mtx")


def hanging_up_leaves_the_best_iterate(tmp):
    """The terminal is closed: SIGHUP, and the report cannot be written."""
    import pty
    big, x = poisson(f"{tmp}/big.mtx", 400), f"{tmp}/x.mtx"
    try:
        child, master = pty.fork()
    except OSError as e:
        raise Skip(f"no terminal: {e}")
    if child == 0:
        os.execv(SOLVE, [SOLVE, "-A", big, "-nrhs", "4", "-o", x, "-json",
                         f"{tmp}/r.json", f"-monitor={tmp}/m.tsv", "-rtol",
                         "1e-15", "-norm", "backward", "-precond", "none",
                         *BASE])
    while not (os.path.exists(f"{tmp}/m.tsv") and
               os.path.getsize(f"{tmp}/m.tsv") > 100):
        time.sleep(0.001)
    os.close(master)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 129, code
    assert len(read_array(x)) == 4
    assert load_json(f"{tmp}/r.json")["exit_code"] == 129


def pipes_that_nobody_serves_are_interrupted(tmp):
    """A FIFO as -A, -B, -o or -monitor; as -wisdom it is rejected as a file."""
    m, fifo = poisson(f"{tmp}/m.mtx", 8), f"{tmp}/fifo"
    os.mkfifo(fifo)
    for words in (["-A", fifo], ["-A", m, "-B", fifo],
                  ["-A", m, f"-monitor={fifo}"], ["-A", m, "-o", fifo]):
        p = subprocess.Popen([SOLVE, *words, *BASE], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        time.sleep(1.0)
        assert p.poll() is None, (words, p.stderr.read())
        p.send_signal(signal.SIGINT)
        code = p.wait(10)
        p.communicate()
        assert code == (7 if "-o" in words else 130), (words, code)
    p = run("-A", m, "-wisdom", fifo, "-kernel", "measure", *BASE)
    assert b"fifo was not read" in p.stdout, p.stdout
    assert not os.path.isfile(fifo)


def outputs_go_through_links(tmp):
    m = poisson(f"{tmp}/m.mtx", 8)
    os.mkdir(f"{tmp}/kept")
    names = {"o": "x.mtx", "json": "r.json", "plot": "p.svg",
             "monitor": "m.tsv", "wisdom": "w"}
    for there in (True, False):
        for name in names.values():
            if there:
                open(f"{tmp}/kept/{name}", "w").close()
                os.symlink(f"kept/{name}", f"{tmp}/{name}")
            else:
                os.unlink(f"{tmp}/kept/{name}")
        run("-A", m, "-kernel", "measure", *BASE,
            *[w for o, name in names.items() for w in
              ([f"-{o}={name}"] if o == "monitor" else [f"-{o}", name])],
            cwd=tmp)
        for name in names.values():
            assert os.path.islink(f"{tmp}/{name}"), name
            assert os.path.getsize(f"{tmp}/kept/{name}") > 20, name
    assert sorted(os.listdir(f"{tmp}/kept")) == sorted(names.values())


def a_table_that_cannot_be_written_is_exit_7(tmp):
    import resource
    m = poisson(f"{tmp}/m.mtx", 8)

    def no_file_may_grow():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    p = run("-A", m, f"-monitor={tmp}/m.tsv", *BASE, code=7,
            preexec_fn=no_file_may_grow)
    assert b"m.tsv: File too large" in p.stderr, p.stderr
    assert not os.path.exists(f"{tmp}/m.tsv"), "an empty table is left"
    if os.path.exists("/dev/full"):
        p = run("-A", m, "-monitor=/dev/full", *BASE, code=7)
        assert b"/dev/full: No space left" in p.stderr, p.stderr


def runs_that_are_killed_leave_no_halves(tmp):
    """Killed while X is being written, then run again."""
    big, x = poisson(f"{tmp}/big.mtx", 120), f"{tmp}/out/x.mtx"
    os.mkdir(f"{tmp}/out")
    args = [SOLVE, "-A", big, "-nrhs", "32", "-maxit", "2", "-o", x, "-quiet",
            *BASE]

    def written():
        with open(x, "rb") as f:
            return f.read()
    began = time.time()
    subprocess.run(args, stderr=subprocess.DEVNULL)
    took, whole, r = time.time() - began, written(), random.Random(3)
    for _ in range(10):
        p = subprocess.Popen(args, stderr=subprocess.DEVNULL)
        time.sleep(took * r.uniform(0.4, 1))
        p.kill()
        p.wait()
        assert written() == whole
    subprocess.run(args, stderr=subprocess.DEVNULL)
    assert os.listdir(f"{tmp}/out") == ["x.mtx"], os.listdir(f"{tmp}/out")


# Python with SciPy, given A, b, the name f and the modules.
SCIPY = ("import numpy as n, scipy.io as i, scipy.sparse as s; "
         "A=s.diags([-1., 4, -1.], [-1, 0, 1], shape=(40, 40)).tocsr(); "
         "b=n.arange(1., 41); f='{}'; {}")


def scipy(tmp, name, statement):
    subprocess.run(["python3", "-c", SCIPY.format(name, statement)], cwd=tmp,
                   check=True)


def need_scipy():
    if subprocess.run(["python3", "-c", "import scipy.io"],
                      capture_output=True).returncode:
        raise Skip("no SciPy beside python3")


# Files of other programs that are not read: how SciPy writes each, for the
# command that the error suggests.
OTHERS = {
    "a.txt": "C = A.tocoo(); n.savetxt(f, n.c_[C.row + 1, C.col + 1, C.data],"
             " fmt='%d %d %.17g')",
}


def the_commands_of_refusals_convert(tmp):
    """Runs the command that `solve` suggests, and solves the result."""
    need_scipy()
    for name, make in OTHERS.items():
        scipy(tmp, name, make)
        p = run("-A", name, *BASE, code=3, cwd=tmp)
        text = p.stderr.decode()
        at = text.index("python3 -c")
        command = text[at:text.index('"', text.index('"', at) + 1) + 1]
        subprocess.run(["sh", "-c", command], cwd=tmp, check=True)
        run("-A", "A.mtx", *BASE, cwd=tmp)
        rows = read_matrix(f"{tmp}/A.mtx")
        assert sum(map(len, rows)) == 118, (name, len(rows))
    if subprocess.run(["sh", "-c", "bzip2 -k A.mtx"], cwd=tmp,
                      capture_output=True).returncode:
        raise Skip("no bzip2")
    p = run("-A", "A.mtx.bz2", *BASE, code=3, cwd=tmp)
    command = p.stderr.decode().strip().split("; ")[1]
    command = command.replace("spsolve -A -", f"{SOLVE} -A - -device cpu")
    subprocess.run(["sh", "-c", command], cwd=tmp, check=True,
                   capture_output=True)


# The same A, and b, as SciPy and NumPy write them.
MATRICES = {
    "csr.npz": "s.save_npz(f, A)",
    "csc.npz": "s.save_npz(f, A.tocsc(), compressed=False)",
    "coo.npz": "s.save_npz(f, A.tocoo())",
    "bsr.npz": "s.save_npz(f, A.tobsr((4, 2)))",
    "dia.npz": "s.save_npz(f, A.todia(), compressed=False)",
    "f4.npz": "s.save_npz(f, A.astype('f4'))",
    "i8.npz": "s.save_npz(f, A.astype('i8'))",
    "dense.npy": "n.save(f, A.toarray())",
    "v6.mat": "i.savemat(f, {'b': b, 'A': A})",
    "v7.mat": "i.savemat(f, {'b': b, 'A': A}, do_compression=True)",
    "struct.mat": "i.savemat(f, {'Problem': {'title': 'a', 'b': b, 'A': A}})",
    "dense.mat": "i.savemat(f, {'dense': A.toarray().astype('i2')})",
    "a.rua": "i.hb_write(f, A.tocsc())",
    "a.rsa": "i.hb_write('t', s.tril(A).tocsc()); open(f,'w').write("
             "open('t').read().replace('RUA', 'RSA'))",
    "a.petsc": "open(f,'wb').write(n.array([1211216, 40, 40, A.nnz], '>i4')"
               ".tobytes() + n.diff(A.indptr).astype('>i4').tobytes() + "
               "A.indices.astype('>i4').tobytes() + A.data.astype('>f8')"
               ".tobytes())",
}
BLOCKS = {
    "b.npy": "n.save(f, b)",
    "f.npy": "n.save(f, n.asfortranarray(b[:, None]))",
    "swapped.npy": "n.save(f, b.astype('>i2'))",
    "b.npz": "n.savez_compressed(f, b)",
    "b.mat": "i.savemat(f, {'b': b[:, None], 'A': A, 'rate': 0.5})",
    "b.petsc": "open(f,'wb').write(n.array([1211214, 40], '>i4').tobytes() + "
               "b.astype('>f8').tobytes())",
    "b.csv": "n.savetxt(f, b, delimiter=',')",
    "b.txt": "n.savetxt(f, b)",
}


def files_of_scipy_are_read(tmp):
    """Every kind gives the entries and numbers that Matrix Market gives."""
    need_scipy()
    scipy(tmp, "A.mtx", "i.mmwrite(f, A); i.mmwrite('b.mtx', b[:, None])")
    run("-A", "A.mtx", "-convert", "want.npy.mtx", "-quiet", cwd=tmp)
    run("-B", "b.mtx", "-convert", "want.npy", "-quiet", cwd=tmp)
    want = read_matrix(f"{tmp}/want.npy.mtx")
    for name, make in MATRICES.items():
        scipy(tmp, name, make)
        run("-A", name, "-convert", "got.mtx", "-quiet", cwd=tmp)
        got = [[(j, v) for j, v in sorted(dict(row).items()) if v]
               for row in read_matrix(f"{tmp}/got.mtx")]
        assert got == [sorted(dict(row).items()) for row in want], name
    for name, make in BLOCKS.items():
        scipy(tmp, name, make)
        run("-B", name, "-convert", "got.npy", "-quiet", cwd=tmp)
        with open(f"{tmp}/got.npy", "rb") as g, \
                open(f"{tmp}/want.npy", "rb") as w:
            assert g.read() == w.read(), name


def scipy_reads_what_is_written(tmp):
    need_scipy()
    scipy(tmp, "A.mtx", "i.mmwrite(f, A); n.save('b.npy', n.c_[b, 2 * b])")
    run("-A", "A.mtx", "-convert", "A.npz", "-quiet", cwd=tmp)
    for name in ("X.npy", "X.npz"):
        run("-B", "b.npy", "-convert", name, "-quiet", cwd=tmp)
    scipy(tmp, "A.npz", "C = s.load_npz(f); assert (C != A).nnz == 0; "
          "assert C.dtype == float and C.format == 'csr'; "
          "assert (n.load('X.npy') == n.c_[b, 2 * b]).all(); "
          "assert (n.load('X.npz')['X'] == n.c_[b, 2 * b]).all()")


def a_matrix_is_converted_there_and_back(tmp):
    """Through every kind that is written, to the same bytes."""
    poisson(f"{tmp}/a.mtx", 9)
    run("-A", "a.mtx", "-convert", "first.mtx", "-quiet", cwd=tmp)
    last = "a.mtx"
    for name in ("a.npz", "a.petsc", "b.npz.gz", "b.petsc.gz", "b.mtx.gz"):
        p = run("-A", last, "-convert", name, cwd=tmp)
        assert b"81 x 81" in p.stdout, p.stdout
        last = name
    run("-A", last, "-convert", "last.mtx", "-quiet", cwd=tmp)
    first = [sorted(row) for row in read_matrix(f"{tmp}/first.mtx")]
    assert first == [sorted(row) for row in read_matrix(f"{tmp}/last.mtx")]
    for pack, name in (("xz", "last.mtx.xz"), ("zstd", "last.mtx.zst")):
        if subprocess.run(["sh", "-c", f"{pack} -k last.mtx"], cwd=tmp,
                          capture_output=True).returncode == 0:
            run("-A", name, "-convert", "got.mtx", "-quiet", cwd=tmp)
            assert first == [sorted(row)
                             for row in read_matrix(f"{tmp}/got.mtx")]
    run("-convert", "x.npz", code=2, cwd=tmp)
    run("-A", "a.mtx", "-B", "a.mtx", "-convert", "x.npz", code=2, cwd=tmp)
    run("-A", "a.mtx", "-convert", "x.npz", "-o", "y", code=2, cwd=tmp)
    for name in ("x.npz.xz", "x.mtx.zst", "x.bz2"):
        run("-A", "a.mtx", "-convert", name, code=2, cwd=tmp)
        p = run("-A", "a.mtx", "-nrhs", "1", "-o", name, code=2, cwd=tmp)
        assert b"by gzip, not as" in p.stderr, p.stderr
        assert not os.path.exists(f"{tmp}/{name}")
    run("-A", "a.mtx", "-convert", "x.npy", code=2, cwd=tmp)
    assert not os.path.exists(f"{tmp}/x.npy")
    for name in ("x.h5", "x.hdf5", "x.pkl", "x.parquet"):
        p = run("-A", "a.mtx", "-convert", name, code=2, cwd=tmp)
        assert b"not written as" in p.stderr, p.stderr


def outputs_that_cannot_be_are_named(tmp):
    """-convert into a folder that is absent; a complex X for PETSc."""
    poisson(f"{tmp}/a.mtx", 3)
    write_array(f"{tmp}/b.mtx", [[1.0] * 9])
    for what in "-A", "-B":
        for kind in "npz", "npy", "petsc", "mtx":
            p = run(what, f"{what[1].lower()}.mtx", "-convert",
                    f"absent/c.{kind}", code=7, cwd=tmp)
            assert b"absent/c." in p.stderr, p.stderr
    with open(f"{tmp}/z.mtx", "w", encoding="ascii") as f:
        f.write("%%MatrixMarket matrix coordinate complex general\n"
                "2 2 2\n1 1 2 1\n2 2 3 0\n")
    for name in "x.petsc", "x.petsc.gz":
        p = run("-A", "z.mtx", "-nrhs", "1", "-o", name, code=2, cwd=tmp)
        assert b"complex X cannot be written" in p.stderr, p.stderr
        assert b"iterations" not in p.stdout, p.stdout
    with open(f"{tmp}/n.mtx", "w", encoding="ascii") as f:
        f.write("%%MatrixMarket matrix array real general\n1 1\nnan\n")
    p = run("-B", "n.mtx", "-convert", "m.mtx", code=3, cwd=tmp)
    assert b"allow-nonfinite" in p.stderr, p.stderr


def the_last_value_of_an_option_counts(tmp):
    poisson(f"{tmp}/a.mtx", 3)
    run("-A", "a.mtx", "-nrhs", "1", "-json", "r", "-nrhs", "2", *BASE,
        cwd=tmp)
    assert load_json(f"{tmp}/r")["nrhs"] == 2


def main():
    # Started in the background by a shell, this process has SIGINT ignored,
    # under nohup SIGHUP, and so would the programs that it signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    claims = [v for n, v in list(globals().items())
              if isinstance(v, types.FunctionType)
              and v.__code__.co_varnames[:1] == ("tmp",)
              and v.__code__.co_argcount == 1] \
        if len(sys.argv) < 2 else [globals()[n] for n in sys.argv[1:]]
    failures = 0
    for claim in claims:
        with tempfile.TemporaryDirectory() as tmp:
            began = time.time()
            try:
                claim(tmp)
                word = "ok"
            except Skip as e:             # counted by build-aux/summary.sh
                print(f"skip {claim.__name__}: {e}", flush=True)
                continue
            except Exception as e:        # report all, then fail
                word, failures = f"FAIL: {type(e).__name__}: {e}", failures + 1
        print(f"{claim.__name__}: {word} ({time.time() - began:.1f} s)",
              flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
