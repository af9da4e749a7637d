"""Importing the package: without a warning, and without what is heavy and may not be needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import manifold_dl


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_importing_is_silent_and_warns_of_nothing():
    done = run("-W", "error", "-c", "import manifold_dl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_loads_nothing_heavy():
    done = run("-c", "import sys, manifold_dl; print(*sys.modules)")
    assert not {"numpy", "scipy", "numba", "pymanopt"} & set(done.stdout.split())


def test_the_public_names_load_nothing_heavy_but_the_estimator():
    names = "[getattr(mdl, name) for name in mdl.__all__ if name != 'ManifoldDictionaryLearning']"
    done = run("-W", "error", "-c", f"import sys, manifold_dl as mdl; {names}; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "manifold_dl.problem.objective" in loaded
    assert not {"matplotlib", "dask", "sklearn", "skimage"} & loaded


def test_editors_are_told_the_same_names():
    stub = ast.parse(Path(manifold_dl.__file__).with_suffix(".pyi").read_text())
    homes = {}
    for node in ast.walk(stub):
        if isinstance(node, ast.ImportFrom):
            homes |= {alias.name: node.module for alias in node.names}
    assert sorted(homes) == sorted(manifold_dl.__all__)
    told = next(node for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(told.value)) == sorted(manifold_dl.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="SimCoo"):
        _ = manifold_dl.SimCoo
