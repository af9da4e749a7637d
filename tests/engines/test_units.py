"""Multiplying the signals by c multiplies the codes by c and changes nothing else, for any c.

With a power of two not a single bit of the dictionary changes, however far the squares of the signals are
beyond double precision; with 1e±150 and 1e±200 it changes by rounding.
"""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from pymanopt.optimizers import TrustRegions

import manifold_dl as mdl
from manifold_dl import (
    FOCUSS,
    IHT,
    KSVD,
    LBFGS,
    MOD,
    OMP,
    BasisPursuit,
    BestOf,
    EarlyStopping,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    ManifoldDictionaryLearning,
    MatchingPursuit,
    ReplaceAtoms,
    RmsLasso,
    SimCO,
    SubspacePursuit,
    images,
    learn_dictionary,
    metrics,
    update_problem,
)
from manifold_dl.engines.sources import as_signals
from manifold_dl.learning.initialization import initial_dictionary
from manifold_dl.regularizers import Coherence
from manifold_dl.schedules import Blocks

M, D_, N, S = 8, 12, 60, 3
START, CODES, SIGNALS = mdl.datasets.synthetic(M, D_, N, sparsity=S, snr_db=20, rng=0)
START = mdl.manifolds.Spheres(M, D_).random_point(rng=1)
CODES = FixedSupport(CODES).encode(SIGNALS, START)
EXPONENTS = [(np.float64, 600), (np.float64, -600), (np.float32, 60), (np.float32, -60)]
LOSS = "ignore:history.loss is"


def times(array, exponent):
    """The array times 2^exponent, without rounding."""
    if scipy.sparse.issparse(array):
        return scipy.sparse.csc_array(
            (np.ldexp(array.data, exponent), array.indices, array.indptr), shape=array.shape
        )
    return np.ldexp(array, exponent)


def assert_same_codes(found, expected, exponent):
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(np.ldexp(found.data, -exponent), expected.data, strict=True)


# Coders

CODERS = {
    "OMP": OMP(sparsity=S),
    "ForwardSelection": ForwardSelection(sparsity=S),
    "MatchingPursuit": MatchingPursuit(sparsity=S),
    "GradientPursuit": GradientPursuit(sparsity=S),
    "SubspacePursuit": SubspacePursuit(sparsity=S),
    "IHT": IHT(sparsity=S),
    "FOCUSS": FOCUSS(sparsity=S),
    "BasisPursuit": BasisPursuit(),
    "Lasso": Lasso(alpha=0.2, relative=True),
    "Lasso, sparsity": Lasso(alpha=0.2, relative=True, sparsity=S),
    "RmsLasso": RmsLasso(0.1),
    "BestOf": BestOf([Lasso(alpha=0.2, relative=True, sparsity=S), OMP(S)]),
    "FixedSupport": FixedSupport(CODES),
}


@pytest.mark.parametrize(("dtype", "exponent"), EXPONENTS)
@pytest.mark.parametrize("coder", CODERS.values(), ids=CODERS)
def test_codes_scale_with_the_signals(coder, dtype, exponent):
    Y, D = SIGNALS.astype(dtype), START.astype(dtype)
    expected, found = (coder.encode(signals, D) for signals in (Y, times(Y, exponent)))
    assert_same_codes(found, expected, exponent)


@pytest.mark.parametrize("exponent", [450, -450])
@pytest.mark.parametrize("make", [OMP, ForwardSelection, MatchingPursuit])
def test_tolerances_are_in_the_squared_units_of_the_signals(make, exponent):
    # As far as the tolerance itself is a number.
    expected = make(tol=0.1).encode(SIGNALS, START)
    found = make(tol=float(np.ldexp(0.1, 2 * exponent))).encode(times(SIGNALS, exponent), START)
    assert_same_codes(found, expected, exponent)


@pytest.mark.parametrize("make", [OMP, ForwardSelection, MatchingPursuit])
def test_a_tolerance_that_everything_meets_and_one_that_nothing_meets(make):
    assert make(tol=1e-3).encode(SIGNALS * 1e-200, START).nnz == 0
    expected = make(tol=0.0).encode(SIGNALS, START)
    assert_same_codes(make(tol=1e-3).encode(times(SIGNALS, 600), START), expected, 600)


