"""The leading singular vector of the K-SVD sweep, of any size, against `numpy.linalg.svd`."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from manifold_dl.kernels.reduced import SweepData, SweepState, ksvd
from manifold_dl.kernels.status import NOT_UNIQUE, OK


def swept(E, atom):
    """Status and atom after a sweep over the only atom, which all signals use with a code of zero."""
    n = len(E)
    places = np.arange(n, dtype=np.int32)
    indptr, zeros = np.arange(n + 1, dtype=np.int32), np.zeros(n, np.int32)
    data = SweepData(E.copy(), indptr, zeros, np.array([0, n]), places, places, np.zeros(n, bool))
    state = SweepState(np.array([atom]), np.zeros(n), E.copy())
    return ksvd.ksvd_sweep(np.array([0]), data, state, 0.0, False).status, state.atoms[0]


def matrix(n, m, values, rng):
    """A matrix with these singular values, and its leading right singular vector by LAPACK."""
    k = len(values)
    U, V = (np.linalg.qr(rng.standard_normal((size, k)))[0] for size in (n, m))
    E = (U * values) @ V.T
    return E, np.linalg.svd(E)[2][0]


def assert_same_line(found, expected, gap):
    # A vector is known to ε over the relative gap of the eigenvalues, and there are some roundings.
    sign = np.sign(found @ expected)
    np.testing.assert_allclose(sign * found, expected, rtol=0, atol=100 * np.finfo(float).eps / gap)


SIZES = [(64, 64), (64, 300), (300, 64), (65, 65), (65, 300), (300, 65), (193, 70), (128, 192), (400, 256)]


@pytest.mark.parametrize("second", [0.3, 0.9, 0.999, 0.99999])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_agrees_with_the_svd_at_any_gap_that_is_found(n, m, second):
    rng = np.random.default_rng([n, m])
    values = np.concatenate([[1.0, second], second * rng.random(min(n, m) - 2)])
    E, expected = matrix(n, m, values, rng)
    atom = rng.standard_normal(m)
    status, found = swept(E, atom / np.linalg.norm(atom))
    # A gap of 2e-5 among the largest of dense values may take more products than LAPACK does.
    assert status == OK or second == 0.99999
    if status == OK:
        assert_same_line(found, expected, 1 - second**2)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize(("n", "m"), [(90, 300), (300, 90)])
def test_does_not_depend_on_the_scale_of_the_signals(n, m, scale):
    rng = np.random.default_rng(0)
    E, expected = matrix(n, m, np.linspace(1, 0.1, 90), rng)
    status, found = swept(scale * E, np.eye(m)[0])
    assert status == OK
    assert_same_line(found, expected, 0.02)


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize(("n", "m"), [(90, 300), (300, 90)])
def test_matrix_of_low_rank(n, m, rank):
    rng = np.random.default_rng(rank)
    E, expected = matrix(n, m, 0.5 ** np.arange(rank), rng)
    status, found = swept(E, expected)  # nothing to gain: the first product shows nothing new
    assert status == OK
    assert_same_line(found, expected, 0.75)


@pytest.mark.parametrize(("n", "m"), [(90, 300), (300, 90)])
def test_atom_that_is_orthogonal_to_the_vector_finds_it(n, m):
    rng = np.random.default_rng(1)
    E, expected = matrix(n, m, np.linspace(1, 0.1, 90), rng)
    second = np.linalg.svd(E)[2][1]
    status, found = swept(E, second)  # an eigenvector, but not the leading one
    assert status == OK
    assert_same_line(found, expected, 0.02)


@pytest.mark.parametrize(("n", "m"), [(64, 64), (90, 300), (300, 90)])
def test_tie_is_left_to_the_caller(n, m):
    rng = np.random.default_rng(2)
    E, vector = matrix(n, m, [1.0, 1.0, *np.linspace(0.9, 0.1, 60)], rng)
    assert swept(E, vector)[0] == NOT_UNIQUE
    assert swept(np.full((n, m), np.nan), vector)[0] == NOT_UNIQUE


@pytest.mark.parametrize(("n", "m"), [(64, 4000), (90, 4000), (4000, 200)])
def test_threads_of_the_library_do_not_change_a_bit(n, m):
    E = np.random.default_rng(3).standard_normal((n, m))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(swept(E, np.eye(m)[0]))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
