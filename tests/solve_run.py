# SPDX-License-Identifier: BSD-3-Clause
"""Runs `solve` and judges what comes out without its help: X is read back and
its residual computed here, JSON is parsed strictly, signals are sent at random
times, the memory of a dry run is compared with that of a real one.

SPS_TEST_PLACE=cuda runs them on the GPU.  SPS_LONG=1 makes the number of interruptions 50 and the sizes larger."""
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SOLVE = os.environ.get("SOLVE", "./tools/solve")
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
    assert report["schema_version"] == 1
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
    assert r["nullspace_dimension"] == 3 and r["nullspace_part_of_B"] > 0
    n = r["n"]
    write_array(f"{tmp}/z.mtx", [[float(i % 3 == c) for i in range(n)]
                                 for c in range(3)])
    run("-A", data("graph"), "-nrhs", 4, "-nullspace", f"{tmp}/z.mtx",
        "-json", out, *BASE)
    assert load_json(out)["nullspace_dimension"] == 3


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
    for eigs, curves in ((5, 5), (100, 34)):      # of many every third
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
    if os.environ.get("SANITIZE_FLAGS"):
        return                             # shadow memory is not ours
    for m, k in ((100, 8), (200, 16), (400 if LONG else 250, 32)):
        big = poisson(f"{tmp}/big.mtx", m)
        common = ["-A", big, "-nrhs", k, "-json", out, "-maxit", 5, "-o",
                  f"{tmp}/x.mtx", *BASE]
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
        # The writer's buffers are counted whole, for the longest numbers, and
        # touched as far as lines go: some 2 MB, which a small run shows.
        assert ratio >= 0.9, ratio
        assert said["bytes_host"] <= 1.1 * real["bytes_host"] + (2 << 20)
        assert abs(said["bytes_device"] - real["bytes_device"]) <= \
            0.1 * real["bytes_device"]


def dry_run_says_what_it_does_not_count(tmp):
    m = poisson(f"{tmp}/small.mtx", 20)
    for words, first, note in (([], True, False),
                               (["-solver", "gmres"], False, False),
                               (["-solver", "gmres", "-basis", "single"],
                                False, True)):
        p = run("-A", m, "-nrhs", 4, "-dry-run", *words, *BASE)
        line = [x for x in p.stdout.decode().splitlines() if "dry run:" in x]
        assert len(line) == 1, p.stdout
        assert ("first step of auto" in line[0]) == first, line
        assert ("what a note tells" in line[0]) == note, line
        assert (b"MB more" in p.stdout) == note, p.stdout


def shift(path, n):
    """A one right of the diagonal, cyclic: GMRES gains nothing before n."""
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
    """Host bytes that a dry run of -eigs tells, and that the run then took."""
    out, told = f"{tmp}/r.json", []
    for word in (["-dry-run"], []):
        run(*args, "-json", out, "-quiet", *word, *BASE)
        told.append(load_json(out)["bytes_host"])
    return told


def dry_run_tells_the_memory_of_eigenpairs(tmp):
    if os.environ.get("SANITIZE_FLAGS"):
        return
    big = poisson(f"{tmp}/big.mtx", 30)           # 900 rows
    large = poisson(f"{tmp}/large.mtx", 110)
    # Rows of factors under way have room for n entries, and few come.
    for args in ((big, "-eigs", 190),             # LAPACK: 4 n^2 numbers
                 (big, "-eigs", 8, "-precond", "ilut", "-verify-count"),
                 (big, "-eigs", 8, "-sigma", 1.7),
                 (big, "-eigs", 8, "-which", "largest", "-solver", "lobpcg"),
                 (big, "-eigs", 100),
                 (large, "-eigs", 16)):           # factors
        said, real = eigen_memory(("-A", *args), tmp)
        print(f"    {args[1:]}: dry run {said}, real {real}")
        assert real <= 1.1 * said, "more than was said"
        assert said <= (1.25 if args[0] == large else 1.15) * real, "far less"


def time_limit_reaches_eigenpairs_and_their_count(tmp):
    small = poisson(f"{tmp}/small.mtx", 40)       # LAPACK without the limit
    big = poisson(f"{tmp}/big.mtx", 60)
    for args in (["-A", small, "-eigs", 330],
                 ["-A", big, "-eigs", 8, "-which", "largest", "-rtol", "1e-13",
                  "-verify-count"]):
        run(*args, "-maxtime", 0.01, "-json", f"{tmp}/r.json", *BASE, code=1)
        r = load_json(f"{tmp}/r.json")
        took = r["seconds"]["solve"] + r["seconds"]["verify"]
        print(f"    {args[2:]}: {r['status']}, {took:.1f} s")
        assert r["status"] == "max_time" and r["solver"] == "lobpcg"
        assert took < 10, r["seconds"]


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
    big = poisson(f"{tmp}/big.mtx", 200)
    r, hit, late, wanted = random.Random(11), 0, 0, 50 if LONG else 8
    span = 1.0                # of time; shrinks where solves are faster
    os.mkdir(f"{tmp}/out")
    while hit < wanted and late < 4 * wanted:
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU)[
            hit % 3 if hit < 6 else 0]
        if interrupted(f"{tmp}/out", big, 4, number, r.uniform(0, span)):
            hit += 1
        else:
            late, span = late + 1, 0.8 * span
    print(f"    {hit} runs were ended by the signal, {late} were done before")
    assert hit == wanted


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


def main():
    # Started in the background by a shell, this process has SIGINT ignored,
    # and so would the programs that it sends one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    claims = [v for n, v in list(globals().items()) if callable(v)
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
            except Exception as e:        # tell all, then fail
                word, failures = f"FAIL: {type(e).__name__}: {e}", failures + 1
        print(f"{claim.__name__}: {word} ({time.time() - began:.1f} s)",
              flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
