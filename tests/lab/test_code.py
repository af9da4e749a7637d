"""The code that the page shows gives the numbers of the run, to the last bit."""

import contextlib
import io

import numpy as np
import pytest

from manifold_dl.lab.code import code
from manifold_dl.lab.data import Upload
from manifold_dl.lab.job import make_job
from manifold_dl.lab.own_code import check_text
from manifold_dl.lab.run import Run, State
from manifold_dl.lab.settings import Settings

OWN = "def R(D):\n    return np.sum(D**4)\n\n\ndef gradient(D):\n    return 4 * D**3\n"
SMALL = {"m": 8, "d": 10, "n": 60, "sparsity": 2, "iterations": 5}
CASES = [
    {},
    {"optimizer": "TrustRegions", "ridge": "in turn", "mu": "0.1, 0"},
    {"optimizer": "LeadingSingularVector", "schedule": "OneAtATime", "sweeps": 2},
    {"schedule": "Blocks", "size": 4, "mu": "0.1", "regularizer": "Coherence"},
    {"schedule": "Overlapping", "size": 4, "ridge": "TwoStep", "mu": "0.1", "turns": 2, "manifold": "Lines"},
    {"schedule": "RandomSubsets", "optimizer": "ConjugateGradient"},
    {"manifold": "Stiefel", "schedule": "Blocks", "size": 4, "optimizer": "LBFGS", "sweeps": 2},
    {"manifold": "NonNegative", "line_searcher": "BackTrackingLineSearcher"},
    {"optimizer": "ParticleSwarm", "iterations": 2},
    {"problem": "lasso_problem", "optimizer": "LBFGS", "line_searcher": "WolfeSearch"},
    {"problem": "lasso_problem", "alpha": "0.1", "schedule": "Blocks", "mu": "0.01", "regularizer": "Sparse"},
    {"problem": "lasso_problem", "alpha": "0.3, 0.1", "ridge": "continuation", "mu": "0.1", "turns": 3},
    {"problem": "lasso_problem", "alpha": "0.2", "optimizer": "TrustRegions", "regularizer": "own"},
    {"ridge": "Sawtooth", "mu": "0.1", "turns": 4, "schedule": "Blocks", "size": 4, "regularizer": "own"},
    {"data": "picture", "patch": 4, "d": 20, "n": 100, "regularizer": "Smoothness"},
    {"regularizer": "own"},
    {"regularizer": "Coherence", "weight": 0.0123456789},  # all digits of a number that was typed
    {"regularizer": "Tether", "noise": 10.0},
    {"m": 3, "d": 1, "sparsity": 1, "start": "typed", "typed": "1 2, 3"},
]


def run_both(settings, upload=None, text=""):
    """The run of the page, and the names that the code defines."""
    own = check_text(text, 8, 10).regularizer if text else None
    run = Run(make_job(settings, upload, own))
    run.resume()
    assert run.wait(300) is State.FINISHED, run.message
    names, output = {}, io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code(settings, upload, text), names)
    return run, names, output.getvalue()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_code_gives_the_dictionary_of_the_run(case):
    run, names, output = run_both(Settings(**{**SMALL, **case}), text=OWN if "own" in case.values() else "")
    np.testing.assert_array_equal(names["D"], run.dictionary)
    # The objective of sets of atoms is summed in another order there.
    assert float(output.split()[1].rstrip(",")) == pytest.approx(run.iterates[-1].value, rel=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "R = lambda D: np.sum(D**4)\ngradient = lambda D: 4 * D**3",
        "import os\n\n\ndef R(D):\n    print(os.sep)\n    return np.sum(np.exp(-(D**2)))",
        OWN + "\n\ndef hessian(D, E):\n    return 12 * D**2 * E\n",
    ],
    ids=["lambda", "import", "hessian"],
)
def test_the_code_contains_the_regularizer_with_its_derivatives(text):
    settings = Settings(**SMALL, regularizer="own", optimizer="TrustRegions")
    run, names, _ = run_both(settings, text=text)
    np.testing.assert_array_equal(names["D"], run.dictionary)


def test_the_code_reads_a_picture_as_the_page_does(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    grey = np.random.default_rng(0).integers(0, 2**16, (30, 40)).astype(np.uint16)
    Image.fromarray(grey).save("mine.png")
    upload = Upload("mine.png", (tmp_path / "mine.png").read_bytes())
    settings = Settings(data="file", patch=4, n=50, d=8, sparsity=2, iterations=3, regularizer="Smoothness")
    run, names, _ = run_both(settings, upload)
    np.testing.assert_array_equal(names["D"], run.dictionary)


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_the_code_reads_a_file_as_the_page_does(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, name = np.random.default_rng(0).standard_normal((40, 6)), f"mine{suffix}"
    np.save(name, rows) if suffix == ".npy" else np.savetxt(name, rows, delimiter=",")
    upload = Upload(name, (tmp_path / name).read_bytes())
    run, names, _ = run_both(Settings(data="file", d=8, sparsity=2, iterations=3), upload)
    np.testing.assert_array_equal(names["D"], run.dictionary)
