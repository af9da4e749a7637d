"""The public calls as a user writes them, with the types that a type checker must see.

Nothing here is run: `tests/test_types.py` checks it with mypy. SciPy and Pymanopt ship no types, so the codes
(`csc_array`) and the optimizers are of any type.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from pymanopt.optimizers import SteepestDescent, TrustRegions
from scipy.sparse import csc_array

import manifold_dl as mdl


def signals() -> mdl.datasets.Synthetic:
    data = mdl.datasets.synthetic(16, 32, 500, sparsity=3, snr_db=20.0, rng=0)
    assert_type(data, mdl.datasets.Synthetic)
    assert_type(data.dictionary, np.ndarray)
    assert_type(data.signals, np.ndarray)
    return data


def one_problem(Y: np.ndarray, support: np.ndarray, start: np.ndarray) -> None:
    problem = mdl.update_problem(Y, support, manifold=mdl.manifolds.Spheres, mu=0.1)
    assert_type(problem, mdl.problem.SupportProblem)
    point = TrustRegions().run(problem, initial_point=start).point
    assert_type(problem.codes(point), csc_array)
    assert_type(problem.dictionary(point), np.ndarray)


def one_update(Y: np.ndarray, D: np.ndarray, X: csc_array) -> None:
    update = mdl.SimCO(
        optimizer=SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1),
        manifold=mdl.manifolds.Spheres,
        mu=[0.1, 0.01, 0.0],
        schedule=mdl.schedules.AllAtoms(),
        regularizers=[mdl.regularizers.Coherence(0.01)],
    )
    assert_type(update, mdl.SimCO)
    assert_type(update(Y, D, X), tuple[np.ndarray, csc_array])
    assert_type(mdl.KSVD()(Y, D, X), tuple[np.ndarray, csc_array])
    assert_type(mdl.MOD()(Y, D, X), tuple[np.ndarray, csc_array])


def the_loop(Y: np.ndarray, path: Path) -> None:
    result = mdl.learn_dictionary(
        Y, n_atoms=32, coder=mdl.OMP(sparsity=3), update=mdl.SimCO(), rng=0, callbacks=[mdl.Progress()]
    )
    assert_type(result, mdl.Result)
    assert_type(result.dictionary, np.ndarray)
    assert_type(result.codes, csc_array)
    assert_type(result.history, mdl.History)
    assert_type(result.reason, mdl.Reason)
    assert_type(result.explained, float)
    mdl.save(result, path)
    assert_type(mdl.load(path), Any)  # a Result or an estimator, by the file
    again = mdl.learn_dictionary(Y, 32, **mdl.presets.recover(sparsity=3), rng=0, threads=2)
    assert_type(again, mdl.Result)


def many_signals(Y: np.ndarray, path: Path) -> None:
    engine = mdl.engines.Dask(patience=5.0)
    batches = mdl.MiniBatches(size=2048, full=0.4)
    assert_type(mdl.learn_dictionary(path, 32, coder=mdl.OMP(sparsity=3), engine=engine), mdl.Result)
    result = mdl.learn_dictionary(
        Y,
        n_atoms=32,
        coder=mdl.OMP(sparsity=3),
        minibatches=batches,
        validation=Y[:, :100],
        weights=np.ones(500),
    )
    assert_type(result, mdl.Result)
    assert_type(mdl.engines.Threads(2, memory=2**20), mdl.engines.Threads)
    assert_type(batches.n_passes(10), int)


def l1_and_pictures(Y: np.ndarray, picture: np.ndarray, mask: np.ndarray) -> None:
    problem = mdl.lasso_problem(Y, n_atoms=32, alpha=0.1, weights=np.ones(Y.shape))
    assert_type(problem.codes(np.eye(16, 32)), csc_array)
    filled = mdl.images.inpaint(picture, mask, sigma=0.1)
    assert_type(filled, mdl.images.InpaintingResult)
    assert_type(filled.image, np.ndarray)
    clean = mdl.images.denoise(picture, refine=mdl.images.SimilarPatches())
    assert_type(clean.image, np.ndarray)


def the_estimator(rows: np.ndarray) -> None:
    model = mdl.ManifoldDictionaryLearning(n_components=32, coder=mdl.OMP(sparsity=3)).fit(rows)
    assert_type(model, mdl.ManifoldDictionaryLearning)
    assert_type(model.partial_fit(rows), mdl.ManifoldDictionaryLearning)
    assert_type(model.transform(rows), Any)  # dense, sparse or a Dask array, by settings and samples
    assert_type(model.inverse_transform(model.transform(rows)), np.ndarray)
    assert_type(model.score(rows), float)


def the_coders(Y: np.ndarray, D: np.ndarray) -> None:
    assert_type(mdl.OMP(sparsity=3).encode(Y, D), csc_array)
    assert_type(mdl.Lasso(alpha=0.1).encode(Y, D, threads=1), csc_array)


def the_measures(D: np.ndarray, true: np.ndarray) -> None:
    assert_type(mdl.metrics.recovery(D, true), float)
    assert_type(mdl.metrics.coherence(D), float)


class Thresholding:
    """A coder of one's own: the entries of Dᵀy above a threshold."""

    def encode(self, signals: np.ndarray, dictionary: np.ndarray) -> csc_array:
        products = dictionary.T @ signals
        return csc_array(np.where(np.abs(products) > 1, products, 0))


class Peaks:
    """A regularizer of one's own."""

    def value(self, dictionary: np.ndarray) -> float:
        return float(np.sum(dictionary**4))


class Pairs:
    """A schedule of one's own: two atoms at a time."""

    def subsets(self, n_atoms: int, rng: Any) -> Iterator[np.ndarray]:
        yield from np.split(np.arange(n_atoms), range(2, n_atoms, 2))


def until_good(step: mdl.Step) -> bool:
    """A callback of one's own."""
    return step.relative_loss is not None and step.relative_loss < 0.01


def parts_of_ones_own(Y: np.ndarray) -> None:
    """Plug-ins need no base class: plain objects with the right methods are accepted."""
    update = mdl.SimCO(schedule=Pairs(), regularizers=[Peaks()])
    result = mdl.learn_dictionary(Y, 32, coder=Thresholding(), update=update, callbacks=[until_good])
    assert_type(result, mdl.Result)
