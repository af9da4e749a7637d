"""The penalties of the package agree with their definitions, and do what their docstrings say."""

import copy
import pickle

import numpy as np
import pytest
from autograd import grad, hessian_vector_product
from penalty_definitions import (
    PENALTIES,
    CoherenceByPairs,
    every_penalty,
    penalty_for,
)
from sklearn.base import clone

from manifold_dl import (
    ManifoldDictionaryLearning,
    SimCO,
)
from manifold_dl.regularizers import (
    Coherence,
    Decorrelation,
    LogBarrierCoherence,
    OutsideBound,
    Penalty,
    Regularizer,
    Smoothness,
    Sparse,
    Sum,
    Tether,
)


@every_penalty
def test_derivatives_agree_with_autograds_of_the_definition(name, dictionary, direction):
    D, definition = 0.8 * dictionary, PENALTIES[name][1]  # shorter atoms: all inside the barrier
    penalty = penalty_for(name, D.shape)
    # Sums of up to 1000 terms of size one: a few hundred roundings of 1e-16. Next to the bound of the
    # barrier (0.64 of 0.81 at most) a derivative multiplies them by about 10.
    close = {"rtol": 1e-11, "atol": 1e-11}
    assert penalty.value(D) == pytest.approx(definition(D), rel=1e-11, abs=1e-12)
    np.testing.assert_allclose(penalty.gradient(D), grad(definition)(D), **close)
    expected = hessian_vector_product(definition)(D, direction)
    np.testing.assert_allclose(penalty.hessian(D, direction), expected, **close)


@every_penalty
def test_penalties_at_one_dictionary_agree_with_their_methods(name, dictionary, direction):
    """They leave their arguments alone, say the same through `at`, and keep shape and dtype."""
    for dtype in (np.float64, np.float32):
        D, E = (0.8 * dictionary).astype(dtype), direction.astype(dtype)
        before = D.copy(), E.copy()
        penalty = penalty_for(name, D.shape)
        at = Sum((penalty,)).at(D)
        assert type(penalty.value(D)) is float and penalty.value(D) == at.value
        gradient, hessian = penalty.gradient(D), penalty.hessian(D, E)
        assert gradient.dtype == hessian.dtype == dtype and gradient.shape == hessian.shape == D.shape
        np.testing.assert_array_equal(at.gradient, gradient)
        np.testing.assert_array_equal(at.hessian(E), hessian)
        np.testing.assert_array_equal(D, before[0])
        np.testing.assert_array_equal(E, before[1])


@every_penalty
def test_penalties_ignore_signs_of_atoms(name, dictionary):
    D = 0.8 * dictionary
    flipped = D * np.random.default_rng(3).choice([-1, 1], D.shape[1])
    penalty = penalty_for(name, D.shape)
    assert penalty.value(flipped) == pytest.approx(penalty.value(D), rel=1e-12, abs=1e-14)


@every_penalty
def test_penalties_compare_hash_copy_and_pickle_by_value(name):
    penalty, same = penalty_for(name, (8, 6)), penalty_for(name, (8, 6))
    assert penalty == same and hash(penalty) == hash(same)
    assert penalty != 3 * penalty and penalty != "penalty"
    assert isinstance(penalty, Regularizer) and isinstance(penalty, Penalty)
    penalty.gradient(0.1 * np.eye(8, 6))  # what it keeps for itself is not part of it
    for twin in (copy.deepcopy(penalty), pickle.loads(pickle.dumps(penalty)), clone(penalty, safe=False)):
        assert twin == penalty and repr(twin) == repr(penalty)


def test_penalties_print_their_parameters():
    assert repr(LogBarrierCoherence(1.0, bound=0.5)) == "LogBarrierCoherence(weight=1.0, bound=0.5)"
    assert repr(Smoothness(0.1, 64)) == "Smoothness(weight=0.1, shape=(64,))"
    assert repr(Smoothness(0.1, (8, 8))) == "Smoothness(weight=0.1, shape=(8, 8))"
    assert repr(Sparse(0.1)) == "Sparse(weight=0.1, smoothing=0.01)"
    assert repr(Tether(0.1, np.eye(3))) == "Tether(weight=0.1, reference=<3×3 array>)"
    assert repr(Decorrelation(0.1, np.array([0, 0, 1]))) == "Decorrelation(weight=0.1, groups=(0, 0, 1))"
    long = repr(Decorrelation(0.1, [0] * 128 + [1] * 128))
    assert long == "Decorrelation(weight=0.1, groups=(0, 0, 0, 0, 0, ..., 1, 1, 1, 1, 1))"


