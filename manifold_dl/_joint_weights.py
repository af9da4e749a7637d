"""Weights of entries and of signals at the same time: incomplete signals of which each counts so often.

A weight of a signal multiplies its whole term of the objective, ridge and penalty included; weights of
entries multiply squared errors alone. `estimator.py` has both where samples with missing entries have a
`sample_weight`. Everything that takes weights takes this, too: what knows one kind alone reads the products.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class JointWeights:
    """Weights of the entries, and of the signals, in the place of an m×n array.

    Attributes
    ----------
    entries : m×n array
    signals : array of length n

    Examples
    --------
    >>> weights = JointWeights(np.array([[1.0, 0.0]]), np.array([2.0, 3.0]))
    >>> np.asarray(weights)
    array([[2., 0.]])
    """

    entries: np.ndarray
    signals: np.ndarray

    ndim = 2

    @cached_property
    def products(self) -> np.ndarray:
        """The factor of every squared error."""
        return self.entries * self.signals

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n)."""
        return self.entries.shape

    @property
    def T(self) -> np.ndarray:
        """The products, with a signal in every row."""
        return self.products.T

    def any(self) -> bool:
        """Whether any entry has a weight."""
        return bool(self.products.any())

    def checked(self, check: Callable[[np.ndarray], np.ndarray | None]) -> Any:
        """The same after a check of both, which returns None where all are 1; one of them, if that is all.

        Parameters
        ----------
        check : callable

        Returns
        -------
        JointWeights, array or None
        """
        entries, signals = check(self.entries), check(self.signals)
        if entries is None or signals is None:
            return entries if signals is None else signals
        return JointWeights(np.where(signals > 0, entries, 0), signals)

    def of(self, signals: np.ndarray | slice) -> "JointWeights":
        """The weights of some signals.

        Parameters
        ----------
        signals : array of int, or slice

        Returns
        -------
        JointWeights
        """
        return JointWeights(self.entries[:, signals], self.signals[signals])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The products: what parts read that know weights of entries alone."""
        return np.array(self.products, dtype=dtype, copy=copy)


def by_signal(weights: Any) -> Any:
    """Weights of signals, which multiply the ridge; None if there are none.

    Examples
    --------
    >>> by_signal(np.array([2.0, 3.0]))
    array([2., 3.])
    >>> by_signal(np.array([[2.0, 3.0]])) is None
    True
    """
    if isinstance(weights, JointWeights):
        return weights.signals
    return weights if weights is not None and weights.ndim == 1 else None


def plain(weights: Any) -> Any:
    """Weights as a part reads them that takes an array or None."""
    return np.asarray(weights) if isinstance(weights, JointWeights) else weights
