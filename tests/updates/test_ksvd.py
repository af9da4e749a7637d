"""K-SVD: the compiled sweep is the configuration of SimCO, also where a leading vector is not clear."""

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits
from update_cases import D_, M, assert_same_pattern, check_update, problem_data, ragged_data, unit

from manifold_dl.engines import Threads
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import ksvd as compiled_ksvd
from manifold_dl.kernels.reduced import reference_ksvd
from manifold_dl.problem.counts import count_evaluations
from manifold_dl.schedules import OneAtATime
from manifold_dl.updates import KSVD
from manifold_dl.updates.ksvd import CompiledSweep
from manifold_dl.updates.workspace import UpdateWorkspace


@pytest.mark.parametrize("kernels", [compiled_ksvd, reference_ksvd], ids=["compiled", "reference"])
class TestCompiledSweep:
    """K-SVD is a configuration of SimCO; its fused sweep gives the same numbers."""

    @pytest.fixture(autouse=True)
    def use(self, kernels, monkeypatch):
        monkeypatch.setattr(reduced, "ksvd_sweep", kernels.ksvd_sweep)
        monkeypatch.setattr(reduced, "large_codes", kernels.large_codes)

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
    def test_agrees_with_the_configuration_in_any_order(self, method, schedule):
        self.check(KSVD(method=method, schedule=schedule), *ragged_data(0))

    @pytest.mark.parametrize("method", ["svd", "power"])
    @pytest.mark.parametrize("m, n", [(8, 9), (30, 90), (65, 800), (192, 800)])
    def test_agrees_with_the_configuration_for_few_users_and_for_many(self, m, n, method):
        # Where the smaller of the two Gram matrices is larger than 64×64, it is not squared.
        self.check(KSVD(method=method), *ragged_data(1, m=m, n=n))

    def test_sets_of_several_used_atoms_are_refused(self):
        Y, D, X = ragged_data(0)
        self.check(KSVD(schedule=[[3], [0, 5], [4]]), Y, D, X)  # no signal uses 0 and 5
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
        sweep = CompiledSweep(UpdateWorkspace(Y, D, X, Threads(1)))
        assert sweep.update(np.array([2, 1, 3]), 0.0, power=False) == 1
        self.check(KSVD(), Y, D, X)

    @pytest.mark.parametrize("mu", [0.0, 0.1])
    @pytest.mark.parametrize("n", [2, 8])
    def test_after_a_tie_the_residual_is_that_of_the_new_atom(self, n, mu):
        Y, D, X = tied_data(n)
        workspace = UpdateWorkspace(Y, D, X, Threads(1))
        sweep, run, order = CompiledSweep(workspace), KSVD(mu=mu).as_simco().begin(), np.array([1, 2, 3])

        def error():
            expected = Y - workspace.dictionary @ workspace.codes()
            return np.abs(sweep._residual.T - expected).max() / np.abs(Y).max()

        assert sweep.update(order, mu, power=False) == 0
        run.move(workspace, order[:1], mu)
        assert error() > 0.1  # the atom and its codes have moved
        sweep.refresh(1)
        assert error() < 1e-14
        assert sweep.update(order[1:], mu, power=False) == 2
        assert error() < 1e-14
        # The sweep as a whole: atoms 2 and 3 share all signals with atom 1.
        self.check(KSVD(mu=mu, schedule=[[1], [2], [3]]), Y, D, X)

    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_zero_signals_leave_the_atoms_as_they_are(self, method):
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


def tied_data(n):
    """Atoms 2 and 3 leave n orthogonal signals of the same length to atom 1: every combination is as good."""
    rng = np.random.default_rng(3)
    X = np.zeros((D_, n))
    X[1:4] = rng.standard_normal((3, n))
    D = unit(M, D_, rng)
    Y = np.eye(M)[:, :n] + D[:, 2:4] @ X[2:4]
    return Y, D, scipy.sparse.csc_array(X)


class TestKSVD:
    @pytest.mark.parametrize("order", ["natural", "random", "usage"])
    @pytest.mark.parametrize("method", ["svd", "power"])
    def test_no_sweep_raises_the_objective(self, method, order):
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
