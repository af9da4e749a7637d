"""One update stage: K-SVD as |I| = 1, descent and what stays untouched for any I, MOD as least squares."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Euclidean, Oblique
from pymanopt.optimizers import (
    ConjugateGradient,
    NelderMead,
    ParticleSwarm,
    SteepestDescent,
    TrustRegions,
)
from threadpoolctl import threadpool_limits

from manifold_dl.components.errors import ComponentError
from manifold_dl.datasets import synthetic
from manifold_dl.kernels.reduced import ksvd as compiled_ksvd, reference_ksvd
from manifold_dl.kernels import reduced as kernels
from manifold_dl.line_search import GoldenSection, WolfeSearch, trace
from manifold_dl.manifolds import Lines, Spheres
from manifold_dl.optimizers import LBFGS, LeadingSingularVector
from manifold_dl.problem.counts import count_evaluations
from manifold_dl.regularizers import Coherence
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime, Overlapping, RandomSubsets, sweep
from manifold_dl.updates import KSVD, MOD, SimCO, Stage, begin, default_optimizer

M, D_, N, S = 8, 12, 90, 3


def unit(m, d, rng):
    return Spheres(m, d).random_point(rng)


def problem_data(seed=0, m=M, d=D_, n=N, sparsity=S, dtype=float):
    """Noisy signals, a dictionary that did not make them, and codes on the true support."""
    rng = np.random.default_rng(seed)
    _, X, Y = synthetic(m, d, n, sparsity, snr_db=10, rng=rng)
    X.data = rng.standard_normal(len(X.data))
    return Y.astype(dtype), unit(m, d, rng).astype(dtype), X.astype(dtype)


def objective(Y, D, X, mu=0.0, regularizers=()):
    return (
        np.linalg.norm(Y - D @ X) ** 2 + mu * scipy.sparse.linalg.norm(X) ** 2
        + sum(penalty.value(D) for penalty in regularizers)
    )  # fmt: skip


def assert_same_pattern(X, X_new):
    np.testing.assert_array_equal(X_new.indptr, X.indptr)
    np.testing.assert_array_equal(X_new.indices, X.indices)


def assert_unit(D):
    # A sum of m squares and a root, each rounded: a few times √m ε.
    eps = np.finfo(D.dtype).eps
    np.testing.assert_allclose(np.linalg.norm(D.astype(float), axis=0), 1, atol=8 * np.sqrt(len(D)) * eps)


def exact_ksvd(Y, D, X, mu=0.0):
    """K-SVD as in the literature: the rank-one approximation of what the other atoms leave, atom by atom."""
    D, X, used = D.copy(), X.toarray(), X.astype(bool).toarray()
    for i in range(D.shape[1]):
        users = used[i]
        E = Y[:, users] - D @ X[:, users] + np.outer(D[:, i], X[i, users])
        U, s, Vt = np.linalg.svd(E, full_matrices=False)
        D[:, i] = U[:, 0]
        X[i, users] = s[0] * Vt[0] / (1 + mu)
    return D, X


def projectors(D):
    return np.einsum("ik,jk->kij", D, D)


# The cost that an optimizer sees is divided by ‖Y‖²/n. A gradient of 1e-9 there is about what a search can
# see through the rounding of the cost; it leaves an error of 1e-9 over the spectral gap, which is of order 1.
CONVERGED = {"max_iterations": 2000, "min_gradient_norm": 1e-9, "min_step_size": 1e-14, "verbosity": 0}
ONE_ATOM_OPTIMIZERS = {
    "SteepestDescent": lambda: SteepestDescent(line_searcher=GoldenSection(), **CONVERGED),
    "ConjugateGradient": lambda: ConjugateGradient(line_searcher=WolfeSearch(), **CONVERGED),
    "LBFGS": lambda: LBFGS(**CONVERGED),
    "TrustRegions": lambda: TrustRegions(**CONVERGED),
    "LeadingSingularVector": LeadingSingularVector,
}


class FromARandomStart:
    """An optimizer that forgets where the atom was."""

    def __init__(self, optimizer, seed):
        self.optimizer, self.rng = optimizer, np.random.default_rng(seed)

    def run(self, problem, *, initial_point=None):
        return self.optimizer.run(problem, initial_point=unit(*initial_point.shape, self.rng))


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("name", ONE_ATOM_OPTIMIZERS)
class TestOneAtomAtATimeIsKSVD:
    def check(self, optimizer, mu):
        Y, D, X = problem_data()
        D_new, X_new = SimCO(optimizer, mu=mu, schedule=OneAtATime(), threads=1)(Y, D, X)
        D_svd, X_svd = exact_ksvd(Y, D, X, mu)
        # The error of an atom (see CONVERGED) goes into the residuals of all that follow.
        np.testing.assert_allclose(projectors(D_new), projectors(D_svd), atol=1e-6)
        np.testing.assert_allclose(Y - D_new @ X_new, Y - D_svd @ X_svd, atol=1e-6 * np.linalg.norm(Y))

    def test_gives_the_dictionary_of_the_svd(self, name, mu):
        self.check(ONE_ATOM_OPTIMIZERS[name](), mu)

    def test_also_from_a_random_start_for_each_atom(self, name, mu):
        # Theorem 1: the only minima are ± the singular vector, the other stationary points are saddles.
        self.check(FromARandomStart(ONE_ATOM_OPTIMIZERS[name](), seed=1), mu)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("optimizer", [ConjugateGradient, LBFGS, TrustRegions])
def test_optimizers_as_they_come_find_the_svd_in_any_units(optimizer, scale):
    Y, D, X = problem_data()
    D_new, _ = SimCO(optimizer(), mu=0.0, schedule=OneAtATime(), threads=1)(scale * Y, D, scale * X)
    D_svd, _ = exact_ksvd(Y, D, X)
    # Their gradients end at 1e-6; the error is that over twice a spectral gap of order 1.
    np.testing.assert_allclose(projectors(D_new), projectors(D_svd), atol=1e-6)


class OddAtoms:
    """A schedule of somebody else's."""

    def subsets(self, n_atoms, rng=None):
        yield np.arange(1, n_atoms, 2)


