"""The objective with ℓ₁ codes in plain NumPy: written to be read, not to be fast.

    f(D) = Σ_j min_x ½‖y_j − Dx‖² + α‖x‖₁ + (μ/2)‖x‖²

`problem/lasso_codes.py` calls these through `kernels.reduced`; `lasso.py` holds the same functions compiled.
"""

import numpy as np

from manifold_dl.kernels.coding import reference as coding
from manifold_dl.kernels.coding.interface import LassoSettings, PreparedDictionary, StartingCodes
from manifold_dl.kernels.reduced.reference import code_energies
from manifold_dl.kernels.reduced.structures import InnerFit
from manifold_dl.kernels.status import OK

TOLERANCE = 1e-9


def prepare_lasso(atoms: np.ndarray, mu: float) -> PreparedDictionary:
    """What a pass needs of the atoms (k×m) alone, computed once per dictionary."""
    return coding.prepare(atoms)


def fit_lasso(
    signals: np.ndarray,
    dictionary: PreparedDictionary,
    alpha: float,
    mu: float,
    start: StartingCodes | None = None,
) -> InnerFit:
    """Solve for the codes; value and gradient of f, where the codes follow by the envelope theorem.

    The elastic net is a lasso: ½‖y − Dx‖² + (μ/2)‖x‖² = ½‖(y, 0) − (D, √μ I)x‖². `start` holds the codes of
    the last dictionary, from which the compiled kernel begins.
    """
    atoms, (n, k) = dictionary.atoms, (len(signals), len(dictionary.atoms))
    longer_atoms = np.hstack([atoms, np.sqrt(mu) * np.eye(k, dtype=atoms.dtype)]) if mu > 0 else atoms
    longer_signals = np.hstack([signals, np.zeros((n, k), signals.dtype)]) if mu > 0 else signals
    settings = LassoSettings(np.array([alpha]), relative=False, tol=TOLERANCE, refit=0)
    counts, padded_indices, padded_values = coding.lasso(
        coding.prepare(longer_atoms), longer_signals, settings
    )
    used = np.arange(padded_indices.shape[1]) < counts[:, None]
    indices, x = padded_indices[used], padded_values[used]
    X = np.zeros((n, k), signals.dtype)  # the codes in rows
    X[np.repeat(np.arange(n), counts), indices] = x
    R = signals - X @ atoms
    value = np.sum(R**2, dtype=float) / 2 + alpha * np.sum(np.abs(x), dtype=float)
    value += mu / 2 * np.sum(x**2, dtype=float)
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    codes = StartingCodes(indptr, indices.astype(np.int32), x)
    return InnerFit(float(value), -X.T @ R, code_energies(indices, x, k), codes, OK)
