"""Penalties on the dictionary: derivatives, algebra, what autograd supplies, and what they do."""

import copy
import pickle
import subprocess
import sys
from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad, hessian_vector_product
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from sklearn.base import clone
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

from manifold_dl import (
    LBFGS,
    OMP,
    GoldenSection,
    ManifoldDictionaryLearning,
    ReplaceAtoms,
    SimCO,
    WolfeSearch,
    learn_dictionary,
    metrics,
    update_problem,
)
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import (
    Coherence,
    Decorrelation,
    LogBarrierCoherence,
    OutsideBound,
    Penalty,
    Regularizer,
    Scaled,
    Smoothness,
    Sparse,
    Sum,
    Tether,
    differentiable,
    regularizer,
)


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.fixture(params=[(2, 1), (2, 2), (5, 8), (16, 32)], ids=lambda shape: f"{shape[0]}x{shape[1]}")
def dictionary(request):
    D = np.random.default_rng(1).standard_normal(request.param)
    return D / np.linalg.norm(D, axis=0)


@pytest.fixture
def direction(dictionary):
    return np.random.default_rng(2).standard_normal(dictionary.shape)


# The penalties we ship: how to make one for m×d dictionaries, and its definition written out for autograd


def picture_of(m):
    return (4, m // 4) if m % 4 == 0 else (m,)


def labels(d):
    return [i % 3 for i in range(d)]


def off_diagonal(D):
    return D.T @ D * (1 - np.eye(D.shape[1]))


def barrier_by_definition(D):
    return -0.7 * anp.sum(anp.log(1 - (off_diagonal(D) / 0.9) ** 2))


def smoothness_by_definition(D):
    pictures = anp.reshape(D, (*picture_of(len(D)), D.shape[1]))
    axes = range(len(picture_of(len(D))))
    return 0.7 * sum(anp.sum(anp.diff(pictures, axis=axis) ** 2) for axis in axes)


def tether_by_definition(D):
    R = reference(D.shape) / np.linalg.norm(reference(D.shape), axis=0)
    return 0.7 * anp.sum(anp.sum(D * D, axis=0) - anp.sum(D * R, axis=0) ** 2)


def decorrelation_by_definition(D):
    groups = np.array(labels(D.shape[1]))
    return 0.7 * anp.sum((D.T @ D * (groups[:, None] != groups)) ** 2)


def reference(shape):
    return np.random.default_rng(5).standard_normal(shape)


def sparse_by_definition(D):
    return 0.7 * anp.sum(anp.sqrt(D**2 + 0.2**2) - 0.2)


SHIPPED = {
    "Coherence": (lambda m, d: Coherence(0.7), lambda D: 0.7 * anp.sum(off_diagonal(D) ** 8)),
    "Coherence, squares": (lambda m, d: Coherence(0.7, 2), lambda D: 0.7 * anp.sum(off_diagonal(D) ** 2)),
    "Coherence, odd": (
        lambda m, d: Coherence(0.7, power=3),
        lambda D: 0.7 * anp.sum(anp.abs(off_diagonal(D)) ** 3),
    ),
    "LogBarrierCoherence": (lambda m, d: LogBarrierCoherence(0.7, bound=0.9), barrier_by_definition),
    "Smoothness": (lambda m, d: Smoothness(0.7, picture_of(m)), smoothness_by_definition),
    "Tether": (lambda m, d: Tether(0.7, reference((m, d))), tether_by_definition),
    "Decorrelation": (lambda m, d: Decorrelation(0.7, labels(d)), decorrelation_by_definition),
    "Sparse": (lambda m, d: Sparse(0.7, smoothing=0.2), sparse_by_definition),
    "sum": (
        lambda m, d: (
            2 * (Coherence(0.7) + Sparse(0.7, smoothing=0.2)) + regularizer(smoothness_by_definition)
        ),
        lambda D: (
            1.4 * anp.sum(off_diagonal(D) ** 8) + 2 * sparse_by_definition(D) + smoothness_by_definition(D)
        ),
    ),
}
all_shipped = pytest.mark.parametrize("name", SHIPPED)


def shipped(name, shape):
    return SHIPPED[name][0](*shape)


@all_shipped
def test_derivatives_agree_with_autograds_of_the_definition(name, dictionary, direction):
    D, definition = 0.8 * dictionary, SHIPPED[name][1]  # shorter atoms: all inside the barrier
    penalty = shipped(name, D.shape)
    # Sums of up to 1000 terms of size one: a few hundred roundings of 1e-16. Next to the bound of the
    # barrier (0.64 of 0.81 at most) a derivative multiplies them by about 10.
    close = {"rtol": 1e-11, "atol": 1e-11}
    assert penalty.value(D) == pytest.approx(definition(D), rel=1e-11, abs=1e-12)
    np.testing.assert_allclose(penalty.gradient(D), grad(definition)(D), **close)
    expected = hessian_vector_product(definition)(D, direction)
    np.testing.assert_allclose(penalty.hessian(D, direction), expected, **close)


@all_shipped
def test_shipped_penalties_at_one_dictionary(name, dictionary, direction):
    """They leave their arguments alone, say the same through `at`, and keep shape and dtype."""
    for dtype in (np.float64, np.float32):
        D, E = (0.8 * dictionary).astype(dtype), direction.astype(dtype)
        before = D.copy(), E.copy()
        penalty = shipped(name, D.shape)
        at = Sum((penalty,)).at(D)
        assert type(penalty.value(D)) is float and penalty.value(D) == at.value
        gradient, hessian = penalty.gradient(D), penalty.hessian(D, E)
        assert gradient.dtype == hessian.dtype == dtype and gradient.shape == hessian.shape == D.shape
        np.testing.assert_array_equal(at.gradient, gradient)
        np.testing.assert_array_equal(at.hessian(E), hessian)
        np.testing.assert_array_equal(D, before[0])
        np.testing.assert_array_equal(E, before[1])


@all_shipped
def test_shipped_penalties_ignore_signs_of_atoms(name, dictionary):
    D = 0.8 * dictionary
    flipped = D * np.random.default_rng(3).choice([-1, 1], D.shape[1])
    penalty = shipped(name, D.shape)
    assert penalty.value(flipped) == pytest.approx(penalty.value(D), rel=1e-12, abs=1e-14)


@all_shipped
def test_shipped_penalties_are_values(name):
    penalty, same = shipped(name, (8, 6)), shipped(name, (8, 6))
    assert penalty == same and hash(penalty) == hash(same)
    assert penalty != 3 * penalty and penalty != "penalty"
    assert isinstance(penalty, Regularizer) and isinstance(penalty, Penalty)
    penalty.gradient(0.1 * np.eye(8, 6))  # what it keeps for itself is not part of it
    for twin in (copy.deepcopy(penalty), pickle.loads(pickle.dumps(penalty)), clone(penalty, safe=False)):
        assert twin == penalty and repr(twin) == repr(penalty)


def test_they_print_themselves():
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


# What each of them says


def test_the_barrier_is_infinite_from_the_bound_on():
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


def test_nothing_times_a_barrier_is_nothing():
    assert (0 * LogBarrierCoherence(1.0, bound=0.1)).value(np.ones((2, 2))) == 0


def test_smoothness_has_neighbours_along_every_axis():
    picture = np.zeros((3, 3))
    picture[1, 1] = 1.0  # one pixel with four neighbours
    assert Smoothness(1.0, (3, 3)).value(picture.reshape(9, 1)) == 4
    assert Smoothness(1.0, 9).value(picture.reshape(9, 1)) == 2
    assert Smoothness(1.0, (3, 3)).value(np.ones((9, 2))) == 0
    np.testing.assert_array_equal(Smoothness(1.0, (3, 3)).gradient(np.ones((9, 2))), 0)


def test_a_tether_measures_the_angle_to_the_line():
    angles = np.array([0.0, 1e-9, 0.3, np.pi - 0.3])
    D = np.array([np.cos(angles), np.sin(angles)])
    tether = Tether(1.0, np.array([[7.0] * 4, [0.0] * 4]))
    assert tether.value(D) == pytest.approx(1e-18 + 2 * np.sin(0.3) ** 2, rel=1e-14)
    # One minus a squared cosine would have lost this one altogether.
    assert Tether(1.0, [[1.0], [0.0]]).value(D[:, [1]]) == pytest.approx(1e-18, rel=1e-12)


def test_a_tether_does_not_follow_its_array():
    reference = np.eye(2)
    tether = Tether(1.0, reference)
    reference[:] = 1
    assert tether.value(np.eye(2)) == 0
    for each in (tether, copy.deepcopy(tether)):
        with pytest.raises(ValueError, match="read-only"):
            each.reference[0, 0] = 2


def test_decorrelation_of_single_atoms_is_coherence_with_squares(dictionary):
    single = Decorrelation(0.7, range(dictionary.shape[1]))
    assert single.value(dictionary) == pytest.approx(Coherence(0.7, power=2).value(dictionary), rel=1e-12)
    assert Decorrelation(0.7, ["all"] * dictionary.shape[1]).value(dictionary) == 0


def test_sparse_goes_from_squares_to_absolute_values():
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


# Sums and multiples


def test_they_add_scale_and_print():
    a, b = Coherence(0.1), Sparse(0.2)
    assert repr(2 * a + b) == "2 * Coherence(weight=0.1, power=8) + Sparse(weight=0.2, smoothing=0.01)"
    assert (
        repr(0.5 * (a + 4 * b))
        == "0.5 * Coherence(weight=0.1, power=8) + 2.0 * Sparse(weight=0.2, smoothing=0.01)"
    )
    assert 0.5 * (a + 2 * b) == 0.5 * a + b
    assert repr(np.float64(2.5) * a) == repr(a * np.float32(2.5)) == "2.5 * Coherence(weight=0.1, power=8)"
    assert 2 * a == a * 2 == Scaled(2, a) and 3 * (2 * a) == 6 * a and 1 * a == a
    assert (a + b) + (b + a) == Sum((a, b, b, a)) == a + (b + (b + a)) == sum([a, b, b, a])
    assert 2 * (a + b) == 2 * a + 2 * b


def test_their_values_add_and_scale(dictionary, direction):
    a, b = Coherence(0.1), Sparse(0.2)
    total = 2 * a + b * 3
    assert total.value(dictionary) == pytest.approx(
        2 * a.value(dictionary) + 3 * b.value(dictionary), rel=1e-14
    )
    expected = 2 * a.gradient(dictionary) + 3 * b.gradient(dictionary)
    np.testing.assert_allclose(total.gradient(dictionary), expected, rtol=1e-14)
    expected = 2 * a.hessian(dictionary, direction) + 3 * b.hessian(dictionary, direction)
    np.testing.assert_allclose(total.hessian(dictionary, direction), expected, rtol=1e-14)


def test_a_users_own_class_adds_on_either_side(dictionary):
    own = LogSumExp()
    for total in (own + Coherence(1.0), Coherence(1.0) + own):
        expected = float(own.value(dictionary)) + Coherence(1.0).value(dictionary)
        assert total.value(dictionary) == pytest.approx(expected, rel=1e-14)
        expected = LogSumExpWithGradient().gradient(dictionary) + Coherence(1.0).gradient(dictionary)
        np.testing.assert_allclose(total.gradient(dictionary), expected, rtol=1e-12, atol=1e-14)


def test_heirs_of_penalty_need_a_value_only(dictionary):
    @dataclass(frozen=True)
    class Own(Penalty):
        power: int

        def value(self, dictionary):
            return anp.sum(dictionary**self.power)

    total = 2 * Own(4) + Coherence(1.0)
    expected = 8 * dictionary**3 + Coherence(1.0).gradient(dictionary)
    np.testing.assert_allclose(total.gradient(dictionary), expected, rtol=1e-13, atol=1e-14)
    assert total == 2 * Own(4) + Coherence(1.0) != 2 * Own(3) + Coherence(1.0)


@pytest.mark.parametrize(
    "combine",
    [
        lambda a: a + 1,
        lambda a: 1 + a,
        lambda a: a + Coherence,
        lambda a: a * a,
        lambda a: a * "2",
        lambda a: a * np.ones(2),
        lambda a: a - a,
    ],
)
def test_what_does_not_combine_is_refused(combine):
    with pytest.raises(TypeError):
        combine(Coherence(1.0))


# Functions as regularizers


@regularizer
def peaks(D):
    """Fourth powers."""
    return anp.sum(D**4)


def test_a_decorated_function_is_a_regularizer_and_still_a_function(dictionary, direction):
    assert isinstance(peaks, Regularizer) and differentiable(peaks) is peaks
    assert peaks(dictionary) == peaks.value(dictionary) == np.sum(dictionary**4)
    # Products of at most four numbers of size one.
    np.testing.assert_allclose(peaks.gradient(dictionary), 4 * dictionary**3, rtol=1e-14)
    expected = 12 * dictionary**2 * direction
    np.testing.assert_allclose(peaks.hessian(dictionary, direction), expected, rtol=1e-13)
    assert repr(2 * peaks) == "2 * regularizer(peaks)" and peaks.__doc__ == "Fourth powers."
    assert peaks == peaks != regularizer(lambda D: anp.sum(D**4))


def test_functions_as_regularizers_travel():
    assert pickle.loads(pickle.dumps(peaks)) is peaks and copy.deepcopy(peaks) is peaks
    plain = regularizer(sparse_by_definition)
    assert pickle.loads(pickle.dumps(plain)) == plain == copy.deepcopy(plain)
    nameless = regularizer(lambda D: anp.sum(D))
    assert copy.deepcopy(nameless) == nameless and repr(nameless) == "regularizer(<lambda>)"


def test_what_is_no_function_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"0\.1 is no function"):
        regularizer(0.1)
    with pytest.raises(TypeError, match="is no function"):
        regularizer(Coherence)
    with pytest.raises(TypeError, match="regularizer already"):
        regularizer(peaks)


