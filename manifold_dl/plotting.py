"""Pictures of what was learned. Every function takes an `ax`, returns it, and never calls `show`."""

import math

import numpy as np


def plot_convergence(history, ax=None, label=None):
    """Loss against outer iterations, on a logarithmic axis."""
    ax = _axes(ax)
    ax.semilogy(history.iteration + 1, history.loss, marker="o", markersize=3, label=label)
    ax.set_xlabel("outer iteration")
    ax.set_ylabel("‖Y − DX‖² / n")
    ax.grid(True, alpha=0.3)
    if label:
        ax.legend()
    return ax


def plot_atoms(dictionary, ax=None, shape=None, columns=None):
    """Atoms as small pictures in a grid, each scaled to its own range.

    Parameters
    ----------
    dictionary : m×d array
    shape : (rows, columns) of a patch, optional
        Square by default.
    columns : int, optional
        Pictures in a row.
    """
    m, d = dictionary.shape
    side = math.isqrt(m)
    height, width = (side, side) if shape is None else shape
    if height * width != m:
        raise ValueError(f"atoms of length {m} are no {height}×{width} pictures; give shape=(rows, columns).")
    columns = columns or math.isqrt(d - 1) + 1
    rows = -(-d // columns)
    canvas = np.full((rows * (height + 1) + 1, columns * (width + 1) + 1), np.nan)
    for i in range(d):
        top, left = 1 + i // columns * (height + 1), 1 + i % columns * (width + 1)
        atom = dictionary[:, i].reshape(height, width)
        canvas[top : top + height, left : left + width] = atom / (np.abs(atom).max() or 1)
    ax = _axes(ax)
    ax.imshow(canvas, cmap="gray", interpolation="nearest")
    ax.set_axis_off()
    return ax


def _axes(ax):
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]
