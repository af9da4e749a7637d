"""Figure 3, in a few seconds."""

from small_studies import measured

from manifold_dl import experiments
from manifold_dl.experiments.tables import means


def test_ridge_improves_learning_with_omp():
    study = experiments.find("fig3")
    parameters = {**study.parameters(quick=True), "signals": [500], "trials": 3}
    table = measured(study, parameters)
    # In the full run regularized SimCO finds 17 % of the atoms at n = 500, MOD and K-SVD 1 %, and it leaves
    # three quarters of their error.
    for column, sign in (("recovered", 1), ("error", -1)):
        values = {method: sign * of_n[500] for method, of_n in means(table, column).items()}
        assert values["regularized SimCO"] > max(values["MOD"], values["K-SVD"], values["primitive SimCO"])