def test_functions_are_checked_where_they_are_used():
    forgotten, unsummed = regularizer(lambda D: None), regularizer(lambda D: D**2)
    blind = regularizer(lambda D: float(np.sum(D)))
    for ask in (forgotten.value, forgotten.gradient):
        with pytest.raises(TypeError, match="<lambda> returned None; a penalty is one real number"):
            ask(np.eye(2))
    for ask in (unsummed.value, unsummed.gradient):
        with pytest.raises(TypeError, match=r"returned an array of shape \(2, 2\)"):
            ask(np.eye(2))
    with pytest.raises(TypeError, match=r"write <lambda> with autograd\.numpy, or write a class with"):
        blind.gradient(np.eye(2))


def test_at_one_dictionary_the_function_is_recorded_once(dictionary, direction):
    calls = []

    @regularizer
    def counted(D):
        calls.append(type(D).__name__)
        return anp.sum(D**4)

    at = counted.at(dictionary)
    for _ in range(3):
        at.value, at.gradient, at.hessian(direction)
    # Once plainly, once for the gradient, once for all Hessian products.
    assert len(calls) == 3


# Penalties as a user might write them: each lacks something else


@dataclass(frozen=True)
class CoherenceByPairs:
    """Σ_{i≠j} |⟨d_i, d_j⟩|^p pair by pair: an oracle that shares no line with `Coherence`."""

    power: int = 2

    def value(self, dictionary):
        d, p = dictionary.shape[1], self.power
        return sum(
            anp.abs(anp.dot(dictionary[:, i], dictionary[:, j])) ** p
            for i in range(d)
            for j in range(d)
            if i != j
        )


