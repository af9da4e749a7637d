"""The tree of tests mirrors that of the package, as CONTRIBUTING says.

`manifold_dl/updates/simco.py` is tested by `tests/updates/test_simco.py`. A module without a test file of its
name serves another one, whose tests are its own too: `ELSEWHERE` says which. Every further test file is about
something that several modules of its folder do together, such as weights or faults.
"""

from pathlib import Path

import pytest

import manifold_dl

TESTS = Path(__file__).parents[1]
PACKAGE = Path(manifold_dl.__file__).parent
OTHER_FOLDERS = {"benchmarks", "documentation", "plugin_package"}

#: By test file: the modules tested there that have no test file of their own name.
ELSEWHERE = {
    # Input, and what several layers use
    "test_validation.py": "_missing",
    "test_refused_data.py": "_sparse",
    "problem/test_weighted.py": "_weights engines/weights",
    "components/test_errors.py": "components/calling",
    "test_plugins.py": "components/entry_points",
    # The command line is tested as a process, command by command
    "cli/test_main.py": "__main__ cli/info cli/options",
    "cli/test_denoise.py": "cli/bars cli/errors cli/outputs",
    "cli/test_learn.py": "cli/signals",
    "cli/test_demo.py": "cli/figure",
    "cli/test_warm_up.py": "cli/compilation",
    "components/test_by_name.py": "cli/choices optimizers/by_name regularizers/by_name",
    "lab/test_browser.py": "cli/lab lab/app lab/cards lab/page",
    # Coders and their kernels
    "coders/test_contract.py": "coders/calling coders/checks kernels/coding/interface kernels/coding/common",
    "coders/test_greedy.py": "coders/pursuit kernels/coding/pursuit kernels/coding/basis"
    " kernels/coding/reference kernels/coding/reference_greedy kernels/coding/pursuit_memory",
    "coders/test_convex.py": "kernels/coding/active_set kernels/coding/checked_lasso kernels/coding/lasso"
    " kernels/coding/signs kernels/coding/factor kernels/coding/reference_convex",
    "coders/test_iterative.py": "coders/reweighted kernels/coding/matching kernels/coding/thresholding"
    " kernels/coding/focuss kernels/coding/reference_supports",
    "coders/test_nonnegative.py": "kernels/coding/nonnegative",
    "coders/test_weights.py": "kernels/coding/common_weight kernels/coding/observed kernels/coding/patterns"
    " kernels/coding/weighted kernels/coding/weighted_basis kernels/coding/weighted_memory"
    " kernels/coding/reference_weighted",
    # Kernels of the objective: every compiled one against its reference
    "kernels/reduced/test_codes.py": "kernels/reduced/cholesky kernels/reduced/reference"
    " kernels/reduced/structures",
    "kernels/reduced/test_ksvd.py": "kernels/reduced/reference_ksvd kernels/reduced/squares kernels/status",
    "kernels/reduced/test_leading.py": "kernels/reduced/krylov",
    "kernels/reduced/test_lasso.py": "kernels/reduced/reference_lasso",
    "kernels/reduced/test_rows.py": "kernels/reduced/reference_products",
    "kernels/reduced/test_weighted.py": "kernels/reduced/reference_weighted kernels/reduced/weighted_geodesic"
    " kernels/reduced/weighted_gram",
    "kernels/test_backend.py": "kernels/numba_private",
    # Checks for components of users
    "diagnostics/test_manifold.py": "diagnostics/manifold_conventions diagnostics/manifold_derivatives"
    " diagnostics/manifold_maps diagnostics/manifold_sample diagnostics/manifold_tangents diagnostics/paths",
    "diagnostics/test_optimizer.py": "diagnostics/optimizer_problems",
    "diagnostics/test_derivatives.py": "diagnostics/taylor",
    "diagnostics/test_update.py": "diagnostics/update_weights",
    # Engines
    "engines/test_dask.py": "engines/cluster engines/sources engines/worker",
    "engines/test_damaged_files.py": "engines/npy_file learning/distant_codes",
    "engines/test_files.py": "engines/blocked engines/opening engines/read_ahead",
    # The estimator
    "estimator/test_dictionary_learning.py": "estimator/checks",
    "estimator/test_batches.py": "estimator/fitting",
    "test_storage.py": "estimator/storage",
    # Studies
    "experiments/test_running.py": "experiments/files experiments/journal experiments/processes",
    "experiments/test_recovery.py": "experiments/identifiability experiments/methods",
    "experiments/test_hidden.py": "experiments/peers",
    "experiments/test_study.py": "experiments/tables",
    # Pictures
    "images/test_denoising.py": "images/patches",
    "images/test_similar.py": "images/guided images/progress",
    # The lab
    "lab/test_figures.py": "lab/figures/atoms lab/figures/axes lab/figures/convergence lab/figures/search"
    " lab/figures/sphere lab/figures/taylor",
    "lab/test_session.py": "lab/compatibility lab/own_code lab/parts lab/settings lab/widgets",
    "lab/test_run.py": "lab/job lab/numbers lab/watching",
    # Learning
    "learning/test_faults.py": "learning/adapters learning/protocols",
    "learning/test_wrong_answers.py": "learning/outcomes",
    "learning/test_replacement.py": "learning/coded_signals",
    "learning/test_checkpoint.py": "learning/fingerprint learning/run_settings",
    # Line searches, manifolds and optimizers
    "line_search/test_searchers.py": "line_search/slopes",
    "manifolds/test_contract.py": "manifolds/columnwise manifolds/euclidean",
    "manifolds/test_spheres_and_lines_as_manifolds.py": "manifolds/randomness",
    "updates/test_runs.py": "optimizers/running updates/protocol",
    "optimizers/test_pymanopt_optimizers.py": "optimizers/pymanopt_private",
    "updates/test_simco_optimizers.py": "optimizers/shortcuts",
    "plotting/test_sphere.py": "plotting/globe",
    # The problem
    "problem/test_objective.py": "problem/evaluation problem/fixed problem/inner",
    "problem/test_support.py": "problem/signals",
    "problem/test_update_problem.py": "problem/support_problem problem/whole",
    "problem/test_geodesic.py": "problem/great_circles",
    "problem/test_lasso_problem.py": "problem/penalized problem/penalized_problem problem/solvers"
    " problem/starts",
    # Regularizers and schedules
    "regularizers/test_penalties.py": "regularizers/atoms regularizers/barrier regularizers/gram"
    " regularizers/pairs regularizers/weights",
    "regularizers/test_derivatives.py": "regularizers/protocol regularizers/tape",
    "regularizers/test_functions.py": "regularizers/signatures",
    "schedules/test_index_sets.py": "schedules/protocol",
    # Updates
    "updates/test_workspace.py": "updates/current_codes",
    "updates/test_mod.py": "updates/normal_equations",
    "engines/test_dask_codes.py": "updates/distant",
}
TESTED_AT = {module: file for file, modules in ELSEWHERE.items() for module in modules.split()}


def modules_without_a_test_of_their_name():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("")
        own = TESTS / module.parent / f"test_{module.name.removeprefix('_')}.py"
        if module.name != "__init__" and not own.exists():
            found.append(module.as_posix())
    return found


def test_modules_without_a_test_file_of_their_name_are_listed_with_their_tests():
    assert modules_without_a_test_of_their_name() == sorted(TESTED_AT)


@pytest.mark.parametrize("file", ELSEWHERE)
def test_listed_test_file_exists(file):
    assert (TESTS / file).is_file()


def test_every_folder_of_tests_is_one_of_the_package():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders - packages <= OTHER_FOLDERS
