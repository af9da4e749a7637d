"""Histories, progress bars and early stopping."""

import io

import numpy as np
import pytest
from rich.console import Console

from manifold_dl import OMP, EarlyStopping, Progress, Reason, SimCO, Step, datasets, learn_dictionary
from manifold_dl.problem.counts import Counts

Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0).signals


def learn(signals=Y, **options):
    settings = {"coder": OMP(sparsity=2), "update": SimCO(mu=[0.1, 0.0]), "max_iter": 8, "tol": 0, "rng": 0}
    return learn_dictionary(signals, 12, **{**settings, **options})


def step(loss, iteration=0):
    return Step(
        iteration, np.eye(2), None, loss, loss, 0.0, Counts(), np.zeros(0, np.intp), relative_loss=loss
    )


# History


# Progress


def test_progress_shows_loss_on_a_terminal():
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=120)
    result = learn(callbacks=[Progress("Training", console=console)], max_iter=3)
    assert "Training" in output.getvalue() and "3/3" in output.getvalue()
    assert f"loss {result.history.loss[-1]:.4g}" in output.getvalue()


def test_progress_is_silent_elsewhere(capfd):
    learn(callbacks=[Progress()], max_iter=2)
    assert capfd.readouterr() == ("", "")


def test_progress_leaves_the_terminal_alone_after_an_error():
    console = Console(file=io.StringIO(), force_terminal=True)
    progress = Progress(console=console)

    def broken(_):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        learn(callbacks=[progress, broken])
    learn(callbacks=[progress], max_iter=1)  # another live display would be refused if the first were on


# EarlyStopping


def test_early_stopping_waits_for_a_better_loss():
    stopping = EarlyStopping(patience=2, min_decrease=0.1)
    stopping.begin(10)
    # 0.95 is no tenth below 1, 0.8 is; then nothing better for two steps.
    assert [stopping(step(loss)) for loss in (1.0, 0.95, 0.8, 0.79, 0.75)] == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_early_stopping_ends_a_run_and_begins_anew_with_the_next():
    stopping = EarlyStopping(patience=3, min_decrease=0.5)
    first, second = (learn(callbacks=[stopping], max_iter=50) for _ in range(2))
    assert first.reason is second.reason is Reason.STOPPED
    assert first.n_iter == second.n_iter < 50


@pytest.mark.parametrize("options", [{"patience": 0}, {"min_decrease": -0.1}, {"min_decrease": 1.0}])
def test_early_stopping_refuses_invalid_parameters(options):
    with pytest.raises(ValueError, match="="):
        EarlyStopping(**options)
