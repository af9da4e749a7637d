"""Three pictures, three levels of noise: what learning a dictionary from the noisy picture gains.

Every method gets the same patches, start, coder and reconstruction; our setting is shown with forward
selection, its own coder, as well. Run as ``python benchmarks/denoising.py``: what the CSV file holds already
is not measured again, and the tables in docs/denoising.md are made from it. It needs the extra `images`, and
PyWavelets for one of the references.
"""

import argparse
import csv
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from skimage import data
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import denoise_nl_means, denoise_wavelet

import manifold_dl as mdl
from manifold_dl.experiments.methods import paper_methods
from manifold_dl.images import denoise, usual_gain

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("method", "patches", "picture", "sigma", "draw", "psnr")
KEYS = COLUMNS[:5]
PICTURES, SIGMAS = ("camera", "coins", "astronaut"), (15, 25, 50)
FEW, MANY, DRAWS = 1_000, 40_000, 10


def stay(signals, dictionary, codes, **_):
    """No update at all: the cosines that everybody starts from."""
    return dictionary, codes


LEARNED = paper_methods(mu=0.05, threads=None)
OURS = "ours", "ours, forward selection"
REFERENCES = "wavelet (scikit-image)", "non-local means (scikit-image)"


def noisy_picture(picture, sigma, draw):
    clean = getattr(data, picture)().astype(float)
    return clean, clean + sigma * np.random.default_rng([draw, sigma]).standard_normal(clean.shape)


