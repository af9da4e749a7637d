"""``manifold-dl info``: what a bug report should say."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from manifold_dl.cli.shared import Json, print_json

PACKAGES = ["numpy", "scipy", "pymanopt", "autograd", "numba", "scikit-learn", "matplotlib", "rich", "typer"]
OPTIONAL = {"scikit-image": "images", "pillow": "images", "dask": "distributed"}


def info(as_json: Json = False):
    """Versions, threads, and where the compiled kernels are kept."""
    from manifold_dl import __version__
    from manifold_dl.blocks import available_threads

    facts = {
        "manifold_dl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": available_threads(),
        "processors": os.cpu_count(),
        "kernels": kernel_cache(),
        "packages": {name: _version(name) for name in [*PACKAGES, *OPTIONAL]},
    }
    if as_json:
        print_json(facts)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        if name != "packages":
            table.add_row(name, str(value), style="bold" if name == "manifold_dl" else None)
    for name, value in facts["packages"].items():
        extra = OPTIONAL.get(name, "")
        table.add_row(name, value or f'[dim]not installed; pip install "manifold-dl\\[{extra}]"')
    Console().print(table, soft_wrap=True)  # a path is there to be copied: whole


def kernel_cache():
    """The folder of the compiled kernels, or what stands in for them."""
    from manifold_dl.kernels.installed import NUMBA_INSTALLED

    if not NUMBA_INSTALLED:
        return "plain NumPy: Numba is not installed"
    from manifold_dl.kernels import compiled

    folders = (kernel.stats.cache_path for kernel in vars(compiled).values() if hasattr(kernel, "stats"))
    return next(folders, "not known")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
