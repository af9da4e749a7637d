"""Functions and objects of any class as regularizers: in problems, updates, sums, and by name."""

import copy
import pickle
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import autograd.numpy as anp
import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl import plugins, regularizers
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


def test_bare_function_is_accepted_as_a_regularizer_everywhere():
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


def test_updates_with_bare_functions_compare_by_value():
    update = mdl.SimCO(regularizers=[bare])
    assert update == mdl.SimCO(regularizers=[bare]) == mdl.SimCO(regularizers=[regularizer(bare)])
    assert update != mdl.SimCO(regularizers=[lambda D: anp.sum(D)])
    assert "regularizers=(regularizer(bare),)" in repr(update)
    assert copy.deepcopy(update) == update == pickle.loads(pickle.dumps(update))


def test_bare_functions_add_to_regularizers():
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


def test_functions_with_parameters_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(peaks(power=6))) == peaks(power=6) == copy.deepcopy(peaks(power=6))
    assert b"peaks" in pickle.dumps(peaks(power=6)) and b"dictionary" not in pickle.dumps(peaks(power=6))


def test_functions_with_parameters_are_found_by_name(monkeypatch):
    point = EntryPoint("regularizers.peaks", f"{__name__}:peaks", plugins.GROUP)
    monkeypatch.setattr("manifold_dl.components.entry_points.entry_points", lambda group: [point])
    assert plugins.get("regularizers", "peaks")(power=6) == peaks(power=6)


def test_scaled_multiplies_and_adds_regularizers_of_any_class():
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
