"""``manifold-dl warm-up``: after it, no kernel is compiled in a new process."""

import json
import os
import subprocess
import sys
from dataclasses import is_dataclass

import pytest
from typer.testing import CliRunner

from manifold_dl import coders
from manifold_dl.cli import app, compilation

pytest.importorskip("numba")

WARM_UP = """
from manifold_dl.cli.compilation import kernels
from manifold_dl.cli.warm_up import warm_up
warm_up(as_json=True)
print(*(kernel.py_func.__qualname__ for kernel in kernels() if not kernel.signatures))
"""

# What users call first, with data in the layouts and precisions that they have.
SMALL_RUNS = """
import numpy as np
import manifold_dl as mdl
from manifold_dl.cli.compilation import counting_compilations
from pymanopt.optimizers import ConjugateGradient, TrustRegions

D, X, Y = mdl.datasets.synthetic(8, 12, 50, sparsity=2, snr_db=20, rng=1)
with counting_compilations() as compiled:
    for dtype in (np.float64, np.float32):
        signals = Y.astype(dtype)
        for update in (mdl.SimCO(), mdl.SimCO(mdl.LBFGS(max_iterations=3)), mdl.KSVD(), mdl.MOD()):
            mdl.learn_dictionary(signals, 12, coder=mdl.OMP(sparsity=2), update=update, max_iter=2, rng=0)
        mdl.learn_dictionary(np.asfortranarray(signals), 12, coder=mdl.OMP(sparsity=2), threads=2, max_iter=2)
        mdl.learn_dictionary(signals, 12, **{**mdl.presets.recover(2), "max_iter": 3}, rng=0)
        for optimizer in (TrustRegions, ConjugateGradient):
            problem = mdl.update_problem(signals, X, mu=0.01)
            optimizer(max_iterations=2, verbosity=0).run(problem, initial_point=D.astype(dtype))
        mdl.ManifoldDictionaryLearning(12, coder=mdl.OMP(sparsity=2), max_iter=2).fit_transform(signals.T)
    picture = np.random.default_rng(0).integers(0, 255, (20, 20)).astype(np.uint8)
    mdl.images.denoise(picture, 20.0, patch_size=4, n_atoms=20, n_patches=50, max_iter=1, rng=0)
print(*compiled)
"""


@pytest.fixture(scope="module")
def run_with_new_cache(tmp_path_factory):
    """Run a script in a new process; all of them have one cache of kernels, empty at first."""
    folder = tmp_path_factory.mktemp("kernels")

    def run(script):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), folder

    return run


@pytest.mark.slow
def test_after_warm_up_nothing_is_compiled_in_a_new_process(run_with_new_cache):
    (facts, uncompiled), folder = run_with_new_cache(WARM_UP)
    assert json.loads(facts)["cache"] == str(folder)
    assert json.loads(facts)["compiled"] > 100  # about 230: all kernels in two precisions
    assert uncompiled == ""
    assert run_with_new_cache(SMALL_RUNS)[0] == [""]
    (facts, _), _ = run_with_new_cache(WARM_UP)
    assert json.loads(facts)["compiled"] == 0


@pytest.mark.slow
def test_small_runs_do_compile_with_an_empty_cache(tmp_path):
    """Otherwise the test above could not fail."""
    script = SMALL_RUNS.replace("(np.float64, np.float32)", "(np.float64,)")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert len(done.stdout.split()) > 50


@pytest.fixture
def one_run(monkeypatch):
    """Replace the runs, which would compile for a minute, by one that does nothing."""
    monkeypatch.setattr(compilation, "runs", lambda: {"nothing": lambda: None})


def test_result_names_the_folder_and_the_time(one_run):
    done = CliRunner().invoke(app, ["warm-up"])
    assert done.exit_code == 0
    assert compilation.cache_folder() in done.stdout.replace("\n", "")
    assert " s)" in done.stdout


def test_json_has_folder_counts_and_seconds(one_run):
    facts = json.loads(CliRunner().invoke(app, ["warm-up", "--json"]).stdout)
    assert facts["cache"] == compilation.cache_folder()
    assert (facts["runs"], facts["compiled"]) == (1, 0)
    assert facts["seconds"] >= 0


def test_quiet_prints_nothing(one_run):
    done = CliRunner().invoke(app, ["warm-up", "--quiet"])
    assert (done.exit_code, done.output) == (0, "")


def test_without_numba_there_is_nothing_to_compile(monkeypatch):
    monkeypatch.setattr(compilation, "kernels", list)
    done = CliRunner().invoke(app, ["warm-up"])
    assert done.exit_code == 1
    assert "Numba is not installed" in done.stderr


def test_runs_have_both_precisions_and_every_coder():
    names = list(compilation.runs())
    double = [name.removesuffix(", float64") for name in names if name.endswith("float64")]
    assert names[len(double) :] == [f"{name}, float32" for name in double]
    components = {name for name in coders.__all__ if is_dataclass(vars(coders)[name])}  # without protocols
    assert components - {"BestOf", "RmsLasso"} <= set(double)  # these call other coders
