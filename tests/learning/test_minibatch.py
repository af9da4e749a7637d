"""Learning from a stream: great circles, the online state, and convergence."""

import numpy as np
import pytest

from manifold_dl import KSVD, MOD, OMP, SimCO, datasets, metrics
from manifold_dl.learning.minibatch import FORGETTING, OnlineState, geodesic_interpolate, online_step

D_TRUE, _, Y = datasets.synthetic(8, 12, 6000, sparsity=2, rng=0)
START = Y[:, :12] / np.linalg.norm(Y[:, :12], axis=0)
CODER = OMP(sparsity=2)


def angle(a, b):
    """Between unit columns, without the arccosine's loss of digits at small angles."""
    return 2 * np.arcsin(np.linalg.norm(a - b, axis=0) / 2)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_geodesic_interpolation_moves_by_the_fraction_of_the_angle(fraction):
    rng = np.random.default_rng(0)
    A, B = (M / np.linalg.norm(M, axis=0) for M in rng.standard_normal((2, 5, 7)))
    moved = geodesic_interpolate(A, B, fraction)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=0), 1, rtol=1e-15)
    # Angles of about 1 from entries with 16 digits.
    np.testing.assert_allclose(angle(A, moved), fraction * angle(A, B), atol=1e-14)
    np.testing.assert_allclose(angle(moved, B), (1 - fraction) * angle(A, B), atol=1e-14)


def test_geodesic_interpolation_to_the_same_point_keeps_the_bits():
    np.testing.assert_array_equal(geodesic_interpolate(np.eye(3), np.eye(3), 0.7), np.eye(3))


def test_first_batch_moves_atoms_all_the_way():
    batch = Y[:, :100]
    D, state, step = online_step(batch, START, OnlineState(np.zeros(12)), CODER, SimCO(mu=0.1))
    expected, codes = SimCO(mu=0.1)(batch, START, CODER.encode(batch, START), iteration=0)
    np.testing.assert_allclose(D, expected, atol=1e-15)  # unit atoms, rounded once more
    np.testing.assert_allclose(state.energy, np.sum(codes.toarray() ** 2, axis=1), rtol=1e-12)
    assert state.seen == 100
    # The step shows how well the dictionary did before it learned from the batch.
    before = CODER.encode(batch, START)
    assert step.loss == pytest.approx(np.sum((batch - START @ before) ** 2) / 100, rel=1e-12)


def test_later_batches_move_atoms_by_their_fraction_of_the_energy():
    batch, known = Y[:, 100:150], OnlineState(np.linspace(1, 40, 12), seen=100)
    D, state, _ = online_step(batch, START, known, CODER, SimCO(mu=0.1), iteration=1)
    goal, codes = SimCO(mu=0.1)(batch, START, CODER.encode(batch, START), iteration=0)
    new = np.sum(codes.toarray() ** 2, axis=1)
    energy = (100 / 150) ** FORGETTING * known.energy + new
    np.testing.assert_allclose(state.energy, energy, rtol=1e-12)
    np.testing.assert_allclose(angle(START, D), new / energy * angle(START, goal), atol=1e-14)


def test_online_state_keeps_step_lengths_between_batches():
    searching = SimCO(mu=0.1)
    _, state, _ = online_step(Y[:, :100], START, OnlineState(np.zeros(12)), CODER, searching)
    assert state.memory and all(0 < t < np.inf for t in state.memory.values())
    assert SimCO(mu=0.1).begin(memory=state.memory).memory == state.memory


def test_atoms_unused_by_a_batch_do_not_move():
    batch = START[:, :3] * 5.0
    D, state, _ = online_step(batch, START, OnlineState(np.ones(12), 10), OMP(sparsity=1), SimCO(mu=0.1))
    np.testing.assert_array_equal(D[:, 3:], START[:, 3:])
    assert np.isfinite(D).all() and state.seen == 13


def test_batch_of_zeros_changes_nothing():
    D, state, step = online_step(np.zeros((8, 5)), START, OnlineState(np.zeros(12)), CODER, SimCO())
    np.testing.assert_allclose(D, START, atol=1e-15)
    assert state.seen == 5 and not state.energy.any() and step.loss == 0


def test_the_scale_of_the_stream_does_not_matter():
    ends = []
    for c in (1.0, 2.0**30):
        D, state = START, OnlineState(np.zeros(12))
        for t in range(3):
            D, state, _ = online_step(c * Y[:, 100 * t : 100 * (t + 1)], D, state, CODER, SimCO(mu=0.1))
        ends.append(D)
    np.testing.assert_array_equal(*ends)  # a power of two rounds nothing


@pytest.mark.parametrize("update", [SimCO(), SimCO(mu=0.1), KSVD(), MOD(ridge=0.01)], ids=repr)
def test_stream_recovers_the_dictionary(update):
    D, state = START, OnlineState(np.zeros(12))
    moves = []
    for t in range(60):
        before = D
        batch = Y[:, 100 * t : 100 * (t + 1)]
        D, state, _ = online_step(batch, D, state, CODER, update, iteration=t)
        moves.append(np.linalg.norm(D - before))
    assert metrics.recovery(D, D_TRUE) >= 0.75 and metrics.recovery(START, D_TRUE) == 0
    assert np.mean(moves[-10:]) < 0.1 * np.mean(moves[:10])  # it settles
    assert D.dtype == float and state.seen == 6000


def test_online_step_keeps_single_precision():
    D, _, step = online_step(
        Y[:, :50].astype(np.float32), START.astype(np.float32), OnlineState(np.zeros(12)), CODER, SimCO()
    )
    assert D.dtype == step.codes.dtype == np.float32
