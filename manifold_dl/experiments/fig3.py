"""Figure 3: dictionary learning with OMP in the loop.

50 outer iterations of one inner iteration each, on 16×32 dictionaries and S = 4. The ridge of regularized
SimCO is 0.1 for the first 30 and 0 for the last 20. Nothing replaces useless atoms: the paper's rules alone.
"""

import numpy as np

from manifold_dl.coders import OMP
from manifold_dl.experiments.fig2 import claims, draw, parts
from manifold_dl.experiments.methods import draw_signals, paper_methods
from manifold_dl.experiments.study import Study
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.result import Reason
from manifold_dl.metrics import recovery


def two_step(parameters):
    """The ridges of the outer iterations."""
    first, iterations = parameters["iterations_with_ridge"], parameters["iterations"]
    return [parameters["ridge"]] * first + [0.0] * (iterations - first)


def measure(parameters, seed, n, trial):
    """One draw of signals and start, and what the four methods learn from there."""
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
        # With the coder's codes: those that an update leaves behind are refitted by SimCO and not by MOD.
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


fig3 = Study(
    name="fig3",
    title="Dictionary learning with OMP",
    full={
        "shape": [16, 32],
        "sparsity": 4,
        "signals": [100, 200, 300, 500, 700, 1000, 1500, 2000],
        "iterations": 50,
        "iterations_with_ridge": 30,
        "ridge": 0.1,
        "trials": 50,
    },
    quick={"signals": [200, 500, 1500], "trials": 6},
    parts=parts,
    measure=measure,
    draw=draw,
    claims=claims,
)
