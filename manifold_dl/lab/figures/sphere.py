"""For m = 3: the paths of the atoms on the sphere, as data of an element that the page's script draws and
turns."""

import json
from collections.abc import Sequence

import numpy as np

from manifold_dl.lab.figures.axes import element
from manifold_dl.lab.run import Run

MOST = 400  # points of a path that are sent


def sphere_element(paths: Sequence[np.ndarray], truth: np.ndarray | None = None) -> str:
    """The element ``<mdl-sphere>`` with the paths.

    Parameters
    ----------
    paths : sequence of arrays (k×3)
        One for each atom, from its start to where it is. Of atoms of other norms than 1, such as
        those of `Euclidean`, the directions are drawn: longer ones would leave the figure.
    truth : array (3×d), optional
        The true atoms, marked as crosses.

    Returns
    -------
    str
        HTML.
    """
    data = {
        "paths": [_rounded(_directions(path)) for path in paths],
        "truth": [] if truth is None else _rounded(truth.T),
    }
    what = f"The sphere with the paths of {len(paths)} atoms; drag it, or use the arrow keys, to turn it"
    return element("mdl-sphere", data_paths=json.dumps(data), role="img", tabindex=0, aria_label=what)


def atom_paths(run: Run, until: int | None = None) -> list[np.ndarray]:
    """The paths of all atoms of a run, from its start to an iterate.

    Parameters
    ----------
    run : Run
    until : int, optional
        The last iterate; by default the last that there is.

    Returns
    -------
    list of arrays (k×m)
    """
    count = len(run.iterates) if until is None else until + 1
    chosen = np.unique(np.linspace(0, max(count - 1, 0), min(count, MOST)).astype(int))
    points = [run.job.start, *(run.dictionary_at(int(k)) for k in chosen)]
    return [np.array([point[:, i] for point in points]) for i in range(run.job.start.shape[1])]


def _directions(points: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.where(norms > 0, norms, 1)


def _rounded(points: np.ndarray) -> list[list[float]]:
    return np.round(np.asarray(points, dtype=float), 4).tolist()
