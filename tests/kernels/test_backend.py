"""Which kernels are used and when they are compiled: with Numba, without it, after an edit of a source."""

import gc
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.dispatcher import Dispatcher

import manifold_dl.kernels
from manifold_dl.kernels import backend, numba_private

PACKAGE = Path(manifold_dl.__file__).parent
KERNELS = PACKAGE / "kernels"
STAMP = "manifold_dl.sources"


def run(code, folder=PACKAGE.parent, **environment):
    """A process that imports the package of `folder`, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def copy_package(folder):
    shutil.copytree(PACKAGE, folder / "manifold_dl", ignore=shutil.ignore_patterns("__pycache__"))


def modules_of_kernels():
    package = manifold_dl.kernels
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield importlib.import_module(module.name)


# --- The cache on disk ------------------------------------------------------------------------------------


def test_every_folder_of_cached_kernels_has_the_stamp_of_all_sources():
    # Numba by itself looks at the file of a kernel alone, and would run what an edited helper was before.
    kernels = {
        kernel
        for module in modules_of_kernels()
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher)
    }
    names = {kernel.py_func.__name__ for kernel in kernels}
    assert {"_omp", "_forward_selection", "_lasso", "_focuss", "_iht", "_fit", "_refit", "_sweep"} <= names
    sources = sorted(KERNELS.rglob("*.py"))
    for folder in {Path(kernel.stats.cache_path) for kernel in kernels}:
        lines = (folder / STAMP).read_text().splitlines()
        assert [line.split()[0] for line in lines] == [file.name for file in sources]


def test_numba_is_imported_by_the_backend_and_the_file_of_private_names_alone():
    for module in modules_of_kernels():
        if module is not backend:
            assert "jit" not in vars(module), module
            assert "njit" not in vars(module), module
        if module not in (backend, numba_private):
            assert not re.search(r"^\s*(import|from) numba", Path(module.__file__).read_text(), re.M), module


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder with machine code of two kernels, another file, and a text for the sources."""
    for name in ("codes._fit-1.nbi", "codes._fit-1.1.nbc", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.setattr(backend, "_stamp", lambda: "codes.py 1 2")
    backend._drop_outdated.cache_clear()
    yield tmp_path
    backend._drop_outdated.cache_clear()


def files_in(folder):
    return sorted(file.name for file in folder.iterdir())


def test_machine_code_without_a_stamp_is_removed(cache):
    backend._drop_outdated(cache)
    assert files_in(cache) == [STAMP, "notes.txt"]
    assert (cache / STAMP).read_text() == "codes.py 1 2"


def test_machine_code_of_other_sources_is_removed(cache):
    (cache / STAMP).write_text("codes.py 0 2")
    backend._drop_outdated(cache)
    assert files_in(cache) == [STAMP, "notes.txt"]
    assert (cache / STAMP).read_text() == "codes.py 1 2"


def test_machine_code_of_these_sources_is_kept(cache):
    (cache / STAMP).write_text("codes.py 1 2")
    backend._drop_outdated(cache)
    assert files_in(cache) == ["codes._fit-1.1.nbc", "codes._fit-1.nbi", STAMP, "notes.txt"]


def test_the_folder_is_made_where_there_is_none(cache):
    backend._drop_outdated(cache / "new" / "folder")
    assert files_in(cache / "new" / "folder") == [STAMP]


@pytest.mark.parametrize("method", ["read_text", "unlink", "mkdir", "write_text"])
def test_a_folder_that_cannot_be_read_or_written_is_no_error(cache, method, monkeypatch):
    (cache / STAMP).write_text("codes.py 0 2")

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, method, refuse)
    backend._drop_outdated(cache)
    assert (cache / "notes.txt").exists()


def test_without_any_folder_for_the_cache_kernels_are_compiled_in_every_process(tmp_path):
    # No folder can be made below a file: this stands for folders that are read-only, also to the root user.
    copy_package(tmp_path)
    for folder in ("", "reduced", "coding"):
        (tmp_path / "manifold_dl" / "kernels" / folder / "__pycache__").touch()
    places = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    process = run(TWO_KERNELS, tmp_path, **places)
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[3. 3.]\n"
    assert process.stderr.count("compiling the dictionary update") == 1
    assert process.stderr.count("RuntimeWarning: manifold_dl: there is no folder where compiled") == 1
    assert process.stderr.count("Set NUMBA_CACHE_DIR to a folder of your own") == 1


# Each edit changes a result: of a helper that is compiled into kernels of other files, or of a kernel itself.
EDITS = {
    "a helper of another file": (
        "coding/common.py",
        "return largest * np.sqrt(total)",
        "return 9 * largest * np.sqrt(total)",
    ),
    "the kernel itself": (
        "coding/pursuit.py",
        "support[k], z[k] = p, a[p] * L[k, k]",
        "support[k], z[k] = p, a[p] * L[k, k] * 3",
    ),
    "a helper of another file, geodesics": (
        "reduced/rows.py",
        "rows = max(1, multiplications // others.size)",
        "rows = 1 + len(atoms)\n    atoms = 2 * atoms",
    ),
}
OF_CODING = """
import manifold_dl as mdl
D, X, Y = mdl.datasets.synthetic(16, 32, 20, sparsity=4, snr_db=20, rng=0)
print(mdl.OMP(tol=0.5).encode(Y, D).data.tobytes().hex())
"""
OF_GEODESICS = """
import numpy as np
from manifold_dl.kernels import reduced
atoms, direction = np.eye(3)[:2], np.eye(3)[1:]
print(reduced.init_geodesic(atoms, direction, atoms, atoms @ atoms.T).DU)
"""


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_source_is_compiled_again(tmp_path, edit):
    copy_package(tmp_path)
    file, before, after = EDITS[edit]
    code = OF_CODING if file.startswith("coding") else OF_GEODESICS
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


