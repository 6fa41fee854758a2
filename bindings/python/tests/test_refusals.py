# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be right is refused, by a text that names the argument."""
import numpy as np
import pytest
import scipy.sparse as sp

from libspsolve import Preconditioner, eigsh, solve


@pytest.fixture
def B(rng):
    return rng.standard_normal((400, 3))


# ------------------------------------------------------------- coordinates

COORDS = {
    "3 coordinates for each": np.ones((400, 5)),
    "399 nodes": np.ones((399, 2)),
    "37 nodes": np.ones((37, 2)),
    "not finite": np.full((400, 2), np.nan),
    "coords is complex": np.ones((400, 2)) * 1j,
}


def coords_of(word, coords):
    return {"coords": coords}, "at most 3" if word.startswith("3") else word


@pytest.mark.parametrize("word", COORDS)
@pytest.mark.parametrize("precond", ["amg", "jacobi"])
def test_coordinates_that_do_not_fit(poisson, B, word, precond):
    wrong, text = coords_of(word, COORDS[word])
    for call in (lambda: solve(poisson, B, precond=precond, **wrong),
                 lambda: solve(poisson, B, reorder="morton", **wrong),
                 lambda: eigsh(poisson, 2, precond=precond, **wrong),
                 lambda: Preconditioner(poisson, precond, **wrong),
                 lambda: solve(lambda X: poisson @ X, B, **wrong)):
        with pytest.raises((TypeError, ValueError), match=text):
            call()


def test_coordinates_that_fit(poisson, B):
    for coords in (np.ones((400, 3)), np.arange(200.0), np.ones((100, 2))):
        r = solve(poisson, B, precond="jacobi", coords=coords)
        assert r.all_converged
