#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `mpirun -n P spsolve`: one report, one X, the exit codes of one process, and
# one error whichever process fails; mtxgen and spbench; with each MPI whose
# module is built.
solve=${SOLVE:-./tools/spsolve}
data=${srcdir:-.}/data
modules=./.libs
ls $modules/spsolve_mpi-*.so >/dev/null 2>&1 ||
    { echo "skipped: built without MPI"; exit 77; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0 ran=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
# Open MPI refuses root, and more processes than cores, unless told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_base_warn_component_unused=0
# A second less for each run that ends with another code than 0.
export OMPI_MCA_odls_base_sigkill_timeout=0
command -v ssh >/dev/null || export OMPI_MCA_plm=isolated

# expect CODE PROCESSES ARGUMENT...: the exit code; on standard error at most
# one line of the command
expect() {
    code=$1 count=$2; shift 2
    timeout 120 $mpirun -n "$count" "$solve" "$@" >"$tmp/out" 2>"$tmp/err" \
        </dev/null
    got=$?
    [ $got -eq "$code" ] || {
        fail "$name, $count processes: $*: exit $got, not $code"
        cat "$tmp/out" "$tmp/err"
    }
    [ "$(grep -c '^spsolve: ' "$tmp/err")" -le 1 ] || {
        fail "$name, $count processes: $*: more than one error"
        cat "$tmp/err"
    }
}
# said WORDS: the one line of standard error has them
said() {
    grep '^spsolve: ' "$tmp/err" | grep -qF -- "$1" || {
        fail "$name: '$1' is not in:"; cat "$tmp/err"
    }
}
# near FILE FILE: array files of the same numbers, up to 1e-6 of the largest
near() {
    awk 'FNR == 1 { f++ } /^%/ { next }
         f == 1 { a[FNR] = $1; big = $1 > big ? $1 : -$1 > big ? -$1 : big }
         f == 2 { d = a[FNR] - $1; n++; if (d * d > w) w = d * d }
         END { exit !(n > 1 && w <= 1e-12 * big * big) }' "$1" "$2"
}

p2=$data/poisson2d.mtx
alone="$tmp/alone.mtx"
quick="-nrhs 3 -threads 1 -seed 5"

# Methods with 2 and 3 processes in turn.  The second MPI runs what depends on
# MPI only, with 3 processes: on two cores, too, where they must yield while they
# wait.
solves_as_one() {
    count=$((ran == 1 ? 2 : 3))
    awk '/^%/ { next } { print "%%MatrixMarket matrix array real general"
         print $1, 1; for (i = 1; i <= $1; i++) print 1 + i % 3 / 8; exit }' \
        "$p2" >"$tmp/near.mtx"
    for words in "-solver block_cg -precond jacobi" "-solver auto" \
        "-solver gmres -precond ilu0" "-solver idr -precond amg" \
        "-solver block_cg -precond amg -near-null $tmp/near.mtx"; do
        [ $ran = 1 ] || [ "$words" = "-solver auto" ] || continue
        rm -f "$tmp/x.mtx"
        expect 0 $count -A "$p2" $quick $words -o "$tmp/x.mtx" \
            -json "$tmp/r.json"
        [ "$(grep -c 'A X = B$' "$tmp/out")" = 1 ] || fail "$name: not one report"
        grep -q "\"processes\": $count" "$tmp/r.json" ||
            fail "$name: the JSON report has not $count processes"
        near "$alone" "$tmp/x.mtx" || fail "$name, $count processes, $words:" \
            "another X"
        count=$((5 - count))
    done
}

# -across-ranks: the bits of X are those of one process.
same_bits() {
    words="-A $data/poisson3d.mtx $quick -across-ranks -precond chebyshev"
    "$solve" $words -o "$tmp/bits.mtx" >/dev/null || fail "-across-ranks: $?"
    "$solve" $words -quiet -o "$tmp/x.mtx.gz" || fail "-across-ranks, .gz: $?"
    gzip -dc "$tmp/x.mtx.gz" | cmp -s - "$tmp/bits.mtx" ||
        fail "-across-ranks: another X in x.mtx.gz"
    expect 0 3 $words -o "$tmp/x.mtx" -json "$tmp/r.json"
    cmp -s "$tmp/x.mtx" "$tmp/bits.mtx" || fail "$name: other bits of X"
    grep -q '"across_ranks": true' "$tmp/r.json" || fail "not in the report"
    expect 2 2 -A "$p2" -across-ranks -precond ic0
    said "with across_ranks, since it depends on the division"
    "$solve" -A "$p2" -across-ranks -laplacian 2>"$tmp/err" >/dev/null
    [ $? = 2 ] || fail "-across-ranks -laplacian"
    said "-laplacian is not supported with -across-ranks"
}

