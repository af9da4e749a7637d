"""Choices to components: optimizer, line searcher, schedule, regularizers and ridges of the settings.

Names are looked up in the plug-in registry, and what cannot be made is refused with the sentence that the
package itself says. `job.py` and `compatibility.py` call these functions.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from manifold_dl import plugins
from manifold_dl._validation import as_alpha, as_ridge
from manifold_dl.components import by_name
from manifold_dl.lab.ridges import ridges
from manifold_dl.lab.settings import NONE, OWN, Refused, Settings
from manifold_dl.regularizers import scaled

MOST_NUMBERS = 12


def names(kind: str) -> list[str]:
    """The components of a kind that the page offers: ours, Pymanopt's, and those of installed plug-ins.

    Parameters
    ----------
    kind : str
        One of `plugins.KINDS`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> names("line_searchers")
    ['AdaptiveLineSearcher', 'BackTrackingLineSearcher', 'GoldenSection', 'WolfeSearch']
    """
    return plugins.available(kind)


def penalties(settings: Settings) -> list[tuple[float, float]]:
    """The pairs (α, μ) of a run, in turn; of the shorter list the last number holds on.

    Parameters
    ----------
    settings : Settings

    Returns
    -------
    list of (float, float)
        α is 0 for `update_problem`, which has none.

    Raises
    ------
    Refused

    Examples
    --------
    >>> penalties(Settings(ridge="in turn", mu="0.1, 0"))
    [(0.0, 0.1), (0.0, 0.0)]
    >>> penalties(Settings(ridge="continuation", mu="0.1", turns=3))
    [(0.0, 0.1), (0.0, 0.01), (0.0, 0.0)]
    >>> penalties(Settings(problem="lasso_problem", alpha="0.3, 0.1"))
    [(0.3, 0.0), (0.1, 0.0)]
    >>> penalties(Settings(mu="0.1, x"))
    Traceback (most recent call last):
    ...
    manifold_dl.lab.settings.Refused: mu='0.1, x': give one number, or several separated by commas.
    """
    typed = _numbers("mu", settings.mu, as_ridge)
    try:
        mus = ridges(settings.ridge, typed, settings.turns)
    except ValueError as error:
        raise Refused("mu", error) from None
    alphas = [0.0]
    if settings.problem == "lasso_problem":
        alphas = _numbers("alpha", settings.alpha, as_alpha)
    turns = max(len(mus), len(alphas))
    return [(alphas[min(t, len(alphas) - 1)], mus[min(t, len(mus) - 1)]) for t in range(turns)]


def _numbers(control: str, text: str, check: Callable[[Any], float]) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        message = f"{control}={text!r}: give one number, or several separated by commas."
        raise Refused(control, message) from None
    if len(values) > MOST_NUMBERS:
        raise Refused(control, f"{control} has {len(values)} numbers; give at most {MOST_NUMBERS}.")
    try:
        return [check(value) for value in values]
    except (TypeError, ValueError) as error:
        raise Refused(control, error) from None


def manifold(settings: Settings) -> Callable[[int, int], Any]:
    """The factory of the manifold.

    Examples
    --------
    >>> manifold(Settings(manifold="Lines")).__name__
    'Lines'
    """
    return _made("manifold", "manifolds", settings.manifold)


def schedule(settings: Settings) -> Any:
    """The schedule; those of blocks take the size of the settings.

    Examples
    --------
    >>> schedule(Settings(schedule="Overlapping", size=8))
    Overlapping(size=8, step=4)
    """
    return _made("schedule", "schedules", settings.schedule, **schedule_arguments(settings))


def schedule_arguments(settings: Settings) -> dict[str, int]:
    """What the schedules of this package need: a size, a step, a number of sets."""
    size = min(settings.size, settings.d)
    return {"size": size, "step": max(1, size // 2), "count": -(-settings.d // size)}


def takes_line_searcher(name: str) -> bool:
    """Whether an optimizer of that name uses a line searcher.

    Examples
    --------
    >>> takes_line_searcher("ConjugateGradient"), takes_line_searcher("TrustRegions")
    (True, False)
    """
    try:
        return "line_searcher" in inspect.signature(plugins.get("optimizers", name)).parameters
    except (LookupError, TypeError, ValueError):
        return False


def line_searcher(settings: Settings) -> Any:
    """The line searcher; None for an optimizer that takes none."""
    if not takes_line_searcher(settings.optimizer):
        return None
    return _made("line_searcher", "line_searchers", settings.line_searcher)


def optimizer(settings: Settings, searcher: Any = None) -> Any:
    """The optimizer, silent, with the number of iterations and the line searcher.

    Examples
    --------
    >>> type(optimizer(Settings(optimizer="LBFGS"))).__name__
    'LBFGS'
    """
    try:
        made = by_name.find("optimizers", settings.optimizer, "optimizer")
        return made(**optimizer_arguments(settings, made, searcher))
    except (TypeError, ValueError) as error:
        raise Refused("optimizer", error) from None


def optimizer_arguments(settings: Settings, made: Any, searcher: Any = None) -> dict[str, Any]:
    """Those of the arguments that the optimizer takes."""
    parameters = inspect.signature(made).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    wanted = {"max_iterations": settings.iterations, "verbosity": 0}
    given = {name: value for name, value in wanted.items() if takes_any or name in parameters}
    if searcher is not None and "line_searcher" in parameters:
        given = {"line_searcher": searcher, **given}
    return given


def regularizer_arguments(settings: Settings, start: np.ndarray, patch: int | None) -> dict[str, Any]:
    """What regularizers may need besides a weight: the shape of an atom, a bound, a dictionary to stay
    near."""
    shape = (patch, patch) if patch else (len(start),)
    return {"shape": shape, "bound": 0.95, "reference": start}


def regularizers(
    settings: Settings, energy: float, start: np.ndarray, patch: int | None, own: Any = None
) -> list[Any]:
    """The regularizers of a run: none, or one with its weight.

    Parameters
    ----------
    settings : Settings
    energy : float
        ‖Y‖², of which the weight is a fraction.
    start : array (m×d)
        The initial dictionary.
    patch : int or None
        The side of a patch, where atoms are pictures.
    own : regularizer, optional
        What the user typed, for the choice "own".

    Returns
    -------
    list

    Raises
    ------
    Refused
    """
    name, weight = settings.regularizer, settings.weight * energy
    if name == NONE:
        return []
    if name == OWN:
        if own is None:
            raise Refused("regularizer", "There is no regularizer of your own yet that passes its check.")
        return [scaled(weight, own)]
    try:
        made = by_name.find("regularizers", name, "regularizer")
    except ValueError as error:
        raise Refused("regularizer", error) from None
    if not isinstance(made, type):  # a plug-in may register a function
        return [scaled(weight, made)]
    others = regularizer_arguments(settings, start, patch)
    return [_made("regularizer", "regularizers", name, weight=weight, **others)]


def _made(control: str, kind: str, name: str, **arguments: Any) -> Any:
    try:
        return by_name.component(kind, name, control, **arguments)
    except ValueError as error:
        raise Refused(control, error) from None
