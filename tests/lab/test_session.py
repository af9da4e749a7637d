import gc
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from manifold_dl import plugins
from manifold_dl.lab.compatibility import KINDS, Own, fault, options, reasons
from manifold_dl.lab.own_code import check_text
from manifold_dl.lab.run import State
from manifold_dl.lab.session import Session
from manifold_dl.lab.settings import Refused, Settings

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2, "iterations": 5}


def test_the_page_reads_the_metadata_of_packages_once_for_each_redrawing(monkeypatch):
    """It takes 15 ms, and there are 29 controls."""
    pytest.importorskip("marimo")
    from manifold_dl.components import entry_points as module
    from manifold_dl.lab import widgets
    from manifold_dl.lab.code import code

    session, settings, reads = Session(), Settings(**SMALL), []
    controls, read = widgets.controls(settings, session.own), module.entry_points
    session.run(settings)
    session.current.wait(300)
    session.reasons(settings)
    monkeypatch.setattr(module, "entry_points", lambda **of: reads.append(1) or read(**of))
    for redraw in (
        lambda: widgets.panel(controls, settings, session, None, {}),
        lambda: code(settings),
        session.names,
    ):
        reads.clear()
        redraw()
        assert len(reads) <= 1


def test_a_run_reads_the_metadata_of_packages_once(monkeypatch):
    from manifold_dl.components import entry_points as module

    session, reads, read = Session(), [], module.entry_points
    monkeypatch.setattr(module, "entry_points", lambda **of: reads.append(1) or read(**of))
    session.run(Settings(**SMALL, schedule="OneAtATime"))  # 12 stages, each with an optimizer
    assert session.current.wait(300) is State.FINISHED
    assert len(reads) <= 2  # where it is made, and in its thread


def test_lists_are_those_of_the_registry():
    for control, kind in KINDS.items():
        assert set(plugins.available(kind)) <= set(options(control))


@pytest.mark.parametrize(
    "refused",
    [
        {"data": "picture", "mu": "0.1, x"},
        {"data": "picture", "ridge": "continuation"},
        {"data": "picture", "start": "typed", "typed": "1"},
        {"data": "picture", "problem": "lasso_problem", "alpha": "x"},
        {"data": "file"},
    ],
    ids=lambda refused: ", ".join(refused.values()),
)
def test_what_is_wrong_elsewhere_disables_no_manifold(refused):
    """Patches have m = 64 and 32 atoms fit, whatever is wrong with another control."""
    settings = Settings(**refused)
    assert fault(settings) is not None
    assert reasons(settings)["manifold"] == {}
    assert set(reasons(replace(settings, d=65))["manifold"]) == {"Orthonormal", "Stiefel"}


@pytest.mark.parametrize("manifold", ["Orthonormal", "Stiefel"])
def test_too_many_orthonormal_atoms_are_refused_at_the_manifold_in_our_words(manifold):
    refusal = fault(Settings(m=8, d=12, n=50, sparsity=2, manifold=manifold))
    assert refusal.control == "manifold" and "k=12 atoms cannot be orthonormal in m=8" in str(refusal)
    assert "Need n >= p" not in str(refusal)  # Pymanopt's words


@pytest.mark.parametrize("problem", ["update_problem", "lasso_problem"])
@pytest.mark.parametrize("schedule", ["AllAtoms", "OneAtATime"])
def test_what_is_not_disabled_runs_and_what_is_fails_with_the_reason(problem, schedule):
    settings = Settings(**{**SMALL, "iterations": 1}, problem=problem, schedule=schedule, alpha="0.1")
    found = reasons(settings)
    for name in options("optimizer"):
        if name in ("NelderMead", "ParticleSwarm"):
            continue  # they take seconds
        chosen = Settings(**{**vars(settings), "optimizer": name})
        refusal = fault(chosen)
        assert (name in found["optimizer"]) == (refusal is not None)
        if refusal is None:
            session = Session()
            session.run(chosen)
            assert session.current.wait(300) is State.FINISHED, session.current.message


def test_runs_are_named_by_what_differs_and_can_be_deleted():
    session = Session()
    for optimizer in ("SteepestDescent", "LBFGS"):
        session.run(Settings(**SMALL, optimizer=optimizer))
        session.current.wait(300)
    assert session.names() == ["SteepestDescent", "LBFGS"]
    session.delete(session.numbers[0])
    assert session.names() == ["LBFGS, GoldenSection"]


def test_other_settings_begin_a_new_run_and_keep_the_one_that_waits():
    session = Session()
    session.step(Settings(**SMALL))
    session.current.wait(300, for_pause=True)
    session.step(Settings(**SMALL))
    session.current.wait(300, for_pause=True)
    assert len(session.runs) == 1 and len(session.current.iterates) == 3
    session.step(Settings(**SMALL, optimizer="LBFGS"))
    session.current.wait(300, for_pause=True)
    assert session.runs[0].wait(300) is State.STOPPED and len(session.runs[0].iterates) == 3
    session.stop()


def test_run_and_step_go_on_with_the_run_that_computes():
    session, settings = Session(), Settings(**{**SMALL, "iterations": 500}, noise=20.0, sweeps=50)
    session.run(settings)
    session.run(settings)
    session.step(settings)
    assert session.current.wait(300, for_pause=True) is State.PAUSED and len(session.runs) == 1
    session.stop()
    assert session.current.wait(300) is State.STOPPED
    session.step(settings)
    assert len(session.runs) == 2
    session.stop()