# All pairs of a method and a preconditioner: 2, 3 and 8 processes come to the
# verdict of one, unless they refuse the pair, which all do.  With across_ranks
# after as many iterations.
every_pair() {
    [ "$SPS_TEST_LONG" = 1 ] || return 0
    "$mtxgen" poisson7 6 -quiet -o "$tmp/grid.mtx"
    for how in "" across; do
        for count in 1 2 3 8; do
            timeout 1200 $mpirun -n $count ./tests/mpi_pairs "$tmp/grid.mtx" \
                $how >"$tmp/pairs.$count" 2>"$tmp/err" ||
                { fail "$name: pairs, $count processes $how:"; cat "$tmp/err"; }
        done
        awk -v fields=$((${#how} > 0 ? 4 : 3)) '
            FNR == 1 { file++ }
            { got = $3 (fields > 3 ? " " $4 : ""); pair = $1 " " $2 }
            file == 1 { one[pair] = got; next }
            file == 2 { two[pair] = got; counts += $4 > 0
                          if ($4 == 0) next }
            got != ($4 > 0 ? one[pair] : two[pair]) {
                print pair ": " got " in " FILENAME ", not " one[pair]; bad++ }
            END { print counts " pairs"; exit bad > 0 || counts < least }
            ' least=$((${#how} > 0 ? 30 : 80)) "$tmp/pairs.1" "$tmp/pairs.2" \
            "$tmp/pairs.3" "$tmp/pairs.8" >"$tmp/out" ||
            { fail "$name: pairs $how:"; cat "$tmp/out"; }
    done
}

# 64 processes, in fewer than 100 sums; on two cores it takes half a minute.
very_many() {
    [ "$SPS_TEST_LONG" = 1 ] || return 0
    expect 0 64 -A "$p2" $quick -solver block_cg -precond jacobi -rtol 1e-2
    grep -q 'processes   64' "$tmp/out" || fail "$name: not 64 processes"
}

# Row 51 has the shares of two processes of three: each has one row
# nevertheless.
shares_rows() {
    awk 'BEGIN { n = 101
        print "%%MatrixMarket matrix coordinate real general"
        print n, n, 2 * n - 1
        for (i = 1; i <= n; i++) print i, i, i == 51 ? 200 : 4
        for (i = 1; i <= n; i++) if (i != 51) print 51, i, -1
    }' >"$tmp/heavy.mtx"
    expect 0 3 -A "$tmp/heavy.mtx" $quick -solver gmres -precond none \
        -json "$tmp/r.json"
    # The process of row 51 has 50 others, and needs the other 50.
    grep -q '  halo        50 rows, 49.5 % of all, .* at most 50 ' \
        "$tmp/out" && grep -q '"halo_rows": 50,' "$tmp/r.json" ||
        { fail "$name: another halo:"; cat "$tmp/out"; }
    # Rows 34 to 67 are one process's.
    expect 0 3 -A "$tmp/heavy.mtx" $quick -solver gmres -precond none \
        -partition rows
    grep -q '  halo        67 rows' "$tmp/out" ||
        { fail "$name: -partition rows, another halo:"; cat "$tmp/out"; }
}

# Row i of the file is point 331 i mod 900 of a grid: rows move to other
# processes, and X comes back.
moves_rows() {
    awk -v places="$tmp/places.mtx" 'BEGIN { m = 30; n = m * m
        for (i = n - 1; i >= 0; i--) { c = i * 331 % n; at[i] = c; to[c] = i }
        print "%%MatrixMarket matrix coordinate real general"
        print n, n, 5 * n - 4 * m
        print "%%MatrixMarket matrix array real general" >places
        print n, 2 >places
        for (i = 0; i < n; i++) {
            c = at[i]; x = c % m; y = int(c / m)
            print i + 1, i + 1, 4
            if (x > 0) print i + 1, to[c - 1] + 1, -1
            if (x < m - 1) print i + 1, to[c + 1] + 1, -1
            if (y > 0) print i + 1, to[c - m] + 1, -1
            if (y < m - 1) print i + 1, to[c + m] + 1, -1
        }
        for (i = 0; i < n; i++) print at[i] % m >places
        for (i = 0; i < n; i++) print int(at[i] / m) >places
    }' >"$tmp/mixed.mtx"
    expect 0 3 -A "$tmp/mixed.mtx" $quick -solver block_cg -precond jacobi \
        -rtol 1e-10 -o "$tmp/rows.mtx"
    before=$(sed -n 's/  halo  *\([0-9]*\) rows.*/\1/p' "$tmp/out")
    for how in morton metis; do
        expect 0 3 -A "$tmp/mixed.mtx" $quick -solver block_cg -precond jacobi \
            -rtol 1e-10 -coords "$tmp/places.mtx" -partition $how \
            -o "$tmp/moved.mtx"
        [ "$(sed -n 's/  halo  *\([0-9]*\) rows.*/\1/p' "$tmp/out")" -lt \
          $((before / 2)) ] || { fail "$name: $how: halo"; cat "$tmp/out"; }
        near "$tmp/rows.mtx" "$tmp/moved.mtx" || fail "$name: $how: other X"
    done
    expect 2 3 -A "$tmp/mixed.mtx" $quick -partition morton
    gzip -c "$tmp/places.mtx" >"$tmp/places.mtx.gz"
    expect 0 3 -A "$tmp/mixed.mtx" $quick -solver block_cg -precond jacobi \
        -rtol 1e-10 -coords "$tmp/places.mtx.gz" -partition morton \
        -o "$tmp/moved.mtx"
    near "$tmp/rows.mtx" "$tmp/moved.mtx" || fail "$name: .gz: other X"
    expect 3 3 -A "$tmp/mixed.mtx" $quick -coords "$tmp/mixed.mtx"
    said "mixed.mtx: 900 coordinates for each node; there must be 1 to 3"
    expect 3 2 -A "$p2" $quick -coords "$tmp/nowhere.mtx"
    said "nowhere.mtx"
    echo "%%MatrixMarket matrix array real general
450 1" >"$tmp/few.mtx"
    seq 449 >>"$tmp/few.mtx"
    expect 3 3 -A "$tmp/mixed.mtx" $quick -coords "$tmp/few.mtx"
    said "few.mtx:451: too few"
}

# The eigenvalues of A, and of A x = lambda M x with M = A, which are 1.
finds_pairs() {
    expect 0 3 -A "$p2" -eigs 3 -threads 1 -o "$tmp/x.mtx"
    grep -q '  1   2.05227064324194[0-9]*e-02 ' "$tmp/out" &&
        grep -q '  3   5.120147071122[0-9]*e-02 ' "$tmp/out" ||
        { fail "$name: other eigenvalues:"; cat "$tmp/out"; }
    [ "$(grep -c . "$tmp/x.mtx")" -ge 2700 ] || fail "$name: other vectors"
    expect 0 2 -A "$p2" -mass "$p2" -eigs 2 -threads 1 -solver lobpcg
    grep -q '  2   1.00000000000[0-9]*e+00 ' "$tmp/out" ||
        { fail "$name: M = A, other eigenvalues:"; cat "$tmp/out"; }
    grep -q '  mass .*: 4 380 entries' "$tmp/out" ||
        fail "$name: not the entries of the whole M"
}

ends_as_one() {
    expect 1 2 -A "$p2" $quick -solver cg -precond none -max-iterations 2
    expect 2 $((ran == 1 ? 3 : 2)) -A "$p2" $quick -precond dense
    said "dense is not supported for a matrix over several processes"
    [ $ran = 1 ] || return 0
    expect 2 2 -A "$p2" -no-such-option
    expect 2 2 -A "$p2" -eigs 3 -sigma 1
    said "-sigma is not supported with several processes"
    expect 2 2 -A -
    said "-A - is not supported with several processes"
    expect 3 2 -A "$tmp/nowhere.mtx"
    said "nowhere.mtx"
    [ ! -c /dev/full ] || expect 7 2 -A "$p2" $quick -o /dev/full
    # Written by process 0, for all.
    expect 0 3 -A "$p2" $quick -rtol 1e-12 -o "$tmp/x.mtx.gz"
    gzip -dc "$tmp/x.mtx.gz" >"$tmp/x.mtx"
    near "$alone" "$tmp/x.mtx" || fail "$name: another X in x.mtx.gz"
    timeout 120 $mpirun -n 2 "$solve" -A "$p2" $quick -mpi none >"$tmp/out" 2>&1
    [ "$(grep -c 'A X = B$' "$tmp/out")" = 2 ] ||
        fail "$name: -mpi none is not two runs"
}

# The file of process 1 is another one.
one_fails() {
    cat >"$tmp/other.sh" <<END
rank=\${OMPI_COMM_WORLD_RANK-\$PMI_RANK}
A=$p2
[ "\$rank" != 1 ] || A=$tmp/nowhere.mtx
exec "$solve" -A "\$A" $quick
END
    timeout 120 $mpirun -n 3 sh "$tmp/other.sh" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = 3 ] || fail "$name: a file missing for one process: exit $got"
    said "process 1 of 3: "
    [ "$(grep -c '^spsolve: ' "$tmp/err")" = 1 ] || fail "$name: errors twice"
    [ $ran = 1 ] || return 0
    # M, before a block.
    cat >"$tmp/other.sh" <<END
M=$p2
[ "\$OMPI_COMM_WORLD_RANK\$PMI_RANK" != 1 ] || M=$tmp/nowhere.mtx
exec "$solve" -A $p2 -eigs 2 -mass "\$M" -constraints $alone -threads 1
END
    timeout 120 $mpirun -n 3 sh "$tmp/other.sh" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = 3 ] || fail "$name: M missing for one process: exit $got"
    said "process 1 of 3: "
}