class LogSumExp:
    """Smooth and not a polynomial: no derivative of it vanishes."""

    def value(self, dictionary):
        return anp.log(anp.sum(anp.exp(dictionary)))


class LogSumExpWithGradient(LogSumExp):
    def gradient(self, dictionary):
        return np.exp(dictionary) / np.sum(np.exp(dictionary))


class LogSumExpWithHessian(LogSumExp):
    def hessian(self, dictionary, direction):
        p = np.exp(dictionary) / np.sum(np.exp(dictionary))
        return p * direction - p * np.sum(p * direction)


@dataclass(frozen=True)
class Total:
    """Linear: its Hessian is zero, and autograd finds that its gradient does not depend on D."""

    weight: float = 3.0

    def value(self, dictionary):
        return self.weight * anp.sum(dictionary)


class Constant:
    def value(self, dictionary):
        return 3.0


REGULARIZERS = [
    Coherence(0.7),
    LogSumExp(),
    LogSumExpWithGradient(),
    LogSumExpWithHessian(),
    Total(),
    Constant(),
]


# Coherence


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


def test_coherence_ignores_the_order(dictionary):
    shuffled = dictionary[:, np.random.default_rng(3).permutation(dictionary.shape[1])]
    assert Coherence(1.0).value(shuffled) == pytest.approx(Coherence(1.0).value(dictionary), rel=1e-12)


