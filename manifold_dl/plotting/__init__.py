"""Figures of optimisation runs, dictionaries and experiments. Each function takes an `ax` and returns it.

`STYLE` is the style file of all figures, `style` applies it to a ``with`` block, and `method_style` returns
the colour, marker and dash of a method, the same in every figure. matplotlib is imported at the first call.

On a machine without a display, the backend ``module://manifold_dl.plotting.files`` makes ``plt.show()`` write
files.
"""

from manifold_dl.plotting.atoms import plot_atoms
from manifold_dl.plotting.condition import plot_condition
from manifold_dl.plotting.convergence import plot_convergence
from manifold_dl.plotting.line_search import plot_line_search
from manifold_dl.plotting.recovery import plot_recovery
from manifold_dl.plotting.sphere import plot_sphere_path
from manifold_dl.plotting.style import STYLE, method_style, style

__all__ = [
    "STYLE",
    "method_style",
    "plot_atoms",
    "plot_condition",
    "plot_convergence",
    "plot_line_search",
    "plot_recovery",
    "plot_sphere_path",
    "style",
]
