"""SimCO over any sets I of atoms: K-SVD as |I| = 1, descent, and what stays untouched."""

import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from update_cases import D_, SCHEDULES, check_update, exact_ksvd, objective, problem_data, projectors, unit

from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.manifolds import Lines, Spheres
from manifold_dl.optimizers import LBFGS, LeadingSingularVector
from manifold_dl.regularizers import Coherence
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime, sweep
from manifold_dl.updates import KSVD, MOD, SimCO

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
    def test_signals_without_atoms_do_not_change_the_dictionary(self, schedule):
        Y, D, X = problem_data()
        silent = X.copy()
        silent.data[: X.indptr[5]] = 0
        silent.eliminate_zeros()
        D_new, _ = check_update(SimCO(schedule=schedule), Y, D, silent)
        alone, _ = SimCO(schedule=schedule)(Y[:, 5:], D, X[:, 5:], rng=0)
        # Only ‖Y‖² differs, by which the cost is divided: five conjugate steps magnify its rounding a little.
        np.testing.assert_allclose(D_new, alone, atol=1e-9)

    def test_stored_zeros_belong_to_the_support(self):
        Y, D, X = problem_data()
        X.data[:20] = 0
        _, X_new = check_update(SimCO(), Y, D, X)
        assert X_new.data[:20].all()

    def test_dense_codes_give_the_same_update_as_sparse_ones(self):
        Y, D, X = problem_data()
        for one, other in zip(SimCO()(Y, D, X), SimCO()(Y, D, X.toarray()), strict=True):
            np.testing.assert_array_equal(
                *(a.toarray() if scipy.sparse.issparse(a) else a for a in (one, other))
            )

    def test_duplicate_atoms_in_a_support_do_not_raise_the_objective(self):
        # Without a ridge the codes on two equal atoms are not unique: the minimum-norm ones are taken.
        Y, D, X = problem_data()
        D[:, 1], D[:, 2] = D[:, 0], -D[:, 0]
        for schedule in (AllAtoms(), Blocks(5)):
            check_update(SimCO(schedule=schedule), Y, D, X)

    def test_one_atom_of_one_signal_becomes_that_signal(self):
        y = np.array([[3.0], [4.0]])
        D, X = SimCO(KSVD().as_simco().optimizer)(y, np.array([[1.0], [0.0]]), np.array([[1.0]]))
        np.testing.assert_allclose(D.T, [[0.6, 0.8]], rtol=1e-15)
        np.testing.assert_allclose(X.toarray(), [[5.0]], rtol=1e-15)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize(
        "rule", [SimCO(), SimCO(schedule=Blocks(5)), SimCO(codes="fixed"), KSVD(), MOD()]
    )
    def test_the_input_arrays_are_not_changed(self, rule, order):
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
