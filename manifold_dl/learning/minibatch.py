"""Learning from a stream: one update stage for every batch, and a rule for how fast to forget.

A stage on one batch alone would fit the dictionary to that batch. So every atom moves only a fraction of the
way from where it is to where the stage puts it: the fraction that the batch has in all the energy of the
codes on this atom so far. `estimator/` calls `online_step` for `partial_fit`; the passes over mini-batches
of `learn_dictionary` (`batch_passes.py`) consist of the same step.
"""

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_observed
from manifold_dl.coders.calling import run_coder
from manifold_dl.components.errors import ComponentError
from manifold_dl.engines.units import divide, times_square
from manifold_dl.learning.adapters import UpdateAdapter
from manifold_dl.learning.history import Step
from manifold_dl.learning.signal_sums import LossScale, code_energies, squared_error
from manifold_dl.manifolds import feasible_set
from manifold_dl.problem.counts import Counts, count_evaluations
from manifold_dl.updates import SimCO
from manifold_dl.updates.feasibility import feasible_sets

# Measured on streams of 20,000 signals (m = 16, d = 32, S = 4) in batches of 30, 100 and 500: with ρ = 0, 2,
# 10 and 30 the fraction of atoms found is 0.2, 0.7, 0.9 and 0.97 on average, but with 30, small batches and a
# ridge hardly any in the first quarter of the stream. Without a memory, nothing is found in batches of 30.
FORGETTING = 10

# A stream has no length, and a schedule of μ is bound to so many batches. On four such streams the default
# ridge, in the first 30 of 50 batches, finds 0.83 of the atoms in the first quarter of the stream and 0.93 in
# the end; without a ridge it is 0.62 and 0.91 (means over the three sizes of batches).
SCHEDULED_BATCHES = 50


@dataclass(frozen=True)
class OnlineState:
    """What a dictionary learned from a stream is based on.

    Attributes
    ----------
    energy : array of length d
        E_i, the sum of the squared codes of every atom, with those of long ago counted less.
    seen : float
        N, how many signals have been seen; with weights the sum of their mean weights.
    memory : dict
        What the update's line searcher keeps for the next stage, step lengths by name; at first nothing.
    exponent : int
        The energies are in units of 4^exponent: 0, unless the signals are so large or small that their
        squares are no numbers of double precision.
    """

    energy: np.ndarray
    seen: float = 0
    memory: dict[str, float | None] = field(default_factory=dict)
    exponent: int = 0


class BatchResult(NamedTuple):
    """What one batch leaves."""

    dictionary: np.ndarray
    state: OnlineState
    codes: scipy.sparse.csc_array  # the coder's, for the dictionary before
    error: float  # ‖Y − DX‖² of these codes and that dictionary, in units of 4^scale.exponent
    scale: LossScale
    counts: Counts


