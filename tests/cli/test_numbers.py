"""The numbers that the command line prints, against NumPy's from the files it has read and written."""

import json

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl.cli import app

SIGNALS = mdl.datasets.synthetic(8, 12, 200, sparsity=2, snr_db=15, rng=0).signals.T


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def learn(data, out, *options):
    done = invoke("learn", data, "--atoms", 12, "--sparsity", 2, "--iterations", 4, "--out", out, *options)
    assert done.exit_code == 0, done.stderr
    return done


def of_type(dtype):
    """The signals as numbers of a type: between 0 and 255 for bytes, with signs where there are any."""
    if np.dtype(dtype).kind == "f":
        return SIGNALS.astype(dtype)
    top = np.iinfo(dtype).max
    scaled = SIGNALS / abs(SIGNALS).max()
    return np.rint(top * (scaled if np.dtype(dtype).kind == "i" else (scaled + 1) / 2)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_learn_reports_the_result_that_it_wrote(tmp_path, dtype, columns, mu):
    rows = of_type(dtype)
    np.save(tmp_path / "data.npy", rows.T if columns else rows)
    flags = ["--columns"] if columns else []
    facts = json.loads(
        learn(tmp_path / "data.npy", tmp_path / "model.npz", "--json", "--mu", mu, *flags).stdout
    )
    model = mdl.load(tmp_path / "model.npz")
    Y = rows.T.astype(float)
    error, energy = np.sum((Y - model.dictionary.astype(float) @ model.codes) ** 2), np.sum(Y**2)
    # A residual in single precision has six digits or so, and sums of it a few less than double ones.
    rel = 1e-5 if dtype == np.float32 else 1e-9
    assert facts["loss"] == pytest.approx(error / len(rows), rel=rel)
    assert facts["explained"] == pytest.approx(1 - error / energy, rel=rel)
    assert 0.5 < facts["explained"] < 1
    assert facts["explained"] == model.explained


def test_printed_sentence_agrees_with_the_stored_result(tmp_path):
    np.save(tmp_path / "data.npy", of_type(np.uint8))
    done = learn(tmp_path / "data.npy", tmp_path / "model.npz")
    model = mdl.load(tmp_path / "model.npz")
    assert f"{model.explained:.1%} of their energy explained by 2 atoms each" in done.stdout


def test_stored_loss_differs_from_the_last_step_with_a_ridge(tmp_path):
    """Otherwise the tests above could not distinguish the codes of the last step from the stored ones."""
    np.save(tmp_path / "data.npy", SIGNALS)
    facts = json.loads(learn(tmp_path / "data.npy", tmp_path / "model.npz", "--json", "--mu", 0.5).stdout)
    assert mdl.load(tmp_path / "model.npz").history.loss[-1] > 1.05 * facts["loss"]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_encode_reports_the_codes_that_it_wrote(tmp_path, dtype):
    rows = of_type(dtype)
    np.save(tmp_path / "data.npy", rows)
    learn(tmp_path / "data.npy", tmp_path / "model.npz")
    done = invoke(
        "encode", tmp_path / "model.npz", tmp_path / "data.npy", "--out", tmp_path / "x.npz", "--json"
    )
    X = scipy.sparse.load_npz(tmp_path / "x.npz")
    D = mdl.load(tmp_path / "model.npz").dictionary.astype(float)
    error = np.sum((rows.astype(float) - X @ D.T) ** 2)
    assert json.loads(done.stdout)["loss"] == pytest.approx(error / len(rows), rel=1e-5)


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_non_finite_entry_is_named_by_row_and_column_of_the_file(tmp_path, columns, bad):
    model, data = tmp_path / "model.npz", tmp_path / "data.npy"
    matrix = SIGNALS.T.copy() if columns else SIGNALS.copy()
    flags = ["--columns"] if columns else []
    np.save(data, matrix)
    learn(data, model, *flags)
    matrix[3, 5] = bad  # row 3, column 5 of the file, whichever way round its signals are
    np.save(data, matrix)
    for command in (
        ["learn", data, "--atoms", 12, "--sparsity", 2, "--out", tmp_path / "o.npz"],
        ["encode", model, data, "--out", tmp_path / "o.npz"],
    ):
        done = invoke(*command, *flags)
        assert done.exit_code == 2
        assert f"data.npy holds {bad} at row 3, column 5" in " ".join(done.stderr.split())
