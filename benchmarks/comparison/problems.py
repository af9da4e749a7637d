"""What the function of an adapter is given: a problem with everything that all libraries share.

Only NumPy is imported here, so that the first call of a library can be timed in a process without ours.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class LearningProblem:
    """Learn a dictionary from the columns of `signals` (m×n); the answer is an m×d array.

    `signals` and `start` have the same dtype and are in Fortran order, a signal or atom after the other.
    """

    signals: np.ndarray
    start: np.ndarray  # m×d, atoms of norm 1
    sparsity: int  # atoms per signal
    passes: int  # over the signals
    seed: int
    tol: float = 0.0  # denoising: the squared error per signal that is allowed, in place of the sparsity
    noisy: bool = False  # recovery: whether there is noise

    @property
    def n_atoms(self) -> int:
        return self.start.shape[1]

    @property
    def kind(self) -> tuple[int | bool, ...]:
        """What a library may have kernels for: problems of one kind need one warm-up."""
        return *self.signals.shape, self.noisy

    def part(self, n: int) -> "LearningProblem":
        """The same with the first n signals."""
        return replace(self, signals=np.asfortranarray(self.signals[:, :n]))


@dataclass(frozen=True)
class CodingProblem:
    """Code the columns of `signals` over those of `dictionary`; the answer is d×n, sparse or dense."""

    signals: np.ndarray
    dictionary: np.ndarray
    sparsity: int  # atoms per signal, at most
    tol: float | None = None  # stop at this squared error per signal
    alpha: float | None = None  # the penalty of ½‖y − Dx‖² + α‖x‖₁

    @property
    def kind(self) -> tuple[int, ...]:
        """What a library may have kernels for: problems of one kind need one warm-up."""
        return self.signals.shape

    def part(self, n: int) -> "CodingProblem":
        """The same with the first n signals."""
        return replace(self, signals=np.asfortranarray(self.signals[:, :n]))


@dataclass(frozen=True)
class PictureProblem:
    """Remove noise of standard deviation `sigma` from a grey picture, white being 255."""

    noisy: np.ndarray
    sigma: float
    n_patches: int  # to learn from; 0 for methods that do not learn
    seed: int

    @property
    def kind(self) -> tuple[int, ...]:
        """What a library may have kernels for: problems of one kind need one warm-up."""
        return *self.noisy.shape, self.n_patches


def unit_columns(matrix: np.ndarray) -> np.ndarray:
    """Columns of norm 1; those that are zero stay zero."""
    return matrix / np.maximum(np.linalg.norm(matrix, axis=0), np.finfo(matrix.dtype).tiny)


def mixed_signals(
    m: int, d: int, n: int, sparsity: int, seed: int, dtype: str = "float64"
) -> LearningProblem:
    """Signals with Gaussian coefficients on random atoms, 5 % noise, and random atoms to start from."""
    rng = np.random.default_rng(seed)
    true, start = (unit_columns(rng.standard_normal((m, d))).astype(dtype) for _ in range(2))
    rows = np.empty((n, m), dtype)
    for block in (slice(j, min(j + 4096, n)) for j in range(0, n, 4096)):
        count = block.stop - block.start
        chosen = rng.integers(0, d, (count, sparsity))  # now and then one atom twice: fewer atoms then
        values = rng.standard_normal((count, sparsity)).astype(dtype)
        rows[block] = np.einsum("ns,nsm->nm", values, true.T[chosen])
        rows[block] += 0.05 * np.sqrt(sparsity / m) * rng.standard_normal((count, m))
    return LearningProblem(rows.T, np.asfortranarray(start), sparsity, passes=1, seed=seed)
