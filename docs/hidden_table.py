"""The table of hidden dictionaries in the README, from docs/results/hidden.csv.

    python docs/hidden_table.py

brings the README up to date; a test fails when it is not.
"""

from pathlib import Path

from manifold_dl.experiments.hidden import NOISELESS
from manifold_dl.experiments.tables import in_order, read_csv, select, standard_error

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- written by docs/hidden_table.py -->", "<!-- end of the table -->"
COLUMNS = [(NOISELESS, n) for n in (150, 200, 300, 500, 1500)] + [("20 dB", n) for n in (200, 300, 500)]
NAMES = {
    "SPAMS": "SPAMS' `trainDL`, ℓ₁",
    "SPAMS, OMP": "SPAMS' `trainDL`, OMP",
    "SPAMS, ℓ₁, annealed": "SPAMS, ℓ₁, annealed by hand",
    "scikit-learn": "scikit-learn's `DictionaryLearning`, `cd`",
    "lasso_problem": "`lasso_problem`, conjugate gradients",
    "presets.recover": "**`presets.recover`**",
}


def table():
    """Atoms found and seconds of every method, as a Markdown table."""
    results = read_csv(Path(__file__).with_name("results") / "hidden.csv")
    heads = [f"n = {n}" if noise == NOISELESS else f"{n}, {noise}" for noise, n in COLUMNS]
    lines = [f"| atoms found (seconds) | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for method in in_order(results["method"]):
        cells = [cell(select(results, method=method, noise=noise, n=n)) for noise, n in COLUMNS]
        lines.append(f"| {NAMES.get(method, method)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(rows):
    """Mean with its standard error in per cent, and seconds."""
    found, error = 100 * rows["found"].mean(), 100 * standard_error(rows["found"])
    spread = f" ± {error:.0f}" if error >= 0.5 else ""
    return f"{found:.0f}{spread} % ({rows['seconds'].mean():.2f})"


def with_table(page):
    """The text of the page, with the table in its place."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
