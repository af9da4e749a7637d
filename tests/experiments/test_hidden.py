"""The study of hidden dictionaries, at a small size."""

import importlib.util

import matplotlib.pyplot as plt
import numpy as np
import pytest
from small_studies import columns, measured

from manifold_dl import experiments
from manifold_dl.experiments import hidden, peers
from manifold_dl.experiments.tables import select

SMALL = {"shape": [8, 12], "sparsity": 2, "signals": [100], "passes": 20, "trials": 2}


@pytest.fixture(scope="module")
def table():
    study = experiments.find("hidden")
    return measured(study, {**study.parameters(quick=True), **SMALL})


def test_search_finds_the_atoms_of_an_easy_dictionary(table):
    for noise in (hidden.NOISELESS, "20 dB"):
        assert select(table, noise=noise, method=peers.RECOVER)["found"].mean() > 0.9
        assert select(table, noise=noise, method="lasso_problem")["found"].mean() > 0.5
    assert (table["seconds"] > 0).all()


def test_same_seed_gives_the_same_atoms(table):
    study = experiments.find("hidden")
    parameters = {**study.parameters(quick=True), **SMALL}
    part = study.parts(parameters)[1]
    again = study.measure(parameters, 0, **part)
    assert [row["found"] for row in again] == select(table, noise=part["noise"], trial=1)["found"].tolist()


def test_spams_is_left_out_where_it_is_not_installed(monkeypatch, table):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    parameters = hidden.hidden.parameters(quick=True)
    assert not any("SPAMS" in name for name in peers.peer_methods(parameters, 2, [0.1]))
    without = {
        key: column[np.char.find(table["method"].astype(str), "SPAMS") < 0] for key, column in table.items()
    }
    notes = [claim.measured for claim in hidden.claims(without)]
    assert sum("SPAMS is not installed" in note for note in notes) == 2


@pytest.mark.skipif(importlib.util.find_spec("spams") is None, reason="SPAMS is not installed")
def test_spams_finds_atoms(table):
    assert select(table, noise=hidden.NOISELESS, method=peers.ANNEALED)["found"].mean() > 0.5


def test_claims_hold_for_a_table_that_shows_them_and_not_otherwise():
    rows = [
        (noise, n, method, found, seconds)
        for noise in hidden.GOALS
        for n in (150, 200, 300, 500, 1500)
        for method, found, seconds in ((peers.RECOVER, 1.0, 0.1), (peers.ANNEALED, 0.9, 0.2))
    ]
    names = "noise n method found seconds"
    assert [claim.holds for claim in hidden.claims(columns(*rows, names=names))] == [True] * 8
    slow = [(*row[:4], 9.0) if row[:3] == ("20 dB", 150, peers.RECOVER) else row for row in rows]
    verdicts = [claim.holds for claim in hidden.claims(columns(*slow, names=names))]
    assert verdicts == [True] * 7 + [False]  # 150 signals at 20 dB are not among the goals
    other = {peers.RECOVER: peers.ANNEALED, peers.ANNEALED: peers.RECOVER}
    swapped = [(noise, n, other[method], found, seconds) for noise, n, method, found, seconds in rows]
    assert [claim.holds for claim in hidden.claims(columns(*swapped, names=names))] == [False] * 8


def test_figure_shows_the_counting_bound(table):
    figure = hidden.draw(table)
    assert any("n = 40" in text.get_text() for text in figure.axes[0].texts)
    plt.close(figure)
