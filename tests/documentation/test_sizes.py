"""The sizes that CONTRIBUTING states: files that are read in one go, functions that fit on a screen."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE, LONGEST_FUNCTION = 300, 50
SOURCES = [path for folder in ("manifold_dl", "docs", "benchmarks") for path in (ROOT / folder).rglob("*.py")]


def body_of(function, lines):
    """The lines of code of a function: without its signature, its docstring, comments and empty lines."""
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    if not statements:
        return []
    own = lines[statements[0].lineno - 1 : statements[-1].end_lineno]
    return [line for line in own if line.strip() and not line.lstrip().startswith("#")]


def functions_of(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_lines_of_a_function_are_counted_without_docstring_and_comments():
    source = 'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    # why\n    b = a\n\n    return b\n'
    (function,) = functions_of(ast.parse(source))
    assert [line.strip() for line in body_of(function, source.splitlines())] == ["b = a", "return b"]


def test_functions_inside_of_others_and_methods_of_one_name_are_counted_each():
    source = "def f():\n    def g():\n        pass\n\nclass A:\n    def f(self):\n        pass\n"
    assert sorted(function.name for function in functions_of(ast.parse(source))) == ["f", "f", "g"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path):
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    if path.is_relative_to(ROOT / "manifold_dl"):
        assert len(lines) <= LONGEST_FILE
    functions = functions_of(ast.parse(source))
    sizes = [(function.name, function.lineno, len(body_of(function, lines))) for function in functions]
    assert not [found for found in sizes if found[-1] > LONGEST_FUNCTION]
