"""Learning with ℓ₁ codes, and from files and options that cannot be used."""

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import manifold_dl
from manifold_dl.cli import app


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