# Blocks from files: each process has its rows of them.
reads_blocks() {
    "$solve" -A "$p2" -B "$alone" -x0 "$alone" -threads 1 -device cpu \
        -rtol 1e-12 -o "$tmp/b.mtx" >/dev/null || fail "one process, -B"
    expect 0 3 -A "$p2" -B "$alone" -x0 "$alone" -threads 1 -rtol 1e-12 \
        -o "$tmp/x.mtx"
    near "$tmp/b.mtx" "$tmp/x.mtx" || fail "$name: -B: another X"
    gzip -c "$alone" >"$tmp/b.mtx.gz"
    expect 0 2 -A "$p2" -B "$tmp/b.mtx.gz" -threads 1 -rtol 1e-12 \
        -o "$tmp/x.mtx"
    near "$tmp/b.mtx" "$tmp/x.mtx" || fail "$name: -B packed: another X"
    expect 3 2 -A "$tmp/large.mtx" -B "$alone" -threads 1
    said "900 rows, but the matrix has 64000"
}

# A disk that is full for one process or for both: one error, and no file.
disk_is_full() {
    mkdir -p "$tmp/small"
    unshare -rm true 2>/dev/null && unshare -rm mount -t tmpfs -o size=12k \
        none "$tmp/small" 2>/dev/null ||
        { echo "skip full disk: no file system can be mounted here"; return; }
    cat >"$tmp/full.sh" <<END
mount -t tmpfs -o size=12k none $tmp/small || exit 99
timeout 120 $mpirun -n 2 "$solve" -A $p2 -threads 1 -o $tmp/small/x.mtx \
    >$tmp/out 2>$tmp/err
got=\$?
ls $tmp/small >>$tmp/out
exit \$got
END
    unshare -rm sh "$tmp/full.sh"
    got=$?
    [ $got = 7 ] || fail "$name: a full disk: exit $got, not 7"
    said "cannot write: No space left on device"
    [ "$(grep -c '^spsolve: ' "$tmp/err")" = 1 ] || fail "$name: errors twice"
    ! grep 'x\.mtx' "$tmp/out" | grep -qv written ||
        fail "$name: a file is left on a full disk"
}

