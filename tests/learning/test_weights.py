"""Learning from weighted and incomplete signals: what must not matter, sums, refusals, and recovery."""

import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl import (
    OMP,
    AtomSearch,
    Checkpoint,
    ComponentError,
    ReplaceAtoms,
    RmsLasso,
    SimCO,
    learn_dictionary,
)
from manifold_dl.learning.initialization import initial_dictionary
from manifold_dl.learning.minibatch import OnlineState, online_step
from manifold_dl.learning.signal_sums import code_energies, explained_fraction, squared_error
from manifold_dl.manifolds import Spheres
from manifold_dl.metrics import recovery
from manifold_dl.updates.ridge import Sawtooth

M, D_, N = 8, 12, 90
_, X_TRUE, Y = mdl.datasets.synthetic(M, D_, N, sparsity=2, snr_db=20, rng=0)
RNG = np.random.default_rng(1)
W = RNG.uniform(0.5, 2.0, (M, N)) * (RNG.random((M, N)) > 0.25)
W[:, 7] = 0
START = Spheres(M, D_).random_point(rng=3)


def learn(signals=Y, **options):
    options = {"coder": OMP(sparsity=2), "max_iter": 6, "rng": 0, "tol": 0.0} | options
    return learn_dictionary(signals, D_, **options)


# What must not matter


@pytest.mark.parametrize(
    "update", [AtomSearch(trials=2), SimCO(codes=RmsLasso(alpha=0.05))], ids=["search", "SimCO"]
)
@pytest.mark.parametrize("kind", ["entries", "signals"])
def test_codes_by_a_penalty_learn_with_weights(update, kind):
    weights = W if kind == "entries" else W.mean(axis=0)
    observed = np.broadcast_to(weights > 0, Y.shape)
    options = {"update": update, "init": START, "replace": None, "weights": weights}
    coder = RmsLasso(alpha=0.05, sparsity=2)
    expected = learn(coder=coder, **options)
    at_first = explained_fraction(
        Y * observed, START, coder.encode(Y, START, weights=weights), weights=weights
    )
    assert expected.explained > at_first
    found = learn(np.where(observed, Y, np.nan), coder=coder, **options)
    np.testing.assert_array_equal(found.dictionary, expected.dictionary)
    np.testing.assert_array_equal(found.codes.toarray(), expected.codes.toarray())
    assert expected.codes[:, [7]].nnz == 0


def test_recover_finds_the_atoms_with_a_tenth_of_the_entries_missing():
    truth, _, signals = mdl.datasets.synthetic(8, 12, 300, sparsity=2, rng=0)
    observed = np.random.default_rng(0).random(signals.shape) > 0.1
    preset = mdl.presets.recover(sparsity=2)
    found = learn_dictionary(np.where(observed, signals, np.nan), 12, **preset, weights=observed, rng=0)
    assert recovery(found.dictionary, truth) == 1.0


@pytest.mark.parametrize("init", ["data", "random"])
def test_the_value_of_a_missing_entry_never_matters(init):
    expected = learn(weights=W, init=init)
    for value in (np.nan, 1e300):
        found = learn(np.where(W > 0, Y, value), weights=W, init=init)
        np.testing.assert_array_equal(found.dictionary, expected.dictionary)
        np.testing.assert_array_equal(found.codes.toarray(), expected.codes.toarray())
        np.testing.assert_array_equal(found.history.loss, expected.history.loss)
    assert expected.codes[:, [7]].nnz == 0  # no entry of it was seen