SCHEDULES = [
    AllAtoms(),
    OneAtATime(),
    OneAtATime(order="random"),
    OneAtATime(order="usage"),
    Blocks(5),
    Blocks(D_),
    RandomSubsets(size=4, count=2),
    Overlapping(size=5, step=3),
    [[3], [7, 2]],
    (np.arange(D_) < 4,),
    OddAtoms(),
]


def check_update(update, Y, D, X, *, mu=0.0, regularizers=(), rng=0):
    """What every rule promises for the sets I of its schedule."""
    D_new, X_new = update(Y, D, X, rng=rng)
    usage = np.diff(X.tocsr().indptr)
    moved = np.unique(np.concatenate(sweep(update.schedule, D.shape[1], rng, usage=usage)))
    outside = np.setdiff1d(np.arange(D.shape[1]), moved)
    np.testing.assert_array_equal(D_new[:, outside], D[:, outside])
    np.testing.assert_array_equal(X_new.tocsr()[outside].toarray(), X.tocsr()[outside].toarray())
    assert_same_pattern(X, X_new)
    assert_unit(D_new)
    # The residuals on both sides are rounded: some ε of a sum of m n squares, and some ε² where that is zero.
    before, after = (objective(Y, *pair, mu, regularizers) for pair in ((D, X), (D_new, X_new)))
    assert after <= before * (1 + 1e-13) + 1e-28 * np.linalg.norm(Y) ** 2
    return D_new, X_new


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
class TestAnySubset:
    @pytest.mark.parametrize("manifold", [Spheres, Lines, Oblique], ids=lambda manifold: manifold.__name__)
    @pytest.mark.parametrize("regularizers", [(), (Coherence(0.5),)], ids=["plain", "coherence"])
    @pytest.mark.parametrize("codes", ["follow", "fixed"])
    @pytest.mark.parametrize("mu", [0.0, 0.1])
    def test_descends_and_touches_nothing_else(self, schedule, mu, codes, regularizers, manifold):
        Y, D, X = problem_data()
        update = SimCO(
            manifold=manifold, mu=mu, schedule=schedule, regularizers=regularizers, codes=codes, threads=1
        )
        D_new, X_new = check_update(update, Y, D, X, mu=mu, regularizers=regularizers)
        assert objective(Y, D_new, X_new, mu, regularizers) < objective(Y, D, X, mu, regularizers)
        if codes == "fixed":
            np.testing.assert_array_equal(X_new.data, X.data)

    @pytest.mark.parametrize("mu", [0.0, 0.1])
    def test_codes_are_optimal_for_the_last_set(self, schedule, mu):
        Y, D, X = problem_data()
        D_new, X_new = SimCO(mu=mu, schedule=schedule)(Y, D, X, rng=0)
        last = sweep(schedule, D_, 0, usage=np.diff(X.tocsr().indptr))[-1]
        # Normal equations of the ridge problem: D_Iᵀ(Y − D X) = μ X_I on the support.
        gap = (D_new.T @ (Y - D_new @ X_new) - mu * X_new.toarray())[last]
        used = X.astype(bool).toarray()[last]
        # Rounding of products as large as ‖y‖, times the condition of a support, 10 or so.
        assert np.abs(gap[used]).max() < 1e-12 * np.linalg.norm(Y, axis=0).max()

    def test_the_residual_kept_up_to_date_is_the_residual(self, schedule):
        Y, D, X = problem_data()
        stage, settings = Stage(Y, D, X), SimCO(schedule=schedule)
        stage.residual()
        rng = np.random.default_rng(1)
        for _ in range(3):
            for I in sweep(schedule, D_, rng, usage=stage.incidence.usage):
                problem = stage.problem(I, 0.1, settings)
                stage.accept(I, problem, unit(M, len(I), rng), before=np.inf)
        expected = Y - stage.D @ stage.support.codes(stage.values)
        # A few dozen additions and subtractions of terms no larger than the signals.
        np.testing.assert_allclose(stage.residual().T, expected, atol=1e-13 * np.abs(Y).max())


class RandomPoint:
    def run(self, problem, *, initial_point=None):
        return self.result(unit(*initial_point.shape, 0))

    def result(self, point):
        return type("Result", (), {"point": point})


class NotANumber(RandomPoint):
    def run(self, problem, *, initial_point=None):
        return self.result(np.full_like(initial_point, np.nan))


def silly_optimizers():
    return [
        NelderMead(max_iterations=3),
        ParticleSwarm(max_iterations=3),
        ParticleSwarm(max_iterations=2, population_size=4),
        SteepestDescent(max_iterations=2),
        RandomPoint(),
    ]


def test_an_optimizer_of_the_users_that_returns_nan_is_named():
    with pytest.raises(ComponentError, match=r"The optimizer .*NotANumber.* point that is not finite"):
        SimCO(NotANumber(), mu=0.1)(*problem_data(n=30))


