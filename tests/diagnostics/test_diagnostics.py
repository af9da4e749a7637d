"""The checks for plug-ins: every component we ship passes them, and they catch what they say they catch."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import autograd.numpy as anp
import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import Euclidean, Grassmann, Oblique, Product, Sphere, Stiefel
from pymanopt.optimizers import (
    ConjugateGradient,
    NelderMead,
    ParticleSwarm,
    SteepestDescent,
    TrustRegions,
)
from pymanopt.optimizers.line_search import AdaptiveLineSearcher
from scipy.sparse import csc_array, csr_array

import manifold_dl as mdl
from manifold_dl import manifolds, plugins, regularizers, schedules
from manifold_dl.coders import OMP
from manifold_dl.components.errors import ComponentError
from manifold_dl.diagnostics import (
    CheckFailed,
    check_coder,
    check_gradient,
    check_hessian,
    check_line_searcher,
    check_manifold,
    check_optimizer,
    check_regularizer,
    check_schedule,
    check_update,
)
from manifold_dl.diagnostics.optimizer_problems import known_problems
from manifold_dl.diagnostics.paths import random_point

# --- What we ship, by the name under which it is found ------------------------------------------------------

REFERENCE = manifolds.Spheres(16, 12).random_point(3)
SHIPPED = {
    "coders": {
        "AnnealedLasso": mdl.AnnealedLasso(sparsity=3, alpha=lambda iteration: 0.1),
        "BasisPursuit": mdl.BasisPursuit(),
        "FOCUSS": mdl.FOCUSS(),
        "FixedSupport": mdl.FixedSupport(np.arange(40)[:, None] % 24),  # 40 signals and 24 atoms are coded
        "ForwardSelection": mdl.ForwardSelection(sparsity=3),
        "GradientPursuit": mdl.GradientPursuit(sparsity=3),
        "IHT": mdl.IHT(sparsity=3),
        "Lasso": mdl.Lasso(alpha=0.1),
        "MatchingPursuit": mdl.MatchingPursuit(sparsity=3),
        "OMP": mdl.OMP(sparsity=3),
        "SubspacePursuit": mdl.SubspacePursuit(sparsity=3),
    },
    "updates": {
        "KSVD": mdl.KSVD(),
        "MOD": mdl.MOD(),
        "SimCO": mdl.SimCO(),
        "SimCO, trust region": mdl.SimCO(TrustRegions(), mu=0.01),
        "SimCO, golden section": mdl.SimCO(SteepestDescent(line_searcher=mdl.GoldenSection())),
        "SimCO, blocks": mdl.SimCO(schedule=schedules.Blocks(4)),
        "SimCO, fixed codes": mdl.SimCO(codes="fixed"),
        "SimCO, coherence": mdl.SimCO(mu=0.1, regularizers=[regularizers.Coherence(0.1)]),
    },
    "manifolds": {
        "Columns": manifolds.Columns(Sphere)(6, 4),
        "Euclidean": manifolds.Euclidean(6, 4),
        "Lines": manifolds.Lines(6, 4),
        "NonNegative": manifolds.NonNegative(6, 4),
        "Orthonormal": manifolds.Orthonormal(6, 4),
        "Orthonormal, complete": manifolds.Orthonormal(5, 5),
        "Spheres": manifolds.Spheres(6, 4),
        "SpheresWithin": manifolds.Subspace(np.eye(6)[:, :4])(6, 4),
        "Subspace": manifolds.Subspace(np.eye(6)[:, 1:])(6, 4),
        "ZeroMean": manifolds.ZeroMean(6, 4),
    },
    "regularizers": {
        "Coherence": regularizers.Coherence(0.1),
        "Decorrelation": regularizers.Decorrelation(0.1, [0] * 6 + [1] * 6),
        "LogBarrierCoherence": regularizers.LogBarrierCoherence(0.1, bound=0.95),
        "Scaled": 0.5 * regularizers.Sparse(0.2),
        "Smoothness": regularizers.Smoothness(0.1, (4, 4)),
        "Sparse": regularizers.Sparse(0.1),
        "Sum": regularizers.Coherence(0.1) + regularizers.Sparse(0.1),
        "Tether": regularizers.Tether(0.1, REFERENCE),
        "a function": regularizers.regularizer(lambda D: anp.sum(D**4)),
    },
    "schedules": {
        "AllAtoms": schedules.AllAtoms(),
        "Blocks": schedules.Blocks(size=5),
        "OneAtATime": schedules.OneAtATime(),
        "OneAtATime, random": schedules.OneAtATime("random"),
        "OneAtATime, usage": schedules.OneAtATime("usage"),
        "Overlapping": schedules.Overlapping(size=4, step=3),
        "RandomSubsets": schedules.RandomSubsets(size=4, count=2),
    },
    "optimizers": {
        "ConjugateGradient": ConjugateGradient(),
        "ConjugateGradient, adaptive": ConjugateGradient(line_searcher=AdaptiveLineSearcher()),
        "ConjugateGradient, geodesic": ConjugateGradient(line_searcher=mdl.WolfeSearch()),
        "LBFGS": mdl.LBFGS(),
        "LeadingSingularVector": mdl.LeadingSingularVector(),
        "NelderMead": NelderMead(max_iterations=8),
        "ParticleSwarm": ParticleSwarm(max_iterations=5),
        "SteepestDescent": SteepestDescent(),
        "SteepestDescent, adaptive": SteepestDescent(line_searcher=AdaptiveLineSearcher()),
        "SteepestDescent, golden section": SteepestDescent(line_searcher=mdl.GoldenSection()),
        "TrustRegions": TrustRegions(),
    },
    "line_searchers": {
        "WolfeSearch": mdl.WolfeSearch(),
        "GoldenSection": mdl.GoldenSection(),
    },
}
CHECKS = {
    "coders": check_coder,
    "updates": check_update,
    "manifolds": check_manifold,
    "regularizers": check_regularizer,
    "schedules": lambda s: check_schedule(s, covers=not isinstance(s, schedules.RandomSubsets)),
    "line_searchers": check_line_searcher,
    "optimizers": lambda o: check_optimizer(o, converges=not isinstance(o, NelderMead | ParticleSwarm)),
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, components in SHIPPED.items() for name in components]
)
def test_every_component_we_ship_passes_the_check_of_its_kind(kind, name):
    report = CHECKS[kind](SHIPPED[kind][name])
    assert report
    assert len(report.passed) >= 3


@pytest.mark.parametrize("kind", SHIPPED)
def test_no_component_is_forgotten(kind):
    ours = {name for name, part in plugins.load(kind).items() if part.__module__.startswith("manifold_dl")}
    assert ours <= set(SHIPPED[kind])


@pytest.mark.parametrize("update", [mdl.KSVD(), mdl.MOD(), mdl.SimCO()], ids=repr)
def test_updates_pass_in_single_precision(update):
    assert check_update(update, dtype=np.float32)


@pytest.mark.parametrize("name", ["Spheres", "Lines", "NonNegative", "Orthonormal", "ZeroMean", "Euclidean"])
def test_derivatives_of_the_dictionary_problem_are_right_on_every_manifold(name):
    problem = dictionary_problem(manifold=getattr(manifolds, name))
    assert check_gradient(problem).slope == pytest.approx(2, abs=0.1)
    assert check_hessian(problem).slope == pytest.approx(3, abs=0.1)


# --- Gradients and Hessians -------------------------------------------------------------------------------


def dictionary_problem(dtype=float, **settings):
    _, X, Y = mdl.datasets.synthetic(8, 6, 60, sparsity=2, rng=0)
    settings = {"mu": 0.1, "regularizers": [regularizers.Coherence(0.1)], **settings}
    return mdl.update_problem(Y.astype(dtype), X, **settings)


def cubic(manifold, gradient=3.0, hessian=6.0, twist=0.0):
    """Σ a x³, with factors in its derivatives that may be wrong, and a part that makes the Hessian askew."""
    A = np.random.default_rng(0).standard_normal(manifold.random_point(0).shape)
    function = pymanopt.function.numpy(manifold)
    return pymanopt.Problem(
        manifold,
        function(lambda X: np.sum(A * X**3)),
        euclidean_gradient=function(lambda X: gradient * A * X**2),
        euclidean_hessian=function(lambda X, E: hessian * A * X * E + twist * np.roll(E, 1, axis=0)),
    )


SPHERES = manifolds.Spheres(5, 3)


def test_right_derivatives_have_slopes_two_and_three():
    problem = cubic(SPHERES)
    first, second = check_gradient(problem), check_hessian(problem)
    assert first.slope == pytest.approx(2, abs=0.05)
    assert second.slope == pytest.approx(3, abs=0.05)
    assert "The gradient is right" in str(first)
    assert "The Hessian is right" in repr(second)
    assert len(first.t) == len(first.remainders)


@pytest.mark.parametrize("error", [1.0, 1e-2, 1e-3])
def test_a_wrong_gradient_is_named(error):
    with pytest.raises(
        CheckFailed, match=r"The gradient is wrong: .* slope 1\.\d+, and 2 was expected"
    ) as caught:
        check_gradient(cubic(SPHERES, gradient=3 + error))
    assert not caught.value.report
    assert caught.value.report.slope == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("error", [1.0, 0.1, 0.01])
def test_a_wrong_hessian_is_named(error):
    with pytest.raises(CheckFailed, match=r"The Hessian is wrong: .* slope .*, and 3 was expected") as caught:
        check_hessian(cubic(SPHERES, hessian=6 + error))
    assert caught.value.report.slope == pytest.approx(2, abs=0.1)


def test_a_hessian_that_is_not_symmetric_is_named():
    with pytest.raises(AssertionError, match="The Hessian is not symmetric"):
        check_hessian(cubic(SPHERES, twist=0.1))


def test_a_wrong_gradient_is_not_blamed_on_the_hessian():
    with pytest.raises(AssertionError, match="The gradient is wrong"):
        check_hessian(cubic(SPHERES, gradient=4.0))


def test_a_gradient_wrong_in_its_last_digits_is_found_with_the_hessian():
    problem = cubic(SPHERES, gradient=3 * (1 + 1e-7))
    assert check_gradient(problem)
    with pytest.raises(AssertionError, match=r"The gradient is slightly wrong: the second-order .* slope"):
        check_hessian(problem)


def test_a_gradient_that_is_not_tangent_is_named():
    cost = pymanopt.function.numpy(SPHERES)(lambda X: np.sum(X[0]))
    gradient = pymanopt.function.numpy(SPHERES)(lambda X: np.eye(5, 3))
    with pytest.raises(AssertionError, match="The Riemannian gradient is not tangent"):
        check_gradient(pymanopt.Problem(SPHERES, cost, riemannian_gradient=gradient))


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_quadratics_leave_nothing_but_rounding_and_that_is_right(scale):
    flat = Euclidean(4)
    A = scale * np.diag([1.0, 2.0, 3.0, -4.0])
    function = pymanopt.function.numpy(flat)
    problem = pymanopt.Problem(
        flat,
        function(lambda x: x @ A @ x + scale * x[0]),
        euclidean_gradient=function(lambda x: 2 * A @ x + scale * np.eye(4)[0]),
        euclidean_hessian=function(lambda x, e: 2 * A @ e),
    )
    assert check_gradient(problem).slope == pytest.approx(2, abs=0.05)
    report = check_hessian(problem)
    assert report.slope == math.inf
    assert "exact" in report.verdict


def test_a_constant_is_its_own_model():
    function = pymanopt.function.numpy(SPHERES)
    zero = function(lambda X: 0 * X)
    problem = pymanopt.Problem(SPHERES, function(lambda X: 7.0), euclidean_gradient=zero)
    assert check_gradient(problem).slope == math.inf


def test_an_exact_fit_is_no_obstacle():
    # At the minimum value and slope are zero up to rounding, and all thresholds have to be relative.
    D, X, Y = mdl.datasets.synthetic(16, 32, 200, sparsity=4, rng=0)
    problem = mdl.update_problem(Y, X)
    assert check_gradient(problem, D)
    assert check_hessian(problem, D)


def test_single_precision_is_seen_through():
    problem = dictionary_problem(np.float32)
    point = problem.manifold.random_point(0)
    assert check_gradient(problem, point)
    assert check_gradient(problem, point.astype(np.float32))
    with pytest.raises(ValueError, match="single precision"):
        check_hessian(problem, point)


def test_a_gradient_needs_to_be_right_along_the_manifold_only():
    problem = cubic(SPHERES)
    cost = pymanopt.function.numpy(SPHERES)(lambda X: problem.cost(X))
    tangent = pymanopt.function.numpy(SPHERES)(lambda X: SPHERES.projection(X, problem.euclidean_gradient(X)))
    hessian = pymanopt.function.numpy(SPHERES)(lambda X, E: problem.euclidean_hessian(X, E))
    projected = pymanopt.Problem(SPHERES, cost, euclidean_gradient=tangent, euclidean_hessian=hessian)
    assert check_gradient(projected)
    with pytest.raises(
        AssertionError, match="The Hessian is wrong"
    ):  # the curvature of the sphere is missing
        check_hessian(projected)


def test_huge_points_and_costs_that_end_somewhere_are_no_obstacle():
    flat = Euclidean(3)
    function = pymanopt.function.numpy(flat)
    barrier = pymanopt.Problem(
        flat,
        function(lambda x: -np.sum(np.log(x))),
        euclidean_gradient=function(lambda x: -1 / x),
        euclidean_hessian=function(lambda x, e: e / x**2),
    )
    assert check_hessian(barrier, np.array([0.01, 1.0, 2.0]))
    square = pymanopt.Problem(flat, function(lambda x: x @ x), euclidean_gradient=function(lambda x: 2 * x))
    assert check_gradient(square, np.full(3, 1e40))
    with pytest.raises(AssertionError, match="The value at the point is nan"):
        check_gradient(barrier, np.array([-1.0, 1.0, 1.0]))


def test_problems_of_others_with_their_backends_and_lists_of_points():
    both = Product([Sphere(3), Oblique(4, 2)])

    @pymanopt.function.autograd(both)
    def cost(x, Q):
        return anp.sum(x**3) + anp.sum(Q[:3] ** 3 * x[:, None])

    assert check_gradient(pymanopt.Problem(both, cost))
    assert check_hessian(pymanopt.Problem(both, cost))
    grassmann = Grassmann(5, 2)
    A = np.diag(np.arange(5.0))
    cost = pymanopt.function.autograd(grassmann)(lambda Q: anp.trace(Q.T @ A @ Q))
    assert check_hessian(pymanopt.Problem(grassmann, cost))


def test_a_check_is_repeatable_and_leaves_the_global_generator_alone():
    problem = cubic(SPHERES)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is being watched
    foreign = [check_manifold(Oblique(4, 3), rng=5), check_manifold(Oblique(4, 3), rng=5)]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert foreign[0] == foreign[1]
    np.testing.assert_array_equal(check_gradient(problem).remainders, check_gradient(problem).remainders)
    assert check_gradient(problem, rng=1).slope != check_gradient(problem, rng=2).slope


def test_the_length_of_a_direction_does_not_matter_but_it_needs_one():
    problem = cubic(SPHERES)
    x = SPHERES.random_point(0)
    v = SPHERES.random_tangent_vector(x, 1)
    assert check_gradient(problem, x, 1e6 * v).slope == pytest.approx(check_gradient(problem, x, v).slope)
    with pytest.raises(ValueError, match="direction has length 0"):
        check_gradient(problem, x, 0 * v)
    with pytest.raises(ValueError, match="give the point as well"):
        check_gradient(problem, direction=v)


def test_the_plot_needs_no_display():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert check_hessian(cubic(SPHERES)).plot(ax) is ax
    assert len(ax.lines) == 2
    with pytest.raises(CheckFailed) as caught:
        check_gradient(cubic(SPHERES, gradient=4.0))
    assert "slope 1.00" in caught.value.report.plot(Figure().subplots()).get_legend().texts[0].get_text()


# --- Manifolds --------------------------------------------------------------------------------------------


def bent(name, method):
    """Spheres with one method wrong."""
    return type("Bent", (manifolds.Spheres,), {name: method})(5, 3)


def first_order(self, x, v):
    """A retraction with an acceleration along the sphere."""
    moved = x + v + 0.5 * np.linalg.norm(v) * v
    return moved / np.linalg.norm(moved, axis=0)


WRONG_MANIFOLDS = {
    "only of first order": bent("retraction", first_order),
    "a retraction that does not leave in the direction": bent(
        "retraction", lambda self, x, v: manifolds.Spheres.retraction(self, x, 2 * v)
    ),
    "an exp that leaves the manifold": bent("exp", lambda self, x, v: x + v),
    "an exp that is no geodesic": bent("exp", first_order),
    "not idempotent": bent("projection", lambda self, x, v: 0.9 * manifolds.Spheres.projection(self, x, v)),
    "not orthogonal": bent("projection", lambda self, x, v: v - x * (v[:1] / x[:1])),
    "not positive": bent("inner_product", lambda self, x, a, b: -np.vdot(a, b)),
    "not symmetric": bent("inner_product", lambda self, x, a, b: np.vdot(a, np.roll(b, 1, axis=0))),
    "a norm that is an array": bent("norm", lambda self, x, v: np.linalg.norm(v, axis=0)),
    "raised KeyError: 'x'": bent("transport", lambda self, x, y, v: {}["x"]),
    "a retraction that changes the point": bent(
        "retraction", lambda self, x, v: np.divide(np.add(x, v, out=x), np.linalg.norm(x, axis=0), out=x)
    ),
    "a norm that is not the root": bent("norm", lambda self, x, v: np.abs(v).sum()),
    "dist that is not symmetric": bent("dist", lambda self, x, y: abs(x[0, 0])),
    "a log that does not undo exp": bent("log", lambda self, x, y: 2 * manifolds.Spheres.log(self, x, y)),
    "whose result is not tangent at the new point": bent("transport", lambda self, x, y, v: v),
    "does not turn Euclidean derivatives": bent(
        "euclidean_to_riemannian_hessian", lambda self, x, g, H, v: self.projection(x, H)
    ),
    "but says dim = 5": bent("dim", 5),
}


@pytest.mark.parametrize("fault", WRONG_MANIFOLDS)
def test_a_wrong_manifold_is_named_with_its_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Bent .*{fault}"):
        check_manifold(WRONG_MANIFOLDS[fault], retraction_order=2)


def test_a_first_order_retraction_is_right_where_no_more_is_claimed():
    report = check_manifold(bent("retraction", first_order), retraction_order=1)
    assert "the retraction is of order 2 (not claimed)" in report.skipped


@pytest.mark.parametrize("manifold", [Stiefel(4, 2), bent("retraction", first_order)], ids=str)
def test_a_first_order_retraction_passes_with_a_remark_unless_it_claims_more(manifold):
    report = check_manifold(manifold)
    assert report
    assert [remark for remark in report.remarks if remark.startswith("the retraction is of first order")]
    with pytest.raises(AssertionError, match="has a retraction that is only of first order"):
        check_manifold(manifold, retraction_order=2)


@pytest.mark.parametrize("name", SHIPPED["manifolds"])
def test_there_is_nothing_to_remark_on_our_manifolds(name):
    # Columns has Pymanopt's own Sphere in every column, and its log.
    assert name == "Columns" or not check_manifold(SHIPPED["manifolds"][name]).remarks


# What is known of Pymanopt 2.2.1, by reading its source: the QR retraction of Stiefel and SO(n) is of first
# order, the polar one of second; Oblique.log takes an unclipped arccos; ComplexCircle.exp fills an array of
# real numbers; Elliptope.projection solves the Lyapunov equation with the wrong sign.
PYMANOPTS = [
    (Oblique(6, 4), "log from a point to itself"),
    (Stiefel(6, 4), "of first order"),
    (Stiefel(4, 4), "of first order"),
    (Stiefel(6, 4, retraction="polar"), None),
    (Stiefel(6, 1), None),  # one column: the sphere, and its usual retraction
    (pymanopt.manifolds.SpecialOrthogonalGroup(4), "of first order"),
    (Grassmann(6, 2), None),
    (Sphere(6, 4), None),
    (Euclidean(6, 4), None),
    (pymanopt.manifolds.Positive(6, 4), None),
    (pymanopt.manifolds.PSDFixedRank(6, 3), None),
    (pymanopt.manifolds.Symmetric(4), None),
    (pymanopt.manifolds.SkewSymmetric(4), None),
    (pymanopt.manifolds.SymmetricPositiveDefinite(4), None),
]


@pytest.mark.parametrize(("manifold", "remark"), PYMANOPTS, ids=lambda one: str(one)[:40])
def test_pymanopts_manifolds_get_the_verdict_that_their_source_deserves(manifold, remark):
    *remarks, single_precision = check_manifold(manifold).remarks
    assert len(remarks) == (remark is not None)
    assert remark is None or remark in remarks[0]
    # None of them keeps float32, the steps of a line search being float64.
    assert single_precision.startswith("float32 points give float64 results: projection, retraction")


@pytest.mark.filterwarnings("ignore:Casting complex values:numpy.exceptions.ComplexWarning")
def test_pymanopts_wrong_manifolds_are_found():
    with pytest.raises(CheckFailed, match="ComplexCircle has an exp that does not begin at the point"):
        check_manifold(pymanopt.manifolds.ComplexCircle(5))
    with pytest.raises(CheckFailed, match="Elliptope has a projection that is not idempotent"):
        check_manifold(pymanopt.manifolds.Elliptope(6, 3))
    # Twice the vertical part is taken away from a vector that has one: against the definition of horizontal.
    manifold, rng = pymanopt.manifolds.Elliptope(6, 3), np.random.default_rng(0)
    Y = manifold._normalize_rows(rng.standard_normal((6, 3)))
    tangent = manifold.projection(Y, rng.standard_normal((6, 3)))
    assert not np.allclose(Y.T @ tangent, tangent.T @ Y, atol=1e-3)


def test_maps_that_a_manifold_does_not_have_are_listed():
    assert {"log undoes exp", "dist"} <= set(check_manifold(manifolds.Orthonormal(5, 3)).skipped)
    assert "skipped: dist" in str(check_manifold(manifolds.Orthonormal(5, 3)))


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(TypeError, match="Spheres is a class; pass a manifold"):
        check_manifold(manifolds.Spheres)
    with pytest.raises(TypeError, match=r"None: a subclass of .* is needed"):
        check_manifold(None)
    with pytest.raises(ValueError, match="retraction_order=3"):
        check_manifold(SPHERES, retraction_order=3)
    with pytest.raises(TypeError, match="points of type list"):
        check_manifold(Product([Sphere(3), Sphere(3)]))


# --- Regularizers -----------------------------------------------------------------------------------------


@dataclass
class Quartic:
    """Σ d⁴ with derivatives that may be wrong, in NumPy or in a form that autograd can read."""

    gradient_factor: float = 4.0
    hessian_factor: float = 12.0
    readable: bool = False

    def value(self, D):
        return anp.sum(D**4) if self.readable else float(np.sum(D**4))

    def gradient(self, D):
        return self.gradient_factor * D**3

    def hessian(self, D, E):
        return self.hessian_factor * D**2 * E


def quartic(**methods):
    return type("Quartic", (Quartic,), methods)()


WRONG_REGULARIZERS = {
    "the gradient is wrong: .* slope 1": Quartic(gradient_factor=4.1),
    "the Hessian is wrong: .* slope 2": Quartic(hessian_factor=12.1),
    "an array of shape": quartic(value=lambda self, D: D**4),
    "a value that is 'x', not one real number": quartic(value=lambda self, D: "x"),
    "raised KeyError: 'x' in its gradient": quartic(gradient=lambda self, D: {}["x"]),
    "raised TypeError: .* in its hessian": quartic(hessian=lambda self, D: 12 * D**2),
    "a value that is None": quartic(value=lambda self, D: None),
    "is nan at the dictionary": quartic(value=lambda self, D: float("nan")),
    "a gradient of shape": quartic(gradient=lambda self, D: 4.0 * D.T**3),
    "not linear": quartic(hessian=lambda self, D, E: 12 * D**2 * np.abs(E)),
    "not symmetric": quartic(hessian=lambda self, D, E: 12 * D**2 * E + np.roll(E, 1, axis=0)),
    "not deterministic": quartic(value=lambda self, D: np.random.default_rng().random()),
    "changed the dictionary": quartic(value=lambda self, D: float(np.multiply(D, 2, out=D)[0, 0])),
}


@pytest.mark.parametrize("fault", WRONG_REGULARIZERS)
def test_a_wrong_regularizer_is_named_with_its_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Quartic.*{fault}"):
        check_regularizer(WRONG_REGULARIZERS[fault])


def test_a_gradient_wrong_across_the_direction_differs_from_autograds():
    # The slope sees only what lies along the direction, the first draw; autograd compares all entries.
    U = np.random.default_rng(0).standard_normal(REFERENCE.shape)
    error = np.zeros_like(U)
    error[:2, 0] = U[1, 0], -U[0, 0]

    class Askew(Quartic):
        def gradient(self, D):
            return 4 * D**3 + error

    assert check_regularizer(Askew(), REFERENCE)
    with pytest.raises(AssertionError, match="Askew has a gradient that differs from autograd's"):
        check_regularizer(Askew(readable=True), REFERENCE)


def test_reports_say_what_autograd_could_not_compare():
    assert any("cannot differentiate its value" in fact for fact in check_regularizer(Quartic()).skipped)
    assert "the gradient agrees with autograd" in check_regularizer(Quartic(readable=True)).passed


# --- Schedules --------------------------------------------------------------------------------------------


class Plan:
    def __init__(self, subsets, covers_atoms=False):
        self._subsets, self.covers_atoms = subsets, covers_atoms

    def subsets(self, n_atoms, rng=None):
        return self._subsets(n_atoms, rng)


WRONG_SCHEDULES = {
    "subset 1 of the schedule repeats the index 3": Plan(lambda d, rng: [[0], [3, 3]]),
    "contains the index 12": Plan(lambda d, rng: [[d]]),
    "is empty": Plan(lambda d, rng: [[]]),
    "has no subset": Plan(lambda d, rng: []),
    "dtype float64": Plan(lambda d, rng: [[0.5]]),
    "not repeatable": Plan(lambda d, rng: [np.random.default_rng().permutation(d)]),
    "global generator": Plan(lambda d, rng: [np.arange(0 * np.random.randint(9), d)]),  # noqa: NPY002
    r"never moves \[10, 11\]": Plan(lambda d, rng: [np.arange(d - 2)], covers_atoms=True),
}


@pytest.mark.parametrize("fault", WRONG_SCHEDULES)
def test_a_wrong_schedule_is_named_with_its_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Plan .*{fault}"):
        check_schedule(WRONG_SCHEDULES[fault])


def test_covering_is_asked_for_or_promised_or_skipped():
    few = schedules.RandomSubsets(size=2, count=2)
    assert check_schedule(few).skipped == ("every atom moves (not promised)",)
    with pytest.raises(AssertionError, match="should cover every atom"):
        check_schedule(few, covers=True)


# --- Updates ----------------------------------------------------------------------------------------------


class WrongUpdate:
    """An update that spoils the result of K-SVD in one way."""

    def __init__(self, spoil):
        self.spoil = spoil

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        D, X = mdl.KSVD()(signals, dictionary, codes)
        return self.spoil(D, X, signals, dictionary, codes)


def overwrites(D, X, Y, D_old, X_old):
    D_old[:] = D
    return D_old, X


WRONG_UPDATES = {
    "raised the objective from": lambda D, X, *_: (np.roll(D, 1, axis=1), X),
    "an atom of norm 2": lambda D, X, *_: (2 * D, X),
    "a code outside of the support": lambda D, X, *_: (D, csc_array(X.toarray() + 1e-9)),
    "changed an argument": overwrites,
    "not deterministic": lambda D, X, *_: (
        D * np.random.default_rng().choice([-1.0, 1.0], D.shape[1]),
        csc_array((0 * X.data, X.indices, X.indptr), shape=X.shape),
    ),
    "dictionary of shape": lambda D, X, *_: (D.T, X),
    "codes of shape": lambda D, X, *_: (D, csc_array(X.T)),
    "codes that are not finite": lambda D, X, *_: (D, X * np.nan),
    "float32 atoms": lambda D, X, *_: (D.astype(np.float32), X),
    "not finite": lambda D, X, *_: (D * np.nan, X),
    "where a pair": lambda D, X, *_: [D, X, None],
}


@pytest.mark.parametrize("fault", WRONG_UPDATES)
def test_a_wrong_update_is_named_with_its_fault(fault):
    objective = (lambda Y, D, X: 0.0) if fault == "not deterministic" else None
    with pytest.raises(CheckFailed, match=f"^WrongUpdate .*{fault}"):
        check_update(WrongUpdate(WRONG_UPDATES[fault]), objective=objective)


def test_an_update_may_return_dense_codes_and_need_not_name_iteration_and_rng():
    assert any(
        "ndarray" in fact for fact in check_update(WrongUpdate(lambda D, X, *_: (D, X.toarray()))).remarks
    )

    def ksvd(signals, dictionary, codes):
        return mdl.KSVD()(signals, dictionary, codes)

    report = check_update(ksvd)
    assert report.subject == "ksvd" and not report.remarks


def test_what_a_part_raises_and_how_it_cannot_be_called_is_said():
    class Broken:
        def __call__(self, signals, dictionary):
            return dictionary

        def encode(self, signals):
            return signals

        def search(self, *arguments):
            raise KeyError("x")

        def subsets(self, n_atoms, rng=None):
            raise KeyError("x")

    with pytest.raises(
        CheckFailed, match=r"Broken cannot be called with 3 arguments: .*\(signals, dictionary\)"
    ):
        check_update(Broken())
    with pytest.raises(CheckFailed, match=r"Broken cannot be called with 2 arguments: encode\(signals\)"):
        check_coder(Broken())
    with pytest.raises(CheckFailed, match="Broken raised KeyError: 'x'"):
        check_line_searcher(Broken())
    with pytest.raises(CheckFailed, match="Broken raised KeyError: 'x'"):
        check_schedule(Broken())


@pytest.mark.parametrize("check", [check_coder, check_line_searcher, check_optimizer, check_update])
def test_a_class_in_the_place_of_an_object_is_refused(check):
    with pytest.raises(TypeError, match=r"Descent is a class; pass an object of it, Descent\(\.\.\.\)"):
        check(Descent)
    with pytest.raises(TypeError, match="None has no method"):
        check(None)


def test_atoms_of_any_norm_where_they_are_allowed():
    def stretch(D, X, *_):
        return 2 * D, csc_array((X.data / 2, X.indices, X.indptr), shape=X.shape)

    assert check_update(WrongUpdate(stretch), unit_atoms=False)


# --- Line searchers ---------------------------------------------------------------------------------------


class Leap:
    """A searcher that takes one step of a fixed multiple, whatever happens."""

    def __init__(self, t, factor=1.0):
        self.t, self.factor = t, factor

    def search(self, objective, manifold, x, d, f0, df0):
        return self.factor * self.t * np.linalg.norm(d), manifold.retraction(x, self.t * d)


def test_a_wrong_line_searcher_is_named_with_its_fault():
    with pytest.raises(CheckFailed, match=r"Leap went from .* up to"):
        check_line_searcher(Leap(-1e-3))
    with pytest.raises(
        CheckFailed, match=r"of shapes \(5,\) and \(\): the step size, one number, comes first"
    ):
        check_line_searcher(
            type("Swapped", (Leap,), {"search": lambda self, *a: Leap.search(self, *a)[::-1]})(1e-3)
        )
    with pytest.raises(CheckFailed, match="does not lead to the point it returns"):
        check_line_searcher(Leap(1e-3, factor=2.0))
    with pytest.raises(CheckFailed, match=r"Leap moved by .* for an ascent direction"):
        check_line_searcher(Leap(1e-3))
    with pytest.raises(CheckFailed, match="BackTrackingLineSearcher moved by nan for a zero direction"):
        check_line_searcher(pymanopt.optimizers.line_search.BackTrackingLineSearcher())


# --- Optimizers -------------------------------------------------------------------------------------------


class Descent:
    """Gradient steps with backtracking, which one override makes wrong in one way."""

    def __init__(self):
        self.steps = 0

    def run(self, problem, *, initial_point=None):
        point = self.minimum(problem, initial_point)
        return SimpleNamespace(point=self.spoil(problem, initial_point, point))

    def spoil(self, problem, start, point):
        return point

    def minimum(self, problem, x, max_steps=500):
        t = 1.0
        for _ in range(max_steps):
            gradient = problem.riemannian_gradient(x)
            if problem.manifold.norm(x, gradient) < 1e-6:
                break
            while problem.cost(problem.manifold.retraction(x, -t * gradient)) > problem.cost(x) and t > 1e-9:
                t /= 2
            x, t = problem.manifold.retraction(x, -t * gradient), 2 * t
        return x


def spoiled(**methods):
    return type("Spoiled", (Descent,), methods)()


def overwriting(self, problem, *, initial_point=None):
    initial_point[:] = self.minimum(problem, initial_point)
    return SimpleNamespace(point=initial_point)


def counting(self, problem, x):  # a budget that is used up and never renewed
    self.steps += 40
    return Descent.minimum(self, problem, x, max_steps=max(0, 60 - self.steps))


def only_one_atom(self, problem, start, point):
    if start.shape[1] > 1:
        raise NotImplementedError("one atom at a time")
    return point


def nothing(self, problem, start, point):
    raise NotImplementedError


WRONG_OPTIMIZERS = {
    r"cannot be called as run\(problem, initial_point=...\): run\(problem, x0\)": spoiled(
        run=lambda self, problem, x0: None
    ),
    "returned an array of shape .* instead of an object with the attribute point": spoiled(
        run=lambda self, problem, *, initial_point: initial_point
    ),
    r"returned an array of shape \(1, 6\) .* as its point": spoiled(
        spoil=lambda self, problem, start, point: point.T
    ),
    "not on .*its norms being 3 to 3": spoiled(spoil=lambda self, problem, start, point: 3 * point),
    "a point that is not finite": spoiled(spoil=lambda self, problem, start, point: np.nan * point),
    r"raised ZeroDivisionError: .*\(for one atom": spoiled(spoil=lambda self, problem, start, point: 1 / 0),
    "raised ValueError: .*four atoms": spoiled(
        spoil=lambda self, problem, start, point: point + (np.ones(3) if start.shape[1] > 1 else 0)
    ),
    "changed the array that it was given": spoiled(run=overwriting),
    "raised the cost from": spoiled(
        minimum=lambda self, problem, x: problem.manifold.exp(x, problem.riemannian_gradient(x) / 50)
    ),
    "did not move at all": spoiled(spoil=lambda self, problem, start, point: start),
    r"leaves 0\.\d+ of the descent to the minimum": spoiled(
        minimum=lambda self, problem, x: Descent.minimum(self, problem, x, max_steps=1)
    ),
    "not deterministic": spoiled(
        spoil=lambda self, problem, start, point: problem.manifold.retraction(
            point, 1e-6 * problem.manifold.random_tangent_vector(point, np.random.default_rng())
        )
    ),
    "carries something over": spoiled(minimum=counting),
    "solved none of the problems": spoiled(spoil=nothing),
}


@pytest.mark.parametrize("fault", WRONG_OPTIMIZERS)
def test_a_wrong_optimizer_is_named_with_its_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Spoiled .*{fault}"):
        check_optimizer(WRONG_OPTIMIZERS[fault])


def test_a_right_optimizer_needs_nothing_but_run():
    report = check_optimizer(Descent())
    assert not report.remarks and not report.skipped
    assert sum(fact.startswith("reaches the minimum") for fact in report.passed) == 5


def test_an_optimizer_may_leave_problems_out():
    report = check_optimizer(spoiled(spoil=only_one_atom))
    assert len(report.skipped) == 3 and all("one atom at a time" in fact for fact in report.skipped)


def test_a_few_steps_are_right_where_no_more_is_claimed():
    few = SteepestDescent(max_iterations=1)
    with pytest.raises(CheckFailed, match="converges=False is for optimizers that make a few steps"):
        check_optimizer(few)
    assert len(check_optimizer(few, converges=False).remarks) == 5
    power = mdl.LeadingSingularVector(power_steps=1)
    assert all("of the descent" in remark for remark in check_optimizer(power, converges=False).remarks)


def test_what_optimizers_draw_and_print_is_remarked_upon():
    def noisily(self, problem, start, point):
        print("done")
        return problem.manifold.retraction(point, 1e-9 * np.random.standard_normal(point.shape))  # noqa: NPY002

    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is being watched
    report = check_optimizer(spoiled(spoil=noisily))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert any("prints" in remark for remark in report.remarks)
    assert any("global generator" in remark for remark in report.remarks)


def test_a_coder_is_no_optimizer():
    with pytest.raises(TypeError, match=r"has no method run; .* such as TrustRegions\(\)"):
        check_optimizer(OMP(sparsity=3))


def test_known_minima_are_minima():
    """No point that a trust region finds from any of ten starts is lower, and the best is as low."""
    for known in known_problems(np.random.default_rng(0)):
        problem = known.make()
        starts = [random_point(problem.manifold, np.random.default_rng(i)) for i in range(10)]
        values = [TrustRegions(verbosity=0).run(problem, initial_point=x).cost for x in starts]
        # Sums of some dozens of squares of size one.
        assert min(values) == pytest.approx(known.minimum, rel=1e-9)


# --- Coders -----------------------------------------------------------------------------------------------


class Wrong:
    """A coder that spoils the codes of OMP in one way."""

    optimal_on_support = False

    def __init__(self, spoil):
        self.spoil = spoil

    def encode(self, signals, dictionary):
        return self.spoil(OMP(sparsity=3).encode(signals, dictionary), signals, dictionary)


def with_data(X, data):
    return csc_array((data, X.indices, X.indptr), shape=X.shape)


def unsorted(X, Y, D):
    flipped = csc_array((X.data.copy(), X.indices.copy(), X.indptr), shape=X.shape)
    flipped.indices[:2], flipped.data[:2] = X.indices[1::-1], X.data[1::-1]
    return flipped


def careless_squares(X, Y, D):
    energy = np.sum(Y**2, axis=0)  # overflows for huge signals, vanishes for tiny ones
    return csc_array(X.toarray() * (energy / np.maximum(np.linalg.norm(Y, axis=0) ** 2, 1e-300)))


def changes_its_input(X, Y, D):
    Y[0, 0] += 1
    return X


WRONG = {
    "of shape": lambda X, Y, D: csc_array(X.T),
    "float32 codes for float64": lambda X, Y, D: X.astype(np.float32),
    "not finite": lambda X, Y, D: with_data(X, X.data * np.nan),
    "codes that are not finite": lambda X, Y, D: X.toarray() * np.nan,
    "return the transpose": lambda X, Y, D: X.T.toarray(),
    "real numbers are expected": lambda X, Y, D: X * 1j,
    "returned None, where the codes are expected": lambda X, Y, D: None,
    "returned a tuple, where the codes are expected": lambda X, Y, D: (X.toarray(), 1),
    "returned a str, where the codes are expected": lambda X, Y, D: "codes",
    "outside its own shape": lambda X, Y, D: csc_array(
        (X.data, X.indices + 99 - X.indices[0], X.indptr), X.shape
    ),
    "changed the signals": changes_its_input,
    "not deterministic": lambda X, Y, D: with_data(X, X.data * np.random.default_rng().uniform(0.9, 1)),
    "an atom flipped": lambda X, Y, D: csc_array(X.toarray() * (D[:1].T > 0)),
    "a signal flipped": lambda X, Y, D: csc_array(X.toarray() * (Y[:1] > 0)),
    "order of the atoms": lambda X, Y, D: csc_array(X.toarray() * np.linspace(0.5, 1, len(D.T))[:, None]),
    "order of the signals": lambda X, Y, D: csc_array(X.toarray() * np.linspace(0.5, 1, len(Y.T))),
    "worse than zero": lambda X, Y, D: with_data(X, -X.data),
    "gave no atoms to any of 40 signals": lambda X, Y, D: 0 * X.toarray(),
    "zeros": lambda X, Y, D: csc_array(np.where(Y.any(axis=0), X.toarray(), 1.0)),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_coder_is_named_with_its_fault(fault):
    with pytest.raises(AssertionError, match=fault):
        check_coder(Wrong(WRONG[fault]))


ACCEPTED = {
    "a dense ndarray": lambda X, Y, D: X.toarray(),
    "csr_array": lambda X, Y, D: csr_array(X),
    "not increasing": unsorted,
}


@pytest.mark.parametrize("remark", ACCEPTED)
def test_codes_that_are_converted_pass_with_a_remark_and_learn_the_same(remark):
    coder = Wrong(ACCEPTED[remark])
    report = check_coder(coder)
    assert report
    assert any(remark in fact for fact in report.remarks)
    assert "remark: " in str(report)
    Y = mdl.datasets.synthetic(8, 12, 80, sparsity=3, rng=0).signals
    ours, theirs = (mdl.learn_dictionary(Y, 12, coder=c, rng=0, max_iter=3) for c in (OMP(sparsity=3), coder))
    np.testing.assert_array_equal(theirs.dictionary, ours.dictionary)
    np.testing.assert_array_equal(theirs.codes.toarray(), ours.codes.toarray())
    assert theirs.codes.format == "csc"


@pytest.mark.parametrize(
    "fault",
    [
        "of shape",
        "not finite",
        "return the transpose",
        "real numbers",
        "None",
        "tuple",
        "outside its own shape",
    ],
)
def test_codes_that_fail_the_check_are_refused_by_learning_in_the_same_words(fault):
    spoil = next(spoil for name, spoil in WRONG.items() if fault in name)
    with pytest.raises(CheckFailed) as checked:
        check_coder(Wrong(spoil))
    with pytest.raises(ComponentError, match=fault) as learned:
        Y = mdl.datasets.synthetic(16, 24, 40, sparsity=3, rng=0).signals
        mdl.learn_dictionary(Y, 24, coder=Wrong(spoil), rng=0, max_iter=3)
    assert "Wrong" in str(learned.value)
    if fault != "outside its own shape":  # that sentence names an index, which depends on the signals
        assert checked.value.report.fault == learned.value.problem


def test_squares_that_overflow_are_found():
    with pytest.raises(AssertionError, match="on huge signals"):
        check_coder(Wrong(careless_squares))


class PromisesTooMuch(Wrong):
    optimal_on_support = True


def test_a_wrong_support_breaks_the_promise_of_optimal_codes():
    def wrong_support(X, Y, D):  # the codes of the fit with three atoms, of which one is then dropped
        return csc_array(
            np.where(np.abs(X.toarray()) > 0.3 * np.abs(X.toarray()).max(axis=0), X.toarray(), 0)
        )

    check_coder(Wrong(wrong_support))  # nothing wrong with it as long as it promises nothing
    with pytest.raises(AssertionError, match="promises optimal_on_support"):
        check_coder(PromisesTooMuch(wrong_support))


class PromisesScale(Wrong):
    scale_equivariant = True


def test_an_absolute_threshold_breaks_the_promise_of_scale():
    def threshold(X, Y, D):
        return csc_array(np.where(np.abs(X.toarray()) > 0.1, X.toarray(), 0))

    with pytest.raises(AssertionError, match="promises scale_equivariant"):
        check_coder(PromisesScale(threshold))


def test_a_good_coder_passes_in_both_precisions():
    for dtype in (np.float64, np.float32):
        assert check_coder(OMP(sparsity=3), dtype=dtype)