@pytest.mark.parametrize("exponent", [600, -600])
def test_an_absolute_penalty_is_in_the_units_of_the_signals(exponent):
    expected = Lasso(alpha=0.3).encode(SIGNALS, START)
    coder = Lasso(alpha=float(np.ldexp(0.3, exponent)))
    assert_same_codes(coder.encode(times(SIGNALS, exponent), START), expected, exponent)
    warm = coder.encode(times(SIGNALS, exponent), START, codes=times(expected, exponent))
    assert_same_codes(warm, Lasso(alpha=0.3).encode(SIGNALS, START, codes=expected), exponent)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coder", CODERS.values(), ids=CODERS)
def test_signals_of_all_sizes_side_by_side(coder, dtype):
    # Each is coded as if all signals were of its size. One product over fewer signals may round otherwise.
    if isinstance(coder, RmsLasso):
        pytest.skip("it has one penalty for all signals, of the size of the largest")
    limit = 900 if dtype == np.float64 else 90
    exponents = np.linspace(-limit, limit, N).astype(int)
    exponents[[5, 6]] = 0
    Y, D = SIGNALS.astype(dtype), START.astype(dtype)
    Y[:, 7] = 0
    expected = coder.encode(Y, D)
    found = coder.encode(np.ldexp(Y, exponents), D)
    np.testing.assert_array_equal(found.indices, expected.indices)
    sizes = np.diff(expected.indptr)
    scaled = np.ldexp(found.data, -np.repeat(exponents, sizes))
    largest = np.repeat(abs(expected).max(axis=0).toarray().ravel(), sizes)
    # Rounding of Dᵀy changes the codes by up to eps·κ² times the largest of them (seen: 38·eps, with
    # κ = 13). For the smallest coefficients no bound holds as a fraction of themselves.
    assert (np.abs(scaled - expected.data) <= 64 * np.finfo(dtype).eps * largest).all()


def test_atoms_of_any_norm():
    for norm in (1e-200, 1e200):
        found = OMP(sparsity=S).encode(SIGNALS, START * norm)
        np.testing.assert_allclose(found.data * norm, OMP(sparsity=S).encode(SIGNALS, START).data, rtol=1e-9)


# Updates

UPDATES = {
    "SimCO": SimCO(mu=0.1),
    "SimCO without a ridge": SimCO(mu=0.0),
    "SimCO in blocks": SimCO(mu=0.1, schedule=Blocks(size=5)),
    "SimCO, fixed codes": SimCO(codes="fixed"),
    "trust region": SimCO(TrustRegions(max_iterations=3, verbosity=0), mu=0.1),
    "L-BFGS": SimCO(LBFGS(max_iterations=5), mu=0.1),
    "K-SVD": KSVD(),
    "K-SVD, power": KSVD("power"),
    "K-SVD, a configuration": KSVD(mu=0.1).as_simco(),
    "MOD": MOD(),
    "MOD, ridge": MOD(ridge=0.1),
}


@pytest.mark.parametrize(("dtype", "exponent"), EXPONENTS)
@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_updates_have_the_same_bits_at_every_power_of_two(update, dtype, exponent):
    Y, D, X = SIGNALS.astype(dtype), START.astype(dtype), CODES.astype(dtype)
    expected_D, expected_X = update(Y, D, X, rng=0)
    found_D, found_X = update(times(Y, exponent), D, times(X, exponent), rng=0)
    np.testing.assert_array_equal(found_D, expected_D)
    assert_same_codes(found_X, expected_X, exponent)


def test_regularizers_keep_their_proportion_to_the_data():
    for exponent in (150, -150):
        expected, found = (
            SimCO(mu=0.1, regularizers=[Coherence(float(np.ldexp(0.5, 2 * e)))])(
                times(SIGNALS, e), START, times(CODES, e)
            )
            for e in (0, exponent)
        )
        np.testing.assert_array_equal(found[0], expected[0])
    for exponent, size in ((600, "large"), (-600, "small")):
        with pytest.raises(ValueError, match=f"are so {size} that no weight of a regularizer"):
            SimCO(regularizers=[Coherence(0.5)])(times(SIGNALS, exponent), START, times(CODES, exponent))


