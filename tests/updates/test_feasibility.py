"""Dictionaries end on their manifold, whichever it is, or the combination is refused with a sentence."""

from types import SimpleNamespace

import numpy as np
import pymanopt.manifolds as pymanopt_manifolds
import pytest
from feasibility_cases import D_, MEMBERS, M, Returns, each_manifold, is_orthonormal, scene, with_point
from pymanopt.manifolds import Grassmann, Oblique, Positive, Sphere, Stiefel
from pymanopt.optimizers import NelderMead, ParticleSwarm, TrustRegions

import manifold_dl as mdl
from manifold_dl import OMP, SimCO, learn_dictionary, update_problem
from manifold_dl.manifolds import Orthonormal, Spheres, ZeroMean, feasible_set
from manifold_dl.problem.counts import count_evaluations
from manifold_dl.schedules import OneAtATime

# Starts and results


@each_manifold
@pytest.mark.parametrize("schedule", [mdl.schedules.AllAtoms(), [[0, 2], [1, 3]]], ids=["all", "blocks"])
def test_an_update_ends_on_the_manifold_and_not_above_its_start(name, schedule):
    factory, is_member = MEMBERS[name]
    if name == "Orthonormal" and schedule != mdl.schedules.AllAtoms():
        pytest.skip("refuses blocks")
    Y, D, X = scene()
    new, codes = SimCO(manifold=factory, mu=0.0, schedule=schedule)(Y, D, X)
    blocks = [np.arange(D_)] if schedule == mdl.schedules.AllAtoms() else schedule
    assert all(is_member(new[:, I]) for I in blocks)
    # The first set begins on the manifold, with the other atoms as they are.
    I = blocks[0]
    begun = D.copy()
    begun[:, I] = feasible_set(factory, M, len(I)).nearest_point(D[:, I])
    start = update_problem(Y, X, atoms=I, dictionary=begun, manifold=factory).cost(begun[:, I])
    assert np.sum((Y - new @ codes) ** 2) <= start * (1 + 1e-12)


def test_stock_stiefel_learns_what_our_orthonormal_atoms_learn():
    """Both end at DᵀD = I; from the same start the two retractions go to the same minimum."""
    losses = {}
    for manifold in (Stiefel, Orthonormal):
        losses[manifold] = []
        for seed in range(4):
            Y = mdl.datasets.synthetic(8, 6, 200, sparsity=2, snr_db=20, rng=seed).signals
            start = Orthonormal(8, 6).random_point(seed)
            update = SimCO(manifold=manifold)
            result = learn_dictionary(Y, 6, coder=OMP(sparsity=2), update=update, init=start, max_iter=10)
            assert is_orthonormal(result.dictionary)
            losses[manifold].append(result.history.loss[-1])
    # Supports chosen by the coder make the runs differ; over four draws the means agree to a few percent.
    assert np.mean(losses[Stiefel]) == pytest.approx(np.mean(losses[Orthonormal]), rel=0.05)


def test_one_atom_on_stock_stiefel_and_grassmann_is_ksvd():
    """With a single column both are the unit sphere, and the minimum is the singular vector."""
    Y, D, X = scene(n=80, d=8)
    expected, codes = mdl.KSVD()(Y, D, X)
    error = np.sum((Y - expected @ codes) ** 2)
    for manifold in (Stiefel, Grassmann, Oblique, Sphere):
        optimizer = TrustRegions(max_iterations=100, min_gradient_norm=1e-9, verbosity=0)
        new, own = SimCO(optimizer, manifold=manifold, mu=0.0, schedule=OneAtATime())(Y, D, X)
        # Quadratic in a gradient of 1e-9; singular values of so few signals differ by percents.
        assert np.sum((Y - new @ own) ** 2) == pytest.approx(error, rel=1e-8)


# Manifolds that do not fit