def online_step(
    signals: np.ndarray,
    dictionary: np.ndarray,
    state: OnlineState,
    coder: Any,
    update: Any,
    *,
    iteration: int = 0,
    max_iter: int = SCHEDULED_BATCHES,
    rng: np.random.Generator | int | None = None,
    weights: Any = None,
) -> tuple[np.ndarray, OnlineState, Step]:
    """One batch: code it, run one update stage on it, and move a fraction of the way to the result.

    Parameters
    ----------
    signals : m×b array
        The batch.
    dictionary : m×d array with unit columns
    state : OnlineState
        What the dictionary is based on so far; ``OnlineState(np.zeros(d))`` for nothing.
    coder, update
        As for `learn_dictionary`.
    iteration : int
        The number of the batch, which chooses the update's ridge.
    max_iter : int
        The number of batches that the update's schedule of μ, if it has one, is bound to; its last value
        holds for those after them. The default `TwoStep` has a ridge in the first 30 batches of 50.
    rng : Generator or int, optional
    weights : array of length b or m×b array, optional
        Of the signals, or of their entries, as in `learn_dictionary`. In the notes b is then the sum of the
        mean weights of the signals, and x_i² is multiplied by the mean weight of its signal.

    Returns
    -------
    dictionary, state, step
        The `Step` holds the batch's codes and loss with the dictionary as it was before: a fair test, since
        the dictionary had not seen these signals.

    Notes
    -----
    With N signals seen, b in the batch and the codes x of the stage,

        E_i ← (N/(N+b))^ρ E_i + Σ_batch x_i²,     ρ = 10,

    and atom i moves along the great circle to its new place by the fraction Σ_batch x_i² / E_i of the way
    (all of it where E_i = 0; see `between` for manifolds where atoms do not move one by one).
    The weight of an old signal is thus (N then / N now)^ρ: about the newest 1/(ρ+1) of the stream counts,
    however it is cut into batches. The window grows with the stream, so the steps shrink like 1/N and the
    dictionary settles; an atom that a batch does not use does not move. No atom is ever replaced.

    Examples
    --------
    >>> from manifold_dl import OMP, SimCO, datasets, metrics
    >>> D_true, _, Y = datasets.synthetic(8, 10, 4000, sparsity=2, rng=0)
    >>> D, state = Y[:, :10] / np.linalg.norm(Y[:, :10], axis=0), OnlineState(np.zeros(10))
    >>> for i in range(40):
    ...     batch = Y[:, 100 * i : 100 * (i + 1)]
    ...     D, state, step = online_step(batch, D, state, OMP(sparsity=2), SimCO(mu=0.1), iteration=i)
    >>> metrics.recovery(D, D_true) > 0.9
    True
    """
    start, steps = time.perf_counter(), {"iteration": iteration, "max_iter": max_iter}
    found = learn_batch(signals, dictionary, state, coder, update, rng=rng, weights=weights, **steps)
    seconds = time.perf_counter() - start
    step = _step(iteration, dictionary, found.codes, found.error, found.scale, found.counts, seconds)
    return found.dictionary, found.state, step


def learn_batch(
    signals: np.ndarray,
    dictionary: np.ndarray,
    state: OnlineState,
    coder: Any,
    update: Any,
    *,
    iteration: int,
    max_iter: int,
    rng: np.random.Generator | int | None = None,
    weights: Any = None,
    forgetting: float = FORGETTING,
) -> BatchResult:
    """The step of `online_step`, with ρ as an argument, and with what a sum over batches needs."""
    _sets(update, dictionary)  # refuses before there is anything to lose
    signals, weights = as_observed(signals, weights)
    rule = UpdateAdapter(update, max_iter, state.memory)
    try:
        with count_evaluations() as counts:
            codes = run_coder(coder, signals, dictionary, weights=weights)
            goal, moved_codes = rule(signals, dictionary, codes, iteration, rng, weights)
    except ComponentError as error:
        error.iteration = iteration
        raise
    scale = LossScale.of(signals, weights)
    squares = squared_error(signals, dictionary, codes, scale.exponent, weights=weights)
    energies = code_energies(moved_codes, scale.exponent, weights=weights)
    state, fraction = _advanced(state, energies, scale, rule.memory, forgetting)
    return BatchResult(between(update, dictionary, goal, fraction), state, codes, squares, scale, counts)