def test_a_regularizer_that_ends_its_thread_fails_the_run():
    session = Session()
    session.type("def R(D): return np.sum(D**4)", Settings())
    own = session.typed.regularizer
    own.value = own.gradient = lambda D: (_ for _ in ()).throw(SystemExit("end"))
    session.run(Settings(**SMALL, regularizer="own"))
    assert session.current.wait(300) is State.FAILED


def test_no_code_is_executed_where_it_is_not_allowed():
    session = Session(allow_code=False)
    with pytest.raises(PermissionError, match="--no-code"):
        session.type("raise SystemExit", Settings())
    assert "own" not in options("regularizer", Own(allowed=False))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("def R(D): return np.sum(np.abs(D))", "not smooth"),
        ("def R(D): return D", "one number is needed"),
        ("def R(D)", "Line 1"),
        ("x = 1", "no function R"),
        ("raise SystemExit", "SystemExit"),
        ("def R(D): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def R(D): return R(D)", "recursion"),
        ("def R(D): return unknown", "unknown"),
    ],
)
def test_a_text_that_is_no_regularizer_gets_a_verdict(text, verdict):
    found = check_text(text, 4, 5)
    assert not found.is_right and verdict in found.verdict


@pytest.mark.parametrize(
    "text",
    [
        "def R(D):\n while True: pass",
        "import threading\ndef R(D): threading.Event().wait(60)",
        "def R(D):\n while True:\n  try: len(D)\n  except BaseException: threading.Event().wait(60)",
    ],
    ids=["loop", "waits", "catches everything"],
)
def test_a_text_that_does_not_end_gets_its_verdict_in_time(text, monkeypatch):
    monkeypatch.setattr("manifold_dl.lab.own_code.LIMIT", 0.05)
    assert "loop without an end" in check_text("import threading\n" + text, 4, 5).verdict


def test_what_a_text_prints_is_kept_for_the_page(capsys):
    found = check_text("def R(D):\n    print('shape', D.shape)\n    return np.sum(D**4)", 4, 5)
    assert found.is_right and found.printed.startswith("shape (4, 5)\n") and len(found.printed) <= 500
    assert capsys.readouterr().out == ""


def test_an_error_of_a_text_is_told_with_its_line():
    assert check_text("def R(D):\n    x = D\n    return x + y", 4, 5).verdict == (
        "Line 3: NameError: name 'y' is not defined"
    )


def test_a_text_may_import_what_it_needs():
    assert check_text("import os\ndef R(D): return np.sum(D**4) + 0 * len(os.getcwd())", 4, 5).is_right


def test_runs_end_when_their_page_is_closed():
    session = Session()
    session.run(Settings(m=16, d=32, n=1000, sparsity=4, noise=50.0, schedule="OneAtATime", sweeps=50))
    run = session.current
    del session
    gc.collect()
    assert run.wait(300) is State.STOPPED


def test_a_waiting_run_does_not_go_on_with_another_regularizer():
    session, settings = Session(), Settings(**SMALL, regularizer="own")
    session.type("def R(D): return np.sum(D**4)", settings)
    session.step(settings)
    session.current.wait(300, for_pause=True)
    session.type("def R(D): return np.sum(D**6)", settings)
    session.step(settings)
    assert len(session.runs) == 2
    session.stop()


def test_a_run_that_is_stopping_is_not_taken_up_again():
    session, settings, entered, goes_on = Session(), Settings(**SMALL, regularizer="own"), Event(), Event()
    session.type("def R(D): return np.sum(D**4)", settings)
    session.typed.regularizer.value = lambda D: entered.set() or goes_on.wait(60) or 0.0
    session.typed.regularizer.gradient = lambda D: 0 * D
    session.run(settings)
    assert entered.wait(60)
    session.stop()
    first = session.current
    assert first.is_stopping
    goes_on.set()
    session.run(settings)
    assert first.wait(300) is State.STOPPED and len(session.runs) == 2
    assert session.current.wait(300).is_over


@pytest.mark.parametrize(
    ("settings", "control"),
    [
        ({"sparsity": 8, "d": 4}, "sparsity"),
        ({"mu": "-1"}, "mu"),
        ({"mu": ""}, "mu"),
        ({"problem": "lasso_problem", "alpha": "0"}, "alpha"),
        ({"start": "typed", "typed": "1 2"}, "typed"),
        ({"start": "typed", "typed": "a"}, "typed"),
        ({"data": "file"}, "file"),
        ({"manifold": "Unknown"}, "manifold"),
        ({"optimizer": "Unknown"}, "optimizer"),
        ({"regularizer": "own"}, "regularizer"),
    ],
)
def test_a_refusal_names_its_control(settings, control):
    refusal = fault(Settings(**{**SMALL, **settings}))
    assert isinstance(refusal, Refused) and refusal.control == control


def test_phi_of_a_step_without_a_line_search_goes_from_one_iterate_to_the_next():
    session = Session()
    session.run(Settings(**SMALL, optimizer="TrustRegions"))
    session.current.wait(300)
    record, phi = session.search(1)
    values = [iterate.value for iterate in session.current.iterates]
    # Steps of a trust region end by a retraction; the geodesic to the same point has the same ends.
    assert phi(0.0) == pytest.approx(values[0], rel=1e-9) and phi(record.t) == pytest.approx(
        values[1], rel=1e-6
    )
    assert np.isfinite(record.slope)
