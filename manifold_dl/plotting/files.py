"""A matplotlib backend that writes figures to files instead of showing them, for machines without a display.

With ``MPLBACKEND=module://manifold_dl.plotting.files`` in the environment, ``plt.show()`` writes every open
figure as PNG into the folder named by ``MANIFOLD_DL_PICTURES`` (``pictures``, if it is not set), prints where
they are, and closes them. The files have the name of the running script:
``01_sphere_1.png``, ``01_sphere_2.png``, ... ``make tutorial`` uses it.
"""

import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg

__all__ = ["FigureCanvas", "FigureManager", "show"]

_numbers = count(1)


class FigureCanvas(FigureCanvasAgg):
    """The canvas of matplotlib's Agg backend, unchanged."""

    manager_class = FigureManager


def show(*args: Any, **kwargs: Any) -> None:
    """Write all open figures and close them. ``plt.show()`` calls this function.

    Parameters
    ----------
    *args, **kwargs
        Ignored; ``plt.show`` passes ``block`` through.
    """
    from matplotlib import pyplot  # pyplot imports this module

    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    if not figures:
        return
    folder = Path(os.environ.get("MANIFOLD_DL_PICTURES") or "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    script = Path(sys.argv[0]).stem.strip("-") or "figure"
    names = []
    for figure in figures:
        names.append(f"{script}_{next(_numbers)}.png")
        figure.savefig(folder / names[-1], dpi=max(200, figure.dpi))  # at least 200 dpi for any style
        pyplot.close(figure)
    pictures = "picture is" if len(names) == 1 else f"{len(names)} pictures are"
    print(f"The {pictures} in {folder.resolve()}: {', '.join(names)}")
