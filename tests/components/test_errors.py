"""A run that fails by a component of the user's names it."""

from dataclasses import dataclass

import numpy as np
import pytest
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

import manifold_dl as mdl
from manifold_dl.components.errors import ComponentError

_, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=3, snr_db=20, rng=0)


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


def learn(**parts):
    parts = {"coder": mdl.OMP(sparsity=3), "rng": 0, "max_iter": 2, **parts}
    return mdl.learn_dictionary(Y, 12, **parts)


def test_any_function_of_signals_dictionary_and_codes_is_an_update_rule():
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
def test_component_with_a_wrong_signature_is_named(parts, request):
    role = request.node.callspec.id
    with pytest.raises(ComponentError, match=f"^The {role} .*Miscalled.*argument"):
        learn(**parts)


def test_callback_that_changes_the_dictionary_is_named():
    def spoil(step):
        step.dictionary[:] = 0

    with pytest.raises(ComponentError, match=r"The callback .*spoil.* raised ValueError: .*read-only"):
        learn(callbacks=[spoil])


def test_none_is_refused_as_a_callback():
    with pytest.raises(TypeError, match="callbacks: None cannot be called"):
        learn(callbacks=[None])


def test_schedule_that_returns_none_is_named():
    class Forgetful:
        def subsets(self, n_atoms, rng=None):
            [range(n_atoms)]

    with pytest.raises(ComponentError, match=r"Forgetful.* subsets returned None; it must yield"):
        learn(update=mdl.SimCO(schedule=Forgetful()))


@pytest.mark.parametrize("shape", ["d×m", "m", "None"])
def test_run_names_a_regularizer_with_a_gradient_of_the_wrong_shape(shape):
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
def test_line_searcher_that_returns_no_pair_is_named(optimizer, answer, found):
    update = mdl.SimCO(optimizer(line_searcher=Halving(answer), max_iterations=3))
    with pytest.raises(ComponentError, match=f"^The line searcher .*Halving.* returned {found}") as caught:
        learn(update=update)
    assert "a pair (step size, new point) is expected" in str(caught.value)
    right = mdl.SimCO(optimizer(line_searcher=Halving(lambda pair: pair), max_iterations=3))
    assert learn(update=right).history.improved.all()