@pytest.mark.parametrize("exponent", [600, -600])
@pytest.mark.parametrize("atoms", [None, [1, 4, 7]], ids=["all atoms", "three atoms"])
def test_a_problem_works_in_units_of_its_own(atoms, exponent):
    scaled, point = times(SIGNALS, exponent), START if atoms is None else START[:, atoms]
    options = {"mu": 0.1, "atoms": atoms, "dictionary": START}
    problem = update_problem(scaled, times(CODES, exponent), **options)
    expected = update_problem(SIGNALS, CODES, **options)
    assert expected.signal_unit == 1.0
    shift = np.frexp(problem.signal_unit)[1] - 1 - exponent  # of these units against those of SIGNALS
    assert 0.5 <= np.abs(SIGNALS).max() / 2.0**shift < 1
    assert np.ldexp(problem.cost(point), 2 * shift) == expected.cost(point)
    np.testing.assert_array_equal(
        np.ldexp(problem.riemannian_gradient(point), 2 * shift), expected.riemannian_gradient(point)
    )
    assert np.ldexp(problem.scale, 2 * shift) == expected.scale
    assert_same_codes(problem.codes(point), expected.codes(point), exponent)
    one, other = (metrics.is_singular(p, point) for p in (problem, expected))
    assert one == other


def test_a_problem_without_codes_finds_those_of_the_other_atoms():
    mask = CODES.toarray() != 0
    options = {"mu": 0.1, "atoms": [1, 4], "dictionary": START}
    found = update_problem(times(SIGNALS, 600), mask, **options).codes(START[:, [1, 4]])
    assert_same_codes(found, update_problem(SIGNALS, mask, **options).codes(START[:, [1, 4]]), 600)


def test_ordinary_signals_are_neither_copied_nor_changed():
    for dtype, exponents in ((np.float64, (99, -99)), (np.float32, (18, -18))):
        for exponent in exponents:
            Y = np.asfortranarray(times(SIGNALS.astype(dtype) / np.abs(SIGNALS).max(), exponent))
            rows, _, found = as_signals(Y)
            assert found == 0 and np.shares_memory(rows, Y)


# Learning


def learn(signals, **options):
    settings = {"coder": OMP(sparsity=S), "max_iter": 4, "rng": 0, "tol": 0}
    return learn_dictionary(signals, D_, **{**settings, **options})


@pytest.mark.filterwarnings(LOSS)
@pytest.mark.parametrize(("dtype", "exponent"), EXPONENTS)
@pytest.mark.parametrize("update", [None, KSVD(), MOD()], ids=["SimCO", "K-SVD", "MOD"])
def test_learning_has_the_same_bits_at_every_power_of_two(update, dtype, exponent):
    Y = SIGNALS.astype(dtype)
    expected, found = learn(Y, update=update), learn(times(Y, exponent), update=update)
    np.testing.assert_array_equal(found.dictionary, expected.dictionary)
    assert_same_codes(found.codes, expected.codes, exponent)
    assert found.explained == expected.explained
    np.testing.assert_array_equal(found.history.relative_loss, expected.history.relative_loss)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.history.loss, np.ldexp(expected.history.loss, 2 * exponent))


@pytest.mark.filterwarnings(LOSS)
@pytest.mark.parametrize("scale", [1e-200, 1e-162, 1e-150, 1e150, 1e155, 1e200])
@pytest.mark.parametrize(
    "coder", [OMP(sparsity=S), ForwardSelection(sparsity=S), Lasso(alpha=0.3, relative=True, sparsity=S)]
)
def test_learning_at_any_scale(coder, scale):
    # Rounding of Y·c, of one part in 1e16, magnified by the iterations.
    expected, found = learn(SIGNALS, coder=coder), learn(SIGNALS * scale, coder=coder)
    np.testing.assert_allclose(found.dictionary, expected.dictionary, atol=1e-10)
    np.testing.assert_allclose(found.codes.toarray() / scale, expected.codes.toarray(), atol=1e-9)


@pytest.mark.filterwarnings(LOSS)
@pytest.mark.parametrize("exponent", [600, -600])
def test_decisions_of_the_loop_do_not_depend_on_the_scale(exponent):
    # Convergence, early stopping and the best of several runs compare losses that are inf or 0 here.
    cases = {
        "convergence": {"tol": 0.3, "max_iter": 30, "update": KSVD(), "replace": None},
        "early stopping": {
            "callbacks": lambda: [EarlyStopping(patience=2, min_decrease=0.05)],
            "max_iter": 30,
        },
        "restarts": {"restarts": 3},
    }
    for name, options in cases.items():
        made = [{k: v() if k == "callbacks" else v for k, v in options.items()} for _ in range(2)]
        expected, found = learn(SIGNALS, **made[0]), learn(times(SIGNALS, exponent), **made[1])
        assert (found.n_iter, found.reason) == (expected.n_iter, expected.reason), name
        assert name == "restarts" or found.n_iter < 30
        np.testing.assert_array_equal(found.dictionary, expected.dictionary)


