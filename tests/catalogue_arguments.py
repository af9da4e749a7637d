"""Bad and odd weights, validation signals and settings of the newer arguments: a part of the catalogue.

Each kind is a function of good ones (8×60 signals), and says whether it has to be refused or has to work.
"""

import numpy as np
import scipy.sparse
from catalogue_signals import EITHER, REFUSED, WORKS, with_entry

import manifold_dl as mdl


def value(item):
    return lambda good: item


def per_entry(change):
    """The same for a weight of every entry."""
    return lambda w: change(np.tile(w, (8, 1)))


def with_value(number):
    def change(w):
        w = w.copy()
        w.flat[7] = number
        return w

    return change


WEIGHTS = {  # one per signal
    "one NaN": (REFUSED, with_value(np.nan)),
    "one below 0": (REFUSED, with_value(-1e-9)),
    "one infinite": (REFUSED, with_value(np.inf)),
    "1e300": (REFUSED, with_value(1e300)),
    "all zero": (EITHER, lambda w: 0 * w),  # nothing to learn from; codes are as without them
    "text": (REFUSED, lambda w: w.astype(str)),
    "complex": (REFUSED, lambda w: w + 1j),
    "masked": (REFUSED, lambda w: np.ma.masked_array(w, mask=w > 2)),
    "too few": (REFUSED, lambda w: w[:-1]),
    "three axes": (REFUSED, lambda w: np.tile(w, (1, 8, 1))),
    "a word": (REFUSED, value("weights")),
    "some zero": (WORKS, lambda w: w * (np.arange(60) % 3 > 0)),
    "ones": (WORKS, np.ones_like),
    "whole numbers": (WORKS, lambda w: np.rint(w).astype(int)),
    "booleans": (WORKS, lambda w: w > 1),
    "lists": (WORKS, lambda w: w.tolist()),
    "float16": (WORKS, lambda w: w.astype(np.float16)),
    "big-endian": (WORKS, lambda w: w.astype(">f8")),
}
ENTRY_WEIGHTS = {  # one per entry
    "one NaN": (REFUSED, per_entry(with_value(np.nan))),
    "one below 0": (REFUSED, per_entry(with_value(-1e-9))),
    "of the transpose": (REFUSED, lambda w: np.tile(w, (8, 1)).T),
    "sparse": (REFUSED, per_entry(scipy.sparse.csc_array)),
    "masked": (REFUSED, per_entry(lambda W: np.ma.masked_array(W))),
    "some zero": (WORKS, per_entry(lambda W: W * (np.arange(480).reshape(8, 60) % 7 > 0))),
    "a feature without": (WORKS, per_entry(lambda W: W * (np.arange(8) != 3)[:, None])),
    "ones": (WORKS, per_entry(np.ones_like)),
    "booleans": (WORKS, per_entry(lambda W: W > 1)),
    "lists": (WORKS, per_entry(lambda W: W.tolist())),
    "negative strides": (WORKS, per_entry(lambda W: W[::-1, ::-1].copy()[::-1, ::-1])),
}
VALIDATION = {
    "one NaN": (REFUSED, with_entry(np.nan)),
    "of another length": (REFUSED, lambda Y: Y[:6]),
    "text": (REFUSED, lambda Y: Y.astype(str)),
    "none": (REFUSED, lambda Y: Y[:, :0]),
    "lists": (WORKS, lambda Y: Y.tolist()),
    "float32": (WORKS, lambda Y: Y.astype(np.float32)),
    "all zero": (WORKS, lambda Y: 0 * Y),
}
SETTINGS = {
    "minibatches = True": ("minibatches", REFUSED, value(True)),
    "minibatches = 4096": ("minibatches", REFUSED, value(4096)),
    "a class for mini-batches": ("minibatches", REFUSED, value(mdl.MiniBatches)),
    "alpha = 0": ("alpha", REFUSED, value(0.0)),
    "alpha < 0": ("alpha", REFUSED, value(-0.1)),
    "alpha = NaN": ("alpha", REFUSED, value(float("nan"))),
    "alpha = infinity": ("alpha", REFUSED, value(float("inf"))),
    "alpha = text": ("alpha", REFUSED, value("small")),
    "a weight for alpha": ("alpha", REFUSED, value(np.ones(60))),
}
ARGUMENTS = (
    {f"weights: {name}": ("weights", *kind) for name, kind in WEIGHTS.items()}
    | {f"weights of entries: {name}": ("entry weights", *kind) for name, kind in ENTRY_WEIGHTS.items()}
    | {f"validation: {name}": ("validation", *kind) for name, kind in VALIDATION.items()}
    | SETTINGS
)