@pytest.mark.parametrize("optimizer", silly_optimizers(), ids=lambda optimizer: type(optimizer).__name__)
class TestSillyOptimizers:
    @pytest.mark.parametrize("schedule", [AllAtoms(), Blocks(5), OneAtATime()], ids=repr)
    @pytest.mark.parametrize("codes", ["follow", "fixed"])
    def test_cannot_raise_the_objective(self, optimizer, schedule, codes):
        Y, D, X = problem_data(n=30)
        update = SimCO(optimizer, mu=0.1, schedule=schedule, codes=codes, threads=1)
        for _ in range(2):  # some of them behave differently in their second run
            D, X = check_update(update, Y, D, X, mu=0.1)

    def test_have_nothing_to_add_at_the_minimum(self, optimizer):
        # The signals are represented exactly, so that the gradient is zero up to rounding, or exactly zero.
        D, X, Y = synthetic(M, D_, 30, S, rng=3)
        D_new, X_new = check_update(SimCO(optimizer, schedule=Blocks(4)), Y, D, X)
        # Rounding, times the condition of a support.
        np.testing.assert_allclose(D_new @ X_new, Y, atol=1e-13 * np.abs(Y).max())

    def test_zero_signals_get_zero_codes(self, optimizer):
        _, D, X = problem_data(n=30)
        D_new, X_new = SimCO(optimizer)(np.zeros((M, 30)), D, X)
        assert not X_new.data.any()
        assert_unit(D_new)


class TestPopulations:
    def test_begin_with_the_atoms_as_they_are(self):
        # One iteration around a good start makes it better; from random points it would take thousands.
        Y, D, X = problem_data()
        D, X = SimCO(mu=0.1)(Y, D, X)
        swarm = ParticleSwarm(max_iterations=20, population_size=10)
        D_new, _ = SimCO(swarm, mu=0.1, schedule=OneAtATime())(Y, D, X, rng=0)
        assert (D_new != D).any()

    def test_are_drawn_from_the_given_generator(self):
        Y, D, X = problem_data()
        draws = []

        class Watched(NelderMead):
            def run(self, problem, *, initial_point=None):
                draws.append(initial_point)
                return super().run(problem, initial_point=initial_point)

        update = SimCO(Watched(max_iterations=1))
        update(Y, D, X, rng=5)
        update(Y, D, X, rng=5)
        np.testing.assert_array_equal(*draws)
        np.testing.assert_array_equal(draws[0][0], D)


class TestEdges:
    @pytest.mark.parametrize("schedule", SCHEDULES[:5], ids=repr)
    def test_unused_atoms_stay(self, schedule):
        Y, D, X = problem_data()
        mask = np.ones(D_)
        mask[[0, 5]] = 0
        X = scipy.sparse.csc_array(scipy.sparse.diags_array(mask) @ X)
        X.eliminate_zeros()
        D_new, _ = check_update(SimCO(mu=0.1, schedule=schedule), Y, D, X, mu=0.1)
        # Together with others they are normalised after every step, which may round the last digit.
        np.testing.assert_allclose(D_new[:, [0, 5]], D[:, [0, 5]], atol=1e-15)

    @pytest.mark.parametrize("schedule", SCHEDULES[:5], ids=repr)
    def test_signals_without_atoms_count_but_do_not_matter(self, schedule):
        Y, D, X = problem_data()
        silent = X.copy()
        silent.data[: X.indptr[5]] = 0
        silent.eliminate_zeros()
        D_new, _ = check_update(SimCO(schedule=schedule), Y, D, silent)
        alone, _ = SimCO(schedule=schedule)(Y[:, 5:], D, X[:, 5:], rng=0)
        # Only ‖Y‖² differs, by which the cost is divided: five conjugate steps magnify its rounding a little.
        np.testing.assert_allclose(D_new, alone, atol=1e-9)

    def test_stored_zeros_belong_to_the_pattern(self):
        Y, D, X = problem_data()
        X.data[:20] = 0
        _, X_new = check_update(SimCO(), Y, D, X)
        assert X_new.data[:20].all()

    def test_dense_codes_are_understood(self):
        Y, D, X = problem_data()
        for one, other in zip(SimCO()(Y, D, X), SimCO()(Y, D, X.toarray()), strict=True):
            np.testing.assert_array_equal(
                *(a.toarray() if scipy.sparse.issparse(a) else a for a in (one, other))
            )

    def test_duplicate_atoms_in_a_support_are_survived(self):
        # Without a ridge the codes on two equal atoms are not unique: the minimum-norm ones are taken.
        Y, D, X = problem_data()
        D[:, 1], D[:, 2] = D[:, 0], -D[:, 0]
        for schedule in (AllAtoms(), Blocks(5)):
            check_update(SimCO(schedule=schedule), Y, D, X)

    def test_a_single_signal_and_a_single_atom(self):
        y = np.array([[3.0], [4.0]])
        D, X = SimCO(KSVD().as_simco().optimizer)(y, np.array([[1.0], [0.0]]), np.array([[1.0]]))
        np.testing.assert_allclose(D.T, [[0.6, 0.8]], rtol=1e-15)
        np.testing.assert_allclose(X.toarray(), [[5.0]], rtol=1e-15)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize(
        "rule", [SimCO(), SimCO(schedule=Blocks(5)), SimCO(codes="fixed"), KSVD(), MOD()]
    )
    def test_the_input_is_left_alone(self, rule, order):
        Y, D, X = problem_data()
        Y, D = np.array(Y, order=order), np.array(2 * D, order=order)
        arrays = (Y, D, X.data, X.indices, X.indptr)
        copies = [array.copy() for array in arrays]
        D_new, X_new = rule(Y, D, X)
        for array, before in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(array, before)
        for result in (D_new, X_new.data, X_new.indices, X_new.indptr):
            assert not any(np.shares_memory(result, array) for array in arrays)

    @pytest.mark.parametrize("rule", [SimCO(), SimCO(schedule=Blocks(5)), KSVD(), MOD()])
    def test_atoms_of_any_norm_are_normalised_first(self, rule):
        Y, D, X = problem_data()
        # Squares of the extremes would vanish or overflow.
        norms = np.array([1.0, 2.0, 0.5, 1e-200, 1e200, 3.0] + [1.0] * 6)
        scaled = X.copy()
        scaled.data /= norms[X.indices]
        one, other = rule(Y, D, X, rng=0), rule(Y, D * norms, scaled, rng=0)
        # Rounding of the norms, magnified by a few steps.
        np.testing.assert_allclose(one[0], other[0], atol=1e-9)
        np.testing.assert_allclose(one[1].data, other[1].data, atol=1e-9)

    @pytest.mark.parametrize("schedule", [AllAtoms(), Blocks(7), OneAtATime()], ids=repr)
    def test_threads_do_not_change_a_bit(self, schedule):
        Y, D, X = problem_data(n=5000)  # three blocks of signals
        one, two = (SimCO(mu=0.1, schedule=schedule, threads=threads)(Y, D, X, rng=0) for threads in (1, 2))
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1].data, two[1].data)


