"""Learning from files and encoding with the model."""

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


def test_invalid_signals_give_one_sentence_and_no_file(signals, tmp_path):
    def learn(array, *options):
        np.save(tmp_path / "data.npy", array, allow_pickle=True)
        return invoke("learn", tmp_path / "data.npy", *options)

    def invoke(command, *arguments):
        done = CliRunner().invoke(app, [command, *map(str, arguments), "--out", str(tmp_path / "o.npz")])
        assert done.exit_code == 2
        assert done.stderr.startswith("manifold-dl: ")
        return done.stderr

    few = ["--atoms", 4, "--sparsity", 2]
    assert "no .npy file of numbers" in learn(np.array([[{}]], dtype=object), *few)
    assert "two axes" in learn(np.ones(5), *few)
    assert "nan" in learn(np.array([[1.0, np.nan], [1.0, 2.0]]), *few)
    assert "sparsity" in learn(np.eye(5), "--atoms", 4, "--sparsity", 9)
    (tmp_path / "data.npy").write_bytes((signals / "rows.npy").read_bytes()[:-8])
    assert "damaged" in invoke("learn", tmp_path / "data.npy", *few)
    assert "not a file of ours" in invoke("encode", signals / "rows.npy", signals / "rows.npy")
    assert not (tmp_path / "o.npz").exists()
