"""Optimizers given by name: ``SimCO(optimizer="trust-region")``, ``--solver cg``.

`SimCO` and the command line call `optimizer`. It adds to `components.by_name` the short names of
`shortcuts.py`, the line searcher and the number of iterations of one update stage.
"""

import inspect
from typing import Any

from manifold_dl.components import by_name
from manifold_dl.optimizers.shortcuts import SHORTCUTS, STEPS


def optimizer(value: Any, argument: str = "optimizer", line_searcher: Any = None) -> Any:
    """Return the optimizer that `value` names, configured for one update stage.

    Besides the registered names there are ``"cg"``, ``"lbfgs"``, ``"trust-region"`` and
    ``"golden"`` (see `optimizers.shortcuts`). Any other optimizer makes five iterations per stage, if
    it has the argument `max_iterations`.

    Parameters
    ----------
    value : str, optimizer or None
        A name; an optimizer is returned as it is, and None stands for the default of `SimCO`.
    argument : str
        The name of the argument or command line option, for messages.
    line_searcher : str or object, optional
        The line searcher of the optimizer, if it takes one.

    Returns
    -------
    object or None
        A Pymanopt optimizer; None if neither a name nor a line searcher is given.

    Examples
    --------
    >>> optimizer("trust-region").kappa
    0.3
    >>> optimizer("trust-region", line_searcher="golden-section")
    Traceback (most recent call last):
    ...
    ValueError: optimizer='trust-region' takes no line searcher: leave line_searcher='golden-section' out.
    """
    if not (value is None or isinstance(value, str)):
        return value
    if value is None and line_searcher is None:
        return None
    name = "cg" if value is None else value
    key = name.lower().replace("_", "-")
    made: Any = SHORTCUTS[key] if key in SHORTCUTS else by_name.find("optimizers", name, argument)
    parameters, settings = inspect.signature(made).parameters, {}
    searcher_argument = "--line-searcher" if argument.startswith("--") else "line_searcher"
    if line_searcher is not None:
        if "line_searcher" not in parameters:
            other = by_name.as_written(searcher_argument, line_searcher)
            raise ValueError(
                f"{by_name.as_written(argument, name)} takes no line searcher: leave {other} out."
            )
        settings["line_searcher"] = by_name.component("line_searchers", line_searcher, searcher_argument)
    if key not in SHORTCUTS and (
        "max_iterations" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    ):
        settings["max_iterations"] = STEPS  # its own limit is meant for one run, not for fifty stages
    return made(**settings)
