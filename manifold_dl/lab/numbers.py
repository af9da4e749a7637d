"""The numbers that the page shows of an iterate: objective, κ, singular values, coherence, atoms found."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl import metrics
from manifold_dl.lab.job import make_problem
from manifold_dl.lab.run import Run
from manifold_dl.metrics.conditioning import extreme_singular_values, ratios


@dataclass(frozen=True)
class Numbers:
    """What is measured at one iterate.

    Attributes
    ----------
    value, gradient_norm, seconds : float
    evaluations, index : int
        Of the iterate.
    relative : float
        The objective as a fraction of ‖Y‖².
    error : float
        ‖Y − DX‖ / ‖Y‖.
    kappa : float
        κ(D) over the supports.
    smallest : tuple of float
        The three smallest singular values over the supports.
    coherence : float
    found, atoms : int
        Atoms of the true dictionary that were found, and how many there are; found is -1 where it is not
        known.
    """

    index: int
    value: float
    gradient_norm: float
    seconds: float
    evaluations: int
    relative: float
    error: float
    kappa: float
    smallest: tuple[float, ...]
    coherence: float
    found: int
    atoms: int


def measure(run: Run, index: int = -1) -> Numbers:
    """Measure an iterate of a run.

    Parameters
    ----------
    run : Run
        With at least one iterate.
    index : int
        Of the iterate; the last by default.

    Returns
    -------
    Numbers

    Examples
    --------
    >>> from manifold_dl.lab.job import make_job
    >>> from manifold_dl.lab.settings import Settings
    >>> run = Run(make_job(Settings(m=8, d=12, n=100, sparsity=2, optimizer="TrustRegions")))
    >>> run.resume()
    >>> found = run.wait(60) and measure(run)
    >>> found.found, found.relative < 1e-9
    (12, True)
    """
    index = index % len(run.iterates)
    iterate, data = run.iterates[index], run.job.data
    dictionary = run.dictionary_at(index)
    codes = codes_at(run, index)
    largest, smallest = extreme_singular_values(dictionary, codes != 0)
    energy = run.job.energy
    found, atoms = -1, dictionary.shape[1]
    if data.truth is not None and dictionary.any(axis=0).all():
        found = round(metrics.recovery(dictionary, data.truth) * data.truth.shape[1])
    return Numbers(
        index=index,
        value=iterate.value,
        gradient_norm=iterate.gradient_norm,
        seconds=iterate.seconds,
        evaluations=iterate.evaluations,
        relative=iterate.value / energy,
        error=float(np.linalg.norm(data.signals - dictionary @ codes) / np.sqrt(energy)),
        kappa=float(ratios(largest, smallest).max(initial=1.0)),
        smallest=tuple(float(value) for value in np.sort(smallest)[:3]),
        coherence=float(metrics.coherence(dictionary)) if dictionary.any(axis=0).all() else float("nan"),
        found=found,
        atoms=atoms,
    )


def glance(run: Run) -> Numbers:
    """Of the last iterate, what needs no computing: the rest would slow the page while a large run
    streams."""
    index, unknown = len(run.iterates) - 1, float("nan")
    last = run.iterates[index]
    relative = last.value / run.job.energy
    return Numbers(
        index, last.value, last.gradient_norm, last.seconds, last.evaluations, relative,
        error=unknown, kappa=unknown, smallest=(), coherence=unknown, found=-1, atoms=run.job.start.shape[1],
    )  # fmt: skip


def codes_at(run: Run, index: int) -> Any:
    """The codes at an iterate, d×n; those of its own problem, which the run does not count."""
    iterate = run.iterates[index]
    stage = run.stages.get(iterate.stage)
    if stage is None:  # not kept: the codes that are optimal for the whole dictionary
        stage = next(iter(run.stages.values()))._replace(atoms=None)
        if not run.job.is_lasso:
            stage = stage._replace(codes=run.job.support)
    return make_problem(run.job, stage, threads=1).codes(iterate.point)
