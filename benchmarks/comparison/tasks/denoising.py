"""Denoise four grey pictures at σ = 15, 25 and 50, with dictionaries learned from the noisy picture.

A dictionary that a library learned (`DENOISING`) codes all patches by forward selection up to the noise, and
the patches are averaged: the same for everybody, and timed together with the learning. `PICTURES` are whole
methods, from the noisy picture to the clean one.
"""

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from skimage import color, data
from skimage.metrics import peak_signal_noise_ratio

from comparison import adapters
from comparison.problems import LearningProblem, PictureProblem
from comparison.results import Row, values
from comparison.tables import Table, in_order, mean, number
from comparison.timing import cpu_seconds, warm_up
from manifold_dl.images import Picture, cosines, denoise, usual_gain

NAMES, SIGMAS, PATCHES = ("camera", "coins", "astronaut", "moon"), (15, 25, 50), (1_000, 40_000)
ATOMS, PASSES = 256, 10
DRAWS, LIMIT = 1, 60.0


def cells(options: Any) -> list[Row]:
    names, sigmas, patches = (("coins",), (25,), (1_000,)) if options.quick else (NAMES, SIGMAS, PATCHES)
    first = 100 * options.seed
    return [
        {"picture": name, "sigma": sigma, "patches": count, "draw": draw}
        for draw in range(first, first + options.draws)
        for count in (0, *patches)
        for sigma in sigmas
        for name in names
    ]


def methods(adapter: ModuleType, cell: Row) -> dict[str, Any]:
    """Whole methods that learn are run for every number of patches, others for 0."""
    learning = getattr(adapter, "PICTURES_LEARN", False)
    whole = adapters.functions(adapter, "PICTURES") if learning == (cell["patches"] > 0) else {}
    return whole | ({} if cell["patches"] == 0 else _learners(adapter))


@lru_cache
def _learners(adapter: ModuleType) -> dict[str, Any]:
    """The functions that learn, each followed by the reconstruction."""
    return {
        name: WithReconstruction(learn) for name, learn in adapters.functions(adapter, "DENOISING").items()
    }


class WithReconstruction:
    """Learn with a function of an adapter, then code and average all patches of the picture."""

    def __init__(self, learn: Any) -> None:
        self.learn = learn

    def __call__(self, given: PictureProblem) -> np.ndarray:
        picture = Picture.of(given.noisy, 8, 1)
        patches = picture.random_patches(given.n_patches, np.random.default_rng(given.seed))
        tol = 64 * (usual_gain(64, 1) * given.sigma) ** 2
        start = np.asfortranarray(cosines(picture, ATOMS))
        D = self.learn(
            LearningProblem(np.asfortranarray(patches), start, 5, PASSES, seed=given.seed, tol=tol)
        )
        return reconstruct(given, np.asarray(D, float))


def stay(signals: Any, dictionary: Any, codes: Any, **_: Any) -> tuple[Any, Any]:
    """No update: the dictionary is given."""
    return dictionary, codes


def reconstruct(given: PictureProblem, D: np.ndarray) -> np.ndarray:
    """The picture from a dictionary: forward selection up to the noise, overlapping patches averaged."""
    D = D / np.maximum(np.linalg.norm(D, axis=0), 1e-300)
    settings = {"init": D, "update": stay, "n_patches": 300, "max_iter": 1, "stride": 1, "refine": None}
    return denoise(given.noisy, given.sigma, n_atoms=D.shape[1], threads=1, **settings).image


@lru_cache(maxsize=1)
def picture(name: str) -> np.ndarray:
    pixels = getattr(data, name)()
    return np.rint(255 * color.rgb2gray(pixels)) if pixels.ndim == 3 else pixels.astype(float)


def measure(function: Any, cell: Row) -> Row:
    clean, sigma = picture(cell["picture"]), cell["sigma"]
    noise = np.random.default_rng([cell["draw"], sigma]).standard_normal(clean.shape)
    given = PictureProblem(clean + sigma * noise, sigma, cell["patches"], seed=cell["draw"])
    warm_up(function, PictureProblem(given.noisy[:160, :160], sigma, cell["patches"], 0), "float64")
    seconds, image = cpu_seconds(function, given)
    return {"seconds": seconds, "psnr": float(peak_signal_noise_ratio(clean, image, data_range=255))}


def group(cell: Row) -> Any:
    return cell["draw"], cell["sigma"], cell["patches"]


def tables(rows: list[Row]) -> list[Table]:
    lines = []
    head = ["method", "patches", *(f"σ = {sigma}" for sigma in SIGMAS), *(f"{name} 25" for name in NAMES)]
    for patches in sorted({row["cell"]["patches"] for row in rows}):
        for name in in_order(row["method"] for row in rows if row["cell"]["patches"] == patches):
            chosen = {"method": name, "patches": patches}
            cells = [_cell(rows, chosen, sigma) for sigma in SIGMAS]
            pictures = (values(rows, "psnr", **chosen, sigma=25, picture=picture) for picture in NAMES)
            each = [number(mean(found)) for found in pictures]
            lines.append([name, f"{patches:,}" if patches else "–", *cells, *each])
    return [Table("PSNR in dB (CPU seconds), mean of the pictures; then each picture at σ = 25", head, lines)]


def _cell(rows: list[Row], chosen: Row, sigma: int) -> str:
    found, seconds = (of_all_pictures(rows, q, **chosen, sigma=sigma) for q in ("psnr", "seconds"))
    return "–" if found is None else f"{found:.2f} ({number(seconds, '.1f')})"


def of_all_pictures(rows: list[Row], quality: str, **cell: Any) -> float | None:
    """The mean of the pictures, None where not all of them were measured: a mean of others says nothing."""
    pictures = {row["cell"]["picture"] for row in rows}
    each = [mean(values(rows, quality, picture=name, **cell)) for name in pictures]
    return None if None in each else mean(each)
