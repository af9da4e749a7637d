import io

import numpy as np
import pytest

from manifold_dl import plugins
from manifold_dl.lab.compatibility import KINDS, Own, fault, options, reasons
from manifold_dl.lab.data import Upload
from manifold_dl.lab.own_code import check_text
from manifold_dl.lab.run import State
from manifold_dl.lab.session import Session
from manifold_dl.lab.settings import Refused, Settings

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2, "iterations": 5}


def test_lists_are_those_of_the_registry():
    for control, kind in KINDS.items():
        assert set(plugins.available(kind)) <= set(options(control))


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


def test_an_endless_loop_ends(monkeypatch):
    monkeypatch.setattr("manifold_dl.lab.own_code.LIMIT", 0.05)
    assert "loop without an end" in check_text("def R(D):\n while True: pass", 4, 5).verdict


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


@pytest.mark.parametrize(
    ("name", "contents"),
    [("a.npy", b"x"), ("a.csv", b"1,2\nx,y\n"), ("a.png", b"x"), ("a.txt", b"1"), ("a.csv", b"0,0\n0,0\n")],
)
def test_a_damaged_file_is_refused_at_its_control(name, contents):
    refusal = fault(Settings(data="file"), Own(Upload(name, contents)))
    assert refusal.control == "file" and refusal.args[0].strip()


def test_a_picture_is_refused_by_its_size_before_it_is_unpacked():
    from PIL import Image

    file = io.BytesIO()
    Image.new("1", (5_000, 5_000)).save(file, "png")  # 25 million pixels in 4 kB
    refusal = fault(Settings(data="file"), Own(Upload("large.png", file.getvalue())))
    assert refusal.control == "file" and "5000×5000 pixels are more than 20,000,000" in str(refusal)


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
