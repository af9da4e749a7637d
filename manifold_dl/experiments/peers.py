"""Methods that learn without known supports: ours, those of the paper, scikit-learn and SPAMS.

Used by the study `hidden`. SPAMS is no dependency of the package: where it is not installed (extra `bench`),
its methods are left out, which the study reports.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from pymanopt.optimizers import ConjugateGradient

from manifold_dl import presets
from manifold_dl.coders import OMP
from manifold_dl.experiments.study import Parameters
from manifold_dl.learning import learn_dictionary
from manifold_dl.line_search import WolfeSearch
from manifold_dl.problem.lasso_problem import lasso_problem
from manifold_dl.updates import KSVD, MOD, SimCO

RECOVER = "presets.recover"
ANNEALED = "SPAMS, ℓ₁, annealed"

Method = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def peer_methods(parameters: Parameters, sparsity: int, annealing: list[float]) -> dict[str, Method]:
    """Return every method by name: a function of signals, initial dictionary and seed to a dictionary.

    Parameters
    ----------
    parameters : mapping
        Those of the study: ``iterations``, ``steps``, ``penalty`` and ``passes``.
    sparsity : int
        Atoms per signal, a parameter of the methods with OMP and of `presets.recover`.
    annealing : list of float
        The decreasing penalties of the annealed ℓ₁ methods.

    Returns
    -------
    dict of str → callable
        From the fewest atoms found to the most, roughly. Without SPAMS, if that is not installed.
    """
    iterations, penalty, passes = (parameters[name] for name in ("iterations", "penalty", "passes"))
    greedy = {"coder": OMP(sparsity=sparsity), "max_iter": iterations, "tol": 0.0}
    methods: dict[str, Method] = {
        "MOD": partial(learned, {**greedy, "update": MOD()}),
        "K-SVD": partial(learned, {**greedy, "update": KSVD()}),
        "SPAMS, OMP": partial(with_spams, 3, [sparsity], passes),
        "SimCO, our default": partial(learned, {**greedy, "update": SimCO()}),
        "scikit-learn": partial(with_sklearn, penalty, iterations),
        "SPAMS": partial(with_spams, 2, [penalty], passes),
        "lasso_problem": partial(with_lasso_problem, annealing, parameters["steps"]),
        ANNEALED: partial(with_spams, 2, annealing, passes),
        RECOVER: partial(learned, presets.recover(sparsity=sparsity)),
    }
    return {name: method for name, method in methods.items() if find_spec("spams") or "SPAMS" not in name}


def learned(settings: dict[str, Any], Y: np.ndarray, start: np.ndarray, seed: int) -> np.ndarray:
    """Learn with `learn_dictionary` on one thread; the start replaces that of the settings."""
    result = learn_dictionary(Y, start.shape[1], **{**settings, "init": start}, rng=seed, threads=1)
    return result.dictionary


def with_lasso_problem(
    penalties: list[float], steps: int, Y: np.ndarray, start: np.ndarray, seed: int
) -> np.ndarray:
    """Descend from one start by conjugate gradients, for one ℓ₁ penalty after the other."""
    D = start
    for alpha in penalties:
        problem = lasso_problem(Y, D.shape[1], alpha=alpha, threads=1)
        optimizer = ConjugateGradient(
            line_searcher=WolfeSearch(), max_iterations=steps + 1, max_time=np.inf, verbosity=0
        )
        D = optimizer.run(problem, initial_point=D).point
    return D


def with_sklearn(penalty: float, iterations: int, Y: np.ndarray, start: np.ndarray, seed: int) -> np.ndarray:
    """Learn with scikit-learn's `DictionaryLearning`, by coordinate descent and from its own start."""
    from sklearn.decomposition import DictionaryLearning

    model = DictionaryLearning(
        start.shape[1], alpha=penalty, max_iter=iterations, tol=0.0, fit_algorithm="cd", random_state=seed
    )
    return np.asarray(model.fit(Y.T).components_.T)


def with_spams(
    mode: int, penalties: list[float], passes: int, Y: np.ndarray, start: np.ndarray, seed: int
) -> np.ndarray:
    """Learn with SPAMS' online `trainDL`, for each penalty (mode 2) or sparsity (mode 3) in turn."""
    import spams

    batch, Y, D = 16, np.asfortranarray(Y), np.asfortranarray(start)
    settings = {"mode": mode, "batchsize": batch, "iter": passes * Y.shape[1] // batch, "numThreads": 1}
    for penalty in penalties:
        D = spams.trainDL(Y, D=np.asfortranarray(D), lambda1=penalty, verbose=False, **settings)
    return D / np.maximum(np.linalg.norm(D, axis=0), 1e-300)  # atoms may be shorter than 1, even zero
