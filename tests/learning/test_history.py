"""The history of a run: its columns, their types, and columns that were not kept."""

import numpy as np
import pytest

from manifold_dl import OMP, History, SimCO, datasets, learn_dictionary, metrics

Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0).signals


def learn(signals=Y, **options):
    settings = {"coder": OMP(sparsity=2), "update": SimCO(mu=[0.1, 0.0]), "max_iter": 8, "tol": 0, "rng": 0}
    return learn_dictionary(signals, 12, **{**settings, **options})


def test_history_keeps_condition_and_coherence_on_request():
    seen = []
    history = History(condition=True, coherence=True)
    learn(callbacks=[history, lambda s: seen.append((s.dictionary, s.codes))], max_iter=3)
    assert history.kappa.tolist() == [metrics.condition_number(D, X) for D, X in seen]
    assert history.coherence.tolist() == [metrics.coherence(D) for D, _ in seen]


def test_columns_have_one_length_and_the_types_of_what_they_count():
    columns = learn(max_iter=3).history.to_dict()
    assert {len(column) for column in columns.values()} == {3}
    assert columns["iteration"].dtype.kind == columns["replaced"].dtype.kind == "i"
    assert columns["loss"].dtype == columns["objective"].dtype == columns["seconds"].dtype == np.float64
    assert "kappa" not in columns and "coherence" not in columns


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="no column 'kappa'; it has iteration, loss"):
        _ = History().kappa


def test_columns_that_an_earlier_run_did_not_keep_are_unknown():
    history = History(coherence=True)
    history.restore({"iteration": [0, 1], "loss": [2.0, 1.0]})
    assert history.loss.tolist() == [2.0, 1.0] and np.isnan(history.coherence).tolist() == [True, True]
