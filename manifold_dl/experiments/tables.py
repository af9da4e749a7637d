"""Tables of results: lists of rows while they are measured, a CSV file for storage, columns for drawing."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
Table = Mapping[str, np.ndarray]


def as_csv(rows: Sequence[Row]) -> str:
    """Return rows (dicts with the same keys) as CSV text, with six significant digits.

    Parameters
    ----------
    rows : sequence of dict
        At least one.

    Returns
    -------
    str
        A line with the keys, then one line for each row.

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
        writer.writerow({key: _rounded(value) for key, value in row.items()})
    return text.getvalue()


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Read the columns of a CSV file.

    Parameters
    ----------
    path : Path
        A file that `as_csv` made.

    Returns
    -------
    dict of str → array
        Integers or floats where all entries of a column are numbers, otherwise strings.
    """
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    if not rows or any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path} is no table of results: its rows do not all have {len(header)} entries.")
    return {name: _numbers(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}


def select(table: Table, **wanted: Any) -> dict[str, np.ndarray]:
    """Return the rows in which the named columns have the given values, as a smaller table.

    Parameters
    ----------
    table : mapping of str → array
        Columns of equal length.
    **wanted
        Column name = value.

    Returns
    -------
    dict of str → array

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


def means(table: Table, column: str, by: str = "n") -> dict[str, dict[Any, float]]:
    """Return the mean of a column for each method and each value of another column.

    Parameters
    ----------
    table : mapping of str → array
        With a column ``method``.
    column : str
        What is averaged.
    by : str
        The column whose values are kept apart.

    Returns
    -------
    dict of method → dict of value → mean

    Examples
    --------
    >>> table = {"method": np.array(["MOD", "MOD"]), "n": np.array([60, 60]), "error": np.array([1.0, 3.0])}
    >>> means(table, "error")
    {'MOD': {60: 2.0}}
    """
    found = {}
    for method in in_order(table["method"]):
        rows = select(table, method=method)
        found[method] = {n: float(np.mean(select(rows, **{by: n})[column])) for n in in_order(rows[by])}
    return found


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean, from the spread of the values; 0 for a single value.

    Parameters
    ----------
    values : array
        Independent measurements.

    Returns
    -------
    float

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def in_order(column: np.ndarray) -> list[Any]:
    """Return the distinct values of a column in the order in which they first appear.

    Parameters
    ----------
    column : array
        One axis.

    Returns
    -------
    list

    Examples
    --------
    >>> in_order(np.array([3, 1, 3]))
    [3, 1]
    """
    return list(dict.fromkeys(column.tolist()))


def listed(values: Mapping[str, Any], names: Sequence[str], form: str) -> str:
    """Return some of the values with their names in brackets, for the text of a claim.

    Parameters
    ----------
    values : mapping of name → number
        What is listed.
    names : sequence of str
        Which of them, in this order.
    form : str
        The format specification of a number.

    Returns
    -------
    str

    Examples
    --------
    >>> listed({"MOD": 1.234, "K-SVD": 5.678}, ["K-SVD", "MOD"], ".1f")
    '5.7 (K-SVD), 1.2 (MOD)'
    """
    return ", ".join(f"{values[name]:{form}} ({name})" for name in names)


def _rounded(value: Any) -> Any:
    return f"{float(value):.6g}" if isinstance(value, (float, np.floating)) else value


def _numbers(column: Sequence[str]) -> np.ndarray:
    for kind in (int, float):
        try:
            return np.array([kind(entry) for entry in column])
        except ValueError:
            continue
    return np.array(column)
