"""Passes over mini-batches: which signals, the same bits, resuming, weights, validation."""

import numpy as np
import pytest

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    Checkpoint,
    ComponentError,
    FixedSupport,
    MiniBatches,
    SimCO,
    datasets,
    learn_dictionary,
)
from manifold_dl.learning.batching import MANY_SIGNALS, as_minibatches
from manifold_dl.learning.minibatch import FORGETTING, OnlineState, learn_batch, online_step
from manifold_dl.manifolds import Orthonormal
from manifold_dl.optimizers.shortcuts import default_optimizer
from manifold_dl.regularizers import Coherence
from manifold_dl.schedules import Blocks

_, _, Y = datasets.synthetic(8, 12, 5000, sparsity=2, snr_db=20, rng=0)
CODER, BATCHES = OMP(sparsity=2), MiniBatches(size=1024)


def learn(signals=Y, **settings):
    settings = {"coder": CODER, "max_iter": 4, "rng": 0, "tol": 0.0, "minibatches": BATCHES, **settings}
    return learn_dictionary(signals, 12, **settings)


def assert_same(one, other):
    np.testing.assert_array_equal(one.dictionary, other.dictionary)
    np.testing.assert_array_equal(one.codes.toarray(), other.codes.toarray())
    np.testing.assert_array_equal(one.history.loss, other.history.loss)
    np.testing.assert_array_equal(one.history.validation, other.history.validation)


def test_a_pass_takes_every_block_once_in_an_order_drawn_anew():
    rng = np.random.default_rng(0)
    first, second = (list(MiniBatches(size=3072).order(10_000, rng)) for _ in range(2))
    for batches in (first, second):
        np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(10))
        assert [len(blocks) for blocks in batches] == [3, 3, 3, 1]
        assert all((np.diff(blocks) > 0).all() for blocks in batches)
    assert any(a.tolist() != b.tolist() for a, b in zip(first, second, strict=True))


def test_the_number_of_threads_changes_no_bit():
    one, two, three = (learn(threads=threads) for threads in (1, 2, 3))
    assert_same(one, two)
    assert_same(one, three)


def test_one_pass_is_one_iteration_and_the_last_one_is_full():
    result = learn(max_iter=3)
    assert result.n_iter == 3
    # Five mini-batches in each of the first two iterations, one update of all signals in the last.
    np.testing.assert_array_equal(result.history.sets, [5, 5, 1])


def test_a_batch_of_all_signals_is_the_online_step():
    """A pass with one mini-batch, against `online_step` with the same rule, and a full iteration after it."""
    start = Y[:, :12] / np.linalg.norm(Y[:, :12], axis=0)
    rule = SimCO(default_optimizer(2), mu=0.0)
    D, _, step = online_step(Y, start, OnlineState(np.zeros(12)), CODER, rule)
    D, codes = SimCO(mu=0.0)(Y, D, CODER.encode(Y, D), iteration=0)
    result = learn(init=start, max_iter=2, minibatches=MiniBatches(size=5120), replace=None)
    np.testing.assert_allclose(result.dictionary, D, atol=1e-12)
    assert result.history.loss[0] == pytest.approx(step.loss, rel=1e-12)
    assert result.history.loss[1] == pytest.approx(np.sum((Y - D @ codes) ** 2) / 5000, rel=1e-9)


def test_a_pass_is_a_sequence_of_online_steps():
    """The loop and `partial_fit` share the step: the same batches in the same order, the same dictionary."""
    start = Y[:, :12] / np.linalg.norm(Y[:, :12], axis=0)
    passes = MiniBatches(size=2048, memory=1 / (FORGETTING + 1))  # as `partial_fit` forgets
    D, state, error = start, OnlineState(np.zeros(12)), 0.0
    rule = SimCO(default_optimizer(2), mu=0.0)
    for blocks in passes.order(5000, rng=0):
        numbers = np.concatenate([np.arange(1024 * b, min(1024 * (b + 1), 5000)) for b in blocks])
        D, state, step = online_step(Y[:, numbers], D, state, CODER, rule)
        error += step.loss * len(numbers)
    seen = []
    result = learn(init=start, max_iter=2, minibatches=passes, callbacks=[seen.append])
    # The loop divides the start by its norms once more: roundings of unit atoms, carried on.
    np.testing.assert_allclose(seen[0].dictionary, D, atol=1e-12)
    assert result.history.loss[0] == pytest.approx(error / 5000, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_codes_of_a_pass_are_those_of_each_batch(dtype):
    seen = []
    learn(Y.astype(dtype), max_iter=2, callbacks=[seen.append])
    codes, loss = seen[0].codes, seen[0].loss
    assert codes.shape == (12, 5000) and codes.dtype == dtype
    # Atoms of the start are signals, which need one atom.
    assert np.diff(codes.indptr).max() == 2 and codes.nnz > 9900
    # Not with one dictionary, but close to what the last one leaves.
    assert np.sum((Y - seen[0].dictionary @ codes) ** 2) / 5000 < 3 * loss


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_a_resumed_run_has_the_same_bits(tmp_path, stop):
    path = tmp_path / "run.npz"

    class Interruption(Exception):
        pass

    def interrupt(step):
        if step.iteration == stop:
            raise Interruption

    validation = Y[:, :200]
    whole = learn(validation=validation)
    with pytest.raises(ComponentError, match="Interruption") as caught:
        learn(callbacks=[Checkpoint(path), interrupt], validation=validation)
    assert caught.value.partial.codes.shape == (12, 5000)
    assert_same(learn(resume=path, validation=validation), whole)


def test_a_run_is_resumed_with_the_same_minibatches(tmp_path):
    learn(max_iter=2, callbacks=[Checkpoint(tmp_path / "run.npz")])
    with pytest.raises(ValueError, match=r"minibatches was .*1024.*, now None"):
        learn(resume=tmp_path / "run.npz", minibatches=False)


def test_weights_of_one_change_nothing():
    assert_same(learn(weights=np.ones(5000)), learn())


@pytest.mark.parametrize("kind", ["signals", "entries"])
def test_what_has_no_weight_does_not_matter(kind):
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, 5000 if kind == "signals" else Y.shape).astype(float)
    weights[..., :1024] = 0  # a whole block
    spoiled = np.where(np.broadcast_to(weights == 0, Y.shape), np.nan, Y)
    assert_same(learn(spoiled, weights=weights), learn(weights=weights))