PYMANOPT = {name: getattr(pymanopt_manifolds, name) for name in pymanopt_manifolds.__all__}
FIT = {"Euclidean", "Oblique", "Sphere", "Stiefel"}
SENTENCES = {
    "Grassmann": "it is no function on this manifold. Use Lines",
    "PSDFixedRank": "it is no function on this manifold. Use Lines",
    "Elliptope": "does not project",
    "Positive": r"give the manifold a method closest",
    "Symmetric": r"have shape \(4, 6, 6\)",
    "SkewSymmetric": r"have shape \(4, 6, 6\)",
    "ComplexGrassmann": "dtype complex128",
    "ComplexEuclidean": "dtype complex128",
    "PSDFixedRankComplex": "dtype complex128",
}


@pytest.mark.parametrize("name", PYMANOPT)
def test_every_manifold_of_pymanopt_works_or_is_refused_with_a_sentence(name):
    Y, D, X = scene()
    update = SimCO(manifold=PYMANOPT[name], mu=0.0)
    if name in FIT:
        new, codes = update(Y, D, X)
        assert np.isfinite(new).all() and np.sum((Y - new @ codes) ** 2) < np.sum(Y**2)
        return
    sentence = SENTENCES.get(name, r"raised TypeError when called with \(m, k\) = \(6, 4\)")
    with pytest.raises(ValueError, match=sentence):
        update(Y, D, X)
    if name != "Positive":  # there the start is the user's
        with pytest.raises(ValueError, match=sentence):
            update_problem(Y, X, manifold=PYMANOPT[name])


@pytest.mark.parametrize(
    ("manifold", "error", "sentence"),
    [
        (Spheres(M, D_), TypeError, r"pass the class Spheres, or a function \(m, k\) → manifold"),
        (42, TypeError, r"pass a factory \(m, k\) → manifold"),
        (lambda m, k: None, TypeError, "returned a NoneType"),
        (lambda m, k: pymanopt_manifolds.Product([Sphere(m)] * k), ValueError, r"use Columns\(factory\)"),
        (lambda m, k: pymanopt_manifolds.SpecialOrthogonalGroup(m), ValueError, r"have shape \(6, 6\)"),
        (lambda m, k: pymanopt_manifolds.ComplexCircle(m), ValueError, r"have shape \(6,\)"),
        (lambda m, k: Grassmann(m, m), ValueError, r"have shape \(6, 6\)"),
    ],
)
def test_what_is_no_factory_of_dictionaries_is_refused(manifold, error, sentence):
    Y, D, X = scene()
    with pytest.raises(error, match=sentence):
        SimCO(manifold=manifold)(Y, D, X)
    with pytest.raises(error, match=sentence):
        update_problem(Y, X, manifold=manifold)


def test_too_many_atoms_for_stiefel_are_refused_with_the_remedy():
    Y, D, X = scene(d=9)
    with pytest.raises(ValueError, match="k=9 atoms cannot be orthonormal in m=6 dimensions") as caught:
        SimCO(manifold=Stiefel)(Y, D, X)
    assert str(caught.value).endswith("use Spheres or sets of at most m=6 atoms.")
    assert "Need n >= p" not in str(caught.value)  # Pymanopt's words, for its own arguments


def test_the_objective_is_no_function_of_the_span():
    """Why Grassmann is refused: two bases of one span have different values."""
    Y, D, X = scene()
    problem = update_problem(Y, X, manifold=Orthonormal)
    point = problem.manifold.closest(D)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((D_, D_)))[0]
    assert Grassmann(M, D_).dist(point, point @ turn) < 1e-6
    assert abs(problem.cost(point @ turn) / problem.cost(point) - 1) > 0.01


@pytest.mark.parametrize("schedule", [mdl.schedules.AllAtoms(), OneAtATime()], ids=["all", "one"])
def test_sets_are_counted(schedule):
    Y, D, X = scene()
    n_sets = 1 if schedule == mdl.schedules.AllAtoms() else D_
    with count_evaluations() as counts:
        SimCO(mu=0.0, schedule=schedule)(Y, D, X)
    assert (counts.sets, counts.improved, counts.refused) == (n_sets, n_sets, 0)
    with count_evaluations() as counts:
        SimCO(Returns(with_point(lambda D: -D[:, ::-1])), mu=0.0)(Y, D, X)
    assert (counts.sets, counts.improved + counts.refused) == (1, 1)


