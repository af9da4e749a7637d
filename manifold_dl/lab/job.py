"""What one run needs, made from the settings: signals, start, components; and the run itself, as a loop.

`solve` is the algorithm of the page. It reads as the code that the page shows (`code.py`): for every ridge
μ, for every sweep, for every set I of the schedule, an optimizer moves the atoms I while their codes follow.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.coders import OMP
from manifold_dl.lab import parts
from manifold_dl.lab.data import Data, Upload, load
from manifold_dl.lab.settings import Refused, Settings
from manifold_dl.manifolds import Spheres
from manifold_dl.problem import lasso_problem, update_problem
from manifold_dl.schedules import AllAtoms, sweep


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that a run reads; nothing of it changes.

    Attributes
    ----------
    settings : Settings
    data : Data
    start : array (m×d)
        The initial dictionary, unit atoms.
    support : sparse array (d×n) or None
        Ω; None where a lasso finds the codes.
    manifold : factory (m, k) → manifold
    penalties : list of (float, float)
        α and μ, in turn.
    schedule : Schedule
    searcher : line searcher or None
    regularizers : list
    """

    settings: Settings
    data: Data
    start: np.ndarray
    support: Any
    manifold: Any
    penalties: list[tuple[float, float]]
    schedule: Any
    searcher: Any
    regularizers: list[Any]

    @property
    def is_lasso(self) -> bool:
        """Whether codes follow by the lasso, without a support."""
        return self.settings.problem == "lasso_problem"

    @property
    def moves_all(self) -> bool:
        """Whether all atoms move together."""
        return isinstance(self.schedule, AllAtoms)

    @property
    def energy(self) -> float:
        """‖Y‖²."""
        return float(np.sum(self.data.signals**2))

    @property
    def n_stages(self) -> int:
        """The number of times that an optimizer runs."""
        sets = 1 if self.moves_all else len(sweep(self.schedule, self.start.shape[1], 0))
        return len(self.penalties) * self.settings.sweeps * sets

    def optimizer(self, searcher: Any = None) -> Any:
        """A new optimizer, with the line searcher given or its own."""
        return parts.optimizer(self.settings, self.searcher if searcher is None else searcher)


class Stage(NamedTuple):
    """One run of the optimizer: which atoms move, from where."""

    atoms: np.ndarray | None  # I; None for all
    dictionary: np.ndarray  # D, the whole
    codes: Any  # X, or only the support where all atoms move; None where a lasso finds them
    alpha: float
    mu: float


def make_job(settings: Settings, upload: Upload | None = None, own: Any = None) -> Job:
    """What the settings describe.

    Parameters
    ----------
    settings : Settings
    upload : Upload, optional
        The user's file.
    own : regularizer, optional
        What the user typed.

    Returns
    -------
    Job

    Raises
    ------
    Refused
        With the control that caused it.

    Examples
    --------
    >>> make_job(Settings(m=4, d=6, n=50, sparsity=2)).start.shape
    (4, 6)
    """
    data = load(settings, upload)
    penalties = parts.penalties(settings)
    factory, schedule = parts.manifold(settings), parts.schedule(settings)
    start = initial_dictionary(settings, len(data.signals))
    support = None if settings.problem == "lasso_problem" else _support(settings, data, start)
    energy = float(np.sum(data.signals**2))
    regularizers = parts.regularizers(settings, energy, start, data.patch, own)
    searcher = parts.line_searcher(settings)
    return Job(settings, data, start, support, factory, penalties, schedule, searcher, regularizers)


def initial_dictionary(settings: Settings, m: int) -> np.ndarray:
    """The start: random or typed atoms of norm 1."""
    if settings.start == "typed":
        return _typed(settings.typed, m, settings.d)
    return Spheres(m, settings.d).random_point(rng=settings.start_rng)


