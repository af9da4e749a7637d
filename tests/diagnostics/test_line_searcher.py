"""`check_line_searcher`: wrong line searchers are named with their fault."""

import numpy as np
import pymanopt
import pytest

from manifold_dl.diagnostics import (
    CheckFailed,
    check_line_searcher,
)


class Leap:
    """A searcher that takes one step of a fixed multiple, whatever happens."""

    def __init__(self, t, factor=1.0):
        self.t, self.factor = t, factor

    def search(self, objective, manifold, x, d, f0, df0):
        return self.factor * self.t * np.linalg.norm(d), manifold.retraction(x, self.t * d)


def test_check_line_searcher_names_the_fault():
    with pytest.raises(CheckFailed, match=r"Leap went from .* up to"):
        check_line_searcher(Leap(-1e-3))
    with pytest.raises(
        CheckFailed, match=r"of shapes \(5,\) and \(\): the step size, one number, comes first"
    ):
        check_line_searcher(
            type("Swapped", (Leap,), {"search": lambda self, *a: Leap.search(self, *a)[::-1]})(1e-3)
        )
    with pytest.raises(CheckFailed, match="does not lead to the point it returns"):
        check_line_searcher(Leap(1e-3, factor=2.0))
    with pytest.raises(CheckFailed, match=r"Leap moved by .* for an ascent direction"):
        check_line_searcher(Leap(1e-3))
    with pytest.raises(CheckFailed, match="BackTrackingLineSearcher moved by nan for a zero direction"):
        check_line_searcher(pymanopt.optimizers.line_search.BackTrackingLineSearcher())
