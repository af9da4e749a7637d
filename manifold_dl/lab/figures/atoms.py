"""The atoms: as small pictures where they are patches, else as stems."""

import base64
import io
import math

import numpy as np

from manifold_dl.lab.figures.axes import element, tag

MOST = 64  # atoms that are drawn


def atoms_figure(dictionary: np.ndarray, patch: int | None = None) -> str:
    """Draw the atoms of a dictionary.

    Parameters
    ----------
    dictionary : array (m×d)
    patch : int, optional
        The side of a patch, m = patch².

    Returns
    -------
    str
        SVG; its only picture is inside of it.
    """
    shown = dictionary[:, :MOST]
    return _pictures(shown, patch) if patch else _stems(shown)


def _pictures(atoms: np.ndarray, patch: int) -> str:
    from matplotlib.image import imsave

    columns = max(8, math.ceil(math.sqrt(1.6 * atoms.shape[1])))  # as high as the figure beside it
    rows = -(-atoms.shape[1] // columns)
    step = patch + 1
    mosaic = np.full((rows * step + 1, columns * step + 1), np.nan)
    for k, atom in enumerate(atoms.T):
        top, left = 1 + k // columns * step, 1 + k % columns * step
        mosaic[top : top + patch, left : left + patch] = atom.reshape(patch, patch) / (
            np.abs(atom).max() or 1
        )
    grey = np.nan_to_num((mosaic + 1) / 2)
    pixels = np.stack([grey, grey, grey, np.isfinite(mosaic)], axis=-1)  # between the atoms the page is seen
    file = io.BytesIO()
    imsave(file, pixels, format="png")
    data = base64.b64encode(file.getvalue()).decode()
    height = round(430 * mosaic.shape[0] / mosaic.shape[1])
    image = tag("image", href=f"data:image/png;base64,{data}", width=430, height=height,
                style="image-rendering: pixelated")  # fmt: skip
    return _svg(image, 430, height, f"{atoms.shape[1]} atoms as pictures")


def _stems(atoms: np.ndarray) -> str:
    m, d = atoms.shape
    columns = min(d, 8)
    rows = -(-d // columns)
    width, height = 430 / columns, min(max(290 / rows, 42), 120)  # as high as the figure beside it
    axes, stems = [], []
    for k, atom in enumerate(atoms.T):
        left, middle = k % columns * width, k // columns * height + height / 2
        xs = left + 5 + np.arange(m) * (width - 10) / max(m - 1, 1) if m > 1 else [left + width / 2]
        tops = middle - atom / (np.abs(atoms).max() or 1) * (height / 2 - 5)
        stems += [f"M{x:.1f} {middle:.1f}V{y:.1f}" for x, y in zip(xs, tops, strict=True)]
        axes.append(f"M{left + 4:.1f} {middle:.1f}H{left + width - 4:.1f}")
    # Two elements for all atoms: the page compares every element with what it drew before.
    paths = tag("path", d="".join(axes), class_="zero") + tag("path", d="".join(stems), class_="stem")
    return _svg(paths, 430, round(rows * height), f"{d} atoms as stems")


def _svg(content: str, width: int, height: int, title: str) -> str:
    box = f"0 0 {width} {height}"
    return element("svg", content, class_="mdl-figure atoms", viewBox=box, role="img", aria_label=title)
