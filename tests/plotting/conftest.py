"""Every test begins and ends without open figures, and nothing may be shown."""

import matplotlib
import pytest

from manifold_dl import OMP, datasets, learn_dictionary

matplotlib.use("Agg")


import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close(monkeypatch):
    def shown(*args, **kwargs):
        raise AssertionError("a plotting function called show")

    monkeypatch.setattr(plt, "show", shown)
    plt.close("all")  # what doctests have left open
    yield
    plt.close("all")


Y = datasets.synthetic(9, 12, 60, sparsity=2, rng=0).signals


@pytest.fixture(scope="session")
def result():
    return learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=4, tol=0, rng=0)
