"""Whole methods on four grey pictures: PSNR and CPU seconds of one thread, from noisy to clean.

Run as ``OPENBLAS_NUM_THREADS=1 python benchmarks/denoising_methods.py``: what the CSV file holds already is
not measured again, and the first tables in docs/denoising.md are made from it. BM3D and SPAMS are skipped
where they are not installed (``pip install spams-bin bm3d``; the licence of BM3D is non-commercial).
Dictionaries of SPAMS are followed by the reconstruction that ours has without its second look: forward
selection up to the noise, and an average. No setting was chosen on these pictures: that was done on chelsea,
coffee, brick and motorcycle of scikit-image and on flower of scikit-learn.
"""

import argparse
import time
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
from denoising import _between, _markdown, psnr, stay
from rich.console import Console
from rich.progress import track
from skimage import color, data

from manifold_dl import presets
from manifold_dl.images import Picture, cosines, denoise, usual_gain

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "results" / "denoising_methods.csv"
COLUMNS = ("method", "picture", "sigma", "draw", "psnr", "seconds")
PICTURES = ("camera", "coins", "astronaut", "moon")
PATCHES = {15: 20_000, 25: 40_000, 50: 20_000}


def noisy_picture(name, sigma, draw):
    clean = getattr(data, name)()
    clean = 255 * color.rgb2gray(clean) if clean.ndim == 3 else clean.astype(float)
    return clean, clean + sigma * np.random.default_rng([draw, sigma, 18]).standard_normal(clean.shape)


def ours(noisy, sigma, draw, **settings):
    settings = {"n_patches": PATCHES.get(sigma, 40_000)} | settings
    return denoise(noisy, sigma, rng=draw, threads=1, **settings).image


def bm3d(noisy, sigma, draw):
    import bm3d

    return bm3d.bm3d(noisy, sigma)


def spams(noisy, sigma, draw, mode):
    """Mode 1: ℓ₁ codes up to the noise; mode 4: OMP up to the noise. Ten passes, as ours."""
    import spams

    picture = Picture.of(noisy, 8)
    patches = picture.random_patches(PATCHES.get(sigma, 40_000), np.random.default_rng(draw))
    settings = {"mode": mode, "lambda1": 64 * (usual_gain(64) * sigma) ** 2, "batchsize": 512}
    settings |= {"iter": -(-10 * patches.shape[1] // 512), "numThreads": 1, "verbose": False}
    start = np.asfortranarray(cosines(picture, 256))
    D = spams.trainDL(np.asfortranarray(patches), D=start.copy(order="F"), **settings)
    norms = np.linalg.norm(D, axis=0)
    D = np.where(norms > 0, D, start) / np.where(norms > 0, norms, 1)  # unused atoms may become zero
    given = {"init": D, "update": stay, "n_patches": 300, "max_iter": 1}
    return ours(noisy, sigma, draw, stride=1, refine=None, **given)


METHODS = {
    "BM3D": bm3d,
    "SPAMS, ℓ₁": lambda *given: spams(*given, mode=1),
    "SPAMS, OMP": lambda *given: spams(*given, mode=4),
    "ours, without the second look": lambda *given: ours(*given, stride=1, max_iter=10, refine=None),
    "ours, `quick`": lambda *given: ours(*given, **presets.images("quick")),
    "ours, `best`": lambda *given: ours(*given, **presets.images("best")),
}
NEEDS = {"BM3D": "bm3d", "SPAMS, ℓ₁": "spams", "SPAMS, OMP": "spams"}


def measure(method, name, sigma, draw):
    """PSNR in dB and CPU seconds, after a warm-up on a small piece."""
    clean, noisy = noisy_picture(name, sigma, draw)
    METHODS[method](noisy[:48, :48], sigma, draw)
    begin = time.process_time()
    image = METHODS[method](noisy, sigma, draw)
    return psnr(clean, image), time.process_time() - begin


def read(path):
    lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
    rows = [line.rsplit(";", 5) for line in lines]
    return {(m, p, int(s), int(d)): (float(q), float(t)) for m, p, s, d, q, t in rows}


def lines(rows, draw):
    """For every method the mean PSNR at each σ, and the mean time at σ = 25; a dash where one is missing."""
    for method in METHODS:
        found = {case: rows.get((method, *case, draw)) for case in product(PICTURES, PATCHES)}
        if any(found.values()):
            each = [found[picture, 25] for picture in PICTURES]
            yield (
                method,
                *(_mean([found[picture, sigma] for picture in PICTURES], 0, 2) for sigma in PATCHES),
                *(_mean([one], 0, 2) for one in each),
                _mean(each, 1, 1),
            )


def _mean(values, entry, digits):
    return "–" if None in values else f"{np.mean([value[entry] for value in values]):.{digits}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--sigmas", type=int, nargs="+", default=[25, 15, 50])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--out", type=Path, default=OUT, help="the page is written if it is the default")
    options = parser.parse_args()
    console = Console()
    jobs = list(product(options.methods, PICTURES, options.sigmas, options.draws))
    jobs = [job for job in jobs if job not in read(options.out)]
    for method in {job[0] for job in jobs}:
        if method in NEEDS and find_spec(NEEDS[method]) is None:
            console.print(f"{method} is skipped: {NEEDS[method]} is not installed.")
            jobs = [job for job in jobs if job[0] != method]
    jobs.sort(key=lambda job: (job[3], options.sigmas.index(job[2])))
    if not options.out.exists():
        options.out.write_text(";".join(COLUMNS) + "\n", encoding="utf-8")
    for job in track(jobs, description="Denoising", console=console):
        quality, seconds = measure(*job)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(";".join([*map(str, job), f"{quality:.4f}", f"{seconds:.2f}"]) + "\n")
    if options.out == OUT:
        write_page(DOCS / "denoising.md", read(OUT))


def write_page(path, rows):
    """Put the tables between their marks."""
    head = ["method", *(f"mean, σ = {s}" for s in PATCHES), *(f"{p} 25" for p in PICTURES), "s"]
    page = path.read_text(encoding="utf-8")
    for draw in (0, 1):
        page = _between(page, f"methods, draw {draw}", _markdown(head, list(lines(rows, draw))))
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
