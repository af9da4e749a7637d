"""Find and load adapters: Python files that say how a library is called.

An adapter has, for each task that it takes part in, a dictionary from the names of its rows to functions
of a problem of `problems.py`: `RECOVERY`, `PATCHES`, `SCALING` and `DENOISING` return a dictionary (m×d),
`CODING` (by kind: "sparsity", "error", "lasso") returns codes, `PICTURES` a picture. `UPDATES` has
functions without arguments that begin a run and return a function (signals, dictionary, codes, iteration)
→ (dictionary, codes). `DISTRIBUTION` is what pip calls the library, `DTYPES` what it computes in; in
double precision alone if nothing is said.
"""

import importlib.metadata
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[1] / "adapters"


def standard_adapters() -> list[Path]:
    """The files in benchmarks/adapters, ours first."""
    return sorted(FOLDER.glob("*.py"), key=lambda path: (path.stem != "ours", path.stem))


def load(path: Path) -> ModuleType:
    """Import an adapter; ImportError if its library is not installed."""
    specification = importlib.util.spec_from_file_location(f"adapter_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise ValueError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def version(adapter: ModuleType) -> str:
    """The version of the library, as pip knows it."""
    return importlib.metadata.version(adapter.DISTRIBUTION)


def functions(adapter: ModuleType, name: str, dtype: str = "float64") -> dict[str, Any]:
    """The functions that an adapter has for a task, if the library computes in that precision."""
    return getattr(adapter, name, {}) if dtype in getattr(adapter, "DTYPES", ("float64",)) else {}
