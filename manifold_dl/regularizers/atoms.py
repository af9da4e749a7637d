"""Penalties on each atom by itself: smooth, near to a reference, or sparse."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import index
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.regularizers.algebra import Penalty
from manifold_dl.regularizers.weights import require_weight


@dataclass(frozen=True)
class Smoothness(Penalty):
    """Smooth atoms: R(D) = weight · Σ (p − q)² over all neighbouring pixels p and q of every atom.

    Use it where atoms are images, spectra or segments of sound, and there is too little data or too much
    noise to estimate their fine structure.

    Parameters
    ----------
    weight : float
        The weight of the penalty, at least 0, in the units of ‖Y‖².
    shape : tuple of int, or int
        The shape of an atom, of m entries in all, as in ``atom.reshape(shape)``: (8, 8) for patches, 64 or
        (64,) for a signal in time. Neighbours are one apart along one axis, and every axis counts.

    Notes
    -----
    With the graph Laplacian L of the grid, R = weight · tr(DᵀLD), which is quadratic:

        ∇R(D) = 2 weight · L D,   ∇²R(D)[E] = 2 weight · L E.

    Examples
    --------
    One atom, the image of an edge two pixels long:

    >>> edge = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> Smoothness(weight=1.0, shape=(2, 2)).value(edge.reshape(4, 1))
    2.0
    >>> Smoothness(weight=1.0, shape=4).value(edge.reshape(4, 1))  # 0, 1, 0, 1 in time
    3.0
    """

    weight: float
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        require_weight(self.weight)
        try:
            shape = tuple(map(index, np.atleast_1d(np.asarray(self.shape, dtype=object)).ravel()))
        except TypeError:
            shape = ()
        if not shape or min(shape) < 1:
            raise ValueError(f"shape={self.shape!r}: give the shape of an atom, such as (8, 8) or 64.")
        object.__setattr__(self, "shape", shape)

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        images = self._images(dictionary)
        steps = (np.diff(images, axis=axis) for axis in range(len(self.shape)))
        return float(self.weight) * sum(float(np.vdot(step, step)) for step in steps)

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient 2 weight · L D."""
        images = self._images(dictionary)
        total = np.zeros_like(images)
        for axis in range(len(self.shape)):
            step = np.diff(images, axis=axis)
            along = np.moveaxis(total, axis, 0), np.moveaxis(step, axis, 0)
            along[0][1:] += along[1]
            along[0][:-1] -= along[1]
        return 2 * float(self.weight) * total.reshape(dictionary.shape)

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`: R is quadratic."""
        return self.gradient(direction)

    def _images(self, dictionary: np.ndarray) -> np.ndarray:
        m, d = dictionary.shape
        if prod(self.shape) != m:
            raise ValueError(
                f"shape={self.shape} makes images of {prod(self.shape)} pixels, but atoms have {m} entries."
            )
        return dictionary.reshape(*self.shape, d)


@dataclass(frozen=True, eq=False, repr=False)
class Tether(Penalty):
    """Stay near a reference: R(D) = weight · Σ_i ‖d_i − ⟨r_i, d_i⟩ r_i‖², the distance to the line of r_i.

    Use it to adapt a known dictionary (wavelets, or one learned from more data) to a few new signals without
    losing it. For unit atoms R = weight · Σ sin²(angle between d_i and ±r_i): the sign of an atom is free.

    Parameters
    ----------
    weight : float
        The weight of the penalty, at least 0, in the units of ‖Y‖².
    reference : m×d array
        An atom r_i for every atom d_i; only its direction matters. It is copied.

    Notes
    -----
    With P_i = I − r_i r_iᵀ for unit r_i, R = weight · Σ d_iᵀ P_i d_i, which is quadratic:

        ∇R(D)_i = 2 weight · P_i d_i,   ∇²R(D)[E]_i = 2 weight · P_i e_i.

    On the spheres this is weight · Σ (1 − ⟨d_i, r_i⟩²), but where norms are free it stays bounded below.

    Examples
    --------
    >>> tether = Tether(weight=1.0, reference=np.eye(2))
    >>> tether
    Tether(weight=1.0, reference=<2×2 array>)
    >>> tether.value(-np.eye(2))
    0.0
    >>> round(tether.value(np.array([[1.0, 0.6], [0.0, 0.8]])), 12)
    0.36
    """

    weight: float
    reference: np.ndarray

    def __post_init__(self) -> None:
        require_weight(self.weight)
        reference = np.array(as_dictionary(self.reference, name="reference"))
        reference.flags.writeable = False
        object.__setattr__(self, "reference", reference)

    def __repr__(self) -> str:
        m, d = self.reference.shape
        return f"Tether(weight={self.weight!r}, reference=<{m}×{d} array>)"

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Tether):
            return NotImplemented
        return self.weight == other.weight and np.array_equal(self.reference, other.reference)

    def __hash__(self) -> int:
        # A few entries suffice: equal references have equal hashes, and -0.0 == 0.0 as Python numbers.
        return hash((self.weight, self.reference.shape, *self.reference[:, 0].tolist()))

    def __getstate__(self) -> dict[str, Any]:
        return {"weight": self.weight, "reference": self.reference}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state["reference"].flags.writeable = False  # copies and pickles of arrays lose the flag
        self.__dict__.update(state)

    @cached_property
    def _lines(self) -> np.ndarray:
        largest = np.abs(self.reference).max(axis=0)  # so that the squares neither overflow nor vanish
        scaled = self.reference / largest
        return scaled / np.linalg.norm(scaled, axis=0)

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        away = self._away(dictionary)
        return float(self.weight) * float(np.vdot(away, away))

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient, 2 weight · P_i d_i in column i."""
        return 2 * float(self.weight) * self._away(dictionary)

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`: R is quadratic."""
        return self.gradient(direction)

    def _away(self, dictionary: np.ndarray) -> np.ndarray:
        """P_i d_i, column by column."""
        if dictionary.shape != self.reference.shape:
            raise ValueError(
                f"the reference has shape {self.reference.shape}, but the dictionary {dictionary.shape}: "
                "every atom needs one."
            )
        lines = self._lines.astype(dictionary.dtype, copy=False)
        return dictionary - lines * np.einsum("md,md->d", lines, dictionary)


@dataclass(frozen=True)
class Sparse(Penalty):
    """Sparse atoms by a smooth ℓ₁ norm: R(D) = weight · Σ (√(d² + ε²) − ε), over all entries d.

    Use it where atoms should be local or interpretable: few pixels, few words, few sensors at a time.

    Parameters
    ----------
    weight : float
        The weight of the penalty, at least 0, in the units of ‖Y‖².
    smoothing : float
        ε > 0. Much larger entries contribute their absolute value, as in ‖·‖₁, and much smaller ones d²/2ε,
        so that R has all its derivatives. Entries of unit atoms are about 1/√m.

    Notes
    -----
    With s = √(d² + ε²), entry by entry:

        ∇R(D) = weight · D/s,   ∇²R(D)[E] = weight · ε² E/s³.

    Examples
    --------
    Of two unit atoms the penalty prefers the one with a single entry:

    >>> round(Sparse(weight=1.0).value(np.array([[1.0], [0.0]])), 4)
    0.99
    >>> round(Sparse(weight=1.0).value(np.array([[0.6], [0.8]])), 4)
    1.3801
    """

    weight: float
    smoothing: float = 0.01

    def __post_init__(self) -> None:
        require_weight(self.weight)
        require_weight(self.smoothing, name="smoothing", positive=True)

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        size, epsilon = self._size(dictionary), float(self.smoothing)
        # d²/(s + ε) is s − ε without the cancellation; the ratio first, so that tiny squares do not vanish.
        return float(self.weight) * float((dictionary * (dictionary / (size + epsilon))).sum())

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient weight · D/s."""
        return float(self.weight) * (dictionary / self._size(dictionary))

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`, weight · ε² E/s³."""
        size = self._size(dictionary)
        return float(self.weight) * ((float(self.smoothing) / size) ** 2 / size * direction)

    def _size(self, dictionary: np.ndarray) -> np.ndarray:
        return np.hypot(dictionary, np.asarray(self.smoothing, dtype=dictionary.dtype))
