"""The penalties of the package for dictionaries of any shape, and their definitions written for autograd."""

from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest

from manifold_dl.regularizers import (
    Coherence,
    Decorrelation,
    LogBarrierCoherence,
    Smoothness,
    Sparse,
    Tether,
    regularizer,
)


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def image_shape_of(m):
    return (4, m // 4) if m % 4 == 0 else (m,)


def labels(d):
    return [i % 3 for i in range(d)]


def off_diagonal(D):
    return D.T @ D * (1 - np.eye(D.shape[1]))


def barrier_by_definition(D):
    return -0.7 * anp.sum(anp.log(1 - (off_diagonal(D) / 0.9) ** 2))


def smoothness_by_definition(D):
    pictures = anp.reshape(D, (*image_shape_of(len(D)), D.shape[1]))
    axes = range(len(image_shape_of(len(D))))
    return 0.7 * sum(anp.sum(anp.diff(pictures, axis=axis) ** 2) for axis in axes)


def tether_by_definition(D):
    R = reference(D.shape) / np.linalg.norm(reference(D.shape), axis=0)
    return 0.7 * anp.sum(anp.sum(D * D, axis=0) - anp.sum(D * R, axis=0) ** 2)


def decorrelation_by_definition(D):
    groups = np.array(labels(D.shape[1]))
    return 0.7 * anp.sum((D.T @ D * (groups[:, None] != groups)) ** 2)


def reference(shape):
    return np.random.default_rng(5).standard_normal(shape)


def sparse_by_definition(D):
    return 0.7 * anp.sum(anp.sqrt(D**2 + 0.2**2) - 0.2)


PENALTIES = {
    "Coherence": (lambda m, d: Coherence(0.7), lambda D: 0.7 * anp.sum(off_diagonal(D) ** 8)),
    "Coherence, squares": (lambda m, d: Coherence(0.7, 2), lambda D: 0.7 * anp.sum(off_diagonal(D) ** 2)),
    "Coherence, odd": (
        lambda m, d: Coherence(0.7, power=3),
        lambda D: 0.7 * anp.sum(anp.abs(off_diagonal(D)) ** 3),
    ),
    "LogBarrierCoherence": (lambda m, d: LogBarrierCoherence(0.7, bound=0.9), barrier_by_definition),
    "Smoothness": (lambda m, d: Smoothness(0.7, image_shape_of(m)), smoothness_by_definition),
    "Tether": (lambda m, d: Tether(0.7, reference((m, d))), tether_by_definition),
    "Decorrelation": (lambda m, d: Decorrelation(0.7, labels(d)), decorrelation_by_definition),
    "Sparse": (lambda m, d: Sparse(0.7, smoothing=0.2), sparse_by_definition),
    "sum": (
        lambda m, d: (
            2 * (Coherence(0.7) + Sparse(0.7, smoothing=0.2)) + regularizer(smoothness_by_definition)
        ),
        lambda D: (
            1.4 * anp.sum(off_diagonal(D) ** 8) + 2 * sparse_by_definition(D) + smoothness_by_definition(D)
        ),
    ),
}


every_penalty = pytest.mark.parametrize("name", PENALTIES)


def penalty_for(name, shape):
    return PENALTIES[name][0](*shape)


@regularizer
def peaks(D):
    """Fourth powers."""
    return anp.sum(D**4)


@dataclass(frozen=True)
class CoherenceByPairs:
    """Σ_{i≠j} |⟨d_i, d_j⟩|^p pair by pair: an oracle that shares no line with `Coherence`."""

    power: int = 2

    def value(self, dictionary):
        d, p = dictionary.shape[1], self.power
        return sum(
            anp.abs(anp.dot(dictionary[:, i], dictionary[:, j])) ** p
            for i in range(d)
            for j in range(d)
            if i != j
        )


class LogSumExp:
    """Smooth and not a polynomial: no derivative of it vanishes."""

    def value(self, dictionary):
        return anp.log(anp.sum(anp.exp(dictionary)))


class LogSumExpWithGradient(LogSumExp):
    def gradient(self, dictionary):
        return np.exp(dictionary) / np.sum(np.exp(dictionary))


class LogSumExpWithHessian(LogSumExp):
    def hessian(self, dictionary, direction):
        p = np.exp(dictionary) / np.sum(np.exp(dictionary))
        return p * direction - p * np.sum(p * direction)


@dataclass(frozen=True)
class Total:
    """Linear: its Hessian is zero, and autograd finds that its gradient does not depend on D."""

    weight: float = 3.0

    def value(self, dictionary):
        return self.weight * anp.sum(dictionary)


class Constant:
    def value(self, dictionary):
        return 3.0
