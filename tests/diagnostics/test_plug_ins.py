"""Parts that a stranger writes after reading the README and `docs/extending`: they work, or are named."""

import copy
import pickle
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import autograd.numpy as anp
import numpy as np
import pytest
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

import manifold_dl as mdl
from manifold_dl import plugins, regularizers
from manifold_dl.components.errors import ComponentError
from manifold_dl.diagnostics import CheckFailed, check_regularizer
from manifold_dl.diagnostics.smoothness import find_kink
from manifold_dl.regularizers import Coherence, Scaled, Sum, differentiable, regularizer, scaled

D = mdl.manifolds.Spheres(8, 12).random_point(0)
_, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=3, snr_db=20, rng=0)


def bare(dictionary):
    return anp.sum(dictionary**4)


@regularizer
def peaks(dictionary, power=4):
    return anp.sum(dictionary**power)


@regularizer
def distance(dictionary, *, reference):
    return anp.sum((dictionary - reference) ** 2)


@dataclass
class Foreign:
    """A regularizer that inherits nothing."""

    power: int = 4

    def value(self, dictionary):
        return anp.sum(dictionary**self.power)


# --- Functions ---------------------------------------------------------------------------------------------


def test_a_bare_function_is_a_regularizer_everywhere():
    updated = [mdl.SimCO(mu=0.1, regularizers=[r])(Y, D, X)[0] for r in (bare, peaks, Foreign())]
    np.testing.assert_array_equal(updated[0], updated[1])
    np.testing.assert_array_equal(updated[0], updated[2])
    problem = mdl.update_problem(Y, X, mu=0.1, regularizers=(bare,))
    plain = mdl.update_problem(Y, X, mu=0.1)
    # One sum of some hundred terms, added to another.
    np.testing.assert_allclose(problem.cost(D), plain.cost(D) + np.sum(D**4), rtol=1e-12)
    np.testing.assert_allclose(differentiable(bare).gradient(D), 4 * D**3, rtol=1e-13)
    learned = [
        mdl.learn_dictionary(
            Y, 12, coder=mdl.OMP(sparsity=3), update=mdl.SimCO(regularizers=[r]), max_iter=2, rng=0
        )
        for r in (bare, Foreign())
    ]
    np.testing.assert_array_equal(learned[0].dictionary, learned[1].dictionary)
    np.testing.assert_array_equal(learned[0].history.objective, learned[1].history.objective)


def test_updates_with_bare_functions_are_values():
    update = mdl.SimCO(regularizers=[bare])
    assert update == mdl.SimCO(regularizers=[bare]) == mdl.SimCO(regularizers=[regularizer(bare)])
    assert update != mdl.SimCO(regularizers=[lambda D: anp.sum(D)])
    assert "regularizers=(regularizer(bare),)" in repr(update)
    assert copy.deepcopy(update) == update == pickle.loads(pickle.dumps(update))


def test_bare_functions_add():
    both = Coherence(0.1) + bare
    assert both == Sum((Coherence(0.1), regularizer(bare))) and (bare + Coherence(0.1)).terms[
        0
    ] == regularizer(bare)
    np.testing.assert_allclose(both.value(D), Coherence(0.1).value(D) + np.sum(D**4), rtol=1e-14)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([Coherence], r"Coherence is a class; a regularizer is an instance of it, Coherence\(\.\.\.\)"),
        ([type("Half", (), {"value": 3})()], r"has value = 3; it must be a method, value\(dictionary\)"),
        ([0.1], r"0\.1 has no method value\(dictionary\), which makes a regularizer, and is no function"),
        (bare, "pass a list of them, if only of one"),
        (Coherence(0.1), "pass a list of them, if only of one"),
        (
            [distance],
            r"regularizer\(distance\) needs values for its parameters: pass distance\(reference=\.\.\.\)",
        ),
        ([lambda D, strength: 0.0], r"needs values for its parameters: pass <lambda>\(strength=\.\.\.\)"),
    ],
)
def test_what_is_no_regularizer_is_refused_when_a_problem_or_update_is_made(given, sentence):
    with pytest.raises(TypeError, match=sentence):
        mdl.SimCO(regularizers=given)
    with pytest.raises(TypeError, match=sentence):
        mdl.update_problem(Y, X, regularizers=given)


