"""Signals to learn from. `synthetic` draws those of the paper's Section VI-B."""

from typing import NamedTuple

import numpy as np
import scipy.sparse


class Synthetic(NamedTuple):
    """A dictionary, codes and the signals made of them."""

    dictionary: np.ndarray  # m×d
    codes: scipy.sparse.csc_array  # d×n
    signals: np.ndarray  # m×n


def synthetic(m, d, n, sparsity, snr_db=None, rng=None):
    """Y = D X with uniformly distributed unit atoms and exactly S Gaussian codes a signal.

    Parameters
    ----------
    m, d, n : int
        Length of the signals, number of atoms, number of signals.
    sparsity : int
        S, the number of atoms in a signal, drawn uniformly without repetition.
    snr_db : float, optional
        Add white Gaussian noise at this ratio ‖D X‖² / E‖noise‖², in decibel.
    rng : Generator or int, optional

    Returns
    -------
    dictionary, codes, signals
        m×d, sparse d×n and m×n.

    Examples
    --------
    >>> D, X, Y = synthetic(16, 32, 100, sparsity=4, rng=0)
    >>> D.shape, X.shape, Y.shape, X.nnz
    ((16, 32), (32, 100), (16, 100), 400)
    >>> bool(np.allclose(Y, D @ X))
    True
    """
    for name, size in (("m", m), ("d", d), ("n", n), ("sparsity", sparsity)):
        if size != int(size) or size < 1:
            raise ValueError(f"{name}={size}: give a whole number of at least 1.")
    if sparsity > d:
        raise ValueError(f"sparsity={sparsity} exceeds the number of atoms d={d}.")
    rng = np.random.default_rng(rng)
    D = rng.standard_normal((m, d))
    D /= np.linalg.norm(D, axis=0)
    # The S smallest of d random numbers stand at a uniformly distributed set of places.
    places = np.sort(np.argpartition(rng.random((n, d)), sparsity - 1, axis=1)[:, :sparsity], axis=1)
    values = rng.standard_normal((n, sparsity))
    structure = (values.ravel(), places.ravel().astype(np.int32), np.arange(0, n * sparsity + 1, sparsity))
    X = scipy.sparse.csc_array(structure, shape=(d, n))
    Y = D @ X
    if snr_db is not None:
        noise = rng.standard_normal(Y.shape)
        Y = Y + noise * np.linalg.norm(Y) / np.sqrt(Y.size) * 10 ** (-snr_db / 20)
    return Synthetic(D, X, Y)
