"""Stored results and checkpoints, and ways to damage them."""

import json
import zipfile

import numpy as np

from manifold_dl import (
    OMP,
    datasets,
    learn_dictionary,
)

Y = datasets.synthetic(6, 8, 40, sparsity=2, rng=0).signals


def learn(**options):
    return learn_dictionary(Y, 8, **{"coder": OMP(sparsity=2), "max_iter": 3, "rng": 0, **options})


def contents(path):
    """Everything in a file of ours: the header as a dict, the rest as arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def rewrite(path, header=None, **arrays):
    """The same file with some things changed, behind the back of `storage`; None leaves an array out."""
    meta, known = contents(path)
    meta |= header or {}
    known |= {name.replace("__", "/"): array for name, array in arrays.items()}
    known = {name: array for name, array in known.items() if array is not None}
    np.savez(path, header=np.frombuffer(json.dumps(meta).encode(), np.uint8), **known)


def add_member(path, name, data, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr(name, data)
