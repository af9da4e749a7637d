"""A small estimator and its samples."""

import numpy as np

from manifold_dl import (
    OMP,
    ManifoldDictionaryLearning,
    SimCO,
    datasets,
)

D_TRUE, _, Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0)


ROWS = np.ascontiguousarray(Y.T)


def model(n_components=12, **options):
    settings = {"coder": OMP(sparsity=2), "update": SimCO(mu=[0.1, 0.0]), "max_iter": 4, "random_state": 0}
    return ManifoldDictionaryLearning(n_components, **{**settings, **options})
