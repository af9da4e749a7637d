"""Settings as JSON and back: equal components, and refusals of anything else."""

import json
from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Grassmann, Oblique, Stiefel
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

import manifold_dl as mdl
from manifold_dl import manifolds, plugins, regularizers, schedules
from manifold_dl.components.settings import describe, is_text, restore, shown
from manifold_dl.learning.replacement import ReplaceAtoms
from manifold_dl.updates.ridge import Sawtooth, TwoStep

Y = mdl.datasets.synthetic(8, 12, 100, sparsity=2, snr_db=20, rng=0).signals


def again(value):
    """Through JSON as a file holds it."""
    return restore(json.loads(json.dumps(describe(value), allow_nan=False)))


COMPARABLE = [
    mdl.OMP(sparsity=3),
    mdl.OMP(tol=0.1),
    mdl.ForwardSelection(sparsity=3, tol=1e-3),
    mdl.Lasso(alpha=0.1, relative=True),
    mdl.BasisPursuit(),
    mdl.MatchingPursuit(sparsity=3),
    mdl.GradientPursuit(sparsity=3),
    mdl.SubspacePursuit(sparsity=3),
    mdl.IHT(sparsity=3),
    mdl.FOCUSS(p=0.7),
    mdl.BestOf([mdl.RmsLasso(0.1, sparsity=3), mdl.OMP(3)]),
    mdl.AtomSearch(trials=3, refinement=mdl.SimCO(mu=0.1)),
    mdl.SimCO(codes=mdl.Lasso(0.1)),
    mdl.KSVD("power", mu=0.1),
    mdl.KSVD(schedule=schedules.OneAtATime("random")),
    mdl.MOD(ridge=0.2),
    mdl.SimCO(),
    mdl.SimCO(mu=[0.1, 0.0], codes="fixed"),
    mdl.SimCO(mu=(0.1, 0.0), manifold=Stiefel, threads=2),
    mdl.SimCO(mu=TwoStep(0.3, 0.5), manifold=Oblique, precondition=False),
    mdl.SimCO(schedule=schedules.Blocks(size=4), regularizers=[regularizers.Coherence(0.1)]),
    mdl.SimCO(regularizers=["sparse:0.1", 2 * regularizers.Coherence(0.1) + regularizers.Sparse(0.2)]),
    schedules.AllAtoms(),
    schedules.Overlapping(size=4, step=2),
    schedules.RandomSubsets(size=4, count=3),
    regularizers.LogBarrierCoherence(0.1, bound=0.9),
    regularizers.Smoothness(0.1, (4, 4)),
    regularizers.Decorrelation(0.1, (0, 0, 1, 1)),
    regularizers.Scaled(0.5, regularizers.Sparse(0.2)),
    mdl.GoldenSection(t4=0.5),
    mdl.WolfeSearch(curvature=0.3, first_step=None),
    TwoStep(),
    Sawtooth(0.4, 0.1, 3, 5),
    ReplaceAtoms(coherence=0.9),
    manifolds.ZeroMean,
    [1, 2.5, None, True, "text", (np.float32(0.1), (1,), ())],
]


@pytest.mark.parametrize("value", COMPARABLE, ids=lambda value: shown(describe(value))[:60])
def test_settings_come_back_equal(value):
    assert again(value) == value
    assert type(again(value)) is type(value)


def test_every_registered_component_is_tested():
    described = json.dumps([describe(value) for value in [*COMPARABLE, *OPTIMIZERS]])
    left_out = {
        "coders": {"FixedSupport"},  # holds data: see below
        "manifolds": set(plugins.available("manifolds")),  # all of them by name, as ZeroMean
        "regularizers": {"Tether"},  # holds an array, which does not compare: see below
    }
    for kind in plugins.KINDS:
        for name in set(plugins.available(kind)) - left_out.get(kind, set()):
            assert f"{kind}.{name}" in described, name


OPTIMIZERS = [
    SteepestDescent(max_iterations=7),
    SteepestDescent(line_searcher=mdl.GoldenSection(width=1e-2)),
    ConjugateGradient("FletcherReeves", line_searcher=BackTrackingLineSearcher(optimism=3), verbosity=0),
    ConjugateGradient(line_searcher=AdaptiveLineSearcher(initial_step_size=0.1)),
    TrustRegions(kappa=0.3, max_iterations=3, min_gradient_norm=1e-9),
    NelderMead(max_iterations=4, reflection=1.5),
    ParticleSwarm(population_size=5),
    mdl.LBFGS(memory=3, max_iterations=9),
    mdl.LeadingSingularVector(power_steps=2),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: type(o).__name__)
def test_optimizers_come_back_with_their_parameters(optimizer):
    restored = again(optimizer)
    assert type(restored) is type(optimizer)
    assert describe(restored) == describe(optimizer)
    # Their attributes are all there is to them; our searchers compare by their fields.
    plain = {k: v for k, v in vars(optimizer).items() if isinstance(v, (int, float, str, type(None)))}
    assert plain == {k: v for k, v in vars(restored).items() if k in plain}


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:5], ids=lambda o: type(o).__name__)
def test_a_restored_rule_learns_the_same_dictionary(optimizer):
    update = mdl.SimCO(optimizer, regularizers=[regularizers.Coherence(0.01)])
    runs = [
        mdl.learn_dictionary(Y, 12, coder=mdl.OMP(sparsity=2), update=rule, max_iter=3, rng=0)
        for rule in (update, again(update))
    ]
    np.testing.assert_array_equal(runs[0].dictionary, runs[1].dictionary)


