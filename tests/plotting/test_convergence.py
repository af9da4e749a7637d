"""Convergence plots draw the values of histories, records and arrays."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl
from manifold_dl import History, Reason, Result, datasets
from manifold_dl.plotting import (
    method_style,
    plot_convergence,
)


@pytest.fixture
def problem():
    _, X, signals = datasets.synthetic(6, 8, 40, sparsity=2, rng=0)
    problem = mdl.update_problem(signals, X.astype(bool), mu=0.1)
    start = problem.manifold.random_point(rng=0)
    SteepestDescent(line_searcher=mdl.WolfeSearch(), max_iterations=5, verbosity=0).run(
        problem, initial_point=start
    )
    return problem


def test_result_plot_draws_the_loss(result):
    ax = result.plot()
    x, y = ax.lines[0].get_data()
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    np.testing.assert_array_equal(y, result.history.loss)
    assert ax.get_yscale() == "log" and ax.get_xlabel() and ax.get_ylabel()
    ax.figure.canvas.draw()


def test_several_curves_are_drawn_in_one_axes(result):
    _, ax = plt.subplots()
    assert plot_convergence(result.history, ax=ax, label="one") is ax
    assert result.plot(ax=ax) is ax and len(ax.lines) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one"]
    assert len(plt.get_fignums()) == 1


def test_history_is_drawn_against_seconds_and_evaluations(result):
    history = result.history
    np.testing.assert_array_equal(
        plot_convergence(history, x="seconds").lines[0].get_xdata(), history.seconds
    )
    every = history.value + history.gradient + history.hessian + history.probe
    x = plot_convergence(history, x="evaluations").lines[0].get_xdata()
    np.testing.assert_array_equal(x, np.cumsum(every))
    line = plot_convergence(history.to_dict(), y="objective").lines[0]  # its columns will do
    np.testing.assert_array_equal(line.get_ydata(), history.objective)


def test_record_of_a_problem_is_drawn_with_its_columns(problem):
    record = problem.record
    ax = plot_convergence(record)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), range(len(record)))  # 0 is the start
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [iterate.value for iterate in record])
    for x in ("seconds", "evaluations"):
        drawn = plot_convergence(record, x=x, y="gradient_norm").lines[0]
        np.testing.assert_array_equal(drawn.get_xdata(), [getattr(iterate, x) for iterate in record])
        np.testing.assert_array_equal(drawn.get_ydata(), [iterate.gradient_norm for iterate in record])
        assert np.all(np.diff(drawn.get_xdata()) > 0)
    # Asked at a new point: one value and one gradient more than before.
    counts = problem.counts
    before = counts.value + counts.gradient + counts.hessian + counts.probe
    problem.riemannian_gradient(problem.manifold.random_point(rng=5))
    assert problem.record[-1].evaluations == before + 2


def test_minimum_is_subtracted_and_non_positive_values_are_omitted():
    line = plot_convergence([5.0, 3.0, 2.0], minimum=2.0).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), [3.0, 1.0, np.nan])  # zero has no logarithm
    line = plot_convergence([5.0, 3.0], x=[10, 30]).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [10, 30])


def test_several_runs_have_the_styles_of_their_methods(problem):
    ax = plot_convergence({"K-SVD": [3.0, 2.0], "trust region": problem.record}, linewidth=3)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["K-SVD", "trust region"]
    for line in ax.lines:
        look = method_style(line.get_label())
        assert (line.get_color(), line.get_marker()) == (look["color"], look["marker"])
        assert line.get_linewidth() == 3


def test_empty_history_and_zero_loss_can_be_drawn(result):
    empty = Result(result.dictionary, result.codes, History(), Reason.INTERRUPTED)
    empty.plot().figure.canvas.draw()
    history = History()
    history.restore({"iteration": [0, 1], "loss": [1.0, 0.0]})
    plot_convergence(history).figure.canvas.draw()
    plot_convergence([0.0, 0.0]).figure.canvas.draw()


def test_invalid_runs_are_refused_with_the_reason(result):
    with pytest.raises(
        ValueError, match="x='hours': draw against 'iterations', 'evaluations', 'seconds' or an"
    ):
        plot_convergence(result.history, x="hours")
    with pytest.raises(ValueError, match="no column 'seconds' in this run; it has value"):
        plot_convergence([1.0, 2.0], x="seconds")
    with pytest.raises(ValueError, match="no column 'kappa' in this run; it has iteration, loss"):
        plot_convergence(result.history, y="kappa")
    with pytest.raises(ValueError, match=r"array of shape \(2, 2\); plot_convergence takes one value per"):
        plot_convergence(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"x has shape \(3,\), but there are 2 values"):
        plot_convergence([1.0, 2.0], x=[1, 2, 3])
    with pytest.raises(ValueError, match="empty dictionary"):
        plot_convergence({})
    with pytest.raises(ValueError, match="several runs have their names in the dictionary"):
        plot_convergence({"MOD": [1.0]}, label="MOD")
    assert not plt.get_fignums()  # nothing was begun