def measure(method, patches, picture, sigma, draw, stride=1, threads=None):
    """PSNR in dB, white being 255."""
    clean, noisy = noisy_picture(picture, sigma, draw)
    if method in REFERENCES:
        return psnr(clean, _reference(method, noisy, sigma))
    channels = 1 if clean.ndim == 2 else 3
    m = 64 * channels
    coder = mdl.OMP(sparsity=m // 2, tol=(usual_gain(m, channels) * sigma) ** 2 * m)
    settings = {"coder": coder, "update": LEARNED.get(method), "n_patches": patches, "stride": stride}
    settings |= {"max_iter": 10, "refine": None}  # the represented patches alone
    if method == "fixed cosines":
        settings |= {"update": stay, "n_patches": FEW, "max_iter": 1}
    elif method == OURS[1]:
        settings["coder"] = None
    result = denoise(noisy, sigma, rng=draw, threads=threads, **settings)
    return psnr(clean, result.image)


def psnr(clean, image):
    return peak_signal_noise_ratio(clean, image, data_range=255)


def _reference(method, noisy, sigma):
    options = {"sigma": sigma / 255, "channel_axis": -1 if noisy.ndim == 3 else None}
    if method == REFERENCES[0]:
        colour = noisy.ndim == 3  # better in luminance and colour differences
        return 255 * denoise_wavelet(noisy / 255, rescale_sigma=True, convert2ycbcr=colour, **options)
    # h = 0.8 σ and 5×5 patches within 13×13 pixels, as scikit-image's own example has them.
    return 255 * denoise_nl_means(
        noisy / 255, h=0.8 * sigma / 255, patch_size=5, patch_distance=6, fast_mode=True, **options
    )


def all_jobs():
    table = [("fixed cosines", 0), *((name, FEW) for name in (*LEARNED, *OURS))]
    table += [(name, 0) for name in REFERENCES] + [(name, MANY) for name in ("MOD", "K-SVD", *OURS)]
    yield from ((*row, picture, sigma, 0) for row, picture, sigma in product(table, PICTURES, SIGMAS))
    for draw, name in product(range(1, DRAWS), (*LEARNED, OURS[0])):
        yield from ((name, FEW, picture, 25, draw) for picture in ("camera", "coins"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS / "results" / "denoising.csv")
    parser.add_argument(
        "--patches", type=int, nargs="+", help="only rows learned from so many; 0: no learning"
    )
    parser.add_argument("--draws", type=int, nargs="+", help="only these noise draws")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    done = {tuple(str(row[key]) for key in KEYS) for row in read(options.out)}
    jobs = [
        job
        for job in all_jobs()
        if tuple(map(str, job)) not in done
        and (options.patches is None or job[1] in options.patches)
        and (options.draws is None or job[4] in options.draws)
    ]
    console = Console()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for job in track(jobs, description="Denoising", console=console):
        append(options.out, [*job, measure(*job, threads=options.threads)])
    rows = read(options.out)
    console.print(rich_table(rows))
    write_page(DOCS / "denoising.md", rows)


def read(path):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: int(row[name]) for name in ("patches", "sigma", "draw")}
        row["psnr"] = float(row["psnr"])
    return rows


def append(path, values):
    """Row by row, so that an interrupted run loses nothing."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        writer.writerow([round(value, 4) if isinstance(value, float) else value for value in values])


def summary(rows):
    """A line for every method and number of patches: the PSNR of every case, and the mean."""
    values = {}
    for row in rows:
        if row["draw"] == 0:
            values.setdefault((row["method"], row["patches"]), {})[row["picture"], row["sigma"]] = row["psnr"]
    cases = list(product(PICTURES, SIGMAS))
    for (method, patches), found in values.items():
        if all(case in found for case in cases):
            numbers = [found[case] for case in cases]
            yield method, f"{patches:,}" if patches else "–", *numbers, float(np.mean(numbers))


def by_draws(rows):
    """Mean and standard deviation over noise draws, and of the difference from K-SVD."""
    for picture in PICTURES:
        found = {}
        for row in rows:
            if (row["picture"], row["sigma"], row["patches"]) == (picture, 25, FEW):
                found.setdefault(row["method"], {})[row["draw"]] = row["psnr"]
        for method in (*LEARNED, OURS[0]):
            draws = sorted(set(found.get(method, {})) & set(found.get("K-SVD", {})))
            if len(draws) > 1:
                values = np.array([found[method][draw] for draw in draws])
                gain = values - [found["K-SVD"][draw] for draw in draws]
                yield (
                    picture,
                    method,
                    len(draws),
                    values.mean(),
                    values.std(ddof=1),
                    gain.mean(),
                    gain.std(ddof=1),
                )


def rich_table(rows):
    table = Table("method", "patches", title="PSNR in dB")
    for picture, sigma in product(PICTURES, SIGMAS):
        table.add_column(f"{picture} {sigma}", justify="right")
    table.add_column("mean", justify="right")
    for method, patches, *numbers in summary(rows):
        table.add_row(method, patches, *(f"{number:.2f}" for number in numbers))
    return table


def write_page(path, rows):
    """Replace the tables between their marks; the text around them stays as it is."""
    page = path.read_text(encoding="utf-8")
    head = [
        "method",
        "patches",
        *(f"{picture} {sigma}" for picture, sigma in product(PICTURES, SIGMAS)),
        "mean",
    ]
    lines = [(a, b, *(f"{x:.2f}" for x in numbers)) for a, b, *numbers in summary(rows)]
    page = _between(page, "table", _markdown(head, lines))
    head = ["picture", "method", "draws", "PSNR", "above K-SVD"]
    lines = [
        (picture, method, str(count), f"{mean:.3f} ± {spread:.3f}", f"{gain:+.3f} ± {gain_spread:.3f}")
        for picture, method, count, mean, spread, gain, gain_spread in by_draws(rows)
    ]
    path.write_text(_between(page, "draws", _markdown(head, lines)), encoding="utf-8")


def _markdown(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines))


def _between(page, name, text):
    before, rest = page.split(f"<!-- {name} -->")
    return (
        f"{before}<!-- {name} -->\n\n{text}\n\n<!-- end of {name} -->"
        + rest.split(f"<!-- end of {name} -->")[1]
    )


if __name__ == "__main__":
    main()
