"""Which kernels run: those of the sources as they are, compiled wherever Numba is installed."""

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import manifold_dl.kernels
import manifold_dl.line_search

PACKAGE = Path(manifold_dl.__file__).parent


def run(code, folder=PACKAGE.parent, **environment):
    """A process that imports the package of `folder`, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def modules_of_kernels():
    for package in (manifold_dl.kernels, manifold_dl.line_search):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            yield importlib.import_module(module.name)


# --- The cache on disk ------------------------------------------------------------------------------------


def test_every_cached_kernel_is_stamped_with_all_sources():
    # Numba by itself stamps a kernel with its own file alone, and would run what an edited helper was before.
    kernels = {
        kernel
        for module in modules_of_kernels()
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher) and kernel.targetoptions.get("inline") != "always"
    }
    names = {kernel.py_func.__name__ for kernel in kernels}
    assert {"_omp", "_forward_selection", "_lasso", "_focuss", "_iht", "_fit"} <= names
    for kernel in kernels:
        assert kernel._cache._cache_file._source_stamp == compiling.STAMP, kernel


def test_the_stamp_names_every_source_of_kernels():
    files = [*PACKAGE.glob("kernels/*.py"), *PACKAGE.glob("line_search/*.py")]
    assert sorted(name for name, *_ in compiling.STAMP) == sorted(file.name for file in files)


def test_kernels_are_compiled_by_the_decorators_of_one_module():
    for module in modules_of_kernels():
        if module is not compiling:
            assert "jit" not in vars(module), module
            assert "njit" not in vars(module), module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        # A helper of OMP in another file, and the kernel itself.
        ("coding_parts.py", "return largest * np.sqrt(total)", "return 9 * largest * np.sqrt(total)"),
        ("coding.py", "z[k] = a[p] * L[k, k]", "z[k] = a[p] * L[k, k] * 3"),
    ],
)  # fmt: skip
def test_an_edited_source_is_compiled_again(tmp_path, file, before, after):
    shutil.copytree(PACKAGE, tmp_path / "manifold_dl", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import manifold_dl as mdl\n"
        "D, X, Y = mdl.datasets.synthetic(16, 32, 20, sparsity=4, snr_db=20, rng=0)\n"
        "print(mdl.OMP(tol=0.5).encode(Y, D).data.tobytes().hex())\n"
    )
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first = run(code, tmp_path, **cache)
    again = run(code, tmp_path, **cache)
    source = tmp_path / "manifold_dl" / "kernels" / file
    assert source.read_text().count(before) >= 1
    source.write_text(source.read_text().replace(before, after))
    edited = run(code, tmp_path, **cache)
    assert ["compiling" in process.stderr for process in (first, again, edited)] == [True, False, True]
    assert first.stdout == again.stdout != ""
    assert edited.stdout not in ("", first.stdout)


# --- Without Numba, and with a broken import --------------------------------------------------------------

HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "numba":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
sys.modules["numba"] = None
"""

BREAK = """
import sys

class Break:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise ImportError("cannot import name 'spam'")

sys.meta_path.insert(0, Break())
import manifold_dl as mdl
{use}
"""

UPDATE = """
import numpy as np
import manifold_dl as mdl
D, X, Y = mdl.datasets.synthetic(8, 12, 40, sparsity=2, snr_db=20, rng=0)
X = mdl.OMP(sparsity=2).encode(Y, D)
problem = mdl.update_problem(Y, X, mu=0.1)
D, X = mdl.SimCO(mu=0.1)(Y, problem.manifold.random_point(rng=1), X)
sys.stdout.write(D.tobytes().hex())
"""


def test_without_numba_the_kernels_in_numpy_run_and_say_so_once():
    plain, compiled = run(HIDE + UPDATE), run("import sys" + UPDATE)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr.splitlines() == [
        "manifold_dl: Numba is not installed; the slower kernels in plain NumPy are used."
    ]
    assert "not installed" not in compiled.stderr
    found, expected = (np.frombuffer(bytes.fromhex(process.stdout)) for process in (plain, compiled))
    # The same steps with sums in another order: rounding, magnified by a few steps of an optimizer.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("manifold_dl.kernels.reduced.fit", "mdl.update_problem"),
        ("manifold_dl.kernels.reduced.ksvd", "mdl.KSVD"),
        ("manifold_dl.kernels.coding.lasso", "mdl.Lasso"),
        ("manifold_dl.line_search.whole", "mdl.GoldenSection"),
        ("numba.extending", "mdl.update_problem"),
    ],
)
def test_a_kernel_that_cannot_be_imported_is_an_error(name, use):
    # Where Numba is installed, the slow kernels must not take over in silence.
    process = run(BREAK.format(name=name, use=use))
    assert process.returncode != 0
    assert "cannot import name 'spam'" in process.stderr