def ragged_data(seed, m=M, d=D_, n=N, dtype=float):
    """Supports of none to four atoms, two atoms that nobody uses, and signals that occur twice."""
    rng = np.random.default_rng(seed)
    X = np.zeros((d, n))
    for j, size in enumerate(rng.integers(0, 5, n)):
        X[rng.choice(np.setdiff1d(np.arange(d), [0, 5]), size, replace=False), j] = rng.standard_normal(size)
    Y = unit(m, d, rng) @ X + 0.1 * rng.standard_normal((m, n))
    copied = slice(0, n // 3)
    Y[:, -(n // 3) :], X[:, -(n // 3) :] = Y[:, copied], X[:, copied]
    return Y.astype(dtype), unit(m, d, rng).astype(dtype), scipy.sparse.csc_array(X).astype(dtype)


@pytest.mark.parametrize(
    "sweep_kernel", [compiled_ksvd.ksvd, reference_ksvd.ksvd], ids=["compiled", "reference"]
)
class TestTheFusedSweep:
    """K-SVD is a configuration of SimCO; its fused sweep gives the same numbers."""

    @pytest.fixture(autouse=True)
    def use(self, sweep_kernel, monkeypatch):
        monkeypatch.setattr(kernels, "ksvd", sweep_kernel)

    def check(self, rule, Y, D, X, rng=0):
        one, other = rule(Y, D, X, rng=rng), rule.as_simco()(Y, D, X, rng=rng)
        # A vector is known to some ε over the relative gap of the two largest eigenvalues, here a tenth or
        # more, and every atom hands its error on to the next: two or three digits of sixteen.
        atol = {np.float64: 1e-12, np.float32: 1e-5}[Y.dtype.type]
        np.testing.assert_allclose(one[0], other[0], rtol=0, atol=atol)
        np.testing.assert_allclose(one[1].data, other[1].data, rtol=0, atol=atol)
        assert_same_pattern(X, one[1])
        assert one[0].dtype == one[1].dtype == Y.dtype
        return one

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
    @pytest.mark.parametrize("mu", [0.0, 0.1])
    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_is_a_configuration_of_simco(self, method, mu, dtype, seed):
        Y, D, X = ragged_data(seed, dtype=dtype)
        D_new, _ = self.check(KSVD(method=method, mu=mu), Y, D, X)
        np.testing.assert_array_equal(D_new[:, [0, 5]], D[:, [0, 5]])
        assert (D_new[:, 1] != D[:, 1]).all()

    def test_counts_what_the_configuration_counts(self):
        rule, data = KSVD(), ragged_data(0)
        with count_evaluations() as counts:
            rule(*data)
        with count_evaluations() as expected:
            rule.as_simco()(*data)
        assert counts == expected

    @pytest.mark.parametrize(
        "schedule",
        [OneAtATime("natural"), OneAtATime("random"), OneAtATime("usage"), [[3], [7], [3]], [[5]]],
        ids=repr,
    )
    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_in_any_order(self, method, schedule):
        self.check(KSVD(method=method, schedule=schedule), *ragged_data(0))

    @pytest.mark.parametrize("method", ["svd", "power"])
    @pytest.mark.parametrize("m, n", [(8, 9), (30, 90), (65, 800)])
    def test_with_fewer_users_than_dimensions_and_with_many(self, m, n, method):
        # Where the smaller of the two Gram matrices is larger than 64×64, LAPACK takes over.
        self.check(KSVD(method=method), *ragged_data(1, m=m, n=n))

    def test_sets_of_several_atoms_are_not_for_the_sweep(self):
        Y, D, X = ragged_data(0)
        self.check(KSVD(schedule=[[3], [0, 5], [4]]), Y, D, X)  # nobody uses 0 and 5
        with pytest.raises(ValueError, match=r"use a schedule like OneAtATime\(\)"):
            KSVD(schedule=[[3], [1, 2], [4]])(Y, D, X)

    def test_a_random_order_is_drawn_once(self):
        Y, D, X = ragged_data(0)
        rule, rng = KSVD(schedule=OneAtATime("random")), np.random.default_rng(0)
        rule(Y, D, X, rng=rng)
        expected = np.random.default_rng(0)
        expected.permutation(D_)
        assert rng.random() == expected.random()

    @pytest.mark.parametrize("n", [2, 8])
    def test_a_tie_is_broken_as_the_configuration_breaks_it(self, n):
        # Atom 1 alone represents n orthogonal signals of the same length: every combination is as good.
        Y, D, X = ragged_data(0, n=60)
        Y[:, :n], X = np.eye(M)[:, :n], X.toarray()
        X[1], X[:, :n] = 0, 0
        X[1, :n] = 0.5
        X = scipy.sparse.csc_array(X)
        stage = Stage(Y, D, X)
        assert stage.ksvd(np.array([2, 1, 3]), 0.0, False) == 1
        self.check(KSVD(), Y, D, X)

    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_signals_that_say_nothing_leave_the_atoms(self, method):
        Y, D, X = ragged_data(0)
        D_new, X_new = self.check(KSVD(method=method), 0 * Y, D, 0 * X)
        np.testing.assert_array_equal(D_new, D)
        assert not X_new.data.any()

    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_threads_do_not_change_a_bit(self, method):
        Y, D, X = problem_data(m=64, d=20, n=20_000)  # more than one block of signals an atom
        with threadpool_limits(1):
            one = KSVD(method=method, threads=1)(Y, D, X)
        with threadpool_limits(2):
            two = KSVD(method=method, threads=2)(Y, D, X)
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1].data, two[1].data)


class TestKSVD:
    @pytest.mark.parametrize("order", ["natural", "random", "usage"])
    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_descends_for_ever(self, method, order):
        Y, D, X = problem_data()
        rule = KSVD(method=method, schedule=OneAtATime(order=order))
        rng = np.random.default_rng(0)
        for _ in range(20):
            D, X = check_update(rule, Y, D, X, rng=int(rng.integers(100)))

    def test_power_steps_approach_the_singular_vector(self):
        # The other atoms and their codes stay, so that all steps are made with the same matrix.
        Y, D, X = problem_data()
        users = X.astype(bool).toarray()[4]
        E = (Y - D @ X + np.outer(D[:, 4], X.toarray()[4]))[:, users]
        U, s, _ = np.linalg.svd(E)
        tangent = np.tan(np.arccos(abs(U[:, 0] @ D[:, 4])))
        for k in range(1, 100):
            D, X = KSVD(method="power", schedule=[[4]])(Y, D, X)
            sine = np.linalg.norm(D[:, 4] - U[:, 0] * (U[:, 0] @ D[:, 4]))
            # The power method with E Eᵀ: each step brings the tangent down by (σ₂/σ₁)², or more. The absolute
            # part is for the rounding of the two vectors.
            assert sine <= tangent * (s[1] / s[0]) ** (2 * k) + 1e-13

    def test_of_the_two_signs_the_nearer_one_is_taken(self):
        Y, D, X = problem_data()
        D_new, _ = KSVD(schedule=[[4]])(Y, D, X)
        assert D_new[:, 4] @ D[:, 4] > 0


class TestMOD:
    def test_is_least_squares_then_unit_norms(self):
        Y, D, X = problem_data()
        D_new, X_new = MOD()(Y, D, X)
        expected = np.linalg.lstsq(X.toarray().T, Y.T)[0].T
        # Normal equations square the condition of X, here about 10: two digits of sixteen.
        np.testing.assert_allclose(D_new, expected / np.linalg.norm(expected, axis=0), atol=1e-13)
        np.testing.assert_allclose(D_new @ X_new, expected @ X, atol=1e-13 * np.abs(Y).max())
        assert_same_pattern(X, X_new)
        assert_unit(D_new)

    def test_unused_atoms_stay(self):
        Y, D, X = problem_data()
        X = scipy.sparse.csc_array(scipy.sparse.diags_array((np.arange(D_) != 3).astype(float)) @ X)
        X.eliminate_zeros()
        D_new, X_new = MOD()(Y, D, X)
        np.testing.assert_array_equal(D_new[:, 3], D[:, 3])
        projection = Y @ np.linalg.pinv(X.toarray()) @ X.toarray()
        np.testing.assert_allclose(D_new @ X_new, projection, atol=1e-12)  # see below

    def test_rows_that_agree_share_the_change(self):
        # Only the sum of two atoms with the same codes is determined; their difference stays as it was.
        Y, D, X = problem_data()
        X = X.toarray()
        X[1] = X[0]
        D_new, X_new = MOD()(Y, D, scipy.sparse.csc_array(X))
        projection = Y @ np.linalg.pinv(X) @ X
        # The squared condition of X without its null space, on entries of order one.
        np.testing.assert_allclose(D_new @ X_new, projection, atol=1e-12)
        norms = [X_new.toarray()[i].sum() / X[i].sum() for i in (0, 1)]
        difference = D_new[:, 0] * norms[0] - D_new[:, 1] * norms[1]
        np.testing.assert_allclose(difference, D[:, 0] - D[:, 1], atol=1e-12)

    @pytest.mark.parametrize("ridge", [1e-3, 1.0])
    def test_ridge_pulls_towards_the_old_dictionary(self, ridge):
        Y, D, X = problem_data()
        weight = np.sqrt(ridge * scipy.sparse.linalg.norm(X) ** 2 / D_)
        # min ‖Y − D X‖² + weight²‖D − D_old‖² as one least-squares problem.
        left = np.hstack([X.toarray(), weight * np.eye(D_)])
        right = np.hstack([Y, weight * D])
        expected = np.linalg.lstsq(left.T, right.T)[0].T
        D_new, X_new = MOD(ridge=ridge)(Y, D, X)
        np.testing.assert_allclose(D_new @ X_new, expected @ X, atol=1e-13 * np.abs(Y).max())
        assert objective(Y, D_new, X_new) < objective(Y, D, X)

    def test_a_huge_ridge_changes_nothing(self):
        Y, D, X = problem_data()
        # The change is about 1/ridge.
        np.testing.assert_allclose(MOD(ridge=1e12)(Y, D, X)[0], D, atol=1e-11)

    def test_an_atom_that_should_be_zero_keeps_its_direction_and_loses_its_codes(self):
        D, X, Y = synthetic(M, D_, N, S, rng=0)
        Y = Y - np.outer(D[:, 4], X.toarray()[4])  # all that atom 4 contributed
        D_new, X_new = MOD()(Y, D, X)
        assert_unit(D_new)
        assert objective(Y, D_new, X_new) <= 1e-24 * np.linalg.norm(Y) ** 2  # rounding, squared
        # The same for all atoms at once, where nothing but rounding is left.
        D_new, X_new = MOD()(0 * Y, D, X)
        np.testing.assert_allclose(D_new, D, rtol=4e-16)
        assert not X_new.data.any()

    @pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
    def test_refuses_a_ridge_that_is_none(self, ridge):
        with pytest.raises(ValueError, match="the ridge must be finite and not negative"):
            MOD(ridge=ridge)


class TestRidge:
    @pytest.mark.parametrize(
        ("mu", "values"),
        [
            (0.5, [0.5, 0.5, 0.5]),
            (np.float64(0.5), [0.5, 0.5, 0.5]),
            ([0.1, 0.01], [0.1, 0.01, 0.01]),
            ((1, 0), [1, 0, 0]),
            (np.array([0.1, 0.01, 0.0]), [0.1, 0.01, 0.0]),
            (lambda t: 0.1 / (1 + t), [0.1, 0.05, 0.1 / 3]),
        ],
    )
    def test_is_a_number_a_sequence_or_a_function_of_the_iteration(self, mu, values):
        Y, D, X = problem_data()
        rule = SimCO(mu=mu)
        assert [rule.mu_at(t) for t in range(3)] == values
        assert rule.mu_at(50) == (0.1 / 51 if callable(mu) else values[-1])
        for t, value in enumerate(values):
            D_new, X_new = SimCO(mu=mu)(Y, D, X, iteration=t)
            expected, codes = SimCO(mu=value)(Y, D, X)
            np.testing.assert_array_equal(D_new, expected)
            np.testing.assert_array_equal(X_new.data, codes.data)

    @pytest.mark.parametrize(
        ("mu", "error", "sentence"),
        [
            (-0.1, ValueError, "mu=-0.1: the ridge must be finite and not negative"),
            (np.nan, ValueError, "mu=nan: the ridge must be finite"),
            ([0.1, np.inf], ValueError, "mu=inf: the ridge must be finite"),
            ([], ValueError, "mu is an empty sequence"),
            (np.array([]), ValueError, "mu is an empty sequence"),
            ("0.1", TypeError, "mu='0.1': the ridge is one number"),
            ([None], TypeError, "mu=None: the ridge is one number"),
            ([[0.1]], TypeError, "the ridge is one number"),
        ],
    )
    def test_bad_ones_are_refused_at_once(self, mu, error, sentence):
        with pytest.raises(error, match=sentence):
            SimCO(mu=mu)

    def test_by_default_there_is_none_in_a_single_update_and_two_steps_in_a_loop(self):
        Y, D, X = problem_data()
        primitive = SimCO(mu=0.0)(Y, D, X)[0]
        for iteration in (None, 0, 29, 100):  # only a loop binds the schedule
            np.testing.assert_array_equal(SimCO()(Y, D, X, iteration=iteration)[0], primitive)
        for iteration, mu in ((0, 0.2), (29, 0.2), (30, 0.0), (100, 0.0)):
            expected = SimCO(mu=mu)(Y, D, X)[0]
            np.testing.assert_array_equal(begin(SimCO(), 50)(Y, D, X, iteration=iteration)[0], expected)

    def test_a_function_is_judged_by_what_it_returns(self):
        with pytest.raises(ComponentError, match="returned -1, and the ridge is one finite number") as caught:
            SimCO(mu=lambda t: -1)(*problem_data())
        assert "mu=-1: the ridge must be finite and not negative" in str(caught.value.__cause__)


def searches_of(update, *args, **kwargs):
    with trace() as searches:
        result = update(*args, **kwargs)
    return result, searches


class GradientOnly:
    """Plain NumPy, which autograd cannot read: there is no second derivative to be had."""

    def value(self, dictionary):
        return float(np.sum(np.exp(dictionary)))

    def gradient(self, dictionary):
        return np.exp(dictionary)


class TestDefaultOptimizer:
    def test_makes_five_steps_of_conjugate_gradients(self):
        Y, D, X = problem_data()
        (default, _), searches = searches_of(SimCO(mu=0.1), Y, D, X)
        named, _ = SimCO(default_optimizer(5), mu=0.1)(Y, D, X)
        np.testing.assert_array_equal(default, named)
        assert len(searches) == 5

    def test_does_without_second_derivatives_of_regularizers_and_manifolds(self):
        class FirstOrder(Spheres):
            def euclidean_to_riemannian_hessian(self, *args):
                raise NotImplementedError

        Y, D, X = problem_data()
        for settings in ({"regularizers": [GradientOnly()]}, {"manifold": FirstOrder}):
            _, searches = searches_of(SimCO(mu=0.1, **settings), Y, D, X)
            assert len(searches) == 5

    def test_a_named_one_is_not_replaced(self):
        Y, D, X = problem_data()
        with pytest.raises(TypeError, match="a hessian method"):
            SimCO(TrustRegions(), regularizers=[GradientOnly()])(Y, D, X)


@pytest.mark.parametrize("searcher", [GoldenSection(), WolfeSearch()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_one_step_is_one_pass_over_the_signals(searcher, mu):
    Y, D, X = problem_data()
    update = SimCO(SteepestDescent(line_searcher=searcher, max_iterations=1), mu=mu, threads=1)
    with count_evaluations() as counts:
        D_new, X_new = update(Y, D, X)
    assert counts.value == counts.factorisation == 1 and counts.probe > 1
    # The codes that came with the search are the optimal ones of the new dictionary.
    residual = Y - D_new @ X_new
    stationary = (D_new.T @ residual - mu * X_new.toarray())[X_new.toarray() != 0]
    assert np.abs(stationary).max() < 1e-12 * np.abs(D_new.T @ Y).max()
    assert np.sum(residual**2) + mu * np.sum(X_new.data**2) < np.sum((Y - D @ X) ** 2) + mu * np.sum(
        X.data**2
    )


class TestStepMemory:
    def optimizer(self):
        return SteepestDescent(line_searcher=WolfeSearch(), max_iterations=1, verbosity=0)

    def test_goes_from_one_stage_to_the_next(self):
        Y, D, X = problem_data()
        run = SimCO(self.optimizer(), mu=0.1).begin()
        (D, X), (first,) = searches_of(run, Y, D, X)
        _, (second,) = searches_of(run, Y, D, X, iteration=1)
        # The search begins with a step of length 1, and the next where that ended.
        assert first.probes[0][0] == 1 / first.norm
        assert second.probes[0][0] == first.t

    def test_goes_from_one_set_to_the_next(self):
        Y, D, X = problem_data()
        _, searches = searches_of(SimCO(self.optimizer(), schedule=[[0, 1], [2, 3]]), Y, D, X)
        assert searches[1].probes[0][0] == searches[0].t

    @pytest.mark.parametrize(
        "optimizer",
        [
            lambda: None,
            lambda: SteepestDescent(line_searcher=GoldenSection(), max_iterations=2),
            lambda: SteepestDescent(max_iterations=3),  # Pymanopt's searchers begin anew each time
            lambda: ConjugateGradient(max_iterations=3),
        ],
        ids=["default", "golden section", "back-tracking", "adaptive"],
    )
    def test_a_resumed_run_goes_on_as_if_there_had_been_no_break(self, optimizer):
        Y, D, X = problem_data()
        rule = SimCO(optimizer(), mu=0.1)
        first = rule.begin()
        D, X = first(Y, D, X, iteration=0)
        second = rule.begin(memory=first.memory)
        one, other = (run(Y, D, X, iteration=1) for run in (first, second))
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1].data, other[1].data)

    @pytest.mark.parametrize(
        "optimizer", [TrustRegions(max_iterations=1), ConjugateGradient(max_iterations=3)]
    )
    def test_nothing_to_remember_is_nothing_to_recall(self, optimizer):
        Y, D, X = problem_data()
        run = SimCO(optimizer).begin(memory={})
        run(Y, D, X, iteration=1)
        assert run.memory == {}

    @pytest.mark.parametrize("unused", [(), (0,)], ids=["all used", "first atom unused"])
    @pytest.mark.parametrize("schedule", [AllAtoms(), OneAtATime()], ids=repr)
    @pytest.mark.parametrize("optimizer", [None, "steepest"])
    def test_a_run_begins_without(self, optimizer, schedule, unused):
        Y, D, X = problem_data()
        X = scipy.sparse.csc_array(scipy.sparse.diags_array(np.isin(np.arange(D_), unused) * -1.0 + 1) @ X)
        X.eliminate_zeros()
        rule = SimCO(None if optimizer is None else self.optimizer(), mu=[0.1, 0.01], schedule=schedule)
        runs = []
        for _ in range(2):
            D_run, X_run, run = D, X, rule.begin(3)
            for t in range(3):
                D_run, X_run = run(Y, D_run, X_run, iteration=t)
            runs.append((D_run, X_run.data))
        np.testing.assert_array_equal(runs[0][0], runs[1][0])
        np.testing.assert_array_equal(runs[0][1], runs[1][1])


class TestPrinting:
    @pytest.mark.parametrize(
        "optimizer",
        [
            SteepestDescent(max_iterations=2),
            ConjugateGradient(max_iterations=2),
            TrustRegions(max_iterations=2),
            LBFGS(max_iterations=2),
            NelderMead(max_iterations=2),
            ParticleSwarm(max_iterations=2),
        ],
        ids=lambda optimizer: type(optimizer).__name__,
    )
    def test_no_optimizer_is_heard(self, optimizer, capsys):
        Y, D, X = problem_data(n=30)
        SimCO(optimizer, schedule=Blocks(6))(Y, D, X)
        assert capsys.readouterr().out == ""
        assert optimizer._verbosity == 2  # what its owner asked for

    def test_not_even_by_accident(self, capsys):
        class Broken(SteepestDescent):
            def run(self, problem, **kwargs):
                raise RuntimeError("out of order")

        optimizer = Broken()
        with pytest.raises(RuntimeError, match="out of order"):
            SimCO(optimizer)(*problem_data())
        assert optimizer._verbosity == 2


RULES = [
    SimCO(),
    SimCO(mu=0.1, schedule=Blocks(5)),
    SimCO(codes="fixed"),
    SimCO(SteepestDescent(line_searcher=GoldenSection(), max_iterations=1)),
    SimCO(LBFGS(max_iterations=3)),
    SimCO(TrustRegions(max_iterations=3)),
    KSVD(),
    KSVD(method="power"),
    MOD(),
    MOD(ridge=0.1),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
class TestNumbers:
    @pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
    def test_powers_of_two_do_not_change_a_bit(self, rule, factor):
        # They scale without rounding, so whatever is not exactly homogeneous would show.
        Y, D, X = problem_data()
        one, other = rule(Y, D, X, rng=0), rule(factor * Y, D, factor * X, rng=0)
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(factor * one[1].data, other[1].data)

    @pytest.mark.parametrize("factor", [1e-6, 1e6])
    def test_the_scale_of_the_signals_goes_into_the_codes(self, rule, factor):
        Y, D, X = problem_data()
        one, other = rule(Y, D, X, rng=0), rule(factor * Y, D, factor * X, rng=0)
        # A handful of steps, each of which may magnify the rounding of the scaled signals tenfold.
        np.testing.assert_allclose(one[0], other[0], atol=1e-9)
        np.testing.assert_allclose(one[1].data, other[1].data / factor, atol=1e-9)

    def test_single_precision_stays_single(self, rule):
        Y, D, X = problem_data(dtype=np.float32)
        D_new, X_new = rule(Y, D, X, rng=0)
        assert D_new.dtype == X_new.dtype == np.float32
        assert_unit(D_new)
        wide = rule(Y.astype(float), D.astype(float), X.astype(float), rng=0)
        # The minima agree to about ε; the way there, of a few steps, to its square root or better.
        assert objective(Y, D_new, X_new) == pytest.approx(objective(Y.astype(float), *wide), rel=3e-4)

    def test_the_signals_decide_the_precision(self, rule):
        Y, D, X = problem_data()
        D_new, X_new = rule(Y.astype(np.float32), D, X, rng=0)
        assert D_new.dtype == X_new.dtype == np.float32

    def test_prints_copies_and_compares(self, rule):
        Y, D, X = problem_data()
        assert repr(rule).startswith(type(rule).__name__ + "(")
        assert rule == copy.copy(rule) == dataclasses.replace(rule)
        expected = rule(Y, D, X, rng=0)
        for twin in (copy.deepcopy(rule), pickle.loads(pickle.dumps(rule)), dataclasses.replace(rule)):
            D_new, X_new = twin(Y, D, X, rng=0)
            np.testing.assert_array_equal(D_new, expected[0])
            np.testing.assert_array_equal(X_new.data, expected[1].data)


class TestComponents:
    def test_equal_settings_are_equal(self):
        assert SimCO() == SimCO()
        assert SimCO(mu=[0.1, 0.0], schedule=Blocks(3)) == SimCO(mu=np.array([0.1, 0.0]), schedule=Blocks(3))
        assert SimCO(mu=0.1) != SimCO(mu=0.2)
        assert KSVD() == KSVD() != KSVD(method="power")
        assert MOD() == MOD() != MOD(ridge=0.1)

    def test_having_been_used_is_no_difference(self):
        rule = SimCO()
        rule(*problem_data())
        assert rule == SimCO()
        assert repr(rule) == repr(SimCO())
        assert copy.deepcopy(rule) == SimCO()

    def test_a_copy_in_the_middle_of_a_run_goes_on_as_the_original_would(self):
        Y, D, X = problem_data()
        run = SimCO(mu=0.1).begin(2)
        D, X = run(Y, D, X)
        twin = copy.deepcopy(run)
        np.testing.assert_array_equal(twin(Y, D, X, iteration=1)[0], run(Y, D, X, iteration=1)[0])

    def test_runs_of_one_rule_do_not_share_their_steps(self):
        Y, D, X = problem_data()
        rule = SimCO()
        run, other = rule.begin(5), rule.begin(5)
        D, X = run(Y, D, X)
        assert run.memory and not other.memory
        _, searches = searches_of(other, Y, D, X, iteration=1)
        # An eighth of the typical distance, π√d.
        assert searches[0].probes[0][0] == pytest.approx(np.pi * np.sqrt(D_) / 8 / searches[0].norm)

    def test_a_used_optimizer_stays_the_users(self):
        optimizer = TrustRegions(max_iterations=2)
        assert SimCO(optimizer).optimizer is optimizer


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "error", "sentence"),
        [
            ({"codes": "free"}, ValueError, "codes='free': codes either 'follow'"),
            ({"optimizer": TrustRegions}, TypeError, r"pass a Pymanopt optimizer, such as TrustRegions\(\)"),
            ({"optimizer": 5}, TypeError, "optimizer=5: pass a Pymanopt optimizer"),
            ({"manifold": Spheres(M, D_)}, TypeError, "pass the class Spheres, or a function"),
            ({"manifold": 5}, TypeError, "pass a factory"),
            ({"regularizers": Coherence(0.1)}, TypeError, "pass a list of them"),
            ({"threads": 0}, ValueError, "threads=0"),
        ],
    )
    def test_settings(self, settings, error, sentence):
        with pytest.raises(error, match=sentence):
            SimCO(**settings)

    @pytest.mark.parametrize("rule", [SimCO(), KSVD(), MOD()])
    @pytest.mark.parametrize(
        ("change", "error", "sentence"),
        [
            (lambda Y, D, X: (Y[0], D, X), ValueError, r"signals has shape \(90,\)"),
            (lambda Y, D, X: (Y * np.nan, D, X), ValueError, "signals holds nan at row 0, column 0"),
            (lambda Y, D, X: (Y, D[1:], X), ValueError, "atoms of length 7, but the signals have length 8"),
            (lambda Y, D, X: (Y, D[:, 1:], X), ValueError, "names 12 atoms, but the dictionary has 11"),
            (lambda Y, D, X: (Y, D * (np.arange(D_) != 2), X), ValueError, "column 2 is zero"),
            (lambda Y, D, X: (Y[:, 1:], D, X), ValueError, "for 90 signals, but there are 89"),
            (lambda Y, D, X: (Y, D, X.astype(bool)), ValueError, "codes holds no numbers"),
            (lambda Y, D, X: (Y, D, X * np.inf), ValueError, "NaN or infinity"),
            (lambda Y, D, X: (Y, D * 1j, X), TypeError, "dictionary has dtype complex128"),
        ],
    )
    def test_data(self, rule, change, error, sentence):
        with pytest.raises(error, match=sentence):
            rule(*change(*problem_data()))

    def test_schedules(self):
        with pytest.raises(ValueError, match="subset 1 of the schedule contains the index 12"):
            SimCO(schedule=[[0], [12]])(*problem_data())
        with pytest.raises(ValueError, match=r"use a schedule like OneAtATime\(\)"):
            KSVD(schedule=Blocks(3))(*problem_data())

    def test_k_svd(self):
        with pytest.raises(ValueError, match="method='lanczos': K-SVD updates an atom by 'svd'"):
            KSVD(method="lanczos")
        with pytest.raises(ValueError, match="mu=-1: the ridge"):
            KSVD(mu=-1)
        for settings in ({"codes": "fixed"}, {"regularizers": [Coherence(0.1)]}):
            with pytest.raises(ValueError, match="no closed form for fixed codes or regularizers"):
                SimCO(LeadingSingularVector(), schedule=OneAtATime(), **settings)(*problem_data())
        with pytest.raises(ValueError, match="There is no closed form on Euclidean manifold"):
            SimCO(LeadingSingularVector(), schedule=OneAtATime(), manifold=Euclidean)(*problem_data())


def test_mod_without_a_single_user_changes_nothing():
    Y, D, X = problem_data()
    D_new, X_new = MOD()(Y, D, 0 * X.toarray())
    np.testing.assert_array_equal(D_new, D)
    assert X_new.nnz == 0
