"""Learning from files that cannot be used."""

import numpy as np
from typer.testing import CliRunner

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
