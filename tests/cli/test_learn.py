"""Learning with ℓ₁ codes, and from files and options that cannot be used."""

import json
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import manifold_dl
from manifold_dl.cli import app
from manifold_dl.engines import Threads


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
    # Rows and columns are those of the file, whichever of them are the signals.
    some = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, np.inf]])
    for options in ([], ["--columns"]):
        assert "data.npy holds nan at row 0, column 1, the first of 2 entries" in learn(some, *few, *options)
    assert "sparsity" in learn(np.eye(5), "--atoms", 4, "--sparsity", 9)
    (tmp_path / "data.npy").write_bytes((signals / "rows.npy").read_bytes()[:-8])
    assert "damaged" in invoke("learn", tmp_path / "data.npy", *few)
    assert "not a file of ours" in invoke("encode", signals / "rows.npy", signals / "rows.npy")
    assert not (tmp_path / "o.npz").exists()


def test_l1_codes_need_no_coder_and_encode_finds_the_same(signals, tmp_path):
    model, codes = str(tmp_path / "model.npz"), str(tmp_path / "codes.npz")
    data, atoms = str(signals / "rows.npy"), ["--atoms", "12", "--iterations", "5"]
    done = CliRunner().invoke(app, ["learn", data, "--out", model, *atoms, "--codes", "lasso:0.1"])
    assert done.exit_code == 0, done.stderr
    learned = manifold_dl.load(model)
    expected = manifold_dl.Lasso(alpha=0.1).encode(np.load(data).T, learned.dictionary)
    # Both end at a duality gap of 1e-6 of the signals' energy.
    np.testing.assert_allclose(learned.codes.toarray(), expected.toarray(), atol=1e-3)
    assert CliRunner().invoke(app, ["encode", model, data, "--out", codes]).exit_code == 0
    np.testing.assert_allclose(scipy.sparse.load_npz(codes).toarray().T, expected.toarray(), atol=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give --sparsity"),
        (["--codes", "lasso:0.1", "--sparsity", "2"], "leave out --sparsity"),
        (["--codes", "lasso"], "a name and a penalty"),
        (["--codes", "omp:0.1"], "--codes omp"),
        (["--codes", "lasso:0.1", "--update", "ksvd"], "--codes belongs to --update simco"),
    ],
)
def test_codes_that_cannot_be_found_are_refused(signals, tmp_path, options, words):
    arguments = ["learn", str(signals / "rows.npy"), "--atoms", "12", "--out", str(tmp_path / "o.npz")]
    done = CliRunner().invoke(app, [*arguments, *options])
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "with missing entries"])
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_a_file_beyond_the_budget_gives_the_same_dictionary(signals, tmp_path, monkeypatch, missing, columns):
    rows = np.load(signals / "rows.npy")
    if missing:
        rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    np.save(tmp_path / "data.npy", np.ascontiguousarray(rows.T) if columns else rows)
    options = ["--atoms", "12", "--sparsity", "2", "--iterations", "3", "--json"]
    options += ["--missing", "nan"] * missing + ["--columns"] * columns

    def learn(name):
        arguments = ["learn", str(tmp_path / "data.npy"), "--out", str(tmp_path / name), *options]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.stderr
        return manifold_dl.load(tmp_path / name), json.loads(done.stdout)

    expected, facts = learn("memory.npz")
    monkeypatch.setattr("manifold_dl.engines.Threads", partial(Threads, memory=0))
    found, facts_of_file = learn("file.npz")
    np.testing.assert_array_equal(found.dictionary, expected.dictionary)
    assert found.codes is None and facts_of_file["explained"] == facts["explained"]
    assert facts_of_file["loss"] == pytest.approx(facts["loss"], rel=1e-10)  # from another sum of squares


def test_batch_size_is_that_of_the_first_passes(signals, tmp_path):
    rows = np.load(signals / "rows.npy")
    np.save(tmp_path / "rows.npy", np.tile(rows, (-(-2048 // len(rows)), 1)))
    given = ["learn", tmp_path / "rows.npy", "--atoms", 12, "--sparsity", 2, "--iterations", 3, "--force"]

    def updates(*options):
        done = CliRunner().invoke(app, [*map(str, given), "--out", str(tmp_path / "o.npz"), *options])
        assert done.exit_code == 0, done.stderr
        return manifold_dl.load(tmp_path / "o.npz").history.sets.tolist()

    batches = -(-len(np.load(tmp_path / "rows.npy")) // 1024)
    assert updates("--batch-size", "1024") == [batches, batches, 1]
    assert updates("--batch-size", "0") == updates() == [1, 1, 1]
