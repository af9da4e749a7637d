"""How an update rule runs any Pymanopt optimizer: silently, from where the atoms are, keeping its steps."""

import inspect
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from numbers import Real

import numpy as np
from pymanopt.optimizers import NelderMead, ParticleSwarm

from manifold_dl.optimizers.returned import returned_point


def run_quietly(optimizer, problem, start, *, keep_steps=False, rng=None):
    """Run `optimizer` on `problem` from the point `start` and return the point where it ended.

    Parameters
    ----------
    optimizer : Pymanopt optimizer
    problem : pymanopt.Problem
    start : point of the problem's manifold
    keep_steps : bool
        Go on with the line searcher of the previous run and the step length it remembers.
    rng : Generator or int, optional
        For the optimizers that begin with a whole population of points.
    """
    options = {"reuse_line_searcher": keep_steps} if has_line_searcher(optimizer) else {}
    beginning = _beginning(optimizer, problem, start, rng)
    # Pymanopt's own line searchers divide by the norm of the gradient, also where it is zero: they go to NaN,
    # or, where the norm is a Python number, out of the window.
    with quiet(optimizer), np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        try:
            result = optimizer.run(problem, initial_point=beginning, **options)
        except ZeroDivisionError:
            return start
    return returned_point(optimizer, result, problem, start)


def step_memory(optimizer):
    """What the line searcher of the last run remembers, by name: step lengths and values, all numbers.

    Pymanopt's searchers and ours keep them in private attributes; none is told to the constructor.
    """
    searcher = getattr(optimizer, "line_searcher", None)
    state = getattr(searcher, "__dict__", {})
    return {
        name: None if value is None else float(value)
        for name, value in state.items()
        if name.startswith("_") and (value is None or isinstance(value, Real))
    }


def recall_steps(optimizer, memory):
    """Make the next run begin with what an earlier searcher remembered, as if there had been no break."""
    if hasattr(optimizer, "_line_searcher"):
        optimizer.line_searcher = deepcopy(optimizer._line_searcher)
        for name, value in memory.items():
            if hasattr(optimizer.line_searcher, name):
                setattr(optimizer.line_searcher, name, value)


@contextmanager
def quiet(optimizer):
    """Keep a Pymanopt optimizer from printing: its default prints every step, for thousands of stages."""
    before = getattr(optimizer, "_verbosity", None)
    if before is None:
        yield
        return
    optimizer._verbosity = 0
    try:
        yield
    finally:
        optimizer._verbosity = before


def has_line_searcher(optimizer):
    """Whether it moves along lines, as those optimizers do that take a line searcher."""
    return _takes_line_searcher(type(optimizer))


@lru_cache  # a sweep over single atoms would ask thousands of times
def _takes_line_searcher(optimizer_type):
    return "reuse_line_searcher" in inspect.signature(optimizer_type.run).parameters


def _beginning(optimizer, problem, start, rng):
    """The start; for the methods that move a population, the start and random neighbours of it."""
    manifold = problem.manifold
    if isinstance(optimizer, ParticleSwarm):
        # The default of its `run`; another number than it expects would make it print.
        size = optimizer._population_size or min(40, 10 * manifold.dim)
    elif isinstance(optimizer, NelderMead):
        # A simplex has dim + 1 corners. Pymanopt 2.2.1 refuses just that number, by an inverted comparison.
        size = manifold.dim + 2
    else:
        return start
    rng = np.random.default_rng(rng)
    directions = (manifold.projection(start, rng.standard_normal(start.shape)) for _ in range(int(size) - 1))
    return [start, *(manifold.retraction(start, 0.1 * direction) for direction in directions)]
