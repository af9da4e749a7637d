"""Statements of the documentation that can be checked in seconds, by another computation than theirs.

The tutorials assert their own statements; here are those that need more draws, or that compare a page with
the files and programs it names.
"""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manifold_dl as mdl

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def mod_rate(D, X, Y):
    """The factor by which a round of MOD reduces f near D, asymptotically: tutorial 03.

    There the Schur complement of 2XXᵀ over the radial directions is formed. By block inversion its inverse is
    the tangent block of (2XXᵀ)⁻¹, and the Hessian of f is taken from finite differences of the gradient.
    """
    (m, d), problem = D.shape, mdl.update_problem(Y, X.astype(bool))
    basis = np.zeros((d, m - 1, m, d))
    for i in range(d):
        basis[i, :, :, i] = np.linalg.svd(D[:, [i]])[0][:, 1:].T
    basis, step = basis.reshape(-1, m, d), 1e-5
    gradient = problem.euclidean_gradient
    products = [(gradient(D + step * E) - gradient(D - step * E)) / (2 * step) for E in basis]
    inverse = np.linalg.inv(2 * (X @ X.T).toarray())
    rows = basis.reshape(len(basis), -1)
    follow = rows @ np.reshape(products, rows.shape).T
    stay_inverse = rows @ (basis @ inverse).reshape(rows.shape).T
    # The eigenvalues of (stay⁻¹ follow), which are those of Lᵀ follow L with stay⁻¹ = L Lᵀ.
    L = np.linalg.cholesky(stay_inverse)
    return (1 - np.linalg.eigvalsh(L.T @ follow @ L)[0]) ** 2


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_rate_of_mod_is_predicted_by_the_schur_complement(seed):
    m, d, n, spheres = 16, 32, 150, mdl.manifolds.Spheres(16, 32)
    D, X, _ = mdl.datasets.synthetic(m, d, n, sparsity=4, rng=seed)
    D = spheres.closest(D + 1.5 / np.sqrt(m))
    Y = D @ X
    problem = mdl.update_problem(Y, X.astype(bool))
    current = spheres.exp(D, 0.6 * np.sqrt(d) * spheres.random_tangent_vector(D, rng=seed + 1))
    values = []
    for _ in range(210):
        current, _ = mdl.MOD()(Y, current, problem.codes(current))
        values.append(problem.cost(current))
    observed = (values[-1] / values[-31]) ** (1 / 30)
    assert observed == pytest.approx(mod_rate(D, X, Y), abs=0.002)  # as the tutorial states


def test_numbers_in_the_text_on_denoising_agree_with_the_table():
    with (ROOT / "docs" / "results" / "denoising.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["draw"] == "0"]
    colours = {"grey": ("camera", "coins"), "colour": ("astronaut",), "all": ("camera", "coins", "astronaut")}

    def mean(method, patches, pictures="all"):
        key = method, str(patches)
        found = [row for row in rows if (row["method"], row["patches"]) == key]
        return np.mean([float(row["psnr"]) for row in found if row["picture"] in colours[pictures]])

    page = " ".join((ROOT / "docs" / "denoising.md").read_text(encoding="utf-8").split())
    for words, gain in (
        ("{} dB above K-SVD and", mean("ours", 1000) - mean("K-SVD", 1000)),
        ("and {} dB above MOD", mean("ours", 1000) - mean("MOD", 1000)),
        (
            "{} dB above K-SVD on the two grey pictures",
            mean("ours", 1000, "grey") - mean("K-SVD", 1000, "grey"),
        ),
        ("and {} dB in colour", mean("ours", 1000, "colour") - mean("K-SVD", 1000, "colour")),
        ("only {} dB above the fixed cosines", mean("ours", 1000) - mean("fixed cosines", 0)),
        ("{} dB above the cosines, and ours", mean("ours", 40_000) - mean("fixed cosines", 0)),
        ("and ours {} dB above K-SVD with the same coder", mean("ours", 40_000) - mean("K-SVD", 40_000)),
        ("Forward selection adds {} dB", mean("ours, forward selection", 40_000) - mean("ours", 40_000)),
    ):
        assert words.format(f"{gain:.2f}") in page


def test_commands_in_the_readme_exist_and_have_their_options():
    commands = set(re.findall(r"`(?:python )?(benchmarks/\w+\.py)((?: --[\w-]+(?: \w+)?)*)`", README))
    assert {path for path, _ in commands} == {
        f"benchmarks/{name}.py" for name in ("cold_start", "peers", "update", "updates")
    }
    for path, options in commands:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(f'"{option}"' in text for option in re.findall(r"--[\w-]+", options))


@pytest.mark.slow
def test_benchmark_of_recovery_prints_a_row_for_every_optimizer():
    """With two small draws for each: the rows, each with its standard error and the processor's seconds."""
    options = ["--seeds", "2", "--signals", "60", "--first-seed", "5000"]
    run = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "recovery.py", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    printed = re.findall(r"│ (.+?) +│ +\d+ ± [\d.]+ %  [\d.]+  [\d.]+ s │", run.stdout)
    assert printed == [f"conjugate gradients, {k}" for k in (3, 4, 5, 6, 8)] + [
        f"trust region, {k}" for k in (1, 2, 3)
    ]


def test_table_of_the_readme_agrees_with_the_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import hidden_table

    assert hidden_table.with_table(README) == README, "run python docs/hidden_table.py"
    assert "`cd`" in hidden_table.table() and "`lars`" in README


def test_speeds_of_the_lab_are_those_that_were_measured():
    page = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    lines = (ROOT / "benchmarks" / "results" / "lab.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if "measured" in row]
    assert {row["bound"] for row in rows} == {5.0, 0.3}
    for row in rows:
        numbers = f"{row['median']:.2f} | {row['longest']:.2f} | {row['bound']:g}"
        assert f"| {row['measured']} ({len(row['seconds'])} times) | {numbers} |" in page
        assert row["median"] <= row["bound"]
