"""FOCUSS: sparse codes by reweighted least squares."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import require_count
from manifold_dl.coders.blockwise import Coding, encode_blocks
from manifold_dl.coders.checks import as_problem, require_fraction, require_sparsity
from manifold_dl.coders.oracle import least_squares_codes
from manifold_dl.kernels import coding as kernels


@dataclass(frozen=True)
class FOCUSS:
    """Minimise Σ|x_i|^p subject to Dx = y, by minimum-norm solutions with weights |x_i|^(1 − p/2).

    Each solution weighs the next, so large entries grow and small ones vanish. Entries that stay below
    `negligible` times the largest are dropped, and the rest are solved again by least squares.

    Parameters
    ----------
    p : float
        Between 0 and 1; the smaller, the sparser, and the more the start decides. At 1 the penalty is the
        ℓ₁ norm.
    sparsity : int, optional
        Keep at most so many entries of each code, the largest. Without it up to m entries remain.
    ridge : float
        Tikhonov regularisation of each system, as a fraction of its mean diagonal entry: raise it for noise.
    max_iter : int
        At most so many solutions per signal.
    negligible : float
        What to drop at the end, as a fraction of the largest entry.

    References
    ----------
    Gorodnitsky and Rao (1997), Sparse signal reconstruction from limited data using FOCUSS. Murray and
    Kreutz-Delgado (2001) use it for dictionary learning.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> FOCUSS().encode(np.array([[0.6], [0.8]]), D).toarray().round(12).ravel()
    array([0., 0., 1.])
    """

    p: float = 0.5
    sparsity: int | None = None
    ridge: float = 1e-8
    max_iter: int = 50
    negligible: float = 1e-4

    optimal_on_support = True
    scale_equivariant = True

    def __post_init__(self) -> None:
        if not (isinstance(self.p, Real) and 0 <= self.p <= 1):
            raise ValueError(
                f"p={self.p!r}: the exponent lies between 0 and 1; above 1 codes are not sparse."
            )
        if not (isinstance(self.ridge, Real) and 0 < self.ridge < np.inf):
            raise ValueError(
                f"ridge={self.ridge!r}: the systems become singular; a positive ridge is needed."
            )
        require_fraction("negligible", self.negligible)
        if self.sparsity is not None:
            require_sparsity(self.sparsity)
        require_count("max_iter", self.max_iter)

    def encode(
        self, signals: np.ndarray, dictionary: np.ndarray, *, threads: int | None = None, weights: Any = None
    ) -> scipy.sparse.csc_array:
        """See `FullSparseCoder.encode`: m×n signals and an m×d dictionary → d×n codes."""
        Y, D, W = as_problem(signals, dictionary, weights)
        if self.sparsity is not None:
            require_sparsity(self.sparsity, *D.shape)
        size = min(D.shape) if self.sparsity is None else self.sparsity
        ridge = max(float(self.ridge), 8 * float(np.finfo(Y.dtype).eps))  # less would be lost in rounding
        settings = kernels.FocussSettings(size, float(self.p), ridge, self.max_iter, float(self.negligible))
        # The kernel finds the supports; their codes are those of the atoms and signals as given.
        coding = Coding(kernels.focuss, settings, unit_signals=True)
        support = encode_blocks(Y, D, coding, threads, weights=W)
        return least_squares_codes(Y, D, support, threads, W)