# start_long ARGUMENT...: begins a solve of 4000 iterations by two processes, and
# waits for the first.  pid: of `timeout`.
start_long() {
    cat >"$tmp/long.sh" <<END
echo \$\$ >$tmp/pid.\${OMPI_COMM_WORLD_RANK-\$PMI_RANK}
exec "$solve" -A $tmp/large.mtx -nrhs 16 -threads 1 -precond none -solver cg \
    -max-iterations 100000 -monitor=$tmp/table -rtol 1e-13 $*
END
    rm -f "$tmp"/pid.* "$tmp/table" "$tmp/x.mtx"
    # 5 s with a core for each process and one for mpirun, which else waits for
    # its turn.
    limit=$(awk -v n="$(nproc)" '{ print $1 + 3 <= n ? 5 : 30 }' /proc/loadavg)
    timeout -k 5 120 $mpirun -n 2 sh "$tmp/long.sh" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    for i in $(seq 300); do
        [ "$(grep -c . "$tmp/table" 2>/dev/null)" -gt 3 ] 2>/dev/null && break
        sleep 0.1
    done
    before=$(date +%s)
}
# ends_soon WHY: long before `timeout` ends it; got: the exit code
ends_soon() {
    wait $pid; got=$?
    seconds=$(($(date +%s) - before))
    [ $seconds -le $limit ] || fail "$name: $1: it ended after $seconds s"
}

