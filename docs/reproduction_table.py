"""The claims of the paper and what was measured: from the tables in docs/results into reproduction.md.

    python docs/reproduction_table.py

brings the page up to date; a test fails when it is not.
"""

from pathlib import Path

from manifold_dl.experiments import NAMES, find
from manifold_dl.experiments.tables import read_csv

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).with_name("reproduction.md")
BEGIN = "<!-- from here on written by reproduction_table.py -->"
END = "<!-- up to here -->"


def table():
    """All claims, in the order of the paper, as a Markdown table."""
    lines = ["| | claim | measured | holds |", "|---|---|---|---|"]
    for name in NAMES:
        for claim in find(name).claims(read_csv(RESULTS / f"{name}.csv")):
            verdict = "yes" if claim.holds else "**no**"
            lines.append(f"| `{name}` | {claim.says} | {claim.measured} | {verdict} |")
    return "\n".join(lines)


def with_table(page):
    """The text of the page, with the table in its place."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
