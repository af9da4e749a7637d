"""What components may have besides their one verb is declared by protocols: nothing else is looked for.

Every name in the source that `hasattr` or `getattr` with a default looks for is a member of a protocol of the
package, or belongs to Python or another package: `FOREIGN` says to what.
"""

import ast
from pathlib import Path

import manifold_dl

PACKAGE = Path(manifold_dl.__file__).parent
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}

FOREIGN = {
    "Python": {"__dict__", "__func__", "__module__", "__name__", "__notes__", "__version__", "_fields"},
    "operating systems": {
        *("getuid", "mallopt", "posix_fadvise", "pthread_sigmask", "register_at_fork", "sched_getaffinity")
    },
    "arrays": {"dtype", "shape"},
    "Dask": {"chunks", "client", "dependencies", "finalizer", "key", "scheduler", "value"},
    "Pymanopt": {"_line_searcher", "line_searcher", "point", "run"},
    "scikit-learn": {"feature_names_in_", "set_params"},
    # Our own: signals and weights in files, settings of kernels, the result that an error carries
    "this package": {"partial", "rows", "sparsity"},
}


def probed_names():
    """The literal names that `hasattr` and `getattr` with a default look for, with the files."""
    found = {}
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1):
                continue
            looks = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
            if looks and isinstance(node.args[1], ast.Constant):
                found.setdefault(node.args[1].value, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


def declared_names():
    """The members of all protocols of the package: methods, properties and annotated attributes."""
    found = set()
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(b) == "Protocol" for b in node.bases):
                found |= {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                found |= {ast.unparse(item.target) for item in node.body if isinstance(item, ast.AnnAssign)}
    return found


def test_every_name_that_is_looked_for_is_declared_by_a_protocol():
    probed = probed_names()
    assert len(probed) > 20  # they are found
    undeclared = set(probed) - declared_names() - set().union(*FOREIGN.values())
    assert {name: probed[name] for name in undeclared} == {}


def test_every_foreign_name_is_looked_for():
    assert set().union(*FOREIGN.values()) <= set(probed_names())