def test_arrays_come_back_unless_they_are_data():
    tether = regularizers.Tether(0.5, np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32))
    np.testing.assert_array_equal(again(tether).reference, tether.reference)
    assert again(tether).reference.dtype == tether.reference.dtype
    for array in (np.array(3), np.zeros((0, 2)), np.arange(6, dtype=np.uint8).reshape(2, 3), np.eye(2) > 0):
        np.testing.assert_array_equal(again(array), array, strict=True)
    assert is_text(describe(np.zeros((300, 300))))
    assert is_text(describe(np.array([1.0, np.nan])))
    assert is_text(describe(np.array(["a"])))


@dataclass(frozen=True)
class Strangers:
    """A coder that no plug-in names."""

    sparsity: int = 2

    def encode(self, signals, dictionary):
        return mdl.OMP(sparsity=self.sparsity).encode(signals, dictionary)


class Mute:
    def __repr__(self):
        raise RuntimeError

    encode = Strangers.encode
    sparsity = 2


@dataclass(frozen=True)
class Descendant(mdl.OMP):
    """A class of its own, whatever it inherits."""


@pytest.mark.parametrize(
    "value",
    [Strangers(), Mute(), Descendant(sparsity=1), Grassmann, lambda t: 0.1, scipy.sparse.eye_array(3)],
)
def test_what_has_no_name_is_stored_as_text(value):
    description = describe(value)
    assert is_text(json.loads(json.dumps(description)))
    with pytest.raises(ValueError, match="stored as text, from which it cannot be made again"):
        restore(description)


def test_component_holding_text_cannot_be_restored():
    update = mdl.SimCO(mu=lambda t: 0.1, regularizers=[lambda D: anp.sum(D**4)])
    assert "lambda" in shown(describe(update))
    with pytest.raises(ValueError, match="stored as text"):
        again(update)


def omp(**parameters):
    return {"component": "coders.OMP", "parameters": parameters}


def nested(depth):
    value = regularizers.Sparse(0.1)
    description = describe(value)
    for _ in range(depth):
        description = {
            "component": "regularizers.Scaled",
            "parameters": {"factor": 2.0, "regularizer": description},
        }
    return description


HOSTILE = [
    ({"component": "coders.Magic", "parameters": {}}, "There is no 'Magic' among the coders"),
    ({"component": "os.system", "parameters": {"command": "true"}}, "begins with no kind of component"),
    ({"component": "coders.__class__", "parameters": {}}, "There is no '__class__'"),
    ({"component": "builtins.eval", "parameters": {}}, "begins with no kind"),
    ({"component": 5, "parameters": {}}, "describes no setting"),
    ({"component": "coders.OMP"}, "describes no setting"),
    ({"component": "coders.OMP", "parameters": [3]}, "describes no setting"),
    ({**omp(sparsity=3), "extra": 1}, "describes no setting"),
    (omp(sparse=3), "coders.OMP has no parameter 'sparse'; it has sparsity, tol"),
    (omp(sparsity="three"), "coders.OMP cannot be made with the parameters stored"),
    (omp(), "coders.OMP cannot be made with the parameters stored"),
    (omp(sparsity=-3), "coders.OMP cannot be made"),
    ({"component": "optimizers.TrustRegions", "parameters": {"callback": 1}}, "has no parameter 'callback'"),
    ({"named": "coders.Magic"}, "There is no 'Magic'"),
    ({"named": "manifolds"}, "There is no ''"),
    ({"float": "1e3"}, "describes no setting"),
    ({"tuple": 3}, "describes no setting"),
    ({"array": [1, 2], "shape": [3], "dtype": "float64"}, "an array in the settings is damaged"),
    ({"array": [[1], [2, 3]], "shape": [2], "dtype": "float64"}, "an array in the settings is damaged"),
    ({"array": [1], "shape": [1], "dtype": "object"}, "an array in the settings is damaged"),
    ({"array": [1], "shape": ["x"], "dtype": "int8"}, "an array in the settings is damaged"),
    ({"array": [300], "shape": [1], "dtype": "int8"}, "an array in the settings is damaged"),
    ({"array": [1], "shape": [1], "dtype": "no such type"}, "an array in the settings is damaged"),
    ({}, "describes no setting"),
    (nested(100), "more than 20 deep"),
]


@pytest.mark.parametrize(("description", "words"), HOSTILE, ids=[words for _, words in HOSTILE])
def test_hostile_settings_are_refused_with_a_sentence(description, words):
    description = json.loads(json.dumps(description))
    with pytest.raises(ValueError) as error:
        restore(description)
    assert words in str(error.value)
    shown(description)  # may be looked at all the same


@pytest.mark.parametrize(
    "description", [describe(mdl.KSVD()), {"named": "coders.OMP"}, 5, None, [], describe(manifolds.Spheres)]
)
def test_restored_coder_must_be_a_coder(description):
    with pytest.raises(ValueError, match=r"is none of the coders|is a class of coders"):
        restore(description, "coders")