def test_a_decorated_function_takes_parameters_like_a_class():
    sixth = peaks(power=6)
    assert repr(sixth) == "peaks(power=6)" and repr(0.5 * sixth) == "0.5 * peaks(power=6)"
    assert sixth == peaks(power=6) != peaks(power=8) and hash(sixth) == hash(peaks(power=6))
    assert peaks() is peaks and sixth(power=4) == peaks(power=4)
    assert sixth.value(D) == sixth(D) == peaks(D, power=6) == np.sum(D**6)
    # Products of at most six numbers of size one.
    np.testing.assert_allclose(sixth.gradient(D), 6 * D**5, rtol=1e-13)
    np.testing.assert_allclose(sixth.hessian(D, D), 30 * D**5, rtol=1e-12)
    with pytest.raises(TypeError, match="peaks has no parameter 'powr': its parameters are power"):
        peaks(powr=2)


def test_parameters_may_be_arrays():
    near = distance(reference=D)
    assert repr(near) == "distance(reference=<8×12 array>)"
    assert near == distance(reference=D.copy()) != distance(reference=-D)
    assert near.value(D) == 0
    np.testing.assert_allclose(near.gradient(2 * D), 2 * D, rtol=1e-14)


def test_functions_with_parameters_travel_by_their_name():
    assert pickle.loads(pickle.dumps(peaks(power=6))) == peaks(power=6) == copy.deepcopy(peaks(power=6))
    assert b"peaks" in pickle.dumps(peaks(power=6)) and b"dictionary" not in pickle.dumps(peaks(power=6))


def test_functions_with_parameters_are_plug_ins_by_name(monkeypatch):
    point = EntryPoint("regularizers.peaks", f"{__name__}:peaks", plugins.GROUP)
    monkeypatch.setattr("manifold_dl.components.entry_points.entry_points", lambda group: [point])
    assert plugins.get("regularizers", "peaks")(power=6) == peaks(power=6)


# --- Objects of any class ----------------------------------------------------------------------------------


def test_any_class_scales_and_adds():
    tenth = scaled(0.1, Foreign())
    assert repr(tenth) == "0.1 * Foreign(power=4)" and tenth == Scaled(0.1, Foreign())
    np.testing.assert_allclose(tenth.gradient(D), 0.4 * D**3, rtol=1e-13)
    assert 2 * scaled(0.5, Foreign()) == Foreign()
    assert repr(scaled(1, Foreign()) + Foreign(6)) == "1 * Foreign(power=4) + Foreign(power=6)"
    assert scaled(2, Coherence(0.1)) == 2 * Coherence(0.1) and scaled(1, Coherence(0.1)) == Coherence(0.1)
    assert scaled(0.1, bare) == 0.1 * regularizer(bare)
    moved = [mdl.SimCO(mu=0.1, regularizers=[r])(Y, D, X)[0] for r in (scaled(3, Foreign()), 3 * peaks)]
    np.testing.assert_array_equal(*moved)


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, "2"])
def test_weights_are_finite_and_not_negative(weight):
    with pytest.raises(ValueError, match="weight="):
        regularizers.scaled(weight, Foreign())


# --- What check_regularizer says ---------------------------------------------------------------------------

MEAN = np.linspace(-1, 1, 8 * 5).reshape(8, 5)


def near_mean(dictionary):
    """A function that knows the number of its atoms and their length."""
    return anp.sum((dictionary @ MEAN.T - MEAN @ MEAN.T) ** 2)


@dataclass
class Opaque:
    """A value that autograd cannot differentiate, with a gradient that may be wrong, and no Hessian."""

    factor: float = 4.0
    shape: str = "m×d"

    def value(self, dictionary):
        return float(np.sum(np.asarray(dictionary) ** 4))

    def gradient(self, dictionary):
        gradient = self.factor * dictionary**3
        return {"m×d": gradient, "d×m": gradient.T, "m": gradient[:, 0], "None": None}[self.shape]


