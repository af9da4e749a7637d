"""The paper's figures and tables, and what goes past them: one short file per result.

Every file holds a function that measures (a pure one, but for times), a function that draws, and a `Study`
that names its parameters. `study.py` runs any of them: over processes, resumable, with the same numbers
however many.
``manifold-dl reproduce NAME`` is the command line to it.
"""

from importlib import import_module

_HOMES = {
    "fig1": "fig1",
    "fig2a": "fig2",
    "fig2b": "fig2",
    "fig3": "fig3",
    "fig4": "fig4",
    "table1": "table1",
    "theorem1": "theorem1",
    "recovery": "recovery",
    "solvers": "solvers",
}
NAMES = tuple(_HOMES)


def find(name):
    """The `Study` of that name.

    Examples
    --------
    >>> find("fig2a").title
    'Dictionary update with the true support, no noise'
    """
    if name not in _HOMES:
        raise ValueError(f"there is no experiment {name!r}; choose from {', '.join(NAMES)}, or all.")
    return getattr(import_module(f"manifold_dl.experiments.{_HOMES[name]}"), name)
