"""Pictures of descents, dictionaries and experiments. Each function takes an `ax` and returns it.

`STYLE` is the one style file of all figures, `style` applies it to a block, and `method_style` gives a method
the same colour, marker and dash wherever it is drawn. matplotlib is loaded when the first picture is drawn.

Where there is no screen, the backend ``module://manifold_dl.plotting.files`` turns ``plt.show()`` into files.
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