def test_an_estimator_with_regularizers_clones():
    penalties = (Tether(0.1, np.eye(4)) + 2 * Decorrelation(0.1, [0, 0, 1, 1]), Smoothness(0.1, (2, 2)))
    model = ManifoldDictionaryLearning(n_components=4, update=SimCO(regularizers=penalties))
    assert clone(model).update.regularizers == penalties


def test_barrier_is_infinite_at_and_beyond_the_bound():
    angle = np.arccos(0.5)
    D = np.array([[1.0, np.cos(angle)], [0.0, np.sin(angle)]])
    assert LogBarrierCoherence(1.0, bound=0.51).value(D) > 0
    for bound in (0.4999, 0.3):
        barrier = LogBarrierCoherence(1.0, bound)
        assert barrier.value(D) == np.inf
        for derivative in (lambda b=barrier: b.gradient(D), lambda b=barrier: b.hessian(D, D)):
            with pytest.raises(OutsideBound, match=r"atoms 0 and 1 have .* = 0\.5, .* infinite there: begin"):
                derivative()
    # Far from the bound it is the sum of squares: log(1 − x) = −x up to x²/2, x = 1e-4 here.
    nearly = np.array([[1.0, 0.01], [0.0, 1.0]])
    expected = Coherence(1.0, power=2).value(nearly)
    assert LogBarrierCoherence(1.0, bound=1.0).value(nearly) == pytest.approx(expected, rel=1e-4)


def test_zero_times_an_infinite_barrier_is_zero():
    assert (0 * LogBarrierCoherence(1.0, bound=0.1)).value(np.ones((2, 2))) == 0


def test_smoothness_sums_differences_along_every_axis():
    picture = np.zeros((3, 3))
    picture[1, 1] = 1.0  # one pixel with four neighbours
    assert Smoothness(1.0, (3, 3)).value(picture.reshape(9, 1)) == 4
    assert Smoothness(1.0, 9).value(picture.reshape(9, 1)) == 2
    assert Smoothness(1.0, (3, 3)).value(np.ones((9, 2))) == 0
    np.testing.assert_array_equal(Smoothness(1.0, (3, 3)).gradient(np.ones((9, 2))), 0)


def test_tether_is_the_squared_sine_of_the_angle_to_the_reference():
    angles = np.array([0.0, 1e-9, 0.3, np.pi - 0.3])
    D = np.array([np.cos(angles), np.sin(angles)])
    tether = Tether(1.0, np.array([[7.0] * 4, [0.0] * 4]))
    assert tether.value(D) == pytest.approx(1e-18 + 2 * np.sin(0.3) ** 2, rel=1e-14)
    # One minus a squared cosine would have lost this one altogether.
    assert Tether(1.0, [[1.0], [0.0]]).value(D[:, [1]]) == pytest.approx(1e-18, rel=1e-12)


def test_tether_copies_its_reference():
    reference = np.eye(2)
    tether = Tether(1.0, reference)
    reference[:] = 1
    assert tether.value(np.eye(2)) == 0
    for each in (tether, copy.deepcopy(tether)):
        with pytest.raises(ValueError, match="read-only"):
            each.reference[0, 0] = 2


def test_decorrelation_of_groups_of_one_is_coherence_with_power_two(dictionary):
    single = Decorrelation(0.7, range(dictionary.shape[1]))
    assert single.value(dictionary) == pytest.approx(Coherence(0.7, power=2).value(dictionary), rel=1e-12)
    assert Decorrelation(0.7, ["all"] * dictionary.shape[1]).value(dictionary) == 0


