"""Classic MOD: least squares for the whole dictionary with the codes fixed, then unit norms.

It ignores the norms and restores them afterwards. MOD on the spheres, which never leaves them, is
``SimCO(codes="fixed")``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.engines import Engine
from manifold_dl.engines.opening import is_distant
from manifold_dl.engines.threads import as_engine
from manifold_dl.kernels import reduced
from manifold_dl.updates.current_codes import ArrayCodes
from manifold_dl.updates.distant import run_distant
from manifold_dl.updates.normal_equations import solve_by_products, solve_symmetric
from manifold_dl.updates.workspace import UpdateWorkspace

# What is in double precision, or copied, is so for so many atoms, or so many entries of all atoms, at a time.
ATOMS, ENTRIES = 512, 128


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
    tol : float
        Accuracy where there are so many atoms that the normal equations are solved by conjugate gradients:
        the last iteration has lowered the squared error of every row of D by less than `tol` times what all
        of them have. Directions that the codes hardly determine then stay nearly as they were. Where there
        are fewer signals than atoms, every error can be brought to zero; 768×4096 atoms with 4,000 mixtures
        take 12 iterations at 1e-2, 35 at 1e-3 and 215 at 1e-5, and what the last of them fit is lost when
        the signals are coded again.
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
    tol: float = 1e-3
    engine: Engine | None = field(default=None, metadata={"stored": False})

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge={self.ridge}: the ridge must be finite and not negative.")
        if not 0 <= self.tol < 1:
            raise ValueError(f"tol={self.tol}: the accuracy is a fraction, 0 ≤ tol < 1.")

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

        `signals` may be a Dask array or a path, as in `learn_dictionary`. `weights` are those of the signals
        (n of them) or of their entries (m×n). With weights of entries every row of D has normal equations of
        its own: the rule costs as much as m unweighted ones.
        """
        if is_distant(signals):
            return run_distant(self._stage, signals, dictionary, codes, weights=weights, engine=self.engine)
        return self._stage(signals, dictionary, codes, weights)

    def _stage(
        self, signals: Any, dictionary: Any, codes: Any, weights: Any
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """The same for signals in memory, and for those that an engine has."""
        workspace = UpdateWorkspace(signals, dictionary, codes, as_engine(engine=self.engine), weights)
        workspace.normalize()
        old, current, own_weights = workspace.dictionary, workspace.current, workspace.signals.weights
        if isinstance(current, ArrayCodes):
            _require_squares(current.values)
        elif own_weights is not None:
            raise ValueError(
                "with weights of entries every row of D has normal equations of its own, m passes "
                "over all signals: where an engine has them, use SimCO(codes='fixed'), or weights of signals."
            )
        # D + (Y − D X) Xᵀ (X Xᵀ)⁺: among all least-squares solutions the one nearest to the old D.
        if own_weights is None and workspace.shares_products():
            gram, right = workspace.normal_equations()
            used = np.flatnonzero(gram.diagonal())
            change = solve_symmetric(gram[np.ix_(used, used)], right[used], self.ridge)
        else:
            energies = workspace.code_energies()
            used = np.flatnonzero(energies)
            if len(used) == 0:
                return old, workspace.codes()
            if own_weights is not None and isinstance(current, ArrayCodes):
                change = _row_by_row(workspace, current, used, self.ridge)
            else:
                change = _by_conjugate_gradients(workspace, energies, self.ridge, self.tol)
        scales = np.ones(old.shape[1])
        for part in (slice(first, first + ATOMS) for first in range(0, len(used), ATOMS)):
            scales[used[part]] = _move(old, used[part], change[part])
        current.scale(scales.astype(old.dtype))
        return old, workspace.codes()


def _move(dictionary: np.ndarray, atoms: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Add the rows of `change` to some atoms and divide them by their norms, which are returned."""
    D = dictionary[:, atoms] + change.T
    norms = np.linalg.norm(D, axis=0)
    # Where least squares gives a zero atom, rounding has no direction: the old one stays, with zero codes.
    lost = norms <= 4 * np.sqrt(len(D)) * np.finfo(dictionary.dtype).eps
    D[:, lost], norms[lost] = dictionary[:, atoms][:, lost], 0
    dictionary[:, atoms] = D / np.where(lost, 1, norms)
    return norms


def _by_conjugate_gradients(
    workspace: UpdateWorkspace, energies: np.ndarray, ridge: float, tol: float
) -> np.ndarray:
    """How the used atoms change, where codes touch few pairs of them: some entries of all atoms at a time.

    The normal equations are divided by the mean energy of the rows of X, so that no square overflows in
    single precision.
    """
    D, used = workspace.dictionary, energies > 0
    change, mean = np.empty((int(used.sum()), len(D)), D.dtype), float(energies[used].mean())

    def multiply(rows: np.ndarray) -> np.ndarray:
        products = workspace.times_code_products(rows) / mean
        return products + ridge * rows if ridge else products

    for entries in (slice(first, first + ENTRIES) for first in range(0, len(D), ENTRIES)):
        right = (workspace.code_residuals(entries) / mean).astype(D.dtype)
        change[:, entries] = solve_by_products(multiply, right, tol)[used]
    return change


def _row_by_row(workspace: UpdateWorkspace, codes: ArrayCodes, used: np.ndarray, ridge: float) -> np.ndarray:
    """How D changes where entries have weights: row p of it solves X diag(w_p) Xᵀ δ = X diag(w_p) r_p."""
    support, values, weights = codes.support, codes.values, workspace.signals.weights
    atoms = workspace.dictionary.T
    residual = reduced.residual(workspace.rows, support.indptr, support.indices, values, atoms).astype(float)
    X = support.codes(values.astype(float))[used]
    transposed, sizes = X.T.tocsr(), np.diff(X.indptr)
    change = np.empty((X.shape[0], residual.shape[1]))
    for p, (w, r) in enumerate(zip(weights.T.astype(float), residual.T, strict=True)):
        weighted = scipy.sparse.csc_array((X.data * np.repeat(w, sizes), X.indices, X.indptr), shape=X.shape)
        change[:, p] = solve_symmetric((weighted @ transposed).toarray(), weighted @ r, ridge)
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
