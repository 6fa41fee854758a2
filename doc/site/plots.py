# SPDX-License-Identifier: BSD-3-Clause
"""The plots of the pages: each runs the Python blocks of its page and draws
what they have computed, so that a page and its plot do not disagree."""
import doctest
import os

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def names_of(page):
    """The variables that the blocks of a page leave behind."""
    with open(page, encoding="utf-8") as f:
        examples = doctest.DocTestParser().get_examples(f.read())
    names = {}
    for example in examples:
        exec(compile(example.source, page, "exec"), names)
    return names


def poisson(v, ax):
    v["r"].plot(ax)


def modes(v, ax):
    m, V = v["m"], v["V"]
    ax.imshow(np.hstack([V[:, j].reshape(m, m) for j in range(4)]),
              cmap="RdBu")
    ax.set_axis_off()


def partition(v, ax):
    ax.plot(v["V"][:, 0], ".")
    ax.axhline(0, color="gray")
    ax.set_xlabel("vertex")


def circuit(v, ax):
    frequencies = 10.0 ** np.linspace(-2, 2, 9)
    G, C, currents = v["G"], v["C"], v["currents"][:, :1]
    volts = [abs(v["libspsolve"].solve(
        v["sp"].csr_matrix(G + 1j * w * C), currents, M="ilut",
        solver="gmres").X[10, 0]) for w in frequencies]
    ax.loglog(frequencies, volts, "o-")
    ax.set_xlabel("frequency")
    ax.set_ylabel("voltage at node 10")


def least_squares(v, ax):
    ax.plot(v["r"].X - v["heights"], ".")
    ax.set_xlabel("point")
    ax.set_ylabel("error of its height")


def draw(folder):
    for f in (poisson, modes, partition, circuit, least_squares):
        figure, ax = pyplot.subplots(figsize=(6, 2.6), layout="constrained")
        f(names_of(os.path.join(folder, f.__name__ + ".md")), ax)
        figure.savefig(os.path.join(folder, f.__name__ + "_plot.svg"))
        pyplot.close(figure)
