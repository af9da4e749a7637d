"""A claim holds for a table that shows it, and does not hold for one that does not."""

import numpy as np
from small_studies import columns, with_methods_swapped

from manifold_dl.experiments import fig1, fig2, fig4, recovery, solvers, table1, theorem1
from manifold_dl.experiments.methods import PAPER, TRUTH


class TestClaims:
    """A claim holds for a table that shows it, and does not for one that does not."""

    def test_figure_2(self):
        rng = np.random.default_rng(0)
        level = {"MOD": 0.2, "K-SVD": 0.2, "primitive SimCO": 0.4, "regularized SimCO": 0.1}
        rows = [(m, n, e + 0.01 * rng.random()) for n in (60, 80) for m, e in level.items() for _ in range(6)]
        table = columns(*rows, names="method n error")
        assert [claim.holds for claim in fig2.claims(table)] == [True, True]
        swapped = with_methods_swapped(table, "primitive SimCO", "regularized SimCO")
        assert [claim.holds for claim in fig2.claims(swapped)] == [False, False]

    def test_figure_2_is_undecided_if_one_draw_decides(self):
        # All methods are exact except for a single draw in which K-SVD fails.
        rows = [(m, 60, 0.5 if (m, t) == ("K-SVD", 0) else 0.0) for m in PAPER for t in range(20)]
        claim = fig2.claims(columns(*rows, names="method n error"))[0]
        assert "undecided at n = 60" in claim.measured
        assert not claim.holds

    def test_figure_2_does_not_compare_with_the_true_dictionary(self):
        level = {"MOD": 0.2, "K-SVD": 0.2, "primitive SimCO": 0.4, "regularized SimCO": 0.1, TRUTH: 0.9}
        rows = [(m, 60, e + 0.001 * t) for m, e in level.items() for t in range(4)]
        assert fig2.claims(columns(*rows, names="method n error"))[1].holds

    def test_figure_1(self):
        rows = [
            (method, 3, t, 50.0 if t == 0 else 4.0, kappa)
            for method, kappa in zip(PAPER, (100.0, 80.0, 200.0, 4.0), strict=True)
            for t in range(101)
        ]
        table = columns(*rows, names="method draw iteration gradient kappa")
        assert all(claim.holds for claim in fig1.claims(table))
        well = {**table, "kappa": np.full(len(rows), 4.0)}
        assert not any(claim.holds for claim in fig1.claims(well))
        converged = {**table, "gradient": np.where(table["iteration"] == 0, 50.0, 1e-9)}
        assert not fig1.claims(converged)[0].holds

    def test_figure_4(self):
        level = {fig4.NOISY: 20.0, fig4.START: 29.0, "MOD": 29.1, "K-SVD": 29.1, "primitive SimCO": 29.1}
        rows = [
            (m, t, e + 0.01 * t) for m, e in {**level, "regularized SimCO": 29.3}.items() for t in range(4)
        ]
        table = columns(*rows, names="method trial psnr")
        assert [claim.holds for claim in fig4.claims(table)] == [True, True, True]
        swapped = with_methods_swapped(table, "regularized SimCO", fig4.START)
        assert [claim.holds for claim in fig4.claims(swapped)] == [True, False, False]

    def test_theorem_1(self):
        rows = [(0, 0, 60.0, 30.0, 0), (0, 1, 0.5, 89.5, 0), (1, 0, 90.0, 0.0, 1), (1, 1, 90.0, 1e-9, 1)]
        table = columns(*rows, names="start step theta from_bad_set in_bad_set")
        assert all(claim.holds for claim in theorem1.claims(table))
        rows[1], rows[3] = (0, 1, 70.0, 20.0, 0), (1, 1, 90.0, 1e-5, 1)
        table = columns(*rows, names="start step theta from_bad_set in_bad_set")
        assert not any(claim.holds for claim in theorem1.claims(table))

    def test_table_1(self):
        ratio = {"MOD": 1.0, "K-SVD": 8.0, "primitive SimCO": 2.0, "regularized SimCO": 2.0}
        rows = [("fig3", m, t, r * (1 + 0.1 * t)) for m, r in ratio.items() for t in range(2)]
        table = columns(*rows, names="figure method turn ratio")
        assert all(claim.holds for claim in table1.claims(table))
        swapped = with_methods_swapped(table, "K-SVD", "MOD")
        assert not table1.claims(swapped)[0].holds

    def test_solvers(self):
        rows = [("small", name, t, 10.0**-t) for name in solvers.LOOKS for t in range(10)]
        slow = columns(*rows, names="problem solver iteration gap")
        assert not solvers.claims(slow)[0].holds  # all take the same number of iterations
        quick = slow["solver"] == "trust region"
        table = {**slow, "gap": np.where(quick, slow["gap"] ** 2, slow["gap"])}
        assert solvers.claims(table)[0].holds
        alone = {key: column[quick] for key, column in table.items()}
        assert not solvers.claims(alone)[0].holds  # no other solver to compare with

    def test_recovery(self):
        methods = [*PAPER, "SimCO, trust region", "SimCO, trust region, up to 3 starts"]
        rows = [
            (8, 12, 2, n, 12, method, int(n > 30 or method not in PAPER), 1.0)
            for method in methods
            for n in (16, 20, 40)
            for _ in range(5)
        ]
        names = "m d sparsity n determined method success recovered"
        assert all(claim.holds for claim in recovery.claims(columns(*rows, names=names)))
        fails = [row if row[3] > 16 else (*row[:6], 0, 0.5) for row in rows]
        few, several, atoms, fewer = recovery.claims(columns(*fails, names=names))
        assert not few.holds and not several.holds and atoms.holds and fewer.holds
        other = [(*row[:7], 0.5) for row in rows]  # exact fits by other dictionaries
        assert not recovery.claims(columns(*other, names=names))[2].holds
