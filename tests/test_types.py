"""The types that users see: a type checker reads their calls as they are meant, and finds wrong ones."""

import os
from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api")

ROOT = Path(__file__).parents[1]
HEAD = "import manifold_dl as mdl\nimport numpy as np\n\nY = np.zeros((8, 20))\nD = np.zeros((8, 12))\n"


def check(path, cache):
    """What mypy says about a file that uses the package."""
    before = os.environ.get("MYPYPATH")
    os.environ["MYPYPATH"] = str(ROOT)
    try:
        found, errors, _ = mypy.run(
            ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(cache), str(path)]
        )
    finally:
        os.environ.pop("MYPYPATH") if before is None else os.environ.update(MYPYPATH=before)
    assert errors == ""
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_public_calls_have_the_types_that_are_documented(cache):
    found = check(ROOT / "tests" / "typed_usage.py", cache)
    assert found.startswith("Success"), found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mdl.OMP(sparsity='three')", 'incompatible type "str"'),
        ("mdl.OMP(sparsity=3).encode(Y)", 'Missing positional argument "dictionary"'),
        ("mdl.lasso_problem(Y, 12)", 'Missing named argument "alpha"'),
        ("mdl.learn_dictionary(Y, 12, coder=mdl.OMP(sparsity=3), iterations=5)", "iterations"),
        ("mdl.learn_dictionary(Y, 12, coder=3)", 'incompatible type "int"'),
        ("mdl.SimCO()(Y, D)", 'Missing positional argument "codes"'),
        ("mdl.SimCoo()", "has no attribute"),
        ("mdl.update_problem(Y, D, mu='small')", 'incompatible type "str"'),
        ("mdl.load('file.npz').atoms", 'has no attribute "atoms"'),
    ],
)
def test_wrong_call_is_reported(line, words, cache, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(HEAD + line + "\n")
    assert words in check(program, cache)