@pytest.mark.slow
def test_the_process_that_compiles_finds_the_same_bits_as_those_after_it(tmp_path):
    code = (
        "import numpy as np\n"
        "from pymanopt.optimizers import ConjugateGradient\n"
        "import manifold_dl as mdl\n"
        "D, X, Y = mdl.datasets.synthetic(16, 32, 300, sparsity=4, snr_db=20, rng=0)\n"
        "problem = mdl.update_problem(Y, X, mu=0.1)\n"
        "start = problem.manifold.random_point(rng=1)\n"
        "for searcher in (mdl.WolfeSearch(), mdl.GoldenSection()):\n"
        "    optimizer = ConjugateGradient(line_searcher=searcher, max_iterations=9, verbosity=0)\n"
        "    print(optimizer.run(problem, initial_point=start).point.tobytes().hex())\n"
        "print(problem.euclidean_hessian(start, start).tobytes().hex())\n"
    )
    runs = [run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert ["compiling" in process.stderr for process in runs] == [True, False]
    assert runs[0].stdout == runs[1].stdout != ""


# --- What is said while compiling -------------------------------------------------------------------------

TWO_KERNELS = """
import numpy as np
from manifold_dl.kernels import reduced
signals, indptr, indices = np.ones((2, 3)), np.arange(3), np.zeros(2, np.int32)
reduced.add_products(signals, indptr, indices, np.ones(2), np.ones((1, 3)))
reduced.evaluate_fixed(reduced.Block(signals, indptr, indices, None), np.ones((1, 3)), np.ones(2))
print(reduced.code_energies(indices, np.array([1.0, 1.0]), 1) + np.ones(2))
"""
ONE_MORE = """
from manifold_dl import OMP
print(OMP(sparsity=1).encode(np.ones((4, 1)), np.eye(4)).nnz)
"""


def test_one_line_per_group_says_what_is_compiled_and_about_how_long(tmp_path):
    # Three small kernels of one group and one of another: two lines; and none when they come from the disk.
    expected = [
        "manifold_dl: compiling the dictionary update (about 6 s), once; later runs read it from disk ...",
        "manifold_dl: compiling sparse coding (about 4 s), once; later runs read it from disk ...",
    ]
    for lines in (expected, []):
        process = run(TWO_KERNELS + ONE_MORE, NUMBA_CACHE_DIR=str(tmp_path))
        assert process.returncode == 0, process.stderr
        assert process.stdout == "[3. 3.]\n1\n"
        assert process.stderr.splitlines() == lines


def test_functions_that_others_compile_are_not_announced(capfd):
    made = {}
    exec("def double(x):\n    return 2 * x", made)  # a function without a module
    made["double"].__module__ = None
    assert numba.njit(made["double"])(3) == 6
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_pauses_for_our_kernels_and_is_then_as_it_was(enabled):
    seen = []

    class Recorder(event.Listener):
        def on_start(self, happening):
            seen.append(gc.isenabled())

        def on_end(self, happening):
            pass

    def double(x):
        return 2 * x

    was_enabled, recorder = gc.isenabled(), Recorder()
    event.register("numba:compile", recorder)
    try:
        gc.enable() if enabled else gc.disable()
        for module in ("manifold_dl.kernels.reduced.made_here", "elsewhere"):
            double.__module__ = module
            assert numba.njit(double)(3) == 6
            assert gc.isenabled() == enabled
    finally:
        event.unregister("numba:compile", recorder)
        gc.enable() if was_enabled else gc.disable()
    assert seen == [False, enabled]


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
import sys
import numpy as np
import manifold_dl as mdl
D, X, Y = mdl.datasets.synthetic(8, 12, 40, sparsity=2, snr_db=20, rng=0)
X = mdl.OMP(sparsity=2).encode(Y, D)
problem = mdl.update_problem(Y, X, mu=0.1)
D, X = mdl.SimCO(mu=0.1)(Y, problem.manifold.random_point(rng=1), X)
D, X = mdl.KSVD()(Y, D, X)
problem.euclidean_hessian(D, D)
sys.stdout.write(D.tobytes().hex())
"""


def test_without_numba_the_kernels_in_numpy_run_and_one_line_says_so():
    plain, compiled = run(HIDE + UPDATE), run(UPDATE)
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
        ("manifold_dl.kernels.backend", "mdl.update_problem"),
        ("manifold_dl.kernels.reduced.codes", "mdl.update_problem"),
        ("manifold_dl.kernels.reduced.refit", "mdl.SimCO"),
        ("manifold_dl.kernels.reduced.ksvd", "mdl.KSVD"),
        ("manifold_dl.kernels.coding.lasso", "mdl.Lasso"),
        ("numba.core.event", "mdl.update_problem"),
    ],
)
def test_a_kernel_that_cannot_be_imported_is_an_error(name, use):
    # Where Numba is installed, the slow kernels must not be used in silence.
    process = run(BREAK.format(name=name, use=use))
    assert process.returncode != 0
    assert "cannot import name 'spam'" in process.stderr


def test_kernels_are_plain_python_where_compilation_is_disabled():
    process = run(TWO_KERNELS, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[3. 3.]\n" and process.stderr == ""


def test_what_compiling_leaves_is_not_young_for_the_garbage_collection():
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        left = [[number] for number in range(50)]
        backend._call_new_objects_old()
        young = {id(one) for one in gc.get_objects(generation=0)}
        assert gc.get_freeze_count() == 0
        assert not any(id(one) in young for one in left)
    finally:
        if was_enabled:
            gc.enable()