@pytest.mark.filterwarnings(LOSS)
def test_a_run_at_any_scale_can_be_resumed(tmp_path):
    Y = times(SIGNALS, 600)
    stopping = lambda: EarlyStopping(patience=4, min_decrease=0.02)
    whole = learn(Y, max_iter=12, callbacks=[stopping()])
    stop = lambda step: step.iteration == 2
    learn(Y, max_iter=12, callbacks=[mdl.Checkpoint(tmp_path / "run.npz"), stop, stopping()])
    resumed = learn(Y, max_iter=12, callbacks=[stopping()], resume=tmp_path / "run.npz")
    np.testing.assert_array_equal(resumed.dictionary, whole.dictionary)
    assert resumed.n_iter == whole.n_iter


@pytest.mark.parametrize(("exponent", "loss"), [(600, "inf"), (-600, "0")])
def test_a_loss_that_is_no_number_is_explained_once(exponent, loss):
    with pytest.warns(UserWarning, match=f"history.loss is {loss}, because the squares") as given:
        result = learn(times(SIGNALS, exponent))
    assert len(given) == 1
    assert (result.history.loss == float(loss)).all() and (result.history.relative_loss > 0).all()
    assert f"2.0**{exponent + np.frexp(np.abs(SIGNALS).max())[1]}" in str(given[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(times(SIGNALS, 400))


def test_one_huge_signal_is_named():
    Y = SIGNALS.copy()
    Y[:, 3] *= 1e200
    with pytest.warns(UserWarning) as given:
        result = learn(Y)
    messages = sorted(str(warning.message) for warning in given)
    assert len(messages) == 2 and messages[0].startswith("history.loss is inf")
    assert messages[1].startswith("signal 3 has entries of") and "Remove it" in messages[1]
    # The codes are right signal by signal all the same.
    others = np.arange(N) != 3
    expected = OMP(sparsity=S).encode(SIGNALS[:, others], result.dictionary)
    np.testing.assert_allclose(result.codes[:, others].toarray(), expected.toarray(), atol=1e-10)
    with pytest.warns(UserWarning, match="signal 3 has entries of"):
        update_problem(Y, CODES, mu=0.1)


def test_denormal_signals_are_refused():
    calls = {
        "learn": learn,
        "SimCO": lambda Y: SimCO(mu=0.1)(Y, START, CODES),
        "KSVD": lambda Y: KSVD()(Y, START, CODES),
        "MOD": lambda Y: MOD()(Y, START, CODES),
        "update_problem": lambda Y: update_problem(Y, CODES, mu=0.1),
        "fit": lambda Y: ManifoldDictionaryLearning(D_, max_iter=1).fit(Y.T),
    }
    for call in calls.values():
        for Y in (SIGNALS * 1e-310, (SIGNALS * 1e-40).astype(np.float32)):
            with pytest.raises(ValueError, match=r"lose digits\. Multiply the data by a large number"):
                call(Y)
    # A coder takes each signal as it is; here the codes have 13 digits.
    codes = OMP(sparsity=S).encode(SIGNALS * 1e-310, START)
    expected = OMP(sparsity=S).encode(SIGNALS, START)
    np.testing.assert_allclose(np.ldexp(codes.data, 1000), np.ldexp(expected.data * 1e-310, 1000), rtol=1e-10)


def test_codes_beyond_the_largest_number_are_refused():
    # Two atoms at a small angle need codes a thousand times the signal.
    D = np.array([[1.0, 1.0], [0.0, 1e-3]])
    D /= np.linalg.norm(D, axis=0)
    Y = np.array([[0.0], [1e307]])
    with pytest.raises(ValueError, match="their codes exceed the largest number"):
        FixedSupport([[0, 1]]).encode(Y, D)


def test_signals_of_zeros_are_learned_from_as_before():
    result = learn(np.zeros((M, N)))
    assert (result.history.loss == 0).all() and (result.history.relative_loss == 0).all()


# The other parts


@pytest.mark.filterwarnings(LOSS)
@pytest.mark.parametrize(("dtype", "exponent"), EXPONENTS)
def test_the_estimator_at_any_scale(dtype, exponent):
    rows = SIGNALS.T.astype(dtype)
    make = partial(ManifoldDictionaryLearning, D_, coder=OMP(sparsity=S), max_iter=3, random_state=0)
    expected, found = make().fit(rows), make().fit(times(rows, exponent))
    np.testing.assert_array_equal(found.components_, expected.components_)
    codes = expected.transform(rows)
    np.testing.assert_array_equal(np.ldexp(found.transform(times(rows, exponent)), -exponent), codes)
    assert found.score(times(rows, exponent)) == expected.score(rows)
    for first in (0, 20, 40):
        expected.partial_fit(rows[first : first + 20])
        found.partial_fit(times(rows[first : first + 20], exponent))
    np.testing.assert_array_equal(found.components_, expected.components_)
    fresh, scaled = make(), make()
    for first in (0, 20, 40):
        fresh.partial_fit(rows[first : first + 20])
        scaled.partial_fit(times(rows[first : first + 20], exponent))
    np.testing.assert_array_equal(scaled.components_, fresh.components_)
    np.testing.assert_array_equal(scaled.history_.relative_loss, fresh.history_.relative_loss)


def test_batches_of_other_sizes_count_by_their_energy():
    rows = SIGNALS.T
    coder, update = OMP(sparsity=S), KSVD()
    model = ManifoldDictionaryLearning(D_, coder=coder, update=update, random_state=0).partial_fit(rows[:40])
    before = model.components_.copy()
    model.partial_fit(times(rows[40:], -600))  # of no weight against what was seen
    np.testing.assert_array_equal(model.components_, before)
    model.partial_fit(times(rows[40:], 600))  # nothing else has any weight
    alone, _ = update(rows[40:].T, before.T, coder.encode(rows[40:].T, before.T))
    # The way along a great circle from one unit vector to another ends there up to rounding.
    np.testing.assert_allclose(model.components_.T, alone, atol=1e-13)


@pytest.mark.parametrize(("dtype", "exponent"), EXPONENTS)
def test_starts_and_replacements_at_any_scale(dtype, exponent):
    Y, X = SIGNALS.astype(dtype), CODES.astype(dtype)
    one, other = (initial_dictionary(signals, D_, "data", rng=0) for signals in (Y, times(Y, exponent)))
    np.testing.assert_array_equal(one, other)
    D = START.astype(dtype)
    D[:, 3] = D[:, 4]
    one = ReplaceAtoms(min_users=12)(Y, D, X)
    other = ReplaceAtoms(min_users=12)(times(Y, exponent), D, times(X, exponent))
    assert len(one[1])
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_metrics_of_dictionaries_of_any_scale():
    for scale in (1e-200, 1e200):
        assert metrics.recovery(START * scale, START) == 1.0
        assert metrics.coherence(START * scale) == pytest.approx(metrics.coherence(START), rel=1e-12)
        found = metrics.condition_number(START * scale, CODES)
        assert found == pytest.approx(metrics.condition_number(START, CODES), rel=1e-9)


@pytest.mark.parametrize("exponent", [600, -600])
def test_pictures_of_any_scale(exponent):
    rng = np.random.default_rng(0)
    clean = np.add.outer(np.arange(24), np.arange(24)) % 16 / 20
    noisy = clean + 0.05 * rng.standard_normal(clean.shape)
    options = {"patch_size": 4, "n_atoms": 24, "max_iter": 2}
    for sigma in (None, 0.05):
        expected = images.denoise(noisy, sigma, **options)
        scaled = None if sigma is None else float(np.ldexp(sigma, exponent))
        found = images.denoise(times(noisy, exponent), scaled, **options)
        np.testing.assert_array_equal(found.dictionary, expected.dictionary)
        np.testing.assert_array_equal(times(found.image, -exponent), expected.image)
        assert found.sigma == np.ldexp(expected.sigma, exponent)
    with pytest.raises(ValueError, match="may have a tolerance or penalty in other units"):
        images.denoise(times(noisy, exponent), coder=OMP(tol=1.0), **options)
    with pytest.raises(ValueError, match="have weights in other units"):
        images.denoise(times(noisy, exponent), update=SimCO(regularizers=[Coherence(1.0)]), **options)
