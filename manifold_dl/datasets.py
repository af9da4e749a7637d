"""Signals for experiments. `synthetic` draws those of the paper's Section VI-B."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._validation import require_count


class Synthetic(NamedTuple):
    """A dictionary, codes and the signals made of them.

    Attributes
    ----------
    dictionary : array (m×d)
        Unit atoms in the columns.
    codes : sparse array (d×n)
        S non-zeros in every column.
    signals : array (m×n)
        Dictionary times codes, plus noise.
    """

    dictionary: np.ndarray
    codes: scipy.sparse.csc_array
    signals: np.ndarray


def synthetic(
    m: int,
    d: int,
    n: int,
    sparsity: int,
    snr_db: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> Synthetic:
    """Draw Y = D X with uniformly distributed unit atoms and exactly S Gaussian coefficients per signal.

    Parameters
    ----------
    m, d, n : int
        Length of the signals, number of atoms, number of signals.
    sparsity : int
        S, the number of atoms per signal, drawn uniformly without repetition.
    snr_db : float, optional
        Add white Gaussian noise at this ratio ‖D X‖² / E‖noise‖², in decibel.
    rng : Generator or int, optional
        The random generator, or a seed for one.

    Returns
    -------
    Synthetic
        The dictionary (m×d), the codes (sparse, d×n) and the signals (m×n), a named tuple.

    Examples
    --------
    >>> D, X, Y = synthetic(16, 32, 100, sparsity=4, rng=0)
    >>> D.shape, X.shape, Y.shape, X.nnz
    ((16, 32), (32, 100), (16, 100), 400)
    >>> bool(np.allclose(Y, D @ X))
    True
    """
    for name, size in (("m", m), ("d", d), ("n", n), ("sparsity", sparsity)):
        require_count(name, size)
    if sparsity > d:
        raise ValueError(f"sparsity={sparsity} exceeds the number of atoms d={d}.")
    rng = np.random.default_rng(rng)
    D = rng.standard_normal((m, d))
    D /= np.linalg.norm(D, axis=0)
    # The positions of the S smallest of d random numbers are a uniformly distributed set.
    places = np.sort(np.argpartition(rng.random((n, d)), sparsity - 1, axis=1)[:, :sparsity], axis=1)
    values = rng.standard_normal((n, sparsity))
    structure = (values.ravel(), places.ravel().astype(np.int32), np.arange(0, n * sparsity + 1, sparsity))
    X = scipy.sparse.csc_array(structure, shape=(d, n))
    Y = D @ X
    if snr_db is not None:
        noise = rng.standard_normal(Y.shape)
        # Not by BLAS: its order of summation depends on the number of its threads.
        norm = np.sqrt(np.einsum("ij,ij->", Y, Y))
        Y = Y + noise * norm / np.sqrt(Y.size) * 10 ** (-snr_db / 20)
    return Synthetic(D, X, Y)
