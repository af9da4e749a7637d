"""What optimizers return: points of the manifold, or an error that names the optimizer."""

from types import SimpleNamespace

import numpy as np
import pytest
from feasibility_cases import D_, M, Returns, scene, with_point
from pymanopt.optimizers import ConjugateGradient

from manifold_dl import SimCO
from manifold_dl.components.errors import ComponentError
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.counts import count_evaluations


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (with_point(lambda D: 3 * D), r"not on Spheres\(6, 4\), its norms being 3 to 3"),
        (
            lambda result: result.point,
            r"an array of shape \(6, 4\) .*instead of an object with the attribute",
        ),
        (lambda result: None, "returned None instead of"),
        (with_point(lambda D: D[:, :2]), r"shape \(6, 2\).* a real array of shape \(6, 4\) is needed"),
        (with_point(lambda D: D.astype(complex)), "complex128"),
        (with_point(lambda D: None), "returned None as its point"),
    ],
)
def test_optimizers_that_return_no_point_of_the_manifold_are_named(change, sentence):
    Y, D, X = scene()
    with pytest.raises(ComponentError, match=rf"The optimizer .*Returns.*{sentence}"):
        SimCO(Returns(change), mu=0.0)(Y, D, X)


def test_a_point_of_the_users_optimizer_that_is_not_finite_is_an_error():
    Y, D, X = scene()
    with pytest.raises(ComponentError, match=r"Returns.* led to a point that is not finite"):
        SimCO(Returns(with_point(lambda D: D * np.nan)), mu=0.0)(Y, D, X)


def test_a_point_of_pymanopts_that_is_not_finite_is_refused_and_counted(monkeypatch):
    """Its optimizers may end at NaN where a cost overflows: no fault of the user's."""
    Y, D, X = scene()
    D = Spheres(M, D_).closest(D)
    end = SimpleNamespace(point=D * np.nan)
    monkeypatch.setattr(ConjugateGradient, "run", lambda self, problem, **options: end)
    words = r"ConjugateGradient ended at a point of Spheres\(\d, \d\) that is not finite: it is not used"
    with count_evaluations() as counts, pytest.warns(UserWarning, match=words):
        new, codes = SimCO(ConjugateGradient(), mu=0.0)(Y, D, X)
    np.testing.assert_array_equal(new, D)
    assert (counts.sets, counts.improved, counts.refused) == (1, 0, 1)
    # The codes are those that are best for the old atoms.
    assert np.sum((Y - new @ codes) ** 2) <= np.sum((Y - D @ X) ** 2) * (1 + 1e-12)
