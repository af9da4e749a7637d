"""`check_regularizer`: wrong derivatives and values are named."""

from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest

from manifold_dl import manifolds
from manifold_dl.diagnostics import (
    CheckFailed,
    check_regularizer,
)

REFERENCE = manifolds.Spheres(16, 12).random_point(3)


@dataclass
class Quartic:
    """Σ d⁴ with derivatives that may be wrong, in NumPy or in a form that autograd can read."""

    gradient_factor: float = 4.0
    hessian_factor: float = 12.0
    readable: bool = False

    def value(self, D):
        return anp.sum(D**4) if self.readable else float(np.sum(D**4))

    def gradient(self, D):
        return self.gradient_factor * D**3

    def hessian(self, D, E):
        return self.hessian_factor * D**2 * E


def quartic(**methods):
    return type("Quartic", (Quartic,), methods)()


WRONG_REGULARIZERS = {
    "the gradient is wrong: .* slope 1": Quartic(gradient_factor=4.1),
    "the Hessian is wrong: .* slope 2": Quartic(hessian_factor=12.1),
    "an array of shape": quartic(value=lambda self, D: D**4),
    "a value that is 'x', not one real number": quartic(value=lambda self, D: "x"),
    "raised KeyError: 'x' in its gradient": quartic(gradient=lambda self, D: {}["x"]),
    "raised TypeError: .* in its hessian": quartic(hessian=lambda self, D: 12 * D**2),
    "a value that is None": quartic(value=lambda self, D: None),
    "is nan at the dictionary": quartic(value=lambda self, D: float("nan")),
    "a gradient of shape": quartic(gradient=lambda self, D: 4.0 * D.T**3),
    "not linear": quartic(hessian=lambda self, D, E: 12 * D**2 * np.abs(E)),
    "not symmetric": quartic(hessian=lambda self, D, E: 12 * D**2 * E + np.roll(E, 1, axis=0)),
    "not deterministic": quartic(value=lambda self, D: np.random.default_rng().random()),
    "changed the dictionary": quartic(value=lambda self, D: float(np.multiply(D, 2, out=D)[0, 0])),
}


@pytest.mark.parametrize("fault", WRONG_REGULARIZERS)
def test_check_regularizer_names_the_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Quartic.*{fault}"):
        check_regularizer(WRONG_REGULARIZERS[fault])


def test_gradient_wrong_across_the_direction_is_found_by_comparison_with_autograd():
    # The slope sees only what lies along the direction, the first draw; autograd compares all entries.
    U = np.random.default_rng(0).standard_normal(REFERENCE.shape)
    error = np.zeros_like(U)
    error[:2, 0] = U[1, 0], -U[0, 0]

    class Askew(Quartic):
        def gradient(self, D):
            return 4 * D**3 + error

    assert check_regularizer(Askew(), REFERENCE)
    with pytest.raises(AssertionError, match="Askew has a gradient that differs from autograd's"):
        check_regularizer(Askew(readable=True), REFERENCE)


def test_comparison_with_autograd_is_skipped_if_it_cannot_differentiate():
    assert any("cannot differentiate its value" in fact for fact in check_regularizer(Quartic()).skipped)
    assert "the gradient agrees with autograd" in check_regularizer(Quartic(readable=True)).passed
