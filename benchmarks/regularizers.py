# ruff: noqa: E402 - the number of BLAS threads has to be set before NumPy is imported
"""What regularizers cost.

    python benchmarks/regularizers.py [--quick]

The processor time that penalties left to autograd add to a trust-region step, on one thread, with and without
the penalty in turns. What penalties on coherence do is in `benchmarks/coherence.py`.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded

import sys
import time

import autograd.numpy as anp
import numpy as np
from pymanopt.optimizers import TrustRegions
from rich.console import Console
from rich.table import Table

import manifold_dl as mdl
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import Coherence, regularizer

SIZE = (64, 256, 65_000, 5)
INNER = 5  # Hessian products a step: fixed, so that a penalty changes the time of a step and nothing else


@regularizer
def overlaps(D):
    """`Coherence` with power 2, left to autograd: products of matrices only."""
    gram = D.T @ D
    return anp.sum(gram**2) - anp.sum(anp.diag(gram) ** 2)


@regularizer
def cosines(D):
    """log cosh of all inner products: an expensive function of every pair."""
    return anp.sum(anp.log(anp.cosh(3.0 * (D.T @ D))))


@regularizer
def roughness(D):
    """Differences of neighbouring pixels of 8×8 pictures."""
    pictures = anp.reshape(D, (8, 8, -1))
    return anp.sum(anp.diff(pictures, axis=0) ** 2) + anp.sum(anp.diff(pictures, axis=1) ** 2)


@regularizer
def peaks(D):
    """Fourth powers, entry by entry."""
    return anp.sum(D**4)


PENALTIES = {
    "overlaps": overlaps,
    "cosines": cosines,
    "roughness": roughness,
    "peaks": peaks,
    "all four": overlaps + cosines + roughness + peaks,
    "Coherence, by hand": Coherence(1.0),
}


def time_of_a_step(repeats, n_steps=2):
    """For each penalty the seconds of a step without and with it, in turns: the shortest of `repeats`."""
    m, d, n, sparsity = SIZE
    data = synthetic(m, d, n, sparsity, snr_db=20, rng=0)
    # Near the minimum, where no step ends early at negative curvature or at the edge of the region.
    spheres = Spheres(m, d)
    start = spheres.exp(data.dictionary, 0.1 * spheres.random_tangent_vector(data.dictionary, 1))
    weight = 1e-7 * float(np.sum(data.signals**2))

    def step(*penalties):
        problem = mdl.update_problem(data.signals, data.codes, mu=0.1, regularizers=penalties, threads=1)
        optimizer = TrustRegions(max_iterations=n_steps, verbosity=0, kappa=0)
        begin = time.process_time()
        optimizer.run(problem, initial_point=start, mininner=INNER, maxinner=INNER)
        seconds = (time.process_time() - begin) / n_steps
        products = problem.counts.hessian / n_steps
        assert products == INNER, f"{products} Hessian products a step"
        return seconds

    step()  # to warm up
    for name, penalty in PENALTIES.items():
        turns = [(step(), step(weight * penalty)) for _ in range(repeats)]
        yield name, *(min(times) for times in zip(*turns, strict=True))


def main():
    quick = "--quick" in sys.argv[1:]
    console = Console()

    title = f"A trust-region step with {INNER} Hessian products, (m, d, n, S) = {SIZE}"
    table = Table("penalty", "without", "with", "more", "target", "holds", title=title)
    for name, without, with_it in time_of_a_step(2 if quick else 7):
        more = with_it / without - 1
        cells = f"{1e3 * without:.0f} ms", f"{1e3 * with_it:.0f} ms", f"{100 * more:+.1f} %", "≤ 20 %"
        # The target is for one regularizer; four of them are here to see how they add up.
        verdict = "–" if name == "all four" else "[green]yes" if more <= 0.2 else "[red]no"
        table.add_row(name, *cells, verdict)
    console.print(table)


if __name__ == "__main__":
    main()
