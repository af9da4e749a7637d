"""All solvers on one small problem."""

import numpy as np
import pytest
from small_studies import labelled, read_back

from manifold_dl.experiments import solvers
from manifold_dl.experiments.methods import draw_signals
from manifold_dl.experiments.tables import select
from manifold_dl.problem.update_problem import update_problem

PROBLEM = {"shape": [8, 12], "signals": 100, "sparsity": 2, "iterations": 500}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return read_back(solvers.solvers, tmp_path_factory, problems=[PROBLEM], repeats=1)


def test_solvers_every_solver_reaches_the_same_minimum(study):
    table, _ = study
    ends = [select(table, solver=name)["gap"][-1] for name in solvers.LOOKS]
    # They stop at gradients of 1e-9 ‖Y‖²; the gap is of the order of the square.
    assert max(ends) < 1e-10


def test_solvers_trust_region_has_fewest_iterations_golden_section_most_evaluations(study):
    table, _ = study
    iterations, evaluations = {}, {}
    for name in solvers.LOOKS:
        course = select(table, solver=name)
        there = np.flatnonzero(course["gap"] < 1e-8)[0]
        iterations[name], evaluations[name] = course["iteration"][there], course["evaluations"][there]
    assert min(iterations, key=iterations.get) == "trust region"
    assert max(evaluations, key=evaluations.get) == "steepest descent, golden section"


def test_solvers_evaluations_are_those_that_the_problem_counts(study):
    table, parameters = study
    _, X, Y, start = draw_signals(8, 12, 100, 2, 0, snr_db=parameters["snr_db"])
    for name in solvers.LOOKS:
        problem = update_problem(Y, X.astype(bool), mu=parameters["mu"], threads=1)
        solvers.optimizers(500, 1e-9 * problem.scale)[name].run(problem, initial_point=start)
        course = select(table, solver=name)
        assert len(course["iteration"]) == len(problem.record)
        counts = problem.counts
        total = counts.value + counts.gradient + counts.hessian + counts.probe
        # After the last point there may be one more search, in vain: golden section takes up to 40 probes.
        assert total - 40 <= course["evaluations"][-1] <= total
        assert np.all(np.diff(course["evaluations"]) > 0) and np.all(np.diff(course["seconds"]) >= 0)


def test_solvers_draws_what_is_in_the_table(study, drawn):
    table, _ = study
    axes = labelled(drawn(solvers.solvers, table))
    for ax, column in zip(axes, ("iteration", "evaluations", "seconds"), strict=True):
        for line, name in zip(ax.lines, solvers.LOOKS, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), select(table, solver=name)[column])
