# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that several tests use, and warnings as errors unless expected."""
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import libspsolve


@pytest.fixture(autouse=True)
def strict():
    """What the package warns of is a failure, unless the test expects it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", libspsolve.SpsolveWarning)
        yield


@pytest.fixture
def poisson():
    """5-point Laplacian, symmetric positive definite, 20 x 20 points."""
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(20, 20))
    one = sp.identity(20)
    return sp.csr_matrix(sp.kron(line, one) + sp.kron(one, line))


@pytest.fixture
def convection(poisson):
    """A nonsymmetric matrix."""
    n = poisson.shape[0]
    A = sp.csr_matrix(poisson + sp.diags([0.7, -0.2], [1, -3], shape=(n, n)))
    A.sort_indices()            # which sums of older versions of SciPy are not
    return A


@pytest.fixture
def rng():
    return np.random.default_rng(1)
