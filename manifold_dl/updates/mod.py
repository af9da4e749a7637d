"""Classic MOD: least squares for the whole dictionary with the codes fixed, then unit norms.

It ignores the norms and restores them afterwards. MOD on the spheres, which never leaves them, is
``SimCO(codes="fixed")``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from manifold_dl.engines import Engine
from manifold_dl.engines.threads import as_engine
from manifold_dl.updates.workspace import UpdateWorkspace


@dataclass(frozen=True)
class MOD:
    """The method of optimal directions: least squares for D with X fixed, then unit norms.

    The codes are rescaled so that D X stays what least squares made it. Atoms without users, and
    directions that the codes leave undetermined, stay as they were.

    Parameters
    ----------
    ridge : float
        Pulls D towards the old dictionary, in units of the mean energy of a row of X. It is what keeps
        the update stable where codes are nearly collinear; 0 is the classic rule.
    engine : Engine, optional
        Where the signals are and what runs the computation. By default that of the learning loop, or
        `engines.Threads()`.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])
    >>> Y = np.array([[0.6, 0.0], [0.8, 1.0]]) @ X
    >>> D, _ = MOD()(Y, np.eye(2), X)
    >>> print(np.abs(D).round(12))
    [[0.6 0. ]
     [0.8 1. ]]
    """

    ridge: float = 0.0
    engine: Engine | None = field(default=None, metadata={"stored": False})

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge={self.ridge}: the ridge must be finite and not negative.")

    def __call__(
        self, signals: Any, dictionary: Any, codes: Any, *, iteration: int | None = None, rng: Any = None
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """One update: (m×n, m×d, sparse d×n) → (dictionary, codes)."""
        workspace = UpdateWorkspace(signals, dictionary, codes, as_engine(engine=self.engine))
        workspace.normalize()
        old = workspace.dictionary
        gram, right = workspace.code_products()
        used = np.diagonal(gram) > 0
        if not used.any():
            return old, workspace.codes()
        # D + (Y − D X) Xᵀ (X Xᵀ)⁺: among all least-squares solutions the one nearest to the old D.
        D = old[:, used] + _solve_symmetric(gram[np.ix_(used, used)], right[used], self.ridge).T
        norms = np.linalg.norm(D, axis=0)
        # Where least squares gives a zero atom, rounding has no direction: the old one stays, with zero
        # codes.
        lost = norms <= 4 * np.sqrt(len(D)) * np.finfo(old.dtype).eps
        D[:, lost], norms[lost] = old[:, used][:, lost], 0
        old[:, used] = D / np.where(lost, 1, norms)
        scales = np.ones(len(gram))
        scales[used] = norms
        workspace.current.scale(scales.astype(old.dtype))
        return old, workspace.codes()


def _solve_symmetric(gram: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    """(G + ρI)⁻¹ B for a positive semi-definite G; the minimum-norm solution where G is singular."""
    n_rows = len(gram)
    G = gram + ridge * np.trace(gram) / n_rows * np.eye(n_rows)
    try:
        factor = scipy.linalg.cho_factor(G)
        pivots = np.diagonal(factor[0]) ** 2
        if pivots.min() > n_rows * np.finfo(float).eps * pivots.max():
            return scipy.linalg.cho_solve(factor, right)
    except np.linalg.LinAlgError:
        pass
    return scipy.linalg.pinvh(G) @ right
