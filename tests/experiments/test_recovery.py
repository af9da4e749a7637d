"""The recovery experiment, in a few seconds, and the atoms that signals determine."""

import matplotlib.figure
import pytest
from small_studies import measured

from manifold_dl import experiments
from manifold_dl.datasets import synthetic
from manifold_dl.experiments import recovery
from manifold_dl.experiments.identifiability import counting_bound, determined_atoms
from manifold_dl.experiments.tables import select


class TestRecovery:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls):
        study = experiments.find("recovery")
        parameters = {
            **study.parameters(quick=True),
            "shapes": [[8, 12, 2]],
            "signals": [[18, 60]],
            "trials": 3,
        }
        return measured(study, parameters)

    def test_the_trust_region_recovers_near_the_bound_where_the_papers_methods_fail(self, table):
        assert counting_bound(8, 12, 2) == 14
        near = select(table, n=18)
        rates = {method: select(near, method=method)["success"].mean() for method in set(near["method"])}
        assert rates["SimCO, trust region, up to 3 starts"] == 1
        assert rates["MOD"] == rates["K-SVD"] == rates["primitive SimCO"] == 0

    def test_exact_fit_recovers_a_determined_dictionary(self, table):
        # As far as the signals determine it, which 60 of these do and 18 do not always.
        found = select(table, n=60, success=1)
        assert len(found["recovered"])
        assert (found["determined"] == 12).all()
        assert (found["recovered"] == 1).all()

    def test_atom_used_only_beside_another_is_not_determined(self):
        D, X, _ = synthetic(6, 8, 80, sparsity=3, rng=1)
        X = X.toarray()
        assert determined_atoms(D, X).all()
        X[1] *= X[0] != 0  # atom 1 only beside atom 0: a multiple of 0 can be added to it
        determined = determined_atoms(D, X)
        assert not determined[1]
        assert determined[[0, *range(2, 8)]].all()

    def test_more_starts_never_increase_the_error(self, table):
        once = select(table, method="SimCO, trust region")
        again = select(table, method="SimCO, trust region, up to 3 starts")
        assert (again["error"] <= once["error"]).all()
        assert (again["starts"][once["success"] == 1] == 1).all()

    def test_figure_shows_the_counting_bound(self, table):
        figure = recovery.draw(table)
        assert any("14" in text.get_text() for text in figure.axes[0].texts)
        matplotlib.pyplot.close(figure)
