"""Figure 3: dictionary learning with OMP as the sparse coder.

50 outer iterations of one inner iteration each, on 16×32 dictionaries and S = 4. The ridge of regularized
SimCO is 0.1 for the first 30 and 0 for the last 20. Unused atoms are not replaced: the paper's rules alone.
"""

import numpy as np

from manifold_dl.coders import OMP
from manifold_dl.experiments.fig2 import claims, draw, parts
from manifold_dl.experiments.methods import draw_signals, paper_methods
from manifold_dl.experiments.study import Parameters, Study
from manifold_dl.experiments.tables import Row
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.result import Reason
from manifold_dl.metrics import recovery

SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": [100, 200, 300, 500, 700, 1000, 1500, 2000],
    "iterations": 50,
    "iterations_with_ridge": 30,
    "ridge": 0.1,
    "trials": 50,
}
QUICK = {"signals": [200, 500, 1500], "trials": 6}


def two_step(parameters: Parameters) -> list[float]:
    """Return the ridges of the outer iterations: constant at first, then zero."""
    first, iterations = parameters["iterations_with_ridge"], parameters["iterations"]
    return [parameters["ridge"]] * first + [0.0] * (iterations - first)


def measure(parameters: Parameters, seed: int, n: int, trial: int) -> list[Row]:
    """Draw signals and a start, learn with the four methods from it, and measure the dictionaries."""
    m, d = parameters["shape"]
    sparsity = parameters["sparsity"]
    true, _, Y, start = draw_signals(m, d, n, sparsity, seed, n, trial)
    rows = []
    for method, update in paper_methods(two_step(parameters)).items():
        result = learn_dictionary(
            Y,
            d,
            coder=OMP(sparsity=sparsity),
            update=update,
            max_iter=parameters["iterations"],
            init=start,
            tol=0.0,
            replace=None,
            threads=1,
        )
        if result.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt
        # With the coder's codes: SimCO refits those of the last update, MOD does not.
        error = float(np.sum((Y - result.dictionary @ result.codes) ** 2) / n)
        rows.append(
            {
                "method": method,
                "n": n,
                "trial": trial,
                "error": error,
                "error_of_update": float(result.history.loss[-1]),
                "recovered": recovery(result.dictionary, true),
            }
        )
    return rows


fig3 = Study("fig3", "Dictionary learning with OMP", SETTING, QUICK, parts, measure, draw, claims)
