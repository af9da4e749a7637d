"""What SimCO, K-SVD and MOD have in common: units, precision, copies, equality, refusals."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from pymanopt.manifolds import Euclidean
from pymanopt.optimizers import SteepestDescent, TrustRegions
from update_cases import (
    D_,
    M,
    assert_unit,
    objective,
    problem_data,
    searches_of,
)

from manifold_dl.line_search import GoldenSection
from manifold_dl.manifolds import Spheres
from manifold_dl.optimizers import LBFGS, LeadingSingularVector
from manifold_dl.regularizers import Coherence
from manifold_dl.schedules import Blocks, OneAtATime
from manifold_dl.updates import KSVD, MOD, SimCO

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
    def test_the_codes_scale_with_the_signals(self, rule, factor):
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

    def test_results_have_the_precision_of_the_signals(self, rule):
        Y, D, X = problem_data()
        D_new, X_new = rule(Y.astype(np.float32), D, X, rng=0)
        assert D_new.dtype == X_new.dtype == np.float32

    def test_copies_and_pickles_are_equal_rules(self, rule):
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

    def test_an_update_does_not_change_its_rule(self):
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

    def test_the_field_is_the_very_optimizer_that_was_given(self):
        optimizer = TrustRegions(max_iterations=2)
        assert SimCO(optimizer).optimizer is optimizer


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "error", "sentence"),
        [
            ({"codes": "free"}, ValueError, "codes='free': codes 'follow' the dictionary on their supports"),
            ({"optimizer": TrustRegions}, TypeError, r"pass a Pymanopt optimizer, such as TrustRegions\(\)"),
            ({"optimizer": 5}, TypeError, "optimizer=5: pass a Pymanopt optimizer"),
            ({"manifold": Spheres(M, D_)}, TypeError, "pass the class Spheres, or a function"),
            ({"manifold": 5}, TypeError, "pass a factory"),
            ({"regularizers": Coherence(0.1)}, TypeError, "pass a list of them"),
            ({"threads": 0}, ValueError, "threads=0"),
        ],
    )
    def test_invalid_settings_are_refused_at_construction(self, settings, error, sentence):
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