def test_a_function_that_knows_its_size_is_checked_at_that_size():
    with pytest.raises(
        CheckFailed,
        match=r"^near_mean raised ValueError: .* in its value; checked at 16×12: pass m= and n_atoms=",
    ):
        check_regularizer(near_mean)
    report = check_regularizer(near_mean, m=8, n_atoms=5)
    assert report and report.subject == "near_mean"
    with pytest.raises(CheckFailed, match=r"^near_mean raised ValueError: .* in its value\.$"):
        check_regularizer(near_mean, D)  # where the caller has chosen the size, that is no advice


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (bare, "bare"),
        (peaks, "peaks"),
        (peaks(power=6), "peaks"),
        (Foreign(), "Foreign"),
        (0.1 * peaks, "0.1 * regularizer(peaks)"),
        (scaled(2, Foreign()) + Coherence(0.1), "2 * Foreign(power=4) + Coherence(weight=0.1, power=8)"),
    ],
)
def test_the_report_is_named_after_the_function_or_class(given, title):
    assert check_regularizer(given).subject == title


def test_a_gradient_is_checked_without_a_hessian():
    report = check_regularizer(Opaque())
    assert any(fact.startswith("the gradient belongs to the value") for fact in report.passed)
    assert any(
        fact.startswith("the Hessian, which second-order") and "autograd" in fact for fact in report.skipped
    )
    with pytest.raises(CheckFailed, match=r"^Opaque: the gradient is wrong: .* slope 1"):
        check_regularizer(Opaque(factor=4.1))


@pytest.mark.parametrize(
    ("shape", "found"), [("d×m", r"shape \(12, 16\)"), ("m", r"shape \(16,\)"), ("None", "None")]
)
def test_a_gradient_of_the_wrong_shape_is_named(shape, found):
    with pytest.raises(CheckFailed, match=f"^Opaque returned a gradient of {found} where m×d"):
        check_regularizer(Opaque(shape=shape))


def test_a_value_that_autograd_cannot_differentiate_needs_a_gradient():
    with pytest.raises(CheckFailed, match="<lambda> has no gradient: autograd cannot differentiate <lambda>"):
        check_regularizer(lambda D: float(np.sum(np.asarray(D) ** 2)))


NOT_SMOOTH = {
    "absolute values": lambda D: anp.sum(anp.abs(D)),
    "roots of absolute values": lambda D: anp.sum(anp.sqrt(anp.abs(D))),
    "roots of squares": lambda D: anp.sum(anp.sqrt(D**2)),
    "a few absolute values in much curvature": lambda D: 100 * anp.sum(D**4) + 0.1 * anp.sum(anp.abs(D)),
    "norms of rows": lambda D: anp.sum(anp.sqrt(anp.sum(D**2, axis=1))),
    "the largest entry": lambda D: anp.max(D),
    "the coherence itself": lambda D: anp.max(anp.abs(D.T @ D) * (1 - np.eye(D.shape[1]))),
    "absolute inner products": lambda D: anp.sum(anp.abs(D.T @ D)),
    "a threshold": lambda D: anp.sum(anp.maximum(D - 0.1, 0)),
    "a jump": lambda D: anp.sum(anp.where(D > 0.1, D**2, 0.0)),
}
SMOOTH = {
    "smoothed absolute values": lambda D: anp.sum(anp.sqrt(D**2 + 1e-4)),
    "smoothed norms of rows": lambda D: anp.sum(anp.sqrt(anp.sum(D**2, axis=1) + 1e-6)),
    "squared thresholds": lambda D: anp.sum(anp.maximum(D - 0.1, 0) ** 2),
    "a constant": lambda D: 3.0,
    "a sum": anp.sum,
    "waves": lambda D: anp.sum(anp.sin(20 * D)),
}


