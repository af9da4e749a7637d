"""The picture that `demo` writes: a column for every method with the result, a close-up and the atoms."""

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

TITLE = "manifold-dl demo"  # in the metadata of the file: the demo may overwrite its own pictures


def draw(
    file: IO[bytes],
    clean: "np.ndarray",
    noisy: "np.ndarray",
    results: dict[str, Any],
    rows: list[dict[str, Any]],
) -> None:
    """Draw original, noisy picture and results side by side, as PNG into an open file.

    Parameters
    ----------
    file : binary file
        Open for writing.
    clean, noisy : array (rows×columns)
        The pictures, with 255 for white.
    results : dict of str → DenoisingResult
        By the name of the method.
    rows : list of dict
        PSNR and SSIM of the noisy picture and of each result.
    """
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from manifold_dl.learning.initialization import initial_dictionary
    from manifold_dl.plotting import plot_atoms

    pictures = [clean, noisy, *(result.image for result in results.values())]
    titles = ["original", "noisy", *results]
    best = max(rows, key=lambda row: row["psnr"])["method"]
    size, spot = len(clean), max(32, len(clean) // 5)
    top, left = int(0.16 * size), int(0.38 * size)  # the photographer's head and his camera
    n, side = len(pictures), 2.6
    figure = Figure(figsize=(side * n, 3 * side + 1.3), dpi=150, facecolor="white")
    axes = figure.subplots(3, n, squeeze=False)
    figure.subplots_adjust(left=0.006, right=0.994, top=0.885, bottom=0.03, wspace=0.03, hspace=0.03)
    for i, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
        grey = {"cmap": "gray", "vmin": 0, "vmax": 255}
        axes[0, i].imshow(picture, interpolation="lanczos", **grey)
        axes[0, i].add_patch(
            Rectangle((left, top), spot, spot, fill=False, edgecolor="#ffb000", linewidth=1.2)
        )
        close = picture[top : top + spot, left : left + spot]
        axes[1, i].imshow(close, interpolation="nearest", **grey)
        # The first row belongs to the noisy picture; the original has none.
        measured = f"{rows[i - 1]['psnr']:.2f} dB, SSIM {rows[i - 1]['ssim']:.3f}" if i else ""
        colour = "#1a7f37" if i and rows[i - 1]["method"] == best else "black"
        axes[0, i].set_title(f"{title}\n{measured}", fontsize=11, color=colour, linespacing=1.4)
    start = initial_dictionary(np.zeros((64, 1)), 256, "dct", rng=0)
    dictionaries = [start, *(result.dictionary for result in results.values())]
    for ax, dictionary in zip(axes[2, 1:], dictionaries, strict=True):
        plot_atoms(dictionary, ax=ax)
    for ax, title in zip(axes[2, 1:], ["initial dictionary", *results], strict=True):
        ax.text(
            0.5, -0.02, title, transform=ax.transAxes, ha="center", va="top", fontsize=10, color="#555555"
        )
    for ax in axes.flat:
        ax.set_axis_off()
    _captions(figure, axes)
    figure.savefig(file, format="png", metadata={"Software": TITLE})


def is_ours(path: Path) -> bool:
    """Return whether a file is the picture of an earlier demo.

    Parameters
    ----------
    path : Path
        It need not exist.

    Returns
    -------
    bool
    """
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG"]) as image:
            return image.info.get("Software") == TITLE
    except (OSError, SyntaxError, ValueError):
        return False


def _captions(figure: Any, axes: Any) -> None:
    """Add a headline, and a description in the corner that has no atoms."""
    figure.suptitle(
        "Denoising with a dictionary learned from the noisy picture itself: σ = 25, 256 atoms of 8×8 pixels",
        fontsize=15,
        y=0.98,
    )
    text = (
        "The atoms\n\n"
        "MOD, K-SVD and SimCO as in\nthe paper learn from 1,000\npatches in ten iterations, ours\n"
        "from 40,000 in as many.\n\n"
        "Every patch is then coded by\nthe fewest atoms whose error is\nwithin the noise; overlapping\n"
        "patches are averaged."
    )
    axes[2, 0].text(
        0.04, 0.96, text, transform=axes[2, 0].transAxes, va="top", fontsize=10.5, linespacing=1.35
    )
