"""The compiled kernels: where they are stored, and the runs that compile all of them.

Numba compiles a kernel for the types of its arguments at the first call and stores the machine code in a
folder. `runs` are small calls of the public functions that together call every kernel, in double and single
precision. Used by ``manifold-dl warm-up`` and ``manifold-dl info``.
"""

import os.path
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import numpy as np

Run = Callable[[], Any]


def cache_folder() -> str:
    """Return the folder that holds the compiled kernels, in subfolders.

    Returns
    -------
    str
        A path, or a sentence if Numba is not installed or nothing can be stored.
    """
    folders = {kernel.stats.cache_path for kernel in kernels()}
    if None in folders:
        return "none that can be used: every process compiles for itself; set NUMBA_CACHE_DIR"
    return os.path.commonpath(folders) if folders else "plain NumPy: Numba is not installed"


def kernels() -> list[Any]:
    """Return all functions of `manifold_dl.kernels` that Numba compiles; none if it is not installed.

    Returns
    -------
    list of Numba dispatchers
    """
    from manifold_dl import kernels as package
    from manifold_dl.kernels.backend import NUMBA_INSTALLED

    if not NUMBA_INSTALLED:
        return []
    from numba.extending import is_jitted

    modules = [
        import_module(module.name) for module in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    found = {id(value): value for module in modules for value in vars(module).values() if is_jitted(value)}
    return list(found.values())


@contextmanager
def counting_compilations() -> Iterator[list[str]]:
    """Collect the names of the kernels of this package that Numba compiles in the block.

    Yields
    ------
    list of str
        One entry for each compilation; kernels that are read from the cache are not listed.
    """
    from numba.core import event

    names: list[str] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if (function.__module__ or "").startswith("manifold_dl."):  # code made by exec has no module
                names.append(function.__qualname__)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield names


def runs() -> dict[str, Run]:
    """Return the runs that compile every kernel, by what they are.

    Returns
    -------
    dict of str → callable without arguments
    """
    found: dict[str, Run] = {}
    for dtype in (np.float64, np.float32):
        precision = np.dtype(dtype).name
        for name, run in {**_updates(dtype), **_learning(dtype), **_coders(dtype)}.items():
            found[f"{name}, {precision}"] = run
    return found


def _data(dtype: type) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return a dictionary, codes and signals: small, because the time is that of compilation."""
    from manifold_dl.datasets import synthetic

    D, X, Y = synthetic(9, 12, 60, sparsity=2, snr_db=20, rng=0)
    return D.astype(dtype), X.astype(dtype), Y.astype(dtype)


def _updates(dtype: type) -> dict[str, Run]:
    """Return dictionary updates: all atoms and blocks, both line searches, and the Hessian."""
    from pymanopt.optimizers import SteepestDescent, TrustRegions

    import manifold_dl as mdl

    D, X, Y = _data(dtype)
    golden = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1, verbosity=0)
    rules: dict[str, Any] = {
        "SimCO": mdl.SimCO(mu=0.1),
        "SimCO, golden section": mdl.SimCO(golden),
        "SimCO, blocks of atoms": mdl.SimCO(schedule=mdl.schedules.Blocks(5)),
        "SimCO, another manifold": mdl.SimCO(manifold=mdl.manifolds.ZeroMean),
        "SimCO, regularizer": mdl.SimCO(regularizers=[mdl.regularizers.Coherence(0.1)]),
        "SimCO, fixed codes": mdl.SimCO(codes="fixed"),
        "K-SVD": mdl.KSVD(),
        "MOD": mdl.MOD(),
    }

    def trust_region() -> None:
        problem = mdl.update_problem(Y, X, mu=0.1)
        start = problem.manifold.random_point(rng=1).astype(dtype)
        problem.codes(TrustRegions(max_iterations=3, verbosity=0).run(problem, initial_point=start).point)

    def weighted() -> None:
        weights: np.ndarray = (np.arange(Y.size).reshape(Y.shape) % 3 > 0).astype(dtype)
        for name in ("SimCO", "SimCO, golden section", "SimCO, fixed codes"):
            rules[name](Y, D, X, weights=weights)
        mdl.SimCO(codes=mdl.Lasso(alpha=0.2))(Y, D, X, weights=weights)
        problem = mdl.update_problem(Y, X, mu=0.1, weights=weights)
        problem.euclidean_hessian(D, D)

    def long_signals() -> None:
        # One atom of 65 entries, used by 70 signals: shorter ones need fewer functions.
        codes: np.ndarray = np.ones((1, 70), dtype)
        mdl.KSVD()(np.eye(65, 70, dtype=dtype), np.eye(65, 1, dtype=dtype), codes)

    others = {
        "trust region": trust_region,
        "weights of entries": weighted,
        "K-SVD, long signals": long_signals,
    }
    return {name: partial(rule, Y, D, X) for name, rule in rules.items()} | others


def _learning(dtype: type) -> dict[str, Run]:
    """Return the learning loop, the preset, the estimator and denoising."""
    import manifold_dl as mdl

    Y = _data(dtype)[2]
    coder = mdl.OMP(sparsity=2)
    preset = {**mdl.presets.recover(2), "max_iter": 12}
    rows = np.ascontiguousarray(Y.T)
    estimator = mdl.ManifoldDictionaryLearning(n_components=12, coder=coder, max_iter=2, random_state=0)
    picture: np.ndarray = 255 * np.random.default_rng(0).random((24, 24)).astype(dtype)
    small: dict[str, Any] = {"patch_size": 4, "n_atoms": 20, "n_patches": 100, "max_iter": 2, "rng": 0}
    return {
        "learning": partial(mdl.learn_dictionary, Y, 12, coder=coder, max_iter=2, rng=0),
        "presets.recover": partial(mdl.learn_dictionary, Y, 12, rng=0, **preset),
        "estimator": lambda: estimator.fit(rows).transform(rows),
        "minibatches": lambda: estimator.partial_fit(rows).partial_fit(rows),
        "denoising": partial(mdl.images.denoise, picture, 25.0, **small),
    }


def _coders(dtype: type) -> dict[str, Run]:
    """Return every sparse coder, the pursuits with both stopping rules."""
    from manifold_dl import coders

    D, X, Y = _data(dtype)
    chosen = [
        *(pursuit(sparsity=2) for pursuit in (coders.OMP, coders.ForwardSelection, coders.MatchingPursuit)),
        *(pursuit(tol=0.5) for pursuit in (coders.OMP, coders.ForwardSelection, coders.MatchingPursuit)),
        *(pursuit(sparsity=2) for pursuit in (coders.GradientPursuit, coders.SubspacePursuit, coders.IHT)),
        coders.OMP(sparsity=2, nonnegative=True),
        coders.Lasso(0.2),
        coders.Lasso(0.2, sparsity=2, relative=True),
        coders.BasisPursuit(),
        coders.FOCUSS(sparsity=2),
        coders.FixedSupport(X),
    ]
    by_class: dict[str, list[Any]] = {}
    for coder in chosen:
        by_class.setdefault(type(coder).__name__, []).append(coder)
    runs: dict[str, Run] = {name: partial(_encode_with_all, found, Y, D) for name, found in by_class.items()}
    # Of two atoms this close, the second brings the kernels to their checks of rank.
    close = D[:, [0, 0]] + [0, 20 * np.sqrt(np.finfo(dtype).eps)] * D[:, [0, 1]]
    close = (close / np.linalg.norm(close, axis=0)).astype(dtype)
    for name in ("OMP", "ForwardSelection"):
        runs[f"{name}, dependent atoms"] = partial(_encode_with_all, by_class[name], Y, close)
    return runs


def _encode_with_all(coders: list[Any], signals: np.ndarray, dictionary: np.ndarray) -> None:
    """Code signals by each coder, also with weights of entries, which have kernels of their own."""
    weights = (np.arange(signals.size).reshape(signals.shape) % 3 > 0).astype(signals.dtype)
    for coder in coders:
        coder.encode(signals, dictionary)
        coder.encode(signals, dictionary, weights=weights)