@pytest.mark.parametrize("weight", [-0.1, np.inf, np.nan, "0.1", None, 1j])
def test_impossible_weights_are_refused_with_a_sentence(weight):
    with pytest.raises(ValueError, match=r"weight=.*a finite number of at least 0"):
        Coherence(weight)


def test_coherence_is_a_value():
    assert Coherence(0.5) == Coherence(0.5) != Coherence(0.6)
    assert repr(Coherence(0.5)) == "Coherence(weight=0.5, power=8)"
    assert pickle.loads(pickle.dumps(Coherence(0.5))) == Coherence(0.5)
    assert isinstance(Coherence(0.5), Regularizer)


# All of them, once completed


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
def test_derivatives_give_the_taylor_expansion(regularizer, dictionary, direction):
    penalty = differentiable(regularizer)
    steps = np.logspace(-2, -3.5, 7)
    value, first = penalty.value(dictionary), np.vdot(penalty.gradient(dictionary), direction)
    second = np.vdot(penalty.hessian(dictionary, direction), direction)
    moved = np.array([penalty.value(dictionary + t * direction) for t in steps])
    remainders = abs(moved - value - steps * first - steps**2 / 2 * second)
    # Either the third derivative shows (a wrong gradient would give slope 1, a wrong Hessian 2, and the
    # derivatives after it bend the slope, most where an eighth power is one step of 1e-2 away from its
    # minimum), or there is none and what is left is rounding.
    vanishes = isinstance(regularizer, Total | Constant) or (
        isinstance(regularizer, Coherence) and dictionary.shape[1] == 1
    )
    if vanishes:
        np.testing.assert_allclose(remainders, 0, atol=1e-13 * max(1, abs(value)))
    else:
        assert slope(remainders, steps) == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
