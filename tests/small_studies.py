"""Studies at small sizes, and tables made by hand: what the tests of the experiments use."""

import dataclasses
import json

import matplotlib.pyplot as plt
import numpy as np

from manifold_dl import experiments
from manifold_dl.experiments.tables import as_csv, read_csv

TINY = {"shape": [4, 6], "sparsity": 2, "signals": [12], "iterations": 3, "trials": 5}


def tiny():
    """A study of a few milliseconds, in five parts."""
    study = experiments.find("fig2a")
    return study, {**study.parameters(quick=True), **TINY}


def undrawn():
    """The same with an empty figure, for tests that do not check it: drawing takes most of the time."""
    study, parameters = tiny()
    return dataclasses.replace(study, draw=lambda table: plt.figure(figsize=(1, 1))), parameters


def stop_at(number):
    """A progress function that raises KeyboardInterrupt when so many parts are done."""

    def progress(done, total):
        if done == number:
            raise KeyboardInterrupt

    return progress


def written(folder, name="fig2a"):
    """Table and record, the latter without the times."""
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return (folder / f"{name}.csv").read_bytes(), record["seed"], record["parameters"]


def ones(parameters, seed, n, trial):
    """Instead of `fig2.measure`: what other processes import from here."""
    return [{"method": "MOD", "n": n, "trial": trial, "error": 1.0, "kappa": 1.0, "recovered": 1.0}]


def measured(study, parameters, seed=0):
    rows = [row for part in study.parts(parameters) for row in study.measure(parameters, seed, **part)]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def columns(*rows, names):
    return {
        name: np.array(column) for name, column in zip(names.split(), zip(*rows, strict=True), strict=True)
    }


def with_methods_swapped(table, one, other):
    names = {one: other, other: one}
    return {**table, "method": np.array([names.get(name, name) for name in table["method"].tolist()])}


def read_back(study, tmp_path_factory, **changes):
    """The table of a small run, as it is read back from its file, and the parameters."""
    parameters = {**study.parameters(quick=True), **changes}
    rows = [row for part in study.parts(parameters) for row in study.measure(parameters, 0, **part)]
    path = tmp_path_factory.mktemp(study.name) / "table.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    return read_csv(path), parameters


def labelled(figure):
    """The axes that have axes to label."""
    axes = [ax for ax in figure.axes if ax.axison and ax.name != "3d"]
    assert axes
    assert axes[0].get_ylabel()
    assert all(ax.get_xlabel() or any(label.get_text() for label in ax.get_xticklabels()) for ax in axes)
    return axes
