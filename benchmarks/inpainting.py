"""Missing pixels of four pictures: what a dictionary learned from the rest of the picture fills in.

Against scikit-image's `inpaint_biharmonic`, against OMP over a cosine dictionary on the observed pixels, and
against our own rounds without learning. Run as ``python benchmarks/inpainting.py``: what the CSV file holds
already is not measured again, unless --again says so; docs/inpainting.md is made from it, and the picture
there. The exit code is 1 if our method took longer than 30 s for a colour picture with 25 or 50 % missing. It
needs the extra `images`.
"""

import argparse
import csv
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from skimage import data
from skimage.restoration import inpaint_biharmonic

import manifold_dl as mdl
from manifold_dl.images import Picture, cosines, inpaint

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("method", "picture", "missing", "psnr", "seconds", "cpu")  # cpu: seconds of all threads
PICTURES = ("camera", "astronaut", "brick", "grass")
MISSING = ("25 %", "50 %", "80 %", "text", "scratches", "holes")
METHODS = ("biharmonic", "OMP, cosines", "ours, not learned", "ours")
LONGEST = 30.0  # seconds for 512×512 pixels in colour, on two free processors


def mask_of(kind, shape, draw=0):
    """Where pixels are missing."""
    rng = np.random.default_rng([draw, 17])
    if kind.endswith("%"):
        return rng.random(shape) < float(kind[:-1]) / 100
    mask = np.zeros(shape, bool)
    if kind == "scratches":
        for row in rng.integers(0, shape[0], 12):
            slope = rng.uniform(-0.5, 0.5)
            columns = np.arange(shape[1])
            rows = (row + slope * columns).astype(int) % shape[0]
            mask[rows, columns] = mask[(rows + 1) % shape[0], columns] = True
    elif kind == "holes":
        for row, column in rng.integers(32, min(shape) - 48, (10, 2)):
            mask[row : row + 16, column : column + 16] = True
    else:
        mask = _text(shape)
    return mask


def _text(shape):
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", shape[::-1])
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(22)
    for row in range(8, shape[0], 40):
        pen.text((4, row), "A dictionary learned from the picture itself. " * 2, fill=255, font=font)
    return np.array(picture) > 127


def measure(method, picture, kind):
    """PSNR in dB, seconds, and CPU seconds of all threads."""
    clean = getattr(data, picture)() / 255
    mask = mask_of(kind, clean.shape[:2])
    begin, cpu = time.perf_counter(), time.process_time()
    image = fill(method, clean, mask)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    error = np.mean((np.clip(image, 0, 1) - clean) ** 2)
    return -10 * np.log10(error), seconds, cpu


def fill(method, clean, mask):
    """The picture with its missing pixels filled in."""
    if method == "biharmonic":
        holes = np.where(mask[..., None] if clean.ndim == 3 else mask, 0, clean)
        return inpaint_biharmonic(holes, mask, channel_axis=-1 if clean.ndim == 3 else None)
    if method == "OMP, cosines":
        return cosine_pursuit(clean, mask)
    unlearned = {"update": stay, "n_patches": 1_000, "max_iter": 1}
    return inpaint(clean, mask, **(unlearned if method == "ours, not learned" else {})).image


def stay(signals, dictionary, codes, weights=None, **_):
    """No update at all."""
    return dictionary, codes


def cosine_pursuit(clean, mask):
    """OMP of the observed pixels of every patch, and the average of what their codes represent."""
    channels = np.atleast_3d(clean)
    result = np.empty_like(channels)
    for c in range(channels.shape[2]):
        picture = Picture.of(np.where(mask, 0, channels[:, :, c]), 8)
        D, total, count = cosines(picture, 256), np.zeros(mask.shape), np.zeros(mask.shape)
        windows = np.lib.stride_tricks.sliding_window_view(picture.pixels[:, :, 0], (8, 8))
        holes = np.lib.stride_tricks.sliding_window_view(mask, (8, 8))
        for i in range(windows.shape[0]):
            W = (~holes[i].reshape(-1, 64).T).astype(float)
            scaled = W * 64 / np.maximum(W.sum(axis=0), 1)
            coder = mdl.OMP(sparsity=32, tol=64 * (3 / 255) ** 2)
            codes = coder.encode(windows[i].reshape(-1, 64).T, D, weights=scaled)
            patches = (D @ codes).T.reshape(-1, 8, 8)
            for row in range(8):
                for column in range(8):
                    place = i + row, slice(column, column + windows.shape[1])
                    total[place] += patches[:, row, column]
                    count[place] += 1
        result[:, :, c] = np.where(mask, total / count, channels[:, :, c])
    return result.reshape(clean.shape)


def draw(path):
    """Half of the pixels of a grey picture and a colour picture under text, and what is filled in."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(10, 5.2), layout="constrained")
    for row, (picture, kind) in zip(axes, (("camera", "50 %"), ("astronaut", "text")), strict=True):
        clean = getattr(data, picture)() / 255
        mask = mask_of(kind, clean.shape[:2])
        shown = slice(60, 260), slice(120, 320)
        holes = np.where(mask[..., None] if clean.ndim == 3 else mask, 0, clean)
        filled = {name: fill(name, clean, mask) for name in METHODS[::3]}
        panels = {f"{kind} missing": holes, **filled, "true": clean}
        for axis, (title, image) in zip(row, panels.items(), strict=True):
            axis.imshow(np.clip(image[shown], 0, 1), cmap="gray", vmin=0, vmax=1)
            axis.set_title(title)
            axis.set_axis_off()
    figure.savefig(path, dpi=110)


def main():
    """The exit code: 1 if a colour picture took too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS / "results" / "inpainting.csv")
    parser.add_argument("--missing", choices=MISSING, nargs="+", default=MISSING)
    parser.add_argument("--pictures", choices=PICTURES, nargs="+", default=PICTURES)
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=METHODS)
    parser.add_argument("--again", action="store_true", help="measure anew what the file holds, too")
    parser.add_argument("--draw", type=Path, help="a .png to write, and nothing else")
    options = parser.parse_args()
    if options.draw:
        draw(options.draw)
        return 0
    done = {}
    if options.out.exists():
        with options.out.open() as file:
            done = {(row["method"], row["picture"], row["missing"]): row for row in csv.DictReader(file)}
    inpaint(data.camera()[:64, :64], mask_of("50 %", (64, 64)), n_patches=500, max_iter=2)  # compiles
    for kind, picture, method in product(options.missing, options.pictures, options.methods):
        if options.again or (method, picture, kind) not in done:
            psnr, seconds, cpu = measure(method, picture, kind)
            numbers = f"{psnr:.3f}", f"{seconds:.1f}", f"{cpu:.1f}"
            done[method, picture, kind] = dict(zip(COLUMNS, (method, picture, kind, *numbers), strict=True))
            with options.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(done.values())
    table = Table("missing", "picture", *METHODS)
    for kind, picture in product(options.missing, options.pictures):
        known = (done.get((method, picture, kind)) for method in METHODS)
        table.add_row(kind, picture, *(f"{float(row['psnr']):.2f}" if row else "" for row in known))
    Console().print(table)
    in_colour = (done.get(("ours", "astronaut", kind)) for kind in MISSING[:2])
    slowest = max((float(row["seconds"]) for row in in_colour if row), default=0.0)
    Console().print(f"the slower of astronaut with 25 and 50 % missing: {slowest:.1f} s (≤ {LONGEST:g})")
    return int(slowest > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
