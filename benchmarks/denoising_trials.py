"""What else was tried for denoising, on the pictures that settings are chosen on: crops of 256×256, one draw.

    OPENBLAS_NUM_THREADS=1 python benchmarks/denoising_trials.py [--sigma 25] [--only boosted]

"first look" is the average of the represented patches alone (`refine=None`, stride 1), and each trial changes
one thing of it, or of the whole default. The table in docs/denoising.md is made from the results, which are
kept in docs/results/denoising_trials.json.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from comparison.page import between
from comparison.tables import Table
from denoising import psnr, stay
from rich.console import Console
from rich.progress import track
from skimage import color, data

import manifold_dl as mdl
from manifold_dl.images import Picture, SimilarPatches, cosines, denoise, usual_gain
from manifold_dl.images.reconstruction import WeightedPatches, weighted_reconstruction

PICTURES = ("chelsea", "coffee", "brick", "motorcycle")
SIZE, ROUNDS, RHO = 256, 3, 0.5
DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results" / "denoising_trials.json"


def noisy_picture(name, sigma):
    pixels = data.stereo_motorcycle()[0] if name == "motorcycle" else getattr(data, name)()
    grey = 255 * color.rgb2gray(pixels) if pixels.ndim == 3 else pixels.astype(float)
    top, left = ((side - SIZE) // 2 for side in grey.shape)
    clean = grey[top : top + SIZE, left : left + SIZE]
    return clean, clean + sigma * np.random.default_rng([sigma, 1]).standard_normal(clean.shape)


def first_look(noisy, sigma, **settings):
    settings = {"stride": 1, "refine": None, "rng": 0, "threads": 1} | settings
    return denoise(noisy, sigma, **settings)


def whole(noisy, sigma, **settings):
    return denoise(noisy, sigma, rng=0, threads=1, **settings)


def refined(**settings):
    """With other settings of the second look."""
    return lambda noisy, sigma: whole(noisy, sigma, refine=SimilarPatches(**settings)).image


def boosted(look):
    """x ← denoise(y + ρx) − ρx with the dictionary of the first round."""

    def clean(noisy, sigma):
        found = look(noisy, sigma)
        image, given = (
            found.image,
            {"init": found.dictionary, "update": stay, "n_patches": 300, "max_iter": 1},
        )
        for _ in range(ROUNDS):
            image = look(noisy + RHO * image, sigma, **given).image - RHO * image
        return image

    return clean


def weighted_average(noisy, sigma):
    """Patches count 1/(1 + atoms) in the average."""
    found, picture = first_look(noisy, sigma), Picture.of(noisy, 8, 1)
    coder = mdl.OMP(sparsity=32, tol=64 * (usual_gain(64) * sigma) ** 2)
    patches = WeightedPatches(picture, np.zeros(picture.pixels.shape, bool), estimated=1.0)
    return weighted_reconstruction(patches, found.dictionary, coder, 1, only_missing=False)[:, :, 0]


def l1_learning(noisy, sigma):
    """Learn with ℓ₁ codes whose penalty leaves the error of the noise on average, then look as usual."""
    picture, bound = Picture.of(noisy, 8, 1), 64 * (usual_gain(64) * sigma) ** 2
    sample = np.asfortranarray(picture.random_patches(2_000, np.random.default_rng(0)))
    D, low, high = cosines(picture, 256), 0.0, 20.0 * sigma
    for _ in range(12):
        alpha = (low + high) / 2
        residual = sample - D @ mdl.Lasso(alpha=alpha).encode(sample, D, threads=1)
        low, high = (alpha, high) if np.mean(np.sum(residual**2, axis=0)) < bound else (low, alpha)
    patches = np.asfortranarray(picture.random_patches(5_000, np.random.default_rng(0)))
    settings = {"init": D, "max_iter": 4, "rng": 0, "threads": 1}
    learned = mdl.learn_dictionary(patches, 256, coder=mdl.Lasso(alpha=low), **settings).dictionary
    return first_look(noisy, sigma, init=learned, update=stay, n_patches=300, max_iter=1).image


def omp_average(noisy, sigma):
    """What the weights are compared with: the same coder, all patches alike."""
    found = first_look(noisy, sigma)
    given = {"init": found.dictionary, "update": stay, "n_patches": 300, "max_iter": 1, "coder": "omp"}
    return first_look(noisy, sigma, **given).image


TRIALS = {
    "first look": lambda y, s: first_look(y, s).image,
    "5,000 patches": lambda y, s: first_look(y, s, n_patches=5_000).image,
    "all 62,001 patches": lambda y, s: first_look(y, s, n_patches=62_001).image,
    "ten iterations": lambda y, s: first_look(y, s, max_iter=10).image,
    "5,000 patches, learned by ℓ₁ codes": l1_learning,
    "patches coded by OMP": omp_average,
    "coded by OMP, weights 1/(1 + atoms)": weighted_average,
    "boosted, three rounds, ρ = 0.5": boosted(first_look),
    "both looks (default)": lambda y, s: whole(y, s).image,
    "both looks, boosted": boosted(whole),
    "both looks, no smaller pictures": refined(halvings=0),
    "both looks, picture halved once": refined(halvings=1),
    "both looks, no smaller pictures, groups of 64": refined(halvings=0, n_similar=64),
    "both looks, no smaller pictures, three rounds": refined(halvings=0, rounds=3),
    "both looks, groups of 48": refined(n_similar=48),
    "both looks, three rounds": refined(rounds=3),
    "both looks, 0.8 of the ridge": refined(ridge=0.8),
}


def measure(name, sigma):
    """PSNR of every picture and CPU seconds of all of them."""
    begin, qualities = time.process_time(), []
    for picture in PICTURES:
        clean, noisy = noisy_picture(picture, sigma)
        qualities.append(float(psnr(clean, TRIALS[name](noisy, sigma))))
    return {"psnr": qualities, "seconds": time.process_time() - begin}


def table(found, sigma):
    lines = [
        [
            name,
            f"{np.mean(row['psnr']):.2f}",
            *(f"{one:.2f}" for one in row["psnr"]),
            f"{row['seconds'] / 4:.1f}",
        ]
        for name, row in found.items()
    ]
    return Table("", [f"σ = {sigma}", "mean", *PICTURES, "s"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sigma", type=int, default=25)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names; the other rows are kept")
    options = parser.parse_args()
    sigma = options.sigma
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    first_look(noisy_picture("brick", sigma)[1][:64, :64], sigma)  # compile
    found = results.get(str(sigma), {})
    for name in track([n for n in TRIALS if any(part in n for part in options.only)], "Denoising"):
        found[name] = measure(name, sigma)
        results[str(sigma)] = {name: found[name] for name in TRIALS if name in found}
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    tables = [table(results[one], one) for one in sorted(results, key=int)]
    Console().print(table(results[str(sigma)], sigma).rich())
    page = DOCS / "denoising.md"
    text = "\n\n".join(one.markdown() for one in tables)
    page.write_text(between(page.read_text(encoding="utf-8"), "trials", text), encoding="utf-8")


if __name__ == "__main__":
    main()
