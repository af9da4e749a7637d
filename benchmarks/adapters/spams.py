"""SPAMS (Mairal et al., 2010): online learning with OMP (mode 3) or ℓ₁ codes (modes 1 and 2).

Batches of 512 signals, its default; of 16 for recovery, the best of 16, 32, 64 and 512 there.
"""

import numpy as np
import spams

DISTRIBUTION, DTYPES = "spams-bin", ("float64", "float32")


def train(problem, mode, penalties, passes=None, batch=512):
    D = problem.start
    iterations = -(-(passes or problem.passes) * problem.signals.shape[1] // batch)
    for penalty in penalties:
        settings = {"mode": mode, "lambda1": penalty, "batchsize": batch, "iter": iterations}
        D = spams.trainDL(problem.signals, D=D.copy(order="F"), numThreads=1, verbose=False, **settings)
    return D


def annealed(problem):
    last = 0.05 if problem.noisy else 0.02
    return train(problem, 2, np.geomspace(0.3, last, 5), passes=100, batch=16)


def lasso(problem):
    return spams.lasso(problem.signals, problem.dictionary, mode=2, lambda1=problem.alpha, numThreads=1)


def omp(problem):
    eps = 0.0 if problem.tol is None else problem.tol
    return spams.omp(problem.signals, problem.dictionary, L=problem.sparsity, eps=eps, numThreads=1)


RECOVERY = {
    "SPAMS, OMP": lambda problem: train(problem, 3, [problem.sparsity], passes=100, batch=16),
    "SPAMS, ℓ₁": lambda problem: train(problem, 2, [0.2], passes=100, batch=16),
    "SPAMS, ℓ₁, annealed": annealed,
}
PATCHES = {
    "SPAMS, OMP": lambda problem: train(problem, 3, [problem.sparsity]),
    # The penalty: half the norm of a typical signal over √(its length).
    "SPAMS, ℓ₁": lambda problem: train(problem, 2, [_typical(problem.signals)]),
}
SCALING = {"SPAMS, OMP": PATCHES["SPAMS, OMP"]}
DENOISING = {
    "SPAMS, OMP": lambda problem: train(problem, 4, [problem.tol]),
    "SPAMS, ℓ₁": lambda problem: train(problem, 1, [problem.tol]),
}
CODING = {
    "sparsity": {"SPAMS, omp": omp},
    "error": {"SPAMS, omp": omp},
    "lasso": {"SPAMS, lasso": lasso},
}


def _typical(signals):
    return float(np.sqrt(np.mean(signals[:, :5_000] ** 2)))