def test_sets_of_a_compiled_sweep_are_counted():
    Y, D, X = scene(n=80)
    with count_evaluations() as counts:
        D, X = mdl.KSVD()(Y, D, X)
    assert (counts.sets, counts.improved, counts.refused) == (D_, D_, 0)
    for _ in range(500):  # to a fixed point, where no atom moves any more
        D, X = mdl.KSVD()(Y, D, X)
    with count_evaluations() as counts:
        mdl.KSVD()(Y, D, X)
    assert (counts.sets, counts.improved) == (D_, 0)


def test_population_methods_lower_the_cost_of_a_good_start():
    """All neighbours at a fixed distance are worse there: the start used to be returned."""
    Y = mdl.datasets.synthetic(8, 12, 100, sparsity=3, rng=0).signals
    D = Spheres(8, 12).closest(Y[:, :12])
    D, X = SimCO(mdl.LBFGS(max_iterations=15, verbosity=0), mu=0.0)(Y, D, OMP(sparsity=3).encode(Y, D))
    before = np.sum((Y - D @ X) ** 2)
    for optimizer in (
        ParticleSwarm(max_iterations=3, verbosity=0),
        NelderMead(max_iterations=2, verbosity=0),
    ):
        with count_evaluations() as counts:
            new, codes = SimCO(optimizer, mu=0.0)(Y, D, X, rng=0)
        assert (counts.sets, counts.improved) == (1, 1)
        assert np.sum((Y - new @ codes) ** 2) < before


# Streams


@each_manifold
def test_all_atoms_are_on_the_manifold_after_every_batch(name):
    """Also those that no signal has used yet: 15 signals, two atoms each, for more atoms than that."""
    factory, is_member = MEMBERS[name]
    d = 4 if name in ("Orthonormal", "Stiefel", "Sphere") else 40
    Y = mdl.datasets.synthetic(M, 12, 60, sparsity=2, snr_db=10, rng=5).signals
    model = mdl.ManifoldDictionaryLearning(
        d, coder=OMP(sparsity=2), update=SimCO(manifold=factory), random_state=5
    )
    for batch in np.split(Y.T, 4):
        model.partial_fit(batch)
        assert is_member(model.components_.T)


def test_blocks_of_bases_stay_bases_from_batch_to_batch():
    Y = mdl.datasets.synthetic(M, 12, 60, sparsity=2, rng=5).signals
    update = SimCO(manifold=Stiefel, schedule=[[0, 2, 4, 6], [1, 3, 5, 7]])
    model = mdl.ManifoldDictionaryLearning(8, coder=OMP(sparsity=2), update=update, random_state=0)
    for batch in np.split(Y.T, 4):
        model.partial_fit(batch)
        for block in update.schedule:
            assert is_orthonormal(model.components_[block].T)
    drawn = mdl.ManifoldDictionaryLearning(
        8, coder=OMP(sparsity=2), update=SimCO(manifold=Stiefel, schedule=mdl.schedules.Blocks(4))
    )
    with pytest.raises(ValueError, match=r"ties the atoms of a set.*schedule=AllAtoms\(\) or a list"):
        drawn.partial_fit(Y.T)


# What a result says


def learn(update, **options):
    Y = mdl.datasets.synthetic(M, 8, 60, sparsity=2, rng=0).signals
    return learn_dictionary(Y, 8, coder=OMP(sparsity=2), update=update, rng=0, **{"max_iter": 3} | options)


def test_a_result_says_when_no_set_was_ever_improved():
    class Stay:
        def run(self, problem, *, initial_point=None):
            return SimpleNamespace(point=initial_point)

    result = learn(SimCO(Stay(), mu=0.0))
    np.testing.assert_array_equal(result.history.sets, 1)
    np.testing.assert_array_equal(result.history.improved + result.history.refused, 0)
    assert f"improved none of the {result.n_iter} sets of atoms" in str(result)
    assert "improved none" not in str(learn(SimCO()))
    assert "improved none" not in str(learn(mdl.KSVD()))
    assert "improved none" not in str(learn(mdl.MOD()))  # there are no sets


