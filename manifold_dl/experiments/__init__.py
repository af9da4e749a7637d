"""The paper's figures and tables, and three experiments beyond them: one file for each.

Every file holds a function that measures (deterministic, except for times), a function that draws, a function
that checks claims, and the `Study` made of them. `running.run` runs any study: in several processes,
resumable, with the same numbers for any number of processes. ``manifold-dl reproduce NAME`` calls it.
"""

from importlib import import_module

from manifold_dl.experiments.study import Study

_MODULES = {
    "fig1": "fig1",
    "fig2a": "fig2",
    "fig2b": "fig2",
    "fig3": "fig3",
    "fig4": "fig4",
    "table1": "table1",
    "theorem1": "theorem1",
    "recovery": "recovery",
    "solvers": "solvers",
    "hidden": "hidden",
}
NAMES = tuple(_MODULES)

__all__ = ["NAMES", "Study", "find"]


def find(name: str) -> Study:
    """Return the study of that name.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        If there is no study of that name.

    Examples
    --------
    >>> find("fig2a").title
    'Dictionary update with the true support, no noise'
    """
    if name not in _MODULES:
        raise ValueError(f"there is no experiment {name!r}; choose from {', '.join(NAMES)}, or all.")
    study: Study = vars(import_module(f"manifold_dl.experiments.{_MODULES[name]}"))[name]
    return study