@pytest.mark.parametrize("kind", ["entries", "signals"])
def test_the_value_of_a_missing_entry_never_matters_in_mini_batches(kind):
    signals, weights = np.tile(Y, 2200 // N + 1), np.tile(W, 2200 // N + 1)
    weights = weights if kind == "entries" else weights[0] * (np.arange(signals.shape[1]) % 3 > 0)
    observed = np.broadcast_to(weights > 0, signals.shape)
    options = {"weights": weights, "minibatches": mdl.MiniBatches(size=1024), "max_iter": 3}
    expected = learn(signals, **options)
    for value in (np.nan, 1e300):
        found = learn(np.where(observed, signals, value), **options)
        np.testing.assert_array_equal(found.dictionary, expected.dictionary)
        np.testing.assert_array_equal(found.codes.toarray(), expected.codes.toarray())


@pytest.mark.parametrize("ones", [np.ones(N), np.ones((M, N), bool)], ids=["signals", "entries"])
def test_weights_of_one_change_no_bit(ones):
    expected, found = learn(), learn(weights=ones)
    np.testing.assert_array_equal(found.dictionary, expected.dictionary)
    np.testing.assert_array_equal(found.history.objective, expected.history.objective)
    assert found.explained == expected.explained and "weights" not in found.settings


@pytest.mark.parametrize("replace", [None, ReplaceAtoms(min_users=12)], ids=["keep", "replace"])
def test_integer_weights_of_signals_are_repetitions(replace):
    times = np.random.default_rng(5).integers(0, 4, N)
    repeated = np.repeat(np.arange(N), times)
    options = {"init": START, "replace": replace, "max_iter": 3}
    found, expected = learn(weights=times, **options), learn(Y[:, repeated], **options)
    # Three coding and update stages, which hand the rounding of a root on.
    np.testing.assert_allclose(found.dictionary, expected.dictionary, rtol=0, atol=1e-9)
    for column in ("loss", "objective", "relative_loss"):
        one, other = getattr(found.history, column), getattr(expected.history, column)
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert found.explained == pytest.approx(expected.explained, rel=1e-9)
    assert (sum(found.history.replaced) > 0) == (replace is not None)


def test_the_number_of_threads_changes_no_bit():
    one, two = (learn(weights=W, threads=k, update=SimCO(threads=k)) for k in (1, 2))
    np.testing.assert_array_equal(one.dictionary, two.dictionary)


def test_single_precision():
    result = learn(np.where(W > 0, Y, np.nan).astype(np.float32), weights=W)
    assert result.dictionary.dtype == result.codes.dtype == np.float32
    assert result.explained == pytest.approx(learn(weights=W).explained, abs=0.05)


# Sums


def test_the_history_is_of_weighted_squares():
    steps = []
    learn(weights=W, update=SimCO(mu=0.1), callbacks=[steps.append], replace=None)
    last = steps[-1]
    residual = Y - last.dictionary @ last.codes
    error, count = np.sum(W * residual**2), W.mean(axis=0).sum()
    assert last.loss == pytest.approx(error / count, rel=1e-10)
    assert last.relative_loss == pytest.approx(error / np.sum(W * Y**2), rel=1e-10)
    # Weights of entries leave the ridge as it is.
    assert last.objective == pytest.approx(error + 0.1 * np.sum(last.codes.data**2), rel=1e-10)


def test_a_weight_of_a_signal_multiplies_its_ridge():
    w, steps = RNG.uniform(0.2, 3.0, N), []
    learn(weights=w, update=SimCO(mu=0.1), callbacks=[steps.append], replace=None)
    last = steps[-1]
    squares = np.sum((Y - last.dictionary @ last.codes) ** 2, axis=0)
    ridge = 0.1 * np.sum(last.codes.toarray() ** 2, axis=0)
    assert last.loss == pytest.approx(np.sum(w * squares) / w.sum(), rel=1e-10)
    assert last.objective == pytest.approx(np.sum(w * (squares + ridge)), rel=1e-10)


@pytest.mark.parametrize("weights", [W, W.mean(axis=0)], ids=["entries", "signals"])
def test_sums_are_the_dense_formulas(weights):
    residual = Y - START @ X_TRUE.toarray()
    error = np.sum(weights * residual**2)
    assert squared_error(Y, START, X_TRUE, weights=weights) == pytest.approx(error, rel=1e-12)
    explained = 1 - error / np.sum(weights * Y**2)
    assert explained_fraction(Y, START, X_TRUE, weights=weights) == pytest.approx(explained, rel=1e-12)
    expected = np.sum(W.mean(axis=0) * X_TRUE.toarray() ** 2, axis=1)
    np.testing.assert_allclose(code_energies(X_TRUE, 0, weights=weights), expected, rtol=1e-12)


def test_restarts_keep_the_run_with_the_smallest_weighted_error():
    # A few entries count: with these seeds the two sums disagree on the best run.
    weights, rng = np.random.default_rng(5).uniform(0.0, 1.0, (M, N)) ** 8, np.random.default_rng(1)
    runs = [learn(weights=weights, max_iter=1, rng=rng) for _ in range(4)]
    error = [np.sum(weights * (Y - run.dictionary @ run.codes) ** 2) for run in runs]
    plain = [np.sum((Y - run.dictionary @ run.codes) ** 2) for run in runs]
    assert np.argmin(error) != np.argmin(plain)
    found = learn(weights=weights, max_iter=1, rng=np.random.default_rng(1), restarts=4)
    np.testing.assert_array_equal(found.dictionary, runs[np.argmin(error)].dictionary)


# Initialization and replacement


def test_initial_atoms_are_completed_signals_that_were_seen():
    weights = np.zeros((M, N))
    weights[:4, :D_] = 1.0  # half of the entries of the first signals
    D = initial_dictionary(np.where(weights > 0, Y, 0.0), D_, "data", rng=0, weights=weights)
    filled = Y[:, :D_].copy()
    filled[4:] = filled[:4].mean(axis=0)
    filled /= np.linalg.norm(filled, axis=0)
    assert recovery(D, filled, threshold=1 - 1e-12) == 1.0


def test_replacement_takes_the_worst_weighted_signal_and_completes_it():
    D, X = START.copy(), np.zeros((D_, N))
    X[:-1] = 1e-3 * RNG.standard_normal((D_ - 1, N))  # the last atom is not used
    weights = np.ones((M, N))
    signals = D[:, :-1] @ X[:-1]
    signals[:, 11] += 1.0  # the worst of all has no weight
    weights[:, 11] = 0
    signals[:, 5] += np.arange(M)  # the next is half missing
    weights[4:, 5] = 0
    given = np.where(weights > 0, signals, np.nan)
    D_new, replaced = ReplaceAtoms()(given, D, X, weights=weights)
    expected = np.where(weights[:, 5] > 0, signals[:, 5], D @ X[:, 5])
    assert replaced.tolist() == [D_ - 1]
    np.testing.assert_allclose(D_new[:, -1], expected / np.linalg.norm(expected), atol=1e-12)
    seen = weights.any(axis=0)
    without, _ = ReplaceAtoms()(given[:, seen], D, X[:, seen], weights=weights[:, seen])
    np.testing.assert_array_equal(without, D_new)


# Streams


def test_integer_weights_of_a_batch_are_repetitions():
    times = np.random.default_rng(5).integers(0, 4, N)
    repeated = np.repeat(np.arange(N), times)
    arguments = START, OnlineState(np.ones(D_), seen=50), OMP(sparsity=2), SimCO(mu=0.1)
    D_one, one, step = online_step(Y, *arguments, weights=times)
    D_other, other, expected = online_step(Y[:, repeated], *arguments)
    np.testing.assert_allclose(D_one, D_other, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.energy, other.energy, rtol=1e-10)
    assert one.seen == other.seen and step.loss == pytest.approx(expected.loss, rel=1e-10)


def test_missing_entries_of_a_batch_never_matter():
    arguments = START, OnlineState(np.zeros(D_)), OMP(sparsity=2), SimCO(mu=0.1)
    expected, found = (
        online_step(given, *arguments, weights=W)[0] for given in (Y, np.where(W > 0, Y, np.nan))
    )
    np.testing.assert_array_equal(found, expected)


# Refusals


class PlainCoder:
    def encode(self, signals, dictionary):
        return OMP(sparsity=2).encode(signals, dictionary)


def plain_update(signals, dictionary, codes):
    return dictionary, codes


def plain_replacement(signals, dictionary, codes):
    return dictionary, []


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"coder": PlainCoder()}, "coder .* has no parameter `weights`"),
        ({"update": plain_update}, "update rule .* has no parameter `weights`"),
        ({"replace": plain_replacement}, "replacement policy .* has no parameter `weights`"),
    ],
)
def test_components_that_would_learn_from_missing_entries_are_refused(part, words):
    learn(**part)  # without weights they serve
    with pytest.raises(ComponentError, match=words):
        learn(weights=W, **part)


