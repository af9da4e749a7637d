"""Settings that measured best, by purpose: keyword arguments for `learn_dictionary` and `images.denoise`.

A preset is a Python dictionary: print it, change an entry, pass it on.
"""

from typing import Any

from pymanopt.optimizers import SteepestDescent

from manifold_dl.coders import OMP, BestOf, RmsLasso
from manifold_dl.line_search import GoldenSection
from manifold_dl.updates import AtomSearch, SimCO


def recover(sparsity: int) -> dict[str, Any]:
    """Find the dictionary that signals were made of, from as few signals as possible.

    Descent with ℓ₁ codes, which needs no supports, with exchanges of atoms for as long as they help
    (`AtomSearch`); then SimCO on supports of the size that is known, each found by the better of OMP and the
    largest entries of an ℓ₁ code. ``manifold-dl reproduce hidden`` compares it with the others.

    Parameters
    ----------
    sparsity : int
        The number of atoms in a signal.

    Returns
    -------
    dict
        Keyword arguments for `learn_dictionary`, without `rng` and `threads`.

    Examples
    --------
    >>> from manifold_dl import learn_dictionary, metrics
    >>> from manifold_dl.datasets import synthetic
    >>> D, X, Y = synthetic(8, 12, 150, sparsity=2, rng=0)
    >>> result = learn_dictionary(Y, 12, **recover(sparsity=2), rng=0)
    >>> metrics.recovery(result.dictionary, D)
    1.0
    """
    return {
        "coder": BestOf([RmsLasso(alpha=0.025, sparsity=sparsity), OMP(sparsity=sparsity)]),
        "update": AtomSearch(),
        "init": "random",
        "replace": None,
        "max_iter": 50,
        "tol": 1e-6,
    }


def embeddings(sparsity: int) -> dict[str, Any]:
    """Learn thousands of atoms for long signals, such as embeddings of 768 entries.

    OMP and a default update of `SimCO`, which is as fast as OMP for any number of atoms: signals form the
    inner products of their own supports, and neither time nor memory grows with the square of the number of
    atoms. An iteration of ``python benchmarks/embeddings.py`` shows it beside K-SVD and MOD. Give the signals
    as float32, which is twice as fast, and centred: a direction that all of them share would take up an atom
    of every support. Where memory is short, ``update=SimCO(schedule=Blocks(512))`` takes less of it, for a
    higher error. `ManifoldDictionaryLearning` takes the same coder and update, and `sparse_output=True`.

    Parameters
    ----------
    sparsity : int
        The number of atoms in a signal.

    Returns
    -------
    dict
        Keyword arguments for `learn_dictionary`, without `rng` and `threads`.

    Examples
    --------
    >>> from manifold_dl import learn_dictionary
    >>> from manifold_dl.datasets import synthetic
    >>> Y = synthetic(24, 160, 500, sparsity=3, rng=0).signals
    >>> result = learn_dictionary(Y, 160, **embeddings(sparsity=3), rng=0)
    >>> bool(result.explained > 0.8)
    True
    """
    return {
        "coder": OMP(sparsity=sparsity),
        "update": SimCO(),
        "init": "data",
        "max_iter": 10,
        "tol": 1e-3,
    }


def images(purpose: str = "best") -> dict[str, Any]:
    """Clean a picture.

    Parameters
    ----------
    purpose : "best", "quick" or "paper"
        The most decibel; a fifth of the time, for about a decibel less; or the regularized SimCO of
        the paper's Section VI-C: 1,000 patches, ten iterations, one golden-section step each, μ = 0.05.

    Returns
    -------
    dict
        Keyword arguments for `images.denoise`.

    Examples
    --------
    >>> import numpy as np
    >>> from manifold_dl.images import denoise
    >>> clean = np.add.outer(np.arange(40), np.arange(40)) % 16 / 16
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> cleaned = denoise(noisy, sigma=0.1, n_atoms=64, **images("quick")).image
    >>> bool(np.std(cleaned - clean) < 0.6 * np.std(noisy - clean))
    True
    """
    if purpose == "best":
        return {"n_patches": 40_000, "max_iter": 4, "stride": 2}
    if purpose == "quick":
        return {"n_patches": 5_000, "max_iter": 5, "stride": 2, "refine": None}
    if purpose == "paper":
        optimizer = SteepestDescent(line_searcher=GoldenSection(), max_iterations=1, verbosity=0)
        update = SimCO(optimizer=optimizer, mu=0.05)
        return {"n_patches": 1_000, "max_iter": 10, "stride": 1, "update": update, "refine": None}
    raise ValueError(f"purpose={purpose!r}: pictures are cleaned for 'best', 'quick' or as in the 'paper'.")
