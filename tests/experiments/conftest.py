"""Figures are drawn in the style of the package and closed."""

import pytest

from manifold_dl.plotting import style


@pytest.fixture
def drawn():
    """Draw in our style, and close what was drawn."""
    import matplotlib.pyplot as plt

    with style():
        yield lambda study, *data: study.draw(*data)
    plt.close("all")