@pytest.mark.parametrize("name", NOT_SMOOTH)
def test_a_penalty_with_kinks_is_called_not_smooth(name):
    with pytest.raises(CheckFailed, match="is not smooth"):
        check_regularizer(NOT_SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_penalty_is_not_called_otherwise(name):
    assert check_regularizer(SMOOTH[name])


def test_zero_entries_are_named_as_the_place_of_the_kink():
    with pytest.raises(CheckFailed, match="its slope jumps where an entry of the dictionary is zero"):
        check_regularizer(NOT_SMOOTH["absolute values"])


@pytest.mark.parametrize("place", [-0.37, 0.0, 0.4142])
def test_kinks_are_found_where_they_are(place):
    # 1e-4 of the path: the last grid but one.
    assert find_kink(lambda t: np.cos(3 * t) + abs(t - place), -1, 1) == pytest.approx(place, abs=2e-4)
    assert find_kink(lambda t: np.cos(3 * t) + (t - place) ** 2, -1, 1) is None
    assert np.isnan(find_kink(lambda t: np.log(t - place) if t > place else -np.inf, -1, 1))


# --- What a run says ---------------------------------------------------------------------------------------


def learn(**parts):
    parts = {"coder": mdl.OMP(sparsity=3), "rng": 0, "max_iter": 2, **parts}
    return mdl.learn_dictionary(Y, 12, **parts)


def test_an_update_rule_is_any_function_of_signals_dictionary_and_codes():
    def ksvd(signals, dictionary, codes):
        return mdl.KSVD()(signals, dictionary, codes)

    np.testing.assert_array_equal(learn(update=ksvd).dictionary, learn(update=mdl.KSVD()).dictionary)


class Miscalled:
    """Every method lacks an argument."""

    def __call__(self):
        return None

    def encode(self, signals):
        return signals

    def run(self, problem):
        return problem

    def subsets(self, n_atoms):
        return [range(n_atoms)]


@pytest.mark.parametrize(
    "parts",
    [
        {"coder": Miscalled()},
        {"update": Miscalled()},
        {"update": mdl.SimCO(Miscalled())},
        {"update": mdl.SimCO(schedule=Miscalled())},
        {"callbacks": [Miscalled()]},
    ],
    ids=["coder", "update rule", "optimizer", "schedule", "callback"],
)
def test_a_part_with_a_wrong_signature_is_named(parts, request):
    role = request.node.callspec.id
    with pytest.raises(ComponentError, match=f"^The {role} .*Miscalled.*argument"):
        learn(**parts)


def test_a_callback_that_changes_the_dictionary_is_named():
    def spoil(step):
        step.dictionary[:] = 0

    with pytest.raises(
        ComponentError, match=r"The callback .*spoil.* raised ValueError: .*read-only"
    ):
        learn(callbacks=[spoil])


def test_none_is_no_callback():
    with pytest.raises(TypeError, match="callbacks: None cannot be called"):
        learn(callbacks=[None])


def test_a_schedule_that_returns_nothing_is_named():
    class Forgetful:
        def subsets(self, n_atoms, rng=None):
            [range(n_atoms)]

    with pytest.raises(ComponentError, match=r"Forgetful.* subsets returned None; it must yield"):
        learn(update=mdl.SimCO(schedule=Forgetful()))


@pytest.mark.parametrize("shape", ["d×m", "m", "None"])
def test_a_gradient_of_the_wrong_shape_is_named_by_a_run(shape):
    with pytest.raises(ComponentError, match=r"^The regularizer Opaque.* gradient"):
        learn(update=mdl.SimCO(regularizers=[Opaque(shape=shape)]))


class Halving:
    """A line searcher that returns what `answer` makes of a right pair."""

    def __init__(self, answer):
        self.answer = answer

    def search(self, objective, manifold, x, d, f0, df0):
        length, t = manifold.norm(x, d), 1.0
        while objective(manifold.retraction(x, t * d)) > f0 and t > 1e-9:
            t /= 2
        return self.answer((t * length, manifold.retraction(x, t * d)))


@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient, mdl.LBFGS])
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda pair: pair[::-1], "an array of shape"),
        (lambda pair: pair[1], "an array of shape"),
        (lambda pair: None, "None"),
        (lambda pair: (*pair, 1), "a tuple"),
    ],
    ids=["exchanged", "point", "nothing", "three"],
)
def test_a_line_searcher_that_returns_no_pair_is_named(optimizer, answer, found):
    update = mdl.SimCO(optimizer(line_searcher=Halving(answer), max_iterations=3))
    with pytest.raises(
        ComponentError, match=f"^The line searcher .*Halving.* returned {found}"
    ) as caught:
        learn(update=update)
    assert "a pair (step size, new point) is expected" in str(caught.value)
    right = mdl.SimCO(optimizer(line_searcher=Halving(lambda pair: pair), max_iterations=3))
    assert learn(update=right).history.improved.all()
