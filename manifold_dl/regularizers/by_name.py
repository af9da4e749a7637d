"""Regularizers given by name and weight: ``SimCO(regularizers=["coherence:0.01"])``, ``--regularizer``.

`SimCO` and the command line call `regularizers`.
"""

from collections.abc import Iterable
from typing import Any

from manifold_dl.components import by_name
from manifold_dl.regularizers.algebra import scaled


def regularizers(values: Any, argument: str = "regularizers") -> Any:
    """Return regularizers, of which some may be given as ``"name:weight"``.

    Parameters
    ----------
    values : sequence
        Regularizers, functions of the dictionary, or strings ``"name:weight"``.
    argument : str
        The name of the argument or command line option, for messages.

    Returns
    -------
    tuple
        The regularizers; what is no sequence is returned as it is, and refused elsewhere.

    Examples
    --------
    >>> regularizers(["coherence:0.01"])
    (Coherence(weight=0.01, power=8),)
    """
    if isinstance(values, str):
        raise TypeError(f"{argument}={values!r}: pass a list of them, if only of one: [{values!r}].")
    if not isinstance(values, Iterable):
        return values  # refused elsewhere, with what is expected
    return tuple(_weighted(value, argument) if isinstance(value, str) else value for value in values)


def _weighted(text: str, argument: str) -> Any:
    name, _, weight = text.partition(":")
    try:
        factor = float(weight)
    except ValueError:
        raise ValueError(
            f"{by_name.as_written(argument, text)}: give it as NAME:WEIGHT, such as coherence:0.01."
        ) from None
    made = by_name.find("regularizers", name, argument)
    if not isinstance(made, type):  # a function that its package registers
        return scaled(factor, made)
    return by_name.component("regularizers", name, argument, weight=factor)
