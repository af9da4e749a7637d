"""Atoms as small pictures."""

import math

import numpy as np

from manifold_dl.plotting.style import as_axes


def plot_atoms(dictionary, ax=None, shape=None, columns=None):
    """Atoms as small pictures in a grid, each scaled to its own range.

    Parameters
    ----------
    dictionary : m×d array
    ax : matplotlib Axes, optional
    shape : (rows, columns) or (rows, columns, 3), optional
        Of a patch; square by default. With three channels the atoms are shown in colours, zero as grey.
    columns : int, optional
        Pictures in a row.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> ax = plot_atoms(np.eye(9))  # nine pictures of 3×3 pixels, with lines between
    >>> ax.images[0].get_array().shape
    (13, 13)
    """
    dictionary = np.asarray(dictionary)
    if dictionary.ndim != 2 or not dictionary.size:
        raise ValueError(f"dictionary has shape {dictionary.shape}; it needs an atom in every column, m×d.")
    m, d = dictionary.shape
    shape = (math.isqrt(m),) * 2 if shape is None else tuple(shape)
    if math.prod(shape) != m or len(shape) not in (2, 3) or shape[2:] not in ((), (3,)):
        name = "×".join(map(str, shape))
        raise ValueError(
            f"atoms of length {m} are no {name} pictures; give shape=(rows, columns) or (rows, columns, 3)."
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
