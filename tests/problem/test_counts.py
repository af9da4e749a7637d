"""Counts of evaluations, also in nested blocks."""

import numpy as np

from manifold_dl import update_problem
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.counts import count_evaluations


def evaluate_once():
    signals = np.random.default_rng(0).standard_normal((4, 9))
    update_problem(signals, np.ones((2, 9), bool)).cost(Spheres(4, 2).random_point(0))


def test_an_enclosing_block_counts_what_an_inner_block_counts():
    with count_evaluations() as outer:
        with count_evaluations() as inner:
            evaluate_once()
        evaluate_once()
    assert (inner.value, outer.value) == (1, 2)
