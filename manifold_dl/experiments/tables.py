"""Tables of results: a list of rows while they are measured, a CSV file to keep, columns to draw from."""

import csv
import io

import numpy as np


def as_csv(rows):
    """Rows (dicts with the same keys) as text. Six digits are more than any of these numbers deserves.

    Examples
    --------
    >>> print(as_csv([{"method": "MOD", "n": 78, "loss": 1 / 3}]), end="")
    method,n,loss
    MOD,78,0.333333
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _short(value) for key, value in row.items()})
    return text.getvalue()


def read_csv(path):
    """The columns of a CSV file, by name: arrays of numbers where all of a column are, else of words."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    if not rows or any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path} is no table of results: its rows do not all have {len(header)} entries.")
    return {name: _numbers(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}


def select(table, **wanted):
    """The rows in which the columns have the wanted values, as a smaller table.

    Examples
    --------
    >>> table = {"n": np.array([1, 2, 2]), "loss": np.array([0.5, 0.25, 0.125])}
    >>> select(table, n=2)["loss"]
    array([0.25 , 0.125])
    """
    keep = np.ones(len(next(iter(table.values()))), bool)
    for name, value in wanted.items():
        keep &= table[name] == value
    return {name: column[keep] for name, column in table.items()}


def means(table, column, by="n"):
    """{method: {n: mean}} of one column.

    Examples
    --------
    >>> table = {"method": np.array(["MOD", "MOD"]), "n": np.array([60, 60]), "error": np.array([1.0, 3.0])}
    >>> means(table, "error")
    {'MOD': {60: 2.0}}
    """
    found = {}
    for method in in_order(table["method"]):
        mine = select(table, method=method)
        found[method] = {n: float(np.mean(select(mine, **{by: n})[column])) for n in in_order(mine[by])}
    return found


def standard_error(values):
    """Of the mean, from the spread of the values; of a single one nothing is known, and 0 is returned."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def in_order(column):
    """The different values of a column in the order in which they appear."""
    return list(dict.fromkeys(column.tolist()))


def _short(value):
    return f"{float(value):.6g}" if isinstance(value, (float, np.floating)) else value


def _numbers(column):
    for kind in (int, float):
        try:
            return np.array([kind(entry) for entry in column])
        except ValueError:
            continue
    return np.array(column)