def test_there_is_a_warning_when_all_points_were_refused():
    class Rises:
        def run(self, problem, *, initial_point=None):
            return SimpleNamespace(point=-np.roll(initial_point, 1, axis=1))

    with pytest.warns(RuntimeWarning, match=r"improved none of the 3 sets.*3 of its points were refused"):
        result = learn(SimCO(Rises(), mu=0.0), tol=0)
    assert "3 of its points were refused" in str(result)


def test_history_counts_the_sets_of_a_sweep():
    result = learn(SimCO(mu=0.0, schedule=OneAtATime()), replace=None)
    assert (result.history.sets <= 8).all() and result.history.sets[0] > 4
    assert result.history.improved[0] == result.history.sets[0]
    np.testing.assert_array_equal(result.history.refused, 0)


def test_a_result_says_when_atoms_are_not_unit():
    result = learn(SimCO(manifold=Sphere))
    norms = np.linalg.norm(result.dictionary, axis=0)
    assert np.linalg.norm(result.dictionary) == pytest.approx(1) and norms.max() < 0.99
    assert f"norms of {norms.min():.3g} to {norms.max():.3g}" in str(result)
    assert "norms of" not in str(learn(SimCO(manifold=Oblique)))


# Starts, replaced atoms and early ends in the loop


@each_manifold
def test_learning_ends_on_the_manifold_even_if_stopped_after_a_replacement(name):
    factory, is_member = MEMBERS[name]
    d = 4 if name in ("Orthonormal", "Stiefel", "Sphere") else 12
    Y = mdl.datasets.synthetic(M, 12, 60, sparsity=2, rng=3).signals
    start = 3 * np.random.default_rng(1).standard_normal((M, d))
    for max_iter, stop in ((1, 9), (10, 0), (10, 9)):
        steps = []

        def callback(step, steps=steps, stop=stop):
            steps.append(step)
            return step.iteration == stop

        result = learn_dictionary(
            Y,
            d,
            coder=OMP(sparsity=2),
            update=SimCO(manifold=factory),
            init=start,
            replace=mdl.ReplaceAtoms(min_users=31),
            callbacks=[callback],
            max_iter=max_iter,
        )
        assert is_member(result.dictionary)
        assert all(is_member(step.dictionary) for step in steps)
    assert max_iter == 1 or any(len(step.replaced) for step in steps)


def test_a_given_start_is_brought_onto_the_manifold_before_it_is_coded():
    seen = []

    class Watching:
        def encode(self, signals, dictionary):
            seen.append(dictionary.copy())
            return OMP(sparsity=2).encode(signals, dictionary)

    Y = mdl.datasets.synthetic(M, 8, 60, sparsity=2, rng=0).signals
    start = np.random.default_rng(0).standard_normal((M, 8))
    for fit in (
        lambda **parts: learn_dictionary(Y, 8, init=start, max_iter=2, **parts),
        lambda **parts: mdl.ManifoldDictionaryLearning(8, init=start.T, max_iter=2, **parts).fit(Y.T),
        lambda **parts: mdl.ManifoldDictionaryLearning(8, init=start.T, **parts).partial_fit(Y.T),
    ):
        seen.clear()
        fit(coder=Watching(), update=SimCO(manifold=ZeroMean))
        assert all(MEMBERS["ZeroMean"][1](D) for D in seen)


@pytest.mark.filterwarnings("ignore:.* atoms are used by none:UserWarning")
def test_norms_that_a_manifold_leaves_free_are_those_of_the_given_start():
    Y = mdl.datasets.synthetic(M, 8, 60, sparsity=2, rng=0).signals
    start = np.abs(
        3 * np.random.default_rng(0).standard_normal((M, 8))
    )  # Positive has no map to the nearest point
    result = learn_dictionary(
        Y, 8, coder=OMP(sparsity=2), update=SimCO(manifold=Positive), init=start, max_iter=3
    )
    assert result.dictionary.min() > 0 and result.history.loss[-1] < result.history.loss[0]
