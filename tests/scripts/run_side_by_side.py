#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the suites of a stage on its GPU, many processes at once: long suites case
by case, conform_kernels kernel by kernel.
  usage: run_side_by_side.py [-j JOBS] [-limit SECONDS] [-left FILE] [-gpus N]
                             [SUITE...]
Without suites, those of run-gpu-tests.  After SECONDS (3600) no job starts, and
those that run are ended.  Cases of a job run in one process, with two threads,
unless CK_FORK and OMP_NUM_THREADS say otherwise.  With N above 1 jobs see the
GPUs 0 to N - 1 in turn, one each.  FILE names the jobs of an earlier run that
were left; this one writes its own to $LOGS/left.  The environment is that of
run-gpu-tests: a skip on a GPU is a failure, unless by design.  A line for each
failure, the slowest jobs, and last: N passed, N failed, N left out by design,
N jobs left.  Logs are $LOGS/SUITE.CASE.log (default: tests/)."""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

STAGE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
LOGS = os.path.abspath(os.environ.get("LOGS", os.path.join(STAGE, "tests")))
# These take longest and start first, case by case.  All others are a job each.
LONG = ["api_brutal", "conform_kernels", "check_steps", "conform_best",
        "conform_best_ends", "conform_nonsymmetric", "conform_ranks",
        "properties", "conform_backend", "check_ranks", "check_ranks_solves",
        "conform_solvers", "conform_verdict", "conform_truth", "check_chain",
        "check_incomplete", "check_amg_set_up"]
# A process for each case, which loads the module anew, takes five times as long;
# these need it, because a case sees what an earlier one has loaded.
FORKED = ["check_factor_process"]


def environment():
    """That of `. ./env`, and the place under test."""
    text = subprocess.run(["sh", "-c", ". ./env && env -0"], cwd=STAGE,
                          check=True, capture_output=True, text=True).stdout
    env = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    env.setdefault("SPS_TEST_PLACE", "cuda")
    env.update(SPS_TEST_MODULE="1", OMP_WAIT_POLICY="passive")
    env.setdefault("OMP_NUM_THREADS", "2")
    env.setdefault("OPENBLAS_NUM_THREADS", "1")
    return env


ENV = environment()


def lines_of(command, pattern, **more):
    out = subprocess.run(command, cwd=STAGE, env={**ENV, **more},
                         capture_output=True, text=True).stdout
    return re.findall(pattern, out, re.M)


def placed():
    with open(os.path.join(STAGE, "run-gpu-tests"), encoding="utf-8") as f:
        return re.search(r"^placed='(.*)'", f.read(), re.M).group(1).split()


def jobs_of(suite):
    """(suite, case, kernel) of each job; "-": all of them."""
    if suite == "conform_kernels":
        kernels = lines_of([ENV["SOLVE"], "-device", ENV["SPS_TEST_PLACE"],
                            "-list"], r"\b(spm[mv]\.\w+)")
        return [(suite, "-", kernel) for kernel in sorted(set(kernels))]
    cases = []
    if suite in LONG:
        cases = lines_of([f"tests/{suite}"], r"^case (.*)$", SPS_TEST_LIST="1")
    return [(suite, case, "-") for case in cases or ["-"]]


def rank(job):
    return LONG.index(job[0]) if job[0] in LONG else len(LONG)


class Run:
    """One job: its log, its counts."""

    def __init__(self, job, gpu=None):
        self.job, self.gpu = job, gpu
        self.name = ".".join(w for w in job if w != "-")
        self.log = os.path.join(LOGS, self.name.replace("/", "_") + ".log")
        self.seconds = 0
        self.passed = self.failed = self.left_out = 0
        self.ended = False

    def run(self, deadline):
        start = time.time()
        if start >= deadline:
            return self
        env = dict(ENV)
        if self.job[0] not in FORKED:
            env.setdefault("CK_FORK", "no")
        if self.job[1] != "-":
            env["CK_RUN_CASE"] = self.job[1]
        if self.job[2] != "-":
            env["SPS_TEST_KERNEL"] = self.job[2]
        if self.gpu is not None:
            env["CUDA_VISIBLE_DEVICES"] = str(self.gpu)
        with open(self.log, "w", encoding="utf-8") as log:
            child = subprocess.Popen(
                [f"tests/{self.job[0]}"], cwd=STAGE, env=env, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = child.wait(deadline - start)
                self.ended = True
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                child.wait()
        self.seconds = time.time() - start
        if self.ended:
            self.count(code)
        return self

    def count(self, code):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            text = f.read()
        sums = re.findall(r"Checks: (\d+), Failures: (\d+), Errors: (\d+)",
                          text)
        tests = sum(int(s[0]) for s in sums)
        self.failed = sum(int(s[1]) + int(s[2]) for s in sums)
        self.left_out = len(re.findall(r"^skip by design", text, re.M))
        if ENV["SPS_TEST_PLACE"] == "cuda":
            self.failed += len(re.findall(r"^skip [^ ]*:", text, re.M))
        if (code and not self.failed) or not sums:
            self.failed, tests = max(self.failed, 1), max(tests, 1)
        self.passed = max(tests - self.failed - self.left_out, 0)
        if self.failed:
            told = [s for s in text.splitlines() if ":P:" not in s]
            print(f"failed: {self.name} (exit {code})\n    " +
                  "\n    ".join(told[-12:]), flush=True)


def main():
    a = argparse.ArgumentParser(usage=__doc__)
    a.add_argument("-j", type=int, default=os.cpu_count())
    a.add_argument("-limit", type=float, default=3600)
    a.add_argument("-left")
    a.add_argument("-gpus", type=int, default=1)
    a.add_argument("suites", nargs="*")
    a = a.parse_args()
    deadline = time.time() + a.limit
    os.makedirs(LOGS, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        if a.left:
            with open(a.left, encoding="utf-8") as f:
                jobs = [tuple(line.split("\t"))
                        for line in f.read().splitlines()]
        else:
            jobs = sum(pool.map(jobs_of, a.suites or placed()), [])
            jobs.sort(key=rank)
        gpus = [i % a.gpus if a.gpus > 1 else None for i in range(len(jobs))]
        runs = list(pool.map(lambda job, gpu: Run(job, gpu).run(deadline),
                             jobs, gpus))
    left = [r for r in runs if not r.ended]
    with open(os.path.join(LOGS, "left"), "w", encoding="utf-8") as f:
        f.writelines("\t".join(r.job) + "\n" for r in left)
    for r in sorted(runs, key=lambda r: -r.seconds)[:15]:
        print(f"{r.seconds:6.1f} s  {r.name}{'' if r.ended else '  (ended)'}")
    print(f"{len(jobs)} jobs, {a.limit + time.time() - deadline:.0f} s")
    passed, failed, out = (sum(getattr(r, k) for r in runs)
                           for k in ("passed", "failed", "left_out"))
    print(f"{passed} passed, {failed} failed, {out} left out by design, "
          f"{len(left)} jobs left")
    return 1 if failed or left else 0


sys.exit(main())
