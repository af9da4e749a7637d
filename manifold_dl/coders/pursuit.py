"""What the pursuits have in common: two base classes, by how a pursuit stops.

A subclass is a frozen dataclass that adds its parameters and names its kernel. `greedy.py` and `iterative.py`
hold the pursuits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import require_count
from manifold_dl.coders.blockwise import Coding, encode_blocks
from manifold_dl.coders.checks import as_problem, require_sparsity, require_stopping_rule
from manifold_dl.engines.units import times_square
from manifold_dl.kernels.coding import NO_TOLERANCE, Codes, PursuitSettings


class Pursuit:
    """A pursuit with a kernel that takes `PursuitSettings`."""

    sparsity: Any

    def encode(
        self, signals: np.ndarray, dictionary: np.ndarray, *, threads: int | None = None, weights: Any = None
    ) -> scipy.sparse.csc_array:
        """See `FullSparseCoder.encode`: m×n signals and an m×d dictionary → d×n codes."""
        Y, D, W = as_problem(signals, dictionary, weights)
        return encode_blocks(Y, D, self._coding(*D.shape), threads, weights=W)

    def _coding(self, m: int, d: int) -> Coding:
        """The kernel and its settings for signals of length m and d atoms."""
        raise NotImplementedError  # each pursuit has its own

    def _kernel(self) -> Callable[..., Codes]:
        """One of `kernels.coding`."""
        raise NotImplementedError  # each pursuit has its own

    def _weighted_kernel(self) -> Callable[..., Codes] | None:
        """One of `kernels.coding` for entries with weights, where there is one."""
        return None


class TolerancePursuit(Pursuit):
    """A pursuit that stops at a sparsity, at a squared residual, or at either."""

    tol: float | None

    def __post_init__(self) -> None:
        require_stopping_rule(self)

    @property
    def scale_equivariant(self) -> bool:
        """Whether signals times c get codes times c: not with a tolerance in the units of the signals."""
        return self.tol is None

    def _coding(self, m: int, d: int) -> Coding:
        return Coding(
            self._kernel(), self._settings(m, d), tolerance_in_units, weighted=self._weighted_kernel()
        )

    def _settings(self, m: int, d: int) -> PursuitSettings:
        sparsity = min(m, d) if self.sparsity is None else self.sparsity
        require_sparsity(sparsity, m, d)
        return PursuitSettings(sparsity, self._tolerance())

    def _tolerance(self) -> float:
        return NO_TOLERANCE if self.tol is None else float(self.tol)


class FixedSparsityPursuit(Pursuit):
    """A pursuit with a given number of atoms per signal and a limit of its steps."""

    max_iter: int

    scale_equivariant = True

    def __post_init__(self) -> None:
        require_sparsity(self.sparsity)
        require_count("max_iter", self.max_iter)

    def _coding(self, m: int, d: int) -> Coding:
        require_sparsity(self.sparsity, m, d)
        settings = PursuitSettings(self.sparsity, max_iter=self.max_iter)
        return Coding(self._kernel(), settings, unit_signals=True)


def tolerance_in_units(settings: PursuitSettings, exponent: int, dtype: np.dtype) -> PursuitSettings:
    """The settings for signals divided by 2^exponent."""
    return settings._replace(tol=times_square(settings.tol, -exponent))
