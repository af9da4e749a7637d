"""What `check_regularizer` says of the penalties that users write."""

from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl.diagnostics import CheckFailed, check_regularizer
from manifold_dl.regularizers import Coherence, regularizer, scaled

D = mdl.manifolds.Spheres(8, 12).random_point(0)


def bare(dictionary):
    return anp.sum(dictionary**4)


@regularizer
def peaks(dictionary, power=4):
    return anp.sum(dictionary**power)


@dataclass
class Foreign:
    """A regularizer that inherits nothing."""

    power: int = 4

    def value(self, dictionary):
        return anp.sum(dictionary**self.power)


MEAN = np.linspace(-1, 1, 8 * 5).reshape(8, 5)


def near_mean(dictionary):
    """A function for one number of atoms and one length."""
    return anp.sum((dictionary @ MEAN.T - MEAN @ MEAN.T) ** 2)


@dataclass
class Opaque:
    """A value that autograd cannot differentiate, with a gradient that may be wrong, and no Hessian."""

    factor: float = 4.0
    shape: str = "m×d"

    def value(self, dictionary):
        return float(np.sum(np.asarray(dictionary) ** 4))

    def gradient(self, dictionary):
        gradient = self.factor * dictionary**3
        return {"m×d": gradient, "d×m": gradient.T, "m": gradient[:, 0], "None": None}[self.shape]


def test_function_for_one_shape_is_checked_at_that_shape():
    with pytest.raises(
        CheckFailed,
        match=r"^near_mean raised ValueError: .* in its value; checked at 16×12: pass m= and n_atoms=",
    ):
        check_regularizer(near_mean)
    report = check_regularizer(near_mean, m=8, n_atoms=5)
    assert report and report.subject == "near_mean"
    with pytest.raises(CheckFailed, match=r"^near_mean raised ValueError: .* in its value\.$"):
        check_regularizer(near_mean, D)  # where the caller has chosen the size, that is no advice


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (bare, "bare"),
        (peaks, "peaks"),
        (peaks(power=6), "peaks"),
        (Foreign(), "Foreign"),
        (0.1 * peaks, "0.1 * regularizer(peaks)"),
        (scaled(2, Foreign()) + Coherence(0.1), "2 * Foreign(power=4) + Coherence(weight=0.1, power=8)"),
    ],
)
def test_the_report_is_named_after_the_function_or_class(given, title):
    assert check_regularizer(given).subject == title


def test_gradient_is_checked_if_there_is_no_hessian():
    report = check_regularizer(Opaque())
    assert any(fact.startswith("the gradient belongs to the value") for fact in report.passed)
    assert any(
        fact.startswith("the Hessian, which second-order") and "autograd" in fact for fact in report.skipped
    )
    with pytest.raises(CheckFailed, match=r"^Opaque: the gradient is wrong: .* slope 1"):
        check_regularizer(Opaque(factor=4.1))


@pytest.mark.parametrize(
    ("shape", "found"), [("d×m", r"shape \(12, 16\)"), ("m", r"shape \(16,\)"), ("None", "None")]
)
def test_check_regularizer_names_a_gradient_of_the_wrong_shape(shape, found):
    with pytest.raises(CheckFailed, match=f"^Opaque returned a gradient of {found} where m×d"):
        check_regularizer(Opaque(shape=shape))


def test_value_that_autograd_cannot_differentiate_needs_a_gradient():
    with pytest.raises(CheckFailed, match="<lambda> has no gradient: autograd cannot differentiate <lambda>"):
        check_regularizer(lambda D: float(np.sum(np.asarray(D) ** 2)))
