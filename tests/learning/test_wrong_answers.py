"""A user's part that returns what cannot be right is named; what can be made right is."""

import re

import numpy as np
import pytest
from faulty_parts import (
    CODER,
    LAST,
    Coder,
    Curvature,
    NotFinite,
    Schedule,
    Searcher,
    Slope,
    Switch,
    Update,
    Value,
    Y,
    descent,
    require_complete,
    run,
    run_with_fault,
    with_parts,
)
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import BackTrackingLineSearcher

import manifold_dl as mdl
from manifold_dl.components.errors import ComponentError
from manifold_dl.manifolds import Spheres


class Inflating(Spheres):
    """Atoms grow with every step; `closest` and `exp` are right."""

    def retraction(self, point, tangent_vector):
        moved = super().retraction(point, tangent_vector)
        return 1.1 * moved if Switch.on and np.any(tangent_vector) else moved


class Inflated(SteepestDescent):
    def run(self, problem, *, initial_point=None, **options):
        result = super().run(problem, initial_point=initial_point, **options)
        if Switch.on:
            result.point = 1.1 * result.point
        return result


nan = np.nan
CODES = CODER.encode(Y, mdl.learning.initialization.initial_dictionary(Y, 12, "dct", rng=0))
D0 = mdl.learning.initialization.initial_dictionary(Y, 12, "dct", rng=0)
WRONG = {
    "codes of NaN": ({"coder": Coder(nan * CODES)}, "coder", "codes that are not finite"),
    "codes transposed": (
        {"coder": Coder(CODES.T)},
        "coder",
        r"codes of shape \(100, 12\) where d×n = \(12, 100",
    ),
    "codes of text": ({"coder": Coder("codes")}, "coder", "returned a str"),
    "update of nothing": ({"update": Update("none")}, "update rule", "'none', where a pair .* is expected"),
    "update of three": (
        {"update": Update((D0, CODES, 1))},
        "update rule",
        "a tuple of 3 items, where a pair",
    ),
    "update with NaN": ({"update": Update((nan * D0, CODES))}, "update rule", "cannot be used: .* holds nan"),
    "update, few atoms": ({"update": Update((D0[:, 1:], CODES))}, "update rule", r"of shape \(8, 11\)"),
    "update, no atom": ({"update": Update((0 * D0, CODES))}, "update rule", "column 0 is zero"),
    "update, few codes": ({"update": Update((D0, CODES[1:]))}, "update rule", r"codes of shape \(11, 100\)"),
    "optimizer's point": (with_parts(optimizer=descent(cls=NotFinite)), "optimizer", "not finite"),
    "step of NaN": (
        with_parts(optimizer=descent(Searcher(lambda x: (nan, x)))),
        "line searcher",
        "nan as the length of its step",
    ),
    "searched point of NaN": (
        with_parts(optimizer=descent(Searcher(lambda x: (1.0, nan * x)))),
        "line searcher",
        "returned NaN, where a point",
    ),
    "searched point of CG": (
        with_parts(optimizer=descent(Searcher(lambda x: (1.0, nan * x)), ConjugateGradient)),
        "line searcher",
        "returned NaN, where a point",
    ),
    "no pair": (
        with_parts(optimizer=descent(Searcher(lambda x: x))),
        "line searcher",
        "where a pair .* is expected",
    ),
    "searched point off the manifold": (
        with_parts(optimizer=descent(Searcher(lambda x: (1.0, 1.1 * x)))),
        "line searcher",
        "not on .* its norms being 1.[12].*; it has to move by the manifold's retraction",
    ),
    "searched point of CG off the manifold": (
        with_parts(optimizer=descent(Searcher(lambda x: (1.0, 1.1 * x)), ConjugateGradient)),
        "line searcher",
        "a point that is not on",
    ),
    "retraction off the manifold": (
        with_parts(manifold=Inflating, optimizer=descent(BackTrackingLineSearcher())),
        "manifold",
        "a point that is not on .*; see its methods retraction and exp",
    ),
    "optimizer off the manifold": (
        with_parts(optimizer=descent(cls=Inflated)),
        "optimizer",
        "a point that is not on",
    ),
    "penalty of NaN": (with_parts(regularizers=[Value(nan)]), "regularizer", "returned NaN where an update"),
    "penalty of inf": (
        with_parts(regularizers=[Value(np.inf)]),
        "regularizer",
        "is inf where an update begins",
    ),
    "penalty of -inf": (with_parts(regularizers=[Value(-np.inf)]), "regularizer", "is -inf where an update"),
    "penalty, array": (
        with_parts(regularizers=[Value(np.ones(3))]),
        "regularizer",
        r"an array of shape \(3,\)",
    ),
    "penalty, text": (
        with_parts(regularizers=[Value("1")]),
        "regularizer",
        "'1'; a penalty is one real number",
    ),
    "slope of NaN": (
        with_parts(regularizers=[Slope(nan * D0)]),
        "regularizer",
        "a gradient that is not finite",
    ),
    "slope's shape": (
        with_parts(regularizers=[Slope(D0.T)]),
        "regularizer",
        r"a gradient of shape \(12, 8\)",
    ),
    "curvature of NaN": (
        with_parts(optimizer=TrustRegions(), regularizers=[Curvature(nan * D0)]),
        "regularizer",
        "a Hessian product that is not finite",
    ),
    "no subset": (with_parts(schedule=Schedule([])), "schedule", "has no subset"),
    "no sweep": (with_parts(schedule=Schedule(3)), "schedule", "cannot be used: .* not iterable"),
    "subset of floats": (with_parts(schedule=Schedule([[0.0, 1.0]])), "schedule", "has dtype float64"),
    "subset with doubles": (with_parts(schedule=Schedule([[1, 1]])), "schedule", "repeats the index 1"),
    "subset out of range": (with_parts(schedule=Schedule([[12]])), "schedule", "numbered 0 to 11"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_return_value_names_the_component_and_keeps_the_best_dictionary(kind, tmp_path):
    options, role, sentence = WRONG[kind]
    error, steps = run_with_fault(**options)
    assert isinstance(error, ComponentError), repr(error)
    assert error.role == role and error.iteration == LAST
    assert re.search(sentence, str(error)), str(error)
    require_complete(error.partial, steps, tmp_path)


# Our searchers follow geodesics on spheres, Pymanopt's the retraction. The norm has a method of its own.
UNUSED = {
    ("retraction", mdl.GoldenSection),
    ("exp", BackTrackingLineSearcher),
    ("inner_product", mdl.GoldenSection),
    ("inner_product", BackTrackingLineSearcher),
}
METHODS = [
    "closest",
    "retraction",
    "exp",
    "projection",
    "norm",
    "inner_product",
    "euclidean_to_riemannian_gradient",
]


def nan_manifold(method, base=Spheres):
    """Spheres with one method that gives NaN from some iteration on."""

    def wrong(self, *args, **kwargs):
        return (
            nan * getattr(base, method)(self, *args, **kwargs)
            if Switch.on
            else getattr(base, method)(self, *args)
        )

    return type("Faulty", (base,), {method: wrong})


@pytest.mark.parametrize(
    "searcher", [mdl.GoldenSection(), BackTrackingLineSearcher()], ids=["ours", "Pymanopt's"]
)
@pytest.mark.parametrize("method", METHODS)
def test_a_manifold_that_gives_nan_is_named_or_does_no_harm(method, searcher):
    if (method, type(searcher)) in UNUSED:
        options = with_parts(optimizer=descent(searcher))
        Switch.on, expected = True, run(**options)
        result = run(**with_parts(optimizer=descent(searcher), manifold=nan_manifold(method)))
        Switch.on = False
        np.testing.assert_array_equal(result.dictionary, expected.dictionary)
        return
    options = with_parts(manifold=nan_manifold(method), optimizer=descent(searcher))
    error, steps = run_with_fault(**options, replace=None)
    assert isinstance(error, ComponentError), repr(error)
    assert error.role == "manifold" and "Faulty" in str(error) and error.iteration == LAST
    assert error.partial.n_iter == len(steps) == LAST


@pytest.mark.parametrize("method", ["retraction", "transport", "euclidean_to_riemannian_hessian"])
def test_a_trust_region_or_conjugate_gradients_on_a_manifold_of_nan(method):
    optimizer = (
        ConjugateGradient(max_iterations=4) if method == "transport" else TrustRegions(max_iterations=3)
    )
    error, _ = run_with_fault(**with_parts(manifold=nan_manifold(method), optimizer=optimizer), replace=None)
    assert error.role == "manifold" and "Faulty" in str(error), repr(error)


# Values that are right


def test_dense_codes_are_accepted_and_give_the_same_run():
    class Dense:
        def encode(self, signals, dictionary):
            return CODER.encode(signals, dictionary).toarray()

    dense, sparse = run(coder=Dense()), run()
    np.testing.assert_array_equal(dense.dictionary, sparse.dictionary)
    assert dense.codes.format == "csc" and "atoms per signal" in str(dense)


def test_atoms_of_any_norm_become_unit_atoms_and_the_codes_take_over_their_norms():
    def longer(signals, dictionary, codes, *, iteration=0, rng=None):
        D, X = mdl.KSVD()(signals, dictionary, codes)
        return 3 * D, X / 3

    result, expected = run(update=longer), run(update=mdl.KSVD())
    np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, rtol=1e-14)
    # 3·D/3 is D up to rounding, and six iterations of K-SVD multiply that by a few hundred.
    np.testing.assert_allclose(result.history.loss, expected.history.loss, rtol=1e-10)


def test_an_update_in_place_does_not_change_the_best_dictionary():
    class InPlace:
        def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
            D, X = mdl.KSVD()(signals, dictionary, codes)
            dictionary[:] = D if iteration < 2 else np.roll(D, 1, axis=0)
            return dictionary, X

    error, steps = run_with_fault(update=InPlace(), coder=Coder())
    expected = run(update=mdl.KSVD(), max_iter=2).history.loss
    assert min(step.loss for step in steps) == pytest.approx(expected[-1])
    assert error.partial.explained == pytest.approx(1 - expected[-1] * Y.shape[1] / np.sum(Y**2))


@pytest.mark.parametrize("undefined", [ZeroDivisionError, FloatingPointError, np.linalg.LinAlgError])
def test_a_search_keeps_away_from_where_a_regularizer_has_no_value(undefined):
    """A barrier that raises beyond the bound is as good as one that is infinite there."""
    bound = mdl.metrics.coherence(D0) * 1.01

    class Raising:
        def value(self, dictionary):
            value = mdl.regularizers.LogBarrierCoherence(0.1, bound).value(dictionary)
            if value == np.inf:
                raise undefined("outside")
            return value

        def gradient(self, dictionary):
            return mdl.regularizers.LogBarrierCoherence(0.1, bound).gradient(dictionary)

    runs = [
        run(init=D0, replace=None, **with_parts(regularizers=[part], optimizer=descent()))
        for part in (Raising(), mdl.regularizers.LogBarrierCoherence(0.1, bound))
    ]
    np.testing.assert_array_equal(runs[0].dictionary, runs[1].dictionary)
    assert runs[0].history.loss[-1] < runs[0].history.loss[0]


def test_a_regularizer_without_a_value_at_the_start_is_named():
    class Nowhere:
        def value(self, dictionary):
            return 1 / 0

    error, _ = run_with_fault(0, **with_parts(regularizers=[Nowhere()]))
    assert isinstance(error, ComponentError) and error.role == "regularizer"
    assert isinstance(error.__cause__, ZeroDivisionError) and "Nowhere" in str(error)
