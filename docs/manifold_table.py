"""Which manifold works with which optimizer: tried on a small problem, and written into manifolds.md.

    python docs/manifold_table.py

brings the page up to date; a test fails when it is not.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pymanopt.manifolds import Sphere
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions

from manifold_dl import LBFGS, GoldenSection, LeadingSingularVector, SimCO, WolfeSearch, update_problem
from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Orthonormal,
    Spheres,
    Subspace,
    ZeroMean,
)
from manifold_dl.optimizers import OptimizerRun
from manifold_dl.schedules import AllAtoms, OneAtATime

PAGE = Path(__file__).with_name("manifolds.md")
BEGIN = "<!-- from here on written by manifold_table.py -->"
END = "<!-- up to here -->"

M, K, N = 4, 3, 20  # atoms of length 4, three of them, so that they may be orthonormal

MANIFOLDS = {
    "Spheres": Spheres,
    "Lines": Lines,
    "ZeroMean": ZeroMean,
    "Subspace(basis)": Subspace(np.array([[1.0, 1, 0], [1, -1, 0], [0, 1, 1], [0, 0, 1]])),
    "NonNegative": NonNegative,
    "Orthonormal": Orthonormal,
    "Euclidean": Euclidean,
    "Columns(Sphere)": Columns(Sphere),
}

OPTIMIZERS = {
    "SteepestDescent, golden": lambda: SteepestDescent(line_searcher=GoldenSection(), max_iterations=5),
    "SteepestDescent, Wolfe": lambda: SteepestDescent(line_searcher=WolfeSearch(), max_iterations=5),
    "ConjugateGradient, golden": lambda: ConjugateGradient(line_searcher=GoldenSection(), max_iterations=5),
    "ConjugateGradient, Wolfe": lambda: ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=5),
    "LBFGS, golden": lambda: LBFGS(line_searcher=GoldenSection(), max_iterations=5),
    "LBFGS, Wolfe": lambda: LBFGS(max_iterations=5),
    "TrustRegions": lambda: TrustRegions(max_iterations=5),
    "NelderMead": lambda: NelderMead(max_iterations=6),
    "ParticleSwarm": lambda: ParticleSwarm(max_iterations=10, population_size=10),
    "LeadingSingularVector": LeadingSingularVector,
}


class Outcome(NamedTuple):
    """One manifold with one optimizer: costs and points of `update_problem` and `SimCO`, or a refusal."""

    refusal: str | None
    problem_costs: tuple = ()
    update_costs: tuple = ()
    points: tuple = ()


class Tiny(NamedTuple):
    """Signals made by a dictionary on the manifold, and another dictionary near it."""

    signals: np.ndarray
    codes: np.ndarray
    start: np.ndarray
    truth: np.ndarray


def tiny_problem(name, seed=0):
    """Three atoms of length four, and twenty signals that use two of them each."""
    rng = np.random.default_rng(seed)
    manifold = MANIFOLDS[name](M, K)
    truth = manifold.random_point(rng)
    mask = np.arange(K)[:, None] != np.arange(N) % K
    codes = mask * rng.standard_normal((K, N))
    # A quarter of a radian for all atoms together: near enough for the cost to decrease along the geodesic.
    start = manifold.retraction(truth, 0.25 * manifold.random_tangent_vector(truth, rng))
    return Tiny(truth @ codes, codes, start, truth)


@cache
def outcome(manifold, optimizer):
    """Try one combination, with `update_problem` and with `SimCO`."""
    before = np.random.get_state()  # noqa: NPY002  (NelderMead and ParticleSwarm draw from nothing else)
    np.random.seed(0)  # noqa: NPY002
    try:
        return _try(manifold, optimizer)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _try(manifold, optimizer):
    tiny = tiny_problem(manifold)
    single = optimizer == "LeadingSingularVector"
    try:
        problem = update_problem(
            tiny.signals,
            tiny.codes,
            manifold=MANIFOLDS[manifold],
            atoms=[0] if single else None,
            dictionary=tiny.start,
        )
        start = tiny.start[:, problem.subset.atoms]
        point = OptimizerRun(OPTIMIZERS[optimizer]()).minimize(problem, start, rng=0)
        update = SimCO(
            OPTIMIZERS[optimizer](),
            manifold=MANIFOLDS[manifold],
            mu=0.0,
            schedule=OneAtATime() if single else AllAtoms(),
        )
        D, X = update(tiny.signals, tiny.start, tiny.codes, rng=0)
    except (NotImplementedError, ValueError) as refusal:
        return Outcome(str(refusal))
    whole = update_problem(tiny.signals, tiny.codes, manifold=MANIFOLDS[manifold])
    return Outcome(
        None,
        (problem.cost(start), problem.cost(point)),
        (whole.cost(tiny.start), float(np.sum((tiny.signals - D @ X) ** 2))),
        (point, D),
    )


def abilities(name):
    """What a manifold has, by name: yes or no."""
    manifold = MANIFOLDS[name](M, K)
    x, y = manifold.random_point(0), manifold.random_point(1)
    problem = update_problem(tiny_problem(name).signals, tiny_problem(name).codes, manifold=MANIFOLDS[name])
    return {
        "dimension": manifold.dim,
        "`exp`": _has(lambda: manifold.exp(x, manifold.zero_vector(x))),
        "`log`, `dist`, `pair_mean`": _has(lambda: (manifold.log(x, y), manifold.pair_mean(x, y))),
        "fast line search": hasattr(problem.cost, "restrict"),
        "`closest`": hasattr(manifold, "closest"),
        "subsets of atoms": not getattr(manifold, "couples_atoms", False),
    }


def table():
    """The whole generated section, in Markdown."""
    notes, rows = [], []
    for name in MANIFOLDS:
        cells = []
        for optimizer in OPTIMIZERS:
            refusal = outcome(name, optimizer).refusal
            if refusal is not None and refusal not in notes:
                notes.append(refusal)
            cells.append("yes" if refusal is None else f"no ({notes.index(refusal) + 1})")
        rows.append([f"`{name}`", *cells])
    has = {name: abilities(name) for name in MANIFOLDS}
    words = lambda value: {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
    return "\n".join(
        [
            f"What each of them has (the dimension is that of {K} atoms of length {M}; the subspace has 3):",
            "",
            *_markdown(
                ["manifold", *has["Spheres"]],
                [[f"`{name}`", *map(words, values.values())] for name, values in has.items()],
            ),
            "",
            "What works with what, in `update_problem` and in `SimCO`:",
            "",
            *_markdown(["manifold", *OPTIMIZERS], rows),
            "",
            "The refusals, as they are raised:",
            "",
            *(f"{number}. {note}" for number, note in enumerate(notes, 1)),
        ]
    )


def page(text):
    """The text of the page with its generated section brought up to date."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


def _has(attempt):
    try:
        attempt()
    except NotImplementedError:
        return False
    return True


def _markdown(head, rows):
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return [line(head), line(["---"] * len(head)), *map(line, rows)]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
