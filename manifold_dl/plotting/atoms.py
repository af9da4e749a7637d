"""The atoms of a dictionary as a grid of small images, for patches and the demo."""

import math
from typing import TYPE_CHECKING

import numpy as np

from manifold_dl.plotting.style import as_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_atoms(
    dictionary: np.ndarray,
    ax: "Axes | None" = None,
    shape: tuple[int, ...] | None = None,
    columns: int | None = None,
) -> "Axes":
    """Draw atoms as small images in a grid, each scaled to its own range.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    ax : matplotlib Axes, optional
        A new figure by default.
    shape : (rows, columns) or (rows, columns, 3), optional
        Shape of a patch; square by default. With three channels the atoms are shown in colours, zero as grey.
    columns : int, optional
        Images per row; by default as many as make the grid nearly square.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> ax = plot_atoms(np.eye(9))  # nine images of 3×3 pixels, with lines between
    >>> ax.images[0].get_array().shape
    (13, 13)
    """
    dictionary = np.asarray(dictionary)
    if dictionary.ndim != 2 or not dictionary.size:
        raise ValueError(f"dictionary has shape {dictionary.shape}; it needs an atom in every column, m×d.")
    m, d = dictionary.shape
    shape = (math.isqrt(m), math.isqrt(m)) if shape is None else tuple(shape)
    if math.prod(shape) != m or len(shape) not in (2, 3) or shape[2:] not in ((), (3,)):
        name = "×".join(map(str, shape))
        raise ValueError(
            f"atoms of length {m} are no {name} images; give shape=(rows, columns) or (rows, columns, 3)."
        )
    height, width, *channels = shape
    columns = columns or math.isqrt(d - 1) + 1
    rows = -(-d // columns)
    canvas = np.full((rows * (height + 1) + 1, columns * (width + 1) + 1, *channels), np.nan)
    for i in range(d):
        top, left = 1 + i // columns * (height + 1), 1 + i % columns * (width + 1)
        atom = dictionary[:, i].reshape(shape)
        canvas[top : top + height, left : left + width] = atom / (np.abs(atom).max() or 1)
    if channels:
        canvas = np.where(np.isnan(canvas), 1.0, (canvas + 1) / 2)
    ax = as_axes(ax)
    ax.imshow(canvas, cmap="gray", interpolation="nearest")
    ax.set_axis_off()
    return ax