def test_hessians_are_symmetric(regularizer, dictionary, direction):
    hessian = differentiable(regularizer).hessian
    other = np.random.default_rng(4).standard_normal(dictionary.shape)
    left = np.vdot(hessian(dictionary, direction), other)
    right = np.vdot(direction, hessian(dictionary, other))
    assert left == pytest.approx(right, rel=1e-11, abs=1e-12)  # sums of 512 terms that partly cancel


@pytest.mark.parametrize(
    "regularizer", [*REGULARIZERS, Coherence(np.float64(0.5))], ids=lambda r: type(r).__name__
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_have_shape_and_dtype_of_the_dictionary(regularizer, dictionary, direction, dtype):
    D, E = dictionary.astype(dtype), direction.astype(dtype)
    penalty = differentiable(regularizer)
    assert type(penalty.value(D)) is float
    for array in (penalty.gradient(D), penalty.hessian(D, E)):
        assert array.shape == D.shape
        assert array.dtype == dtype


# What autograd supplies


def test_a_complete_regularizer_is_returned_as_it_is():
    coherence = Coherence(0.1)
    assert differentiable(coherence) is coherence
    completed = differentiable(LogSumExp())
    assert differentiable(completed) is completed


def test_methods_that_exist_are_used():
    class Marked(LogSumExp):
        def gradient(self, dictionary):
            return "by hand"

    D = np.eye(2)
    assert differentiable(Marked()).gradient(D) == "by hand"
    np.testing.assert_allclose(  # and the Hessian does not go through that gradient
        differentiable(Marked()).hessian(D, D), LogSumExpWithHessian().hessian(D, D), rtol=1e-13
    )


def test_constant_and_linear_penalties_have_zero_derivatives_without_a_warning(dictionary, direction):
    np.testing.assert_array_equal(differentiable(Constant()).gradient(dictionary), 0)
    np.testing.assert_array_equal(differentiable(Constant()).hessian(dictionary, direction), 0)
    np.testing.assert_array_equal(differentiable(Total(3.0)).gradient(dictionary), 3)
    np.testing.assert_array_equal(differentiable(Total(3.0)).hessian(dictionary, direction), 0)


def test_whole_numbers_are_differentiated_as_floats():
    gradient = differentiable(LogSumExp()).gradient(np.zeros((2, 2), dtype=int))
    np.testing.assert_allclose(gradient, 0.25, rtol=1e-15)


def test_a_value_autograd_cannot_see_through_is_refused_with_advice():
    class PlainNumpy:
        def value(self, dictionary):
            return float(np.sum(np.exp(dictionary)))

    class PlainNumpyWithGradient(PlainNumpy):
        def gradient(self, dictionary):
            return np.exp(dictionary)

    D = np.eye(2)
    assert differentiable(PlainNumpy()).value(D) == pytest.approx(2 * np.e + 2)
    with pytest.raises(TypeError, match=r"PlainNumpy\.value .*autograd\.numpy, or .* a gradient method"):
        differentiable(PlainNumpy()).gradient(D)
    with pytest.raises(TypeError, match=r"write value with autograd\.numpy, or .* a hessian method"):
        differentiable(PlainNumpy()).hessian(D, D)
    # First-order methods need no more than the gradient that is there.
    np.testing.assert_array_equal(differentiable(PlainNumpyWithGradient()).gradient(D), np.exp(D))


def test_a_mistake_inside_value_speaks_for_itself():
    class Misspelt:
        def value(self, dictionary):
            return anp.sum(dictionary @ np.ones(7))

    with pytest.raises(ValueError, match="matmul"):
        differentiable(Misspelt()).gradient(np.eye(2))


def test_a_penalty_is_one_number():
    class Forgotten:
        def value(self, dictionary):
            anp.sum(dictionary**2)

    class Unsummed:
        def value(self, dictionary):
            return dictionary**2

    with pytest.raises(TypeError, match=r"Forgotten\.value returned None; a penalty is one real number"):
        differentiable(Forgotten()).gradient(np.eye(2))
    with pytest.raises(TypeError, match=r"Unsummed\.value returned an array of shape \(2, 2\)"):
        differentiable(Unsummed()).gradient(np.eye(2))


def test_what_is_no_regularizer_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"0\.1 has no method value\(dictionary\)"):
        differentiable(0.1)
    with pytest.raises(TypeError, match=r"Coherence is a class; .* an instance of it, Coherence\(\.\.\.\)"):
        differentiable(Coherence)


