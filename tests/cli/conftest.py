"""Inputs of the commands: a noisy picture, and signals with a model."""

import numpy as np
import pytest
from command_line import SMALL, run, scene
from PIL import Image
from typer.testing import CliRunner

import manifold_dl
from manifold_dl.cli import app


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A noisy picture, and what a first run made of it; the kernels are compiled and cached after it."""
    folder = tmp_path_factory.mktemp("pictures")
    noisy = scene() + 25 * np.random.default_rng(0).standard_normal(scene().shape)
    Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)).save(folder / "noisy.png")
    done = run("denoise", folder / "noisy.png", folder / "clean.png", "--sigma", 25, "--json", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "clean.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="session")
def signals(tmp_path_factory):
    """Signals, and a model of them; the kernels of learning are compiled and cached after it."""
    folder = tmp_path_factory.mktemp("signals")
    _, _, Y = manifold_dl.datasets.synthetic(8, 12, 200, sparsity=2, rng=0)
    np.save(folder / "rows.npy", Y.T)
    np.save(folder / "columns.npy", Y)
    options = ["--atoms", "12", "--sparsity", "2", "--iterations", "2", "--out", str(folder / "model.npz")]
    assert CliRunner().invoke(app, ["learn", str(folder / "rows.npy"), *options]).exit_code == 0
    return folder
