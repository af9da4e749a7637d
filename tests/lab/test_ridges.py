"""The menu of μ: the ridges are those that a learning loop of as many iterations has."""

import pytest

from manifold_dl import SimCO
from manifold_dl.lab.compatibility import fault
from manifold_dl.lab.job import make_job
from manifold_dl.lab.ridges import RIDGES, has_turns, ridges
from manifold_dl.lab.run import Run
from manifold_dl.lab.settings import Settings
from manifold_dl.updates import Sawtooth, TwoStep

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2, "iterations": 3}


@pytest.mark.parametrize("turns", [2, 3, 5, 12])
@pytest.mark.parametrize("name", [name for name in RIDGES if has_turns(name)])
def test_a_schedule_with_turns_begins_with_the_ridge_and_ends_without(name, turns):
    found = ridges(name, [0.2], turns)
    assert len(found) == turns and found[-1] == 0
    assert max(found[:-1]) == found[0] == 0.2 or turns == 2  # of two turns, TwoStep has 1.2 with a ridge


@pytest.mark.parametrize(
    ("name", "schedule"),
    [("TwoStep", TwoStep(ridge=0.3)), ("Sawtooth", Sawtooth(0.3, 0.003, period=3, until=7))],
)
def test_turns_have_the_ridges_of_the_iterations_of_a_loop(name, schedule):
    rule = SimCO(mu=schedule).begin(max_iter=8)
    assert ridges(name, [0.3], 8) == [rule.mu_at(iteration) for iteration in range(8)]


@pytest.mark.parametrize("name", RIDGES)
def test_every_schedule_of_the_menu_runs_through_its_ridges(name):
    typed = "0.1, 0" if name == "in turn" else "0.1"
    run = Run(make_job(Settings(**SMALL, ridge=name, mu=typed, turns=3)))
    run.resume()
    run.wait(300)
    expected = ridges(name, [float(text) for text in typed.split(",")], 3)
    assert [stage.mu for stage in run.stages.values()] == expected


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("constant", "0.1, 0", "give one, or choose 'several, in turn'"),
        ("continuation", "0", "continuation to 0 begins with a ridge above 0"),
        ("Sawtooth", "0", "Sawtooth begins with a ridge above 0"),
        ("TwoStep", "-1", "mu=-1"),
    ],
)
def test_numbers_that_do_not_fit_the_schedule_are_refused_beside_them(name, typed, words):
    refusal = fault(Settings(**SMALL, ridge=name, mu=typed))
    assert refusal.control == "mu" and words in str(refusal)
