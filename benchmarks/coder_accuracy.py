"""Pursuits on a million picture patches: residuals never rise when an atom is added, and codes stay bounded.

    python benchmarks/coder_accuracy.py                             # every coder, both precisions
    python benchmarks/coder_accuracy.py --patches 20000 --coder OMP

The 8×8 patches come from three photographs, those in colour channel by channel; the dictionary is the 64×256
one of overcomplete cosines, of which some sets are dependent. The checks are those of
`tests/coders/test_accuracy.py`. The patches are coded 20,000 at a time, so that memory does not grow with
their number. The first violation ends the run with an AssertionError.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from skimage import data
from sklearn.datasets import load_sample_image

from manifold_dl.coders import (
    IHT,
    OMP,
    ForwardSelection,
    GradientPursuit,
    MatchingPursuit,
    SubspacePursuit,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pursuit_residuals import (
    cosines,
    require_bounded_codes,
    require_residual_never_rises,
    windows,
    without_mean,
)

CHUNK = 20_000
SPARSITIES = (1, 2, 3, 4, 5, 6, 8, 12, 16)
ROUNDS = (1, 2, 3, 5, 10, 100)

# Each coder of a list may do more than the one before: choose an atom more, or go on for some rounds.
CODERS = {
    "OMP": [OMP(s) for s in SPARSITIES],
    "ForwardSelection": [ForwardSelection(s) for s in SPARSITIES],
    "MatchingPursuit": [MatchingPursuit(s) for s in SPARSITIES],
    "GradientPursuit": [GradientPursuit(s) for s in SPARSITIES],
    "SubspacePursuit": [SubspacePursuit(5, max_iter=n) for n in ROUNDS],
    "IHT": [IHT(5)],  # its last least-squares fit on the support may leave more after more rounds
}


def chunks(n):
    """Patches of the pictures in random order, without repetition, as float64 columns."""
    colour = np.concatenate([load_sample_image("china.jpg"), load_sample_image("flower.jpg")], axis=2)
    pictures = [windows(picture) for picture in (*np.moveaxis(colour, 2, 0), data.camera())]
    ends = np.cumsum([w.shape[0] * w.shape[1] for w in pictures])
    if not 0 < n <= ends[-1]:
        raise SystemExit(f"--patches {n}: the pictures have {ends[-1]:,} patches.")
    chosen = np.random.default_rng(0).choice(ends[-1], n, replace=False)
    for start in range(0, n, CHUNK):
        part = np.sort(chosen[start : start + CHUNK])
        which = np.searchsorted(ends, part, side="right")
        found = []
        for i, every in enumerate(pictures):
            places = part[which == i] - (ends[i] - every.shape[0] * every.shape[1])
            found.append(every[np.unravel_index(places, every.shape[:2])].reshape(-1, 64))
        yield without_mean(np.concatenate(found))


def check(name, dtype, n):
    """Run one coder over all patches; show how far it has come, and the extremes at the end."""
    D, done, rise, largest, start = cosines().astype(dtype), 0, -np.inf, 0.0, time.perf_counter()
    for patches in chunks(n):
        Y = patches.astype(dtype)
        most, X = require_residual_never_rises(CODERS[name], Y, D)
        rise, largest, done = max(rise, most), max(largest, require_bounded_codes(X, Y)), done + Y.shape[1]
        print(f"\r{name}, {dtype.__name__}: {done:,} of {n:,} patches", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    seconds = time.perf_counter() - start
    print(f"{name}, {dtype.__name__}: {n:,} patches in {seconds:.0f} s", end="; ")
    print(f"largest rise {max(rise, 0):.2f} of the rounding allowed", end=", ")
    print(f"largest coefficient {largest:.3g} times the norm of its signal", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patches", type=int, default=1_000_000)
    parser.add_argument("--coder", choices=CODERS, action="append", help="may be repeated; default: all")
    arguments = parser.parse_args()
    for name in arguments.coder or CODERS:
        for dtype in (np.float32, np.float64):
            check(name, dtype, arguments.patches)


if __name__ == "__main__":
    main()