def test_sparse_is_quadratic_for_small_and_absolute_for_large_entries():
    for size in (1e-8, 1e3):
        D = np.array([[size, -size]])
        expected = size**2 / 0.01 if size < 0.01 else 2 * (size - 0.01)
        # The next term is d⁴/8ε³ or ε²/2d: 1e-12 and 1e-10 of the first.
        assert Sparse(1.0, smoothing=0.01).value(D) == pytest.approx(expected, rel=1e-9)
    zero = np.zeros((2, 2), dtype=np.float32)
    tiny = Sparse(1.0, smoothing=1e-30)  # its square is no float32
    assert tiny.value(zero) == 0 and np.isfinite(tiny.hessian(zero, zero)).all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LogBarrierCoherence(0.0, 0.5), "a finite number above 0"),
        (lambda: LogBarrierCoherence(1.0, 0.0), "bound=0.0: the coherence of unit atoms lies between"),
        (lambda: LogBarrierCoherence(1.0, 1.5), "bound=1.5"),
        (lambda: Sparse(1.0, smoothing=0), "smoothing=0: .* above 0"),
        (lambda: Smoothness(1.0, (8, 0)), r"shape=\(8, 0\): give the shape of an atom"),
        (lambda: Smoothness(1.0, 2.5), "shape=2.5"),
        (lambda: Smoothness(1.0, ()), r"shape=\(\)"),
        (lambda: Smoothness(1.0, (3, 3)).value(np.eye(8)), r"9 pixels, but atoms have 8 entries"),
        (lambda: Tether(1.0, np.zeros((2, 2))), "reference column 0 is zero"),
        (lambda: Tether(1.0, np.eye(2)).value(np.eye(3)), r"shape \(2, 2\), but the dictionary \(3, 3\)"),
        (lambda: Decorrelation(1.0, [0, 1]).value(np.eye(3)), "groups has 2 labels, .* 3 atoms"),
        (lambda: Decorrelation(1.0, 3), "groups=3: give a list"),
        (lambda: Coherence(1.0, power=1.5), "power=1.5: .* at least 2"),
        (lambda: Coherence(1.0, power=np.inf), "power=inf"),
        (lambda: Coherence(1.0, power="max"), "power='max'"),
        (lambda: -1 * Coherence(1.0), "factor=-1: .* at least 0"),
        (lambda: -1 * (2 * Coherence(1.0)), "factor=-1"),
        (lambda: Coherence(1.0) * np.nan, "factor=nan"),
    ],
)
def test_impossible_parameters_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("power", [2, 3, 8])
def test_coherence_is_the_sum_over_pairs(dictionary, power):
    expected = 0.7 * CoherenceByPairs(power).value(dictionary)
    # A sum of up to 1000 powers of numbers up to one: a few hundred roundings of 1e-16.
    assert Coherence(0.7, power).value(dictionary) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_coherence_of_known_dictionaries():
    assert Coherence(2.0).value(np.eye(4)) == 0
    assert Coherence(2.0).value(np.ones((1, 3))) == 2.0 * 6  # three equal atoms: six ordered pairs
    D = np.array([[1.0, 0.6], [0.0, 0.8]])
    assert Coherence(1.0, power=2).value(D) == pytest.approx(2 * 0.36, rel=1e-15)
    assert Coherence(1.0).value(D) == pytest.approx(2 * 0.6**8, rel=1e-14)


def test_coherence_ignores_the_order_of_atoms(dictionary):
    shuffled = dictionary[:, np.random.default_rng(3).permutation(dictionary.shape[1])]
    assert Coherence(1.0).value(shuffled) == pytest.approx(Coherence(1.0).value(dictionary), rel=1e-12)


@pytest.mark.parametrize("weight", [-0.1, np.inf, np.nan, "0.1", None, 1j])
def test_impossible_weights_are_refused_with_a_sentence(weight):
    with pytest.raises(ValueError, match=r"weight=.*a finite number of at least 0"):
        Coherence(weight)


def test_coherence_compares_and_hashes_by_value():
    assert Coherence(0.5) == Coherence(0.5) != Coherence(0.6)
    assert repr(Coherence(0.5)) == "Coherence(weight=0.5, power=8)"
    assert pickle.loads(pickle.dumps(Coherence(0.5))) == Coherence(0.5)
    assert isinstance(Coherence(0.5), Regularizer)