# A process that is killed ends all.
one_is_killed() {
    start_long
    kill -9 "$(cat "$tmp/pid.1")" || fail "$name: it had ended before"
    ends_soon "a process is killed"
    [ $got -ne 0 ] || fail "$name: a killed process, and exit 0"
}

# Ctrl-C for one process, or for mpirun, and a limit of time: all stop after the
# same iteration, and write its X.
is_interrupted() {
    for who in 1 mpirun; do
        # Open MPI kills its processes so long after its own SIGINT.
        [ $who = 1 ] || export OMPI_MCA_odls_base_sigkill_timeout=2
        start_long -o "$tmp/x.mtx"
        # mpirun is the child of `timeout`.
        [ $who = 1 ] && to=$(cat "$tmp/pid.1") || to=$(cat /proc/$pid/task/$pid/children)
        kill -INT $to || fail "$name: it had ended before"
        ends_soon "SIGINT for $who"
        export OMPI_MCA_odls_base_sigkill_timeout=0
        [ $got = 130 ] || [ $who = mpirun ] || fail "$name: SIGINT: exit $got"
        stopped_early "interrupted"
    done
    start_long -o "$tmp/x.mtx" -max-seconds $((limit > 5 ? 10 : 3))
    ends_soon "a limit of time"
    [ $got = 1 ] || fail "$name: -max-seconds: exit $got"
    stopped_early "limit"
}
# stopped_early WORD: one report that has it, and the whole X
stopped_early() {
    [ "$(grep -c "^  status .*$1" "$tmp/out")" = 1 ] ||
        { fail "$name: not one report of '$1':"; cat "$tmp/out" "$tmp/err"; }
    [ "$(grep -vc '^%' "$tmp/x.mtx")" = $((16 * 64000 + 1)) ] ||
        fail "$name: $1: not the whole X"
}

# same FILE FILE: equal, but for the line of the command
same() {
    sed 2d "$1" >"$tmp/one"; sed 2d "$2" | cmp -s "$tmp/one" -
}

# mtxgen writes the file of one process, each process its rows.
generates() {
    system="laplace27 20 -perturb 3"
    "$mtxgen" $system -quiet -o "$tmp/g1.mtx" -coords "$tmp/c1.mtx"
    rm -f "$tmp/g.mtx" "$tmp/c.mtx"
    timeout 120 $mpirun -n $1 "$mtxgen" $system -o "$tmp/g.mtx" \
        -coords "$tmp/c.mtx" -threads 1 >"$tmp/out" 2>"$tmp/err" ||
        fail "$name: mtxgen: exit $?"
    [ "$(grep -c '^mtxgen: ' "$tmp/err")" = 2 ] || fail "$name: mtxgen: reports"
    same "$tmp/g1.mtx" "$tmp/g.mtx" || fail "$name: mtxgen: another matrix"
    same "$tmp/c1.mtx" "$tmp/c.mtx" || fail "$name: mtxgen: other coordinates"
    timeout 120 $mpirun -n $1 "$mtxgen" $system -quiet -o "$tmp/nowhere/g.mtx" \
        >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got = 7 ] || fail "$name: mtxgen, no folder: exit $got"
    [ "$(grep -c '^mtxgen: .*No such file' "$tmp/err")" = 1 ] ||
        { fail "$name: mtxgen: not one error:"; cat "$tmp/err"; }
    [ $ran = 1 ] || return 0
    timeout 120 $mpirun -n $1 "$mtxgen" $system -quiet -o "$tmp/g.mtx.gz" \
        2>"$tmp/err" || fail "$name: mtxgen, .gz: exit $?"
    gzip -dc "$tmp/g.mtx.gz" >"$tmp/g.mtx"
    same "$tmp/g1.mtx" "$tmp/g.mtx" || fail "$name: mtxgen: another .gz"
    timeout 120 $mpirun -n $1 "$mtxgen" $system >"$tmp/g.mtx" 2>"$tmp/err" ||
        fail "$name: mtxgen, standard output: exit $?"
    same "$tmp/g1.mtx" "$tmp/g.mtx" || fail "$name: mtxgen: another output"
    [ ! -c /dev/full ] || {
        timeout 120 $mpirun -n $1 "$mtxgen" $system -o /dev/full 2>"$tmp/err"
        got=$?
        [ $got = 7 ] && grep -q '^mtxgen: /dev/full cannot' "$tmp/err" ||
            fail "$name: mtxgen, a full disk: exit $got"
    }
    timeout 120 $mpirun -n 2 "$mtxgen" poisson7 2 -mpi none >"$tmp/out" \
        2>"$tmp/err"
    [ "$(grep -c '^8 8 20$' "$tmp/out")" = 2 ] ||
        fail "$name: mtxgen -mpi none is not two runs"
}

