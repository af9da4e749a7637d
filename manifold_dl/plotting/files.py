"""A matplotlib backend that shows figures by writing them: for machines without a screen.

With ``MPLBACKEND=module://manifold_dl.plotting.files`` in the environment, ``plt.show()`` writes every open
figure as PNG into the folder named by ``MANIFOLD_DL_PICTURES`` (``pictures``, if it is not set), says where
they are, and closes them as their windows would be closed. The files have the name of the running script:
``01_sphere_1.png``, ``01_sphere_2.png``, ... ``make tutorial`` uses it.
"""

import os
import sys
from itertools import count
from pathlib import Path

from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg

__all__ = ["FigureCanvas", "FigureManager", "show"]

_numbers = count(1)


class FigureCanvas(FigureCanvasAgg):
    """Agg's canvas: what is drawn is what Agg draws."""

    manager_class = FigureManager


def show(*args, **kwargs):
    """Write all open figures; what ``plt.show()`` calls."""
    from matplotlib import pyplot  # which loads this module, not the other way round

    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    if not figures:
        return
    folder = Path(os.environ.get("MANIFOLD_DL_PICTURES") or "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    script = Path(sys.argv[0]).stem.strip("-") or "figure"
    names = []
    for figure in figures:
        names.append(f"{script}_{next(_numbers)}.png")
        figure.savefig(folder / names[-1], dpi=max(200, figure.dpi))  # sharp, whatever the style
        pyplot.close(figure)
    pictures = "picture is" if len(names) == 1 else f"{len(names)} pictures are"
    print(f"The {pictures} in {folder.resolve()}: {', '.join(names)}")