def between(update: Any, start: np.ndarray, goal: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """The dictionary on the update's manifold that is a fraction of the way from one on it to another one.

    Unit atoms move along great circles, each by its own fraction. Where norms are not fixed, or the manifold
    couples atoms to each other, a set of atoms moves along a straight line, coupled ones by their mean
    fraction, and is brought onto the manifold again.

    Parameters
    ----------
    update : DictionaryUpdate
    start, goal : m×d arrays
    fraction : array of length d

    Returns
    -------
    m×d array

    Examples
    --------
    >>> from manifold_dl import SimCO
    >>> from manifold_dl.manifolds import Orthonormal
    >>> turned = np.array([[0.8, -0.6], [0.6, 0.8]])
    >>> half = between(SimCO(manifold=Orthonormal), np.eye(2), turned, np.array([0.5, 0.5]))
    >>> bool(np.allclose(half.T @ half, np.eye(2)))
    True
    """
    sets = _sets(update, start)
    if sets is None:
        return geodesic_interpolate(start, goal, fraction)
    moved = start.copy()
    for I in sets:
        feasible, own = feasible_set(update.manifold, len(start), len(I)), fraction[I]
        if feasible.unit_atoms and feasible.separate_atoms:
            on_the_way = geodesic_interpolate(start[:, I], goal[:, I], own)
        else:
            own = own if feasible.separate_atoms else np.mean(own)
            on_the_way = (start[:, I] + own * (goal[:, I] - start[:, I])).astype(start.dtype)
        moved[:, I] = feasible.nearest_point(on_the_way)
    return moved


def geodesic_interpolate(start: np.ndarray, goal: np.ndarray, fraction: np.ndarray | float) -> np.ndarray:
    """From unit columns to unit columns along great circles, each by its fraction of the angle.

    Parameters
    ----------
    start, goal : m×k arrays with unit columns
    fraction : float or array of length k

    Returns
    -------
    m×k array
        Columns whose angle is zero keep their bits.

    Examples
    --------
    >>> print(geodesic_interpolate(np.eye(2)[:, :1], np.eye(2)[:, 1:], 0.5).round(3).ravel())
    [0.707 0.707]
    """
    D, G = start.astype(float), goal.astype(float)
    cosine = np.einsum("mk,mk->k", D, G)
    U = G - D * cosine
    sine = np.linalg.norm(U, axis=0)
    U = np.divide(U, sine, out=np.zeros_like(U), where=sine > 0)
    angle = fraction * np.arctan2(sine, cosine)
    moved = D * np.cos(angle) + U * np.sin(angle)
    moved /= np.linalg.norm(moved, axis=0)
    return np.where(angle > 0, moved, D).astype(start.dtype)


def _step(
    iteration: int,
    dictionary: np.ndarray,
    codes: Any,
    error: float,
    scale: LossScale,
    counts: Counts,
    seconds: float,
) -> Step:
    return Step(
        iteration,
        dictionary,
        codes,
        loss=scale.per_signal(error),
        objective=times_square(error, scale.exponent),
        seconds=seconds,
        counts=counts,
        replaced=np.zeros(0, np.intp),
        relative_loss=scale.relative(error),
    )


def _advanced(
    state: OnlineState,
    new: np.ndarray,
    scale: LossScale,
    memory: dict[str, float | None],
    forgetting: float,
) -> tuple[OnlineState, np.ndarray]:
    """The state after a batch with these energies, and its fraction in the energy of every atom."""
    seen = state.seen + scale.total_weight
    kept = (state.seen / seen) ** forgetting if seen > 0 else 1.0
    unit = scale.exponent
    if state.energy.any():  # the units of the larger ones serve both
        unit = max(scale.exponent, state.exponent)
        new = divide(new, 2 * (unit - scale.exponent))
    energy = kept * divide(state.energy, 2 * (unit - state.exponent)) + new
    # An atom that no signal has used yet moves all the way to where the stage puts it.
    fraction = np.divide(new, energy, out=np.ones_like(energy), where=energy > 0)
    return OnlineState(energy, seen, memory, unit), fraction


def _sets(update: Any, dictionary: np.ndarray) -> list[np.ndarray] | None:
    """The sets of atoms that move on the update's manifold; None if it has no manifold."""
    sets = feasible_sets(update, *dictionary.shape)
    if sets is None and isinstance(update, SimCO):
        raise ValueError(
            f"manifold={update.manifold!r} ties the atoms of a set to each other, and the schedule "
            f"{update.schedule!r} draws other sets for every batch: a dictionary that moves from batch to "
            "batch would leave the manifold. Use schedule=AllAtoms() or a list of the sets."
        )
    return sets