def test_bad_weights_are_refused():
    with pytest.raises(ValueError, match="all weights are zero"):
        learn(weights=np.zeros(N))
    with pytest.raises(ValueError, match="one number per signal"):
        learn(weights=np.ones(M))
    with pytest.raises(ValueError, match="signals holds nan"):
        learn(np.where(W > 0, Y, np.nan), weights=np.ones(N))
    with pytest.raises(ValueError, match="no singular vector"):
        learn(weights=W, update="ksvd")


def test_a_resumed_run_has_the_same_bits_and_needs_the_same_weights(tmp_path):
    path = tmp_path / "run.npz"
    options = {"weights": W, "max_iter": 6}
    expected = learn(**options)
    learn(**options, callbacks=[Checkpoint(path, every=4)])
    resumed = learn(**options, resume=path)
    np.testing.assert_array_equal(resumed.dictionary, expected.dictionary)
    for other in ({"max_iter": 6}, {"max_iter": 6, "weights": 2 * W}):
        with pytest.raises(ValueError, match="belongs to another run"):
            learn(np.where(W > 0, Y, 0.0), **other, resume=path)


# Recovery from the signals alone


def recovered(seed):
    rng = np.random.default_rng(seed)
    truth, _, signals = mdl.datasets.synthetic(16, 32, 1500, sparsity=4, rng=rng)
    seen = rng.random(signals.shape) >= 0.2
    result = learn_dictionary(
        np.where(seen, signals, np.nan),
        32,
        weights=seen,
        coder=RmsLasso(alpha=0.1, sparsity=4),
        update=SimCO(mu=Sawtooth(0.3, 3e-4, period=50, until=90)),
        replace=ReplaceAtoms(coherence=0.8),
        max_iter=100,
        tol=0.0,
        rng=seed,
    )
    return recovery(result.dictionary, truth)


def test_atoms_are_found_from_signals_of_which_a_fifth_is_missing():
    assert recovered(1) >= 0.9


@pytest.mark.slow
def test_atoms_are_found_in_ten_draws_that_chose_no_setting():
    found = {seed: recovered(seed) for seed in range(1000, 1010)}
    assert np.mean(list(found.values())) >= 0.9, found
