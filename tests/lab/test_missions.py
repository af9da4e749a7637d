"""Every mission is done by what its hint says, and not by what it begins with."""

from dataclasses import replace

import pytest

from manifold_dl.lab.missions import MISSIONS
from manifold_dl.lab.session import Session
from manifold_dl.lab.settings import Settings

BY_KEY = {mission.key: mission for mission in MISSIONS}
SOLUTIONS = {
    "fast": {"optimizer": "TrustRegions"},
    "singular": {"ridge": "in turn", "mu": "0, 0.1, 0.01, 0"},
    "ksvd": {"schedule": "OneAtATime", "optimizer": "LeadingSingularVector"},
    "coherence": {"regularizer": "Coherence", "weight": 0.01},
}


def run(session, settings):
    assert session.fault(settings) is None
    session.run(settings)
    session.current.wait(300)
    session.check_missions()


@pytest.mark.parametrize("key", SOLUTIONS)
def test_a_mission_is_done_by_its_solution_only(key):
    session, begin = Session(), BY_KEY[key].settings
    run(session, begin)
    assert key not in session.solved
    run(session, replace(begin, **SOLUTIONS[key]))
    assert session.solved[key].endswith(".")


@pytest.mark.parametrize("weight", [0.003, 0.01, 0.03])
def test_weights_of_the_hint_halve_the_coherence(weight):
    session, begin = Session(), BY_KEY["coherence"].settings
    assert "between 0.003 and 0.03" in BY_KEY["coherence"].hint
    run(session, begin)
    run(session, replace(begin, regularizer="Coherence", weight=weight))
    assert "coherence" in session.solved


@pytest.mark.parametrize("optimizer", ["ConjugateGradient", "LBFGS", "TrustRegions"])
def test_optimizers_of_the_hint_are_fast_with_a_line_search_by_slopes(optimizer):
    session, mission = Session(), BY_KEY["fast"]
    assert optimizer in mission.hint and "WolfeSearch" in mission.hint
    run(session, replace(mission.settings, optimizer=optimizer, line_searcher="WolfeSearch"))
    assert session.solved["fast"].startswith(f"{optimizer} reached")


def test_digits_that_are_left_out_lead_out_of_the_bad_set():
    """As the hint says: 10⁻⁶ away from B, which is not seen in a figure, descent finds the best atom."""
    session, begin = Session(), BY_KEY["bad set"].settings
    run(session, begin)
    a, b, _ = session.current.dictionary[:, 0]
    run(session, replace(begin, start="typed", typed=f"{b:.6f} {-a:.6f} 0"))
    assert "bad set" not in session.solved


def test_a_start_in_the_bad_set_is_found_from_the_numbers_of_the_page():
    session, begin = Session(), BY_KEY["bad set"].settings
    run(session, begin)
    assert "bad set" not in session.solved
    a, b, _ = session.current.dictionary[:, 0]
    run(session, replace(begin, start="typed", typed=f"{b:.10f} {-a:.10f} 0"))
    assert "bad set" in session.solved


def test_coherence_of_a_run_that_did_not_fit_is_nothing_to_halve():
    session, begin = Session(), BY_KEY["coherence"].settings
    session.step(begin)  # a run that is stopped at its first iterate
    session.current.wait(300, for_pause=True)
    session.stop()
    session.current.wait(300)
    run(session, replace(begin, **SOLUTIONS["coherence"]))
    assert "coherence" not in session.solved


def test_coherence_is_compared_on_the_same_signals_only():
    session, begin = Session(), BY_KEY["coherence"].settings
    run(session, replace(begin, seed=1))
    run(session, replace(begin, **SOLUTIONS["coherence"]))
    assert "coherence" not in session.solved


@pytest.mark.parametrize("text", ["def R(D): return np.sum(np.maximum(D, 0))", "def R(D): return np.nan"])
def test_a_function_without_a_broken_gradient_does_not_complete_the_mission(text):
    session = Session()
    session.type(text, Settings())
    assert not session.typed.is_right and not session.solved


def test_a_broken_gradient_is_found():
    session = Session()
    session.type("def R(D):\n return np.sum(D**4)", Settings())
    assert not session.solved
    session.type("def R(D):\n return np.sum(D**4)\ndef gradient(D):\n return 3.9 * D**3", Settings())
    assert list(session.solved) == ["gradient"]
