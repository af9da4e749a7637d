"""Classic MOD: least squares for the whole dictionary with the codes fixed, then unit norms.

It ignores the norms and restores them afterwards. MOD on the spheres, which never leaves them, is
``SimCO(codes="fixed")``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from manifold_dl.engines.threads import as_engine
from manifold_dl.kernels.reduced import code_energies
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

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge={self.ridge}: the ridge must be finite and not negative.")

    def __call__(
        self,
        signals: Any,
        dictionary: Any,
        codes: Any,
        *,
        iteration: int | None = None,
        rng: Any = None,
        weights: Any = None,
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """One update: (m×n, m×d, sparse d×n) → (dictionary, codes).

        `weights` are those of the signals (n of them) or of their entries (m×n). With weights of entries
        every row of D has normal equations of its own: the rule costs as much as m unweighted ones.
        """
        workspace = UpdateWorkspace(signals, dictionary, codes, as_engine(), weights)
        workspace.normalize()
        _require_squares(workspace.values)
        old, support = workspace.dictionary, workspace.support
        used = code_energies(support.indices, workspace.values, support.n_atoms) > 0
        if not used.any():
            return old, workspace.codes()
        # D + (Y − D X) Xᵀ (X Xᵀ)⁺: among all least-squares solutions the one nearest to the old D.
        if workspace.signals.weights is None:
            gram, right = workspace.code_products()
            D = old[:, used] + _solve_symmetric(gram[np.ix_(used, used)], right[used], self.ridge).T
        else:
            D = old[:, used] + _row_by_row(workspace, workspace.signals.weights, used, self.ridge)
        norms = np.linalg.norm(D, axis=0)
        # Where least squares gives a zero atom, rounding has no direction: the old one stays, with zero
        # codes.
        lost = norms <= 4 * np.sqrt(len(D)) * np.finfo(old.dtype).eps
        D[:, lost], norms[lost] = old[:, used][:, lost], 0
        old[:, used] = D / np.where(lost, 1, norms)
        scales = np.ones(support.n_atoms)
        scales[used] = norms
        workspace.own_values()[:] = workspace.values * scales[support.indices]
        return old, workspace.codes()


def _row_by_row(
    workspace: UpdateWorkspace, weights: np.ndarray, used: np.ndarray, ridge: float
) -> np.ndarray:
    """How D changes where entries have weights: row p of it solves X diag(w_p) Xᵀ δ = X diag(w_p) r_p."""
    support, residual = workspace.support, workspace.residual().astype(float)
    X = support.codes(workspace.values.astype(float))[used]
    transposed, sizes = X.T.tocsr(), np.diff(X.indptr)
    change = np.empty((residual.shape[1], X.shape[0]))
    for p, (w, r) in enumerate(zip(weights.T.astype(float), residual.T, strict=True)):
        weighted = scipy.sparse.csc_array((X.data * np.repeat(w, sizes), X.indices, X.indptr), shape=X.shape)
        change[p] = _solve_symmetric((weighted @ transposed).toarray(), weighted @ r, ridge)
    return change


def _require_squares(values: np.ndarray) -> None:
    """Refuse codes that are so large or small that the entries of X Xᵀ are no numbers."""
    largest = float(np.abs(values).max(initial=0.0))
    exponent = np.finfo(values.dtype).maxexp // 2 - 32
    if largest and not 2.0**-exponent < largest < 2.0**exponent:
        raise ValueError(
            f"with unit atoms the largest code is {largest:.1e}, and its square is no number of type "
            f"{values.dtype}. MOD reads the values of the codes: give codes that fit signals and dictionary."
        )


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
