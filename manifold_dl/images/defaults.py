"""The defaults of `denoise`: a start from cosines, and SimCO with a tether to it."""

from typing import Any

import numpy as np
from pymanopt.optimizers import ConjugateGradient

from manifold_dl.engines.units import column_norms
from manifold_dl.images.patches import Picture
from manifold_dl.learning.initialization import initial_dictionary
from manifold_dl.line_search import WolfeSearch
from manifold_dl.regularizers import Tether
from manifold_dl.updates import SimCO

TETHER, RIDGE = 6.0, 0.5  # of the default update; the measurements are in docs/denoising.md


def cosines(picture: Picture, n_atoms: int) -> np.ndarray:
    """An overcomplete cosine dictionary; for RGB half of the atoms grey and a quarter for each contrast.

    Parameters
    ----------
    picture : Picture
    n_atoms : int

    Returns
    -------
    m×d array
    """
    patch = np.ones((picture.patch_size**2, 1), picture.pixels.dtype)
    if picture.pixels.shape[2] == 1:
        return initial_dictionary(patch, n_atoms, "dct", rng=0)
    quarter = n_atoms // 4
    colours = [
        np.kron(np.array(colour)[:, None], initial_dictionary(patch, count, "dct", rng=0))
        for colour, count in (
            ((1, 1, 1), n_atoms - 2 * quarter),
            ((1, 0, -1), quarter),
            ((1, -2, 1), quarter),
        )
        if count > 0
    ]
    atoms = np.hstack(colours)
    return (atoms / column_norms(atoms)).astype(picture.pixels.dtype)


def tethered(start: Any, noise_energy: float, n_patches: int) -> SimCO:
    """SimCO with a `Tether` to a given start: six times the energy mσ² of the noise in a patch.

    That is for 1,000 patches, which determine the atoms less well than the start does; the weight falls as
    1/n, because 40,000 do best without. A start that is no dictionary yet ("data", "random") gets no tether.

    Parameters
    ----------
    start : m×d array, or the name of a start
    noise_energy : float
        mσ².
    n_patches : int

    Returns
    -------
    SimCO
    """
    weight = TETHER * noise_energy * 1_000 / n_patches
    regularizers = [] if isinstance(start, str) else [Tether(weight, start)]
    # What docs/denoising.md was measured with.
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=6, verbosity=0)
    return SimCO(optimizer, mu=RIDGE, regularizers=regularizers)