def test_hand_written_derivatives_do_without_autograd():
    code = (
        "import sys; sys.modules['autograd'] = None; import numpy as np; "
        "from manifold_dl.regularizers import Coherence, Sparse; "
        "(2 * Coherence(0.1) + Sparse(0.1)).hessian(np.eye(2), np.eye(2))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Inside an update


M, N_ATOMS, N = 8, 10, 200


def noisy_signals(seed=0):
    """Signals of two or three atoms each, with noise, and their dictionary."""
    rng = np.random.default_rng(seed)
    D = Spheres(M, N_ATOMS).random_point(rng)
    mask = rng.random((N_ATOMS, N)).argsort(axis=0) < 3
    return D @ (mask * rng.standard_normal((N_ATOMS, N))) + 0.1 * rng.standard_normal((M, N)), mask, D


def optimizers(max_iterations):
    # As tight as the rounding of sums of size 600 allows.
    options = {
        "max_iterations": max_iterations,
        "min_gradient_norm": 1e-5,
        "min_step_size": 0,
        "verbosity": 0,
    }
    return {
        "trust region": TrustRegions(**options),
        "conjugate gradients": ConjugateGradient(line_searcher=WolfeSearch(), **options),
        "L-BFGS": LBFGS(**options),
        "descent, golden section": SteepestDescent(line_searcher=GoldenSection(), **options),
    }


OPTIMIZERS = optimizers(1500)  # steepest descent converges linearly, and needs them


@all_shipped
def test_optimizers_find_the_same_minimum(name):
    Y, mask, true = noisy_signals()
    penalty = 20 * shipped(name, true.shape)  # strong: it moves the minimum far more than the tolerance
    if name == "LogBarrierCoherence":
        penalty = LogBarrierCoherence(2.0, bound=1.05 * metrics.coherence(true))
    problem = update_problem(Y, mask, mu=0.01, regularizers=[penalty])
    plain = update_problem(Y, mask, mu=0.01)
    minimum, without = (
        OPTIMIZERS["trust region"].run(each, initial_point=true).point for each in (problem, plain)
    )
    spheres = problem.manifold
    assert spheres.dist(minimum, without) > 0.01
    start = spheres.exp(minimum, 0.05 * spheres.random_tangent_vector(minimum, np.random.default_rng(1)))
    for optimizer in OPTIMIZERS.values():
        result = optimizer.run(problem, initial_point=start)
        # The value is off by the square of the gradient over the curvature, the point by their quotient.
        assert problem.cost(result.point) == pytest.approx(problem.cost(minimum), rel=1e-10)
        np.testing.assert_allclose(result.point, minimum, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_optimizer_leaves_the_barrier(name):
    optimizer, bound = optimizers(60)[name], 0.3
    Y, mask, _ = noisy_signals()
    mask = mask[:M]  # as many atoms as dimensions: an orthonormal basis is inside any bound
    start = np.linalg.qr(np.random.default_rng(2).standard_normal((M, M)))[0]
    free = update_problem(Y, mask, mu=0.01)
    assert metrics.coherence(optimizer.run(free, initial_point=start).point) > bound
    problem = update_problem(Y, mask, mu=0.01, regularizers=[LogBarrierCoherence(0.1, bound)])
    result = optimizer.run(problem, initial_point=start)
    assert bound > metrics.coherence(result.point) > 0.9 * bound  # the data pushes against it
    values = [iterate.value for iterate in problem.record]
    assert np.isfinite(values).all() and values[-1] < values[0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_start_outside_the_barrier_is_refused_with_a_sentence(optimizer):
    Y, mask, true = noisy_signals()
    problem = update_problem(Y, mask, regularizers=[LogBarrierCoherence(0.1, bound=0.2)])
    assert problem.cost(true) == np.inf
    with pytest.raises(
        ValueError, match=r"infinite there: begin with a dictionary whose coherence is below 0\.2"
    ):
        optimizer.run(problem, initial_point=true)


def test_a_problem_asks_once_for_what_it_needs_at_a_point():
    calls = []

    @regularizer
    def counted(D):
        calls.append(1)
        return anp.sum(D**4)

    Y, mask, true = noisy_signals()
    problem = update_problem(Y, mask, mu=0.01, regularizers=[counted, Coherence(1.0)])
    U = problem.manifold.random_tangent_vector(true, np.random.default_rng(1))
    elsewhere = problem.manifold.exp(true, 0.1 * U)
    for point in (true, elsewhere, true):  # a trust region comes back after a step that it refused
        problem.cost(point), problem.riemannian_gradient(point)
        for _ in range(4):
            problem.riemannian_hessian(point, U), problem.preconditioner(point, U)
    assert len(calls) == 2 * 3  # at each point for the value, for the gradient, and for what is kept of it
    before = problem.cost(true)
    true *= -1.0
    true[:, 0] = true[:, 1]  # the same array, another point
    assert problem.cost(true) == pytest.approx(
        update_problem(Y, mask, mu=0.01, regularizers=[counted, Coherence(1.0)]).cost(true), rel=1e-14
    )
    assert problem.cost(true) != before


def test_first_order_methods_need_no_second_derivative():
    class GradientOnly:
        def value(self, dictionary):
            return float(np.sum(np.exp(dictionary)))

        def gradient(self, dictionary):
            return np.exp(dictionary)

    Y, mask, true = noisy_signals()
    problem = update_problem(Y, mask, mu=0.01, regularizers=[GradientOnly()])
    before = problem.cost(true)
    result = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=5, verbosity=0).run(
        problem, initial_point=true
    )
    assert result.cost < before


@all_shipped
@pytest.mark.parametrize("kind", [TrustRegions, ConjugateGradient])
def test_float32_stays_float32_through_a_run(name, kind):
    Y, mask, true = noisy_signals()
    penalty = shipped(name, true.shape)
    problem = update_problem(Y.astype(np.float32), mask, mu=0.01, regularizers=[penalty])
    start = true.astype(np.float32)
    options = {"line_searcher": WolfeSearch()} if kind is ConjugateGradient else {}
    result = kind(max_iterations=4, verbosity=0, **options).run(problem, initial_point=start)
    assert result.point.dtype == np.float32
    assert problem.cost(result.point) < problem.cost(start)


def test_a_penalty_holds_atoms_that_are_hardly_used():
    """The preconditioner gives them long steps, unless a penalty has its say about them too."""
    Y, mask, true = noisy_signals()
    mask[0] = False
    mask[0, 0] = True  # one user
    problems = [update_problem(Y, mask, mu=0.1, regularizers=r) for r in ([], [Sparse(1e3, smoothing=1.0)])]
    U = problems[0].manifold.random_tangent_vector(true, np.random.default_rng(1))
    free, held = (problem.preconditioner(true, U)[0] / U[0] for problem in problems)
    assert free[0] > 100 * free[1:].max()
    assert held[0] < 2 * held[1:].max()


# On pictures


def patches_of(name, n):
    """Mean-free patches of 8×8 pixels of a photograph."""
    picture = load_sample_image(name).mean(axis=2)
    rows = extract_patches_2d(picture, (8, 8), max_patches=n, random_state=0).reshape(n, 64)
    return (rows - rows.mean(axis=1, keepdims=True)).T


@pytest.fixture(scope="module")
def patches():
    return patches_of("china.jpg", 1500)


def learn(Y, penalties, n_starts=1, **options):
    """Mutual coherence and the part of ‖Y‖² that is left with four of 96 atoms a patch: means over starts."""
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=21, verbosity=0)
    update = SimCO(optimizer=optimizer, mu=0.0, regularizers=penalties)
    results = [
        learn_dictionary(
            Y, 96, coder=OMP(sparsity=4), update=update, max_iter=8, init="random", rng=rng, **options
        )
        for rng in range(n_starts)
    ]
    errors = [np.sum((Y - result.dictionary @ result.codes) ** 2) / np.sum(Y**2) for result in results]
    return np.mean([metrics.coherence(result.dictionary) for result in results]), np.mean(errors)


@pytest.mark.parametrize(("picture", "seed"), [("china.jpg", 11), ("flower.jpg", 12)])
def test_mutual_coherence_falls_whenever_the_weight_rises_and_the_fit_pays_for_it(picture, seed):
    """One update stage: supports stay, each weight goes on from the last one, so only the weight changes."""
    Y, d = patches_of(picture, 800), 80
    plain = learn_dictionary(
        Y, d, coder=OMP(sparsity=4), update=SimCO(mu=0.0), max_iter=8, init="random", rng=seed
    )
    D, X = plain.dictionary, plain.codes
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=61, verbosity=0)
    weights = np.array([0.0, *np.logspace(-6, 0, 13)])  # half decades, of ‖Y‖²
    coherences, sums, errors = [], [], []
    for weight in weights:
        update = SimCO(optimizer=optimizer, mu=0.0, regularizers=[Coherence(weight * np.sum(Y**2))])
        # The first weight changes coherence in its fourth digit: the start has to be at a minimum.
        for _ in range(1 if weight else 4):
            D, X = update(Y, D, X)
        coherences.append(metrics.coherence(D))
        sums.append(Coherence(1.0).value(D))
        errors.append(np.sum((Y - D @ X) ** 2) / np.sum(Y**2))
    assert (np.diff(coherences) < 0).all()
    assert coherences[9] < 0.85 * coherences[0] and coherences[-1] < 0.6 * coherences[0]
    # The fit pays, at most weight times what the sum has lost: else the start had been the better minimum.
    costs = np.array(errors) - errors[0]
    assert (costs <= weights * (sums[0] - np.array(sums)) + 1e-9).all()
    assert costs[9] > 0 and costs[-1] > costs[9]


def test_learned_dictionaries_are_less_coherent_at_a_small_cost(patches):
    # Decades apart: between two starts mutual coherence differs by 0.03, whatever the weight.
    weights = [0.0, 1e-2, 1.0]  # of ‖Y‖²
    scale = np.sum(patches**2)
    results = [learn(patches, [Coherence(weight * scale)], n_starts=2) for weight in weights]
    coherences, errors = np.transpose(results)
    assert coherences[1] < 0.75 * coherences[0] and coherences[2] < 0.65 * coherences[1]
    # The cost: one per cent at 1e-2, where two starts differ by as much, and a twelfth at 1.
    assert errors[1] < 1.03 * errors[0] and errors[1] < errors[2] < 1.15 * errors[0]


def test_the_barrier_holds_through_a_whole_run(patches):
    free, error = learn(patches, [])
    barrier = LogBarrierCoherence(1e-7 * np.sum(patches**2), bound=0.7)
    bounded, bounded_error = learn(patches, [barrier], replace=ReplaceAtoms(coherence=0.69))
    assert bounded < 0.7 < free
    assert bounded_error < 1.1 * error