def initial_point(job: Job, stage: Stage, problem: Any) -> np.ndarray:
    """Where the optimizer begins: the atoms I as they are, or the nearest point of the manifold."""
    atoms = stage.dictionary if stage.atoms is None else stage.dictionary[:, stage.atoms]
    return atoms if job.manifold is Spheres else problem.feasible.nearest_point(atoms)


def make_problem(job: Job, stage: Stage, threads: int | None = None) -> Any:
    """The Pymanopt problem of one stage."""
    options = {"manifold": job.manifold, "mu": stage.mu, "regularizers": job.regularizers, "threads": threads}
    if stage.atoms is not None:
        options |= {"atoms": stage.atoms, "dictionary": stage.dictionary}
    if job.is_lasso:
        return lasso_problem(job.data.signals, job.settings.d, alpha=stage.alpha, **options)
    return update_problem(job.data.signals, stage.codes, **options)


def solve(job: Job) -> Generator[tuple[Stage, Any], np.ndarray, None]:
    """Yield the stages of a run, each with its problem; the caller sends the point where it ended.

    Parameters
    ----------
    job : Job

    Yields
    ------
    stage : Stage
    problem : DictionaryProblem

    Examples
    --------
    >>> stages = solve(make_job(Settings(m=4, d=6, n=50, sparsity=2)))
    >>> stage, problem = next(stages)
    >>> stage.mu, problem.manifold.dim
    (0.0, 18)
    """
    rng, dictionary = np.random.default_rng(job.settings.start_rng), job.start
    codes = job.support
    keeps_codes = not (job.is_lasso or job.moves_all)  # those of the atoms that do not move
    if keeps_codes:
        codes = update_problem(job.data.signals, codes, mu=job.penalties[0][1]).codes(dictionary)
    for alpha, mu in job.penalties:
        for _ in range(job.settings.sweeps):
            sets = [None] if job.moves_all else sweep(job.schedule, dictionary.shape[1], rng)
            for atoms in sets:
                stage = Stage(atoms, dictionary, codes, alpha, mu)
                problem = make_problem(job, stage)
                point = yield stage, problem
                dictionary = problem.dictionary(point)
                if keeps_codes:
                    codes = problem.codes(point)


def read_atoms(text: str) -> list[list[float]]:
    """The numbers of every atom; atoms are separated by semicolons.

    Examples
    --------
    >>> read_atoms("0.6 0.8; 1, 0")
    [[0.6, 0.8], [1.0, 0.0]]
    """
    return [[float(x) for x in atom.replace(",", " ").split()] for atom in text.strip(" ;").split(";")]


def _typed(text: str, m: int, d: int) -> np.ndarray:
    wanted = f"{d} atoms of {m} numbers" if d > 1 else f"one atom of {m} numbers"
    try:
        rows = read_atoms(text)
    except ValueError:
        raise Refused("typed", f"Give {wanted}, numbers separated by spaces, atoms by semicolons.") from None
    if [len(row) for row in rows] != [m] * d:
        lengths = ", ".join(str(len(row)) for row in rows[:6])
        raise Refused("typed", f"Give {wanted}; there are {len(rows)}, of {lengths} numbers.")
    atoms = np.array(rows).T
    norms = np.linalg.norm(atoms, axis=0)
    if not (np.isfinite(norms).all() and norms.all()):
        raise Refused("typed", "Every atom needs a finite number that is not zero.")
    return atoms / norms


def _support(settings: Settings, data: Data, start: np.ndarray) -> scipy.sparse.csc_array:
    """Ω: the true one, or that of OMP with the initial dictionary."""
    if data.support is not None:
        return data.support
    return _coded(data, settings.sparsity, start.tobytes(), start.shape[1])


@lru_cache(maxsize=2)  # every option that the page tries needs it
def _coded(data: Data, sparsity: int, start: bytes, d: int) -> scipy.sparse.csc_array:
    dictionary = np.frombuffer(start).reshape(-1, d)
    try:
        return OMP(sparsity=sparsity).encode(data.signals, dictionary) != 0
    except ValueError as error:
        raise Refused("sparsity", error) from None
