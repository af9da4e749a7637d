"""``manifold-dl info``: versions for a bug report, or what a model was learned with."""

import math
import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from manifold_dl.cli.options import Json, input_file
from manifold_dl.cli.outputs import report

PACKAGES = ["numpy", "scipy", "pymanopt", "autograd", "numba", "scikit-learn", "matplotlib", "rich", "typer"]
OPTIONAL = {"scikit-image": "images", "pillow": "images", "dask": "distributed"}


def info(
    model: Annotated[Path | None, input_file("MODEL", "A .npz file from learn.")] = None,
    as_json: Json = False,
) -> None:
    """Print versions, threads and the folder of the compiled kernels; or what a MODEL was learned with."""
    facts = installation() if model is None else facts_of(model)
    report(facts, lambda: _print_table(facts), as_json=as_json, quiet=False)


def installation() -> dict[str, Any]:
    """Return versions, threads and the folder of the compiled kernels, for a bug report.

    Returns
    -------
    dict
    """
    from manifold_dl import __version__
    from manifold_dl.cli.compilation import cache_folder
    from manifold_dl.engines.ordered_map import available_threads

    return {
        "manifold_dl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": available_threads(),
        "processors": os.cpu_count(),
        "kernels": cache_folder(),
        "packages": {name: _version(name) for name in [*PACKAGES, *OPTIONAL]},
    }


def facts_of(path: Path) -> dict[str, Any]:
    """Return what is in a model, and what it was learned with.

    Parameters
    ----------
    path : Path
        A .npz file from `learn`.

    Returns
    -------
    dict
    """
    from manifold_dl.learning import storage

    model = storage.load(path)
    (m, d), n = model.dictionary.shape, model.codes.shape[1]
    return {
        "model": path,
        "atoms": d,
        "length": m,
        "signals": n,
        "atoms_per_signal": model.codes.nnz / n,
        "explained": model.explained,
        "iterations": model.n_iter,
        "reason": model.reason.name.lower(),
        "settings": model.settings,
    }


def _print_table(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for number, (name, value) in enumerate(_rows(facts)):
        table.add_row(name, Text(value, overflow="fold"), style="bold" if number == 0 else None)
    Console().print(table, soft_wrap=True)  # not cut: a path should be copied whole


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and values as text; packages and settings have a row for each entry."""
    from manifold_dl.components.settings import printable, shown

    for name, value in facts.items():
        if name == "packages":
            for package, number in value.items():
                missing = f'not installed; pip install "manifold-dl[{OPTIONAL.get(package, "")}]"'
                yield package, number or missing
        elif name == "settings":
            versions = value.get("versions")
            for setting in value:
                if setting != "versions":
                    yield printable(setting), shown(value[setting])
            if isinstance(versions, dict):
                text = ", ".join(f"{package} {number}" for package, number in versions.items())
                yield "versions", printable(text)
        elif name == "explained":
            yield name, "unknown" if math.isnan(value) else f"{value:.2%} of the energy"
        else:
            title = name if name == "manifold_dl" else name.replace("_", " ")
            yield title, f"{value:.2f}" if isinstance(value, float) else str(value)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