def test_the_unit_of_the_signals_changes_no_bit_of_the_dictionary():
    expected = learn()
    for exponent in (-600, 600):
        with pytest.warns(UserWarning, match="history.loss is"):
            found = learn(np.ldexp(Y, exponent))
        np.testing.assert_array_equal(found.dictionary, expected.dictionary)
        np.testing.assert_array_equal(found.history.relative_loss, expected.history.relative_loss)


def test_the_loss_ends_where_full_passes_end():
    """As many passes over mini-batches end lower than full ones, from the same start, with one coder."""
    _, _, signals = datasets.synthetic(16, 48, 16_384, sparsity=3, snr_db=20, rng=3)

    def loss(minibatches):
        result = learn_dictionary(
            signals, 48, coder=OMP(sparsity=3), max_iter=5, rng=0, minibatches=minibatches
        )
        return result.history.loss[-1]

    assert loss(MiniBatches(size=2048)) < loss(False)


@pytest.mark.parametrize("update", [KSVD(), MOD(), SimCO(manifold=Orthonormal), SimCO(codes="fixed")])
def test_any_rule_learns_from_minibatches_given_as_an_argument(update):
    n_atoms = 8 if update == SimCO(manifold=Orthonormal) else 12
    result = learn_dictionary(
        Y, n_atoms, coder=CODER, update=update, max_iter=3, rng=0, minibatches=BATCHES, replace=None
    )
    assert result.history.loss[-1] < result.history.loss[0]


def test_sets_that_change_are_refused_on_manifolds_that_couple_atoms():
    with pytest.raises(ValueError, match="would leave the manifold") as caught:
        learn(update=SimCO(manifold=Orthonormal, schedule=Blocks(3)))
    assert caught.value.partial is not None


def test_a_regularizer_counts_by_the_fraction_of_the_signals():
    rule = MiniBatches(size=1024).rule(SimCO(regularizers=[Coherence(0.5)]), 0.0, n_signals=4096)
    assert rule.regularizers[0].value(np.ones((2, 3))) == pytest.approx(
        0.25 * Coherence(0.5).value(np.ones((2, 3)))
    )


def test_the_ridge_in_minibatches_is_the_last_one():
    assert BATCHES.rule(SimCO(mu=0.3), 0.3, 5000).mu_at(0) == 0.3
    result = learn(max_iter=5, update=SimCO(mu=[0.5, 0.5, 0.5, 0.5, 0.1]))
    expected = learn(max_iter=5, update=SimCO(mu=0.1))
    np.testing.assert_array_equal(result.dictionary, expected.dictionary)


def test_a_coder_of_all_signals_has_no_codes_for_minibatches():
    coder = FixedSupport(np.zeros((5000, 1), int))
    assert as_minibatches(None, coder, SimCO(), MANY_SIGNALS) is None
    with pytest.raises(ValueError, match="codes all signals together"):
        learn(coder=coder)


def test_something_else_in_place_of_minibatches_is_refused():
    with pytest.raises(TypeError, match=r"minibatches='4096': give MiniBatches\(\)"):
        learn(minibatches="4096")


def test_settings_of_minibatches_are_stored_with_the_result():
    stored = learn().settings["minibatches"]
    assert stored["component"] == "minibatches.MiniBatches" and stored["parameters"]["size"] == 1024
    assert learn(minibatches=False).settings["minibatches"] is None


def test_learning_from_a_batch_does_not_change_its_arguments():
    state = OnlineState(np.ones(12), seen=10)
    start = Y[:, :12] / np.linalg.norm(Y[:, :12], axis=0)
    before = start.copy()
    learn_batch(Y[:, :1024], start, state, CODER, SimCO(mu=0.0), iteration=0, max_iter=1)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_array_equal(state.energy, np.ones(12))