# spbench generates the rows of each process in place; the iterations are those
# of one process.
benches() {
    for system in "convection 10 -perturb 1" "-A $p2"; do
        words="$system -solve -k 2 -solver gmres -threads 1 -device cpu"
        "$spbench" $words >"$tmp/g1" || fail "spbench: exit $?"
        timeout 120 $mpirun -n $1 "$spbench" $words >"$tmp/out" 2>"$tmp/err" ||
            fail "$name: spbench: exit $?"
        awk -F '|' '/^solve: / { n += /'$1' processes, each / }
            / (first|again) / { r++; got[FILENAME] = got[FILENAME] $5 }
            END { exit !(n == 1 && r == 4 && got[ARGV[1]] == got[ARGV[2]]) }' \
            "$tmp/g1" "$tmp/out" ||
            { fail "$name: spbench $system:"; cat "$tmp/g1" "$tmp/out"; }
        [ $ran = 1 ] || return 0
    done
    for words in "poisson7 5 -k 1" "leastsquares 60 20 -solve" \
        "poisson7 5 -solve -precond dense"; do
        timeout 120 $mpirun -n $1 "$spbench" $words >"$tmp/out" 2>"$tmp/err"
        got=$?
        [ $got = 2 ] && [ "$(grep -c '^spbench: ' "$tmp/err")" = 1 ] ||
            { fail "$name: spbench $words: exit $got"; cat "$tmp/err"; }
    done
}

mtxgen=${MTXGEN:-./tools/mtxgen} spbench=${SPBENCH:-./tools/spbench}
"$mtxgen" poisson7 40 -aniso 1000 -jump -o "$tmp/large.mtx" 2>/dev/null ||
    { echo "no mtxgen"; exit 99; }
"$solve" -A "$p2" $quick -device cpu -rtol 1e-12 -o "$alone" >/dev/null ||
    fail "one process"
for name in openmpi mpich; do
    [ -f $modules/spsolve_mpi-$name.so ] || continue
    mpirun=
    for try in mpirun.$name mpiexec.$name mpirun; do
        command -v $try >/dev/null || continue
        case $name,$($try --version 2>&1 | tr '\n' ' ') in
        openmpi,*"Open MPI"* | openmpi,*OpenRTE* | mpich,*HYDRA* | \
        mpich,*MPICH*) mpirun=$try; break ;;
        esac
    done
    if [ -z "$mpirun" ] || ! timeout 60 $mpirun -n 2 true 2>/dev/null; then
        echo "skip $name: its mpirun starts no processes here"
        continue
    fi
    ran=$((ran + 1))
    solves_as_one
    [ $ran -gt 1 ] || same_bits
    [ $ran -gt 1 ] || very_many
    every_pair
    [ $ran -gt 1 ] || shares_rows
    [ $ran -gt 1 ] || ! grep -q 'SPS_HAVE_METIS' Makefile || moves_rows
    [ $ran -gt 1 ] || finds_pairs
    [ $ran -gt 1 ] || reads_blocks
    ends_as_one
    one_fails
    [ $ran -gt 1 ] || disk_is_full
    one_is_killed
    is_interrupted
    generates 3
    benches 3
    said=$(timeout 120 $mpirun -n 3 ./examples/mpi_poisson 12 2>/dev/null)
    case $said in
    "3 processes, 1728 unknowns, 4 columns: converged"*) ;;
    *) fail "$name: mpi_poisson: $said" ;;
    esac
done
[ $ran -gt 0 ] || exit 77
[ $failures -eq 0 ] && echo "several processes: good"
exit $((failures > 0))
