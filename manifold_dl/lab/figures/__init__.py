"""The figures of the page as SVG: text made here, without a library or a network, in the colours of the page.

matplotlib draws a figure in about 0.1 s, and a page redraws four while a run streams; these take about a
millisecond each, and follow the light or dark colours of the page by themselves. `axes.py` is all that they
have in common.
"""

from manifold_dl.lab.figures.atoms import atoms_figure
from manifold_dl.lab.figures.convergence import convergence_figure
from manifold_dl.lab.figures.search import search_figure
from manifold_dl.lab.figures.sphere import sphere_element
from manifold_dl.lab.figures.taylor import taylor_figure

__all__ = ["atoms_figure", "convergence_figure", "search_figure", "sphere_element", "taylor_figure"]
