"""Encoding files with a model that was learned from files."""

import json

import numpy as np
import pytest
import scipy.sparse
from command_line import run
from typer.testing import CliRunner

import manifold_dl
from manifold_dl.cli import app


def test_encode_reproduces_the_signals_from_the_learned_model(signals, tmp_path):
    model, codes = tmp_path / "model.npz", tmp_path / "codes.npz"
    options = ["--atoms", 12, "--sparsity", 2, "--iterations", 20, "--json"]
    done = run("learn", signals / "rows.npy", "--out", model, *options)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["signals"], facts["length"], facts["atoms"]) == (200, 8, 12)
    done = run("encode", model, signals / "rows.npy", "--out", codes, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    X, rows = scipy.sparse.load_npz(codes), np.load(signals / "rows.npy")
    assert X.shape == (200, 12)
    assert np.diff(X.tocsr().indptr).max() <= 2
    D = manifold_dl.load(model).dictionary
    loss = np.sum((rows - X @ D.T) ** 2) / 200
    # The same numbers in another order of adding.
    assert json.loads(done.stdout)["loss"] == pytest.approx(loss, rel=1e-9)
    assert loss < 0.2 * np.sum(rows**2) / 200


def test_columns_option_transposes_data_and_codes(signals, tmp_path):
    out = []
    for name, flags in [("rows", []), ("columns", ["--columns"])]:
        model, codes = str(tmp_path / f"{name}.npz"), str(tmp_path / f"{name}-codes.npz")
        data = str(signals / f"{name}.npy")
        options = ["--atoms", "12", "--sparsity", "2", "--iterations", "3", *flags]
        assert CliRunner().invoke(app, ["learn", data, "--out", model, *options]).exit_code == 0
        assert CliRunner().invoke(app, ["encode", model, data, "--out", codes, *flags]).exit_code == 0
        out.append(scipy.sparse.load_npz(codes).toarray())
    np.testing.assert_array_equal(out[0], out[1].T)
