"""Importing the package: without a warning, and without what is heavy and may not be needed."""

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import manifold_dl


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_import_prints_nothing_and_warns_of_nothing():
    done = run("-W", "error", "-c", "import manifold_dl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_loads_no_numerical_package():
    done = run("-c", "import sys, manifold_dl; print(*sys.modules)")
    assert not {"numpy", "scipy", "numba", "pymanopt"} & set(done.stdout.split())


def test_public_names_except_the_estimator_load_no_optional_package():
    names = "[getattr(mdl, name) for name in mdl.__all__ if name != 'ManifoldDictionaryLearning']"
    done = run("-W", "error", "-c", f"import sys, manifold_dl as mdl; {names}; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "manifold_dl.problem.objective" in loaded
    assert not {"matplotlib", "dask", "sklearn", "skimage"} & loaded


def test_stub_imports_and_lists_the_same_names():
    stub = ast.parse(Path(manifold_dl.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    imported = [alias.name for node in imports for alias in node.names]
    assert sorted(imported) == sorted(manifold_dl.__all__)
    listed = next(node for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed.value)) == sorted(manifold_dl.__all__)


def test_every_imported_package_is_declared():
    root = Path(manifold_dl.__file__).parent
    nodes = [node for file in root.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"manifold_dl"}
    required = {normalised(re.match(r"[\w.-]+", line)[0]) for line in metadata.requires("manifold-dl")}
    # What the extra `bench` brings is not installed for the tests: its distribution is named here.
    found_in = {"spams": ["spams-bin"], **metadata.packages_distributions()}
    assert {name for name in packages if not set(map(normalised, found_in[name])) & required} == set()


def normalised(name):
    """The name of a distribution as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_version_is_that_of_the_installed_package():
    assert metadata.version("manifold-dl") == manifold_dl.__version__


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="SimCoo"):
        _ = manifold_dl.SimCoo
