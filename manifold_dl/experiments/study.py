"""What an experiment is: its parameters, how it is measured and drawn, and the claims it checks.

A study is divided into parts (for example one draw of the signals). Each part is measured by a function that
depends on the parameters, the part and the seed alone, so the numbers, except for the times that `table1`,
`solvers` and `hidden` measure, depend neither on the number of processes nor on interruptions. `running.run`
runs a study.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from manifold_dl.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Parameters = Mapping[str, Any]
Part = dict[str, Any]


class Claim(NamedTuple):
    """A statement about the results, what was measured, and whether the measurement supports it.

    Attributes
    ----------
    says : str
        The statement.
    measured : str
        The numbers behind the verdict.
    holds : bool
        Whether the numbers support the statement.
    """

    says: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Study:
    """One experiment.

    Parameters
    ----------
    name, title : str
        The name for the command line and for files, and one line that describes the study.
    full : mapping
        Parameters of the full run, by name. ``trials``, if present, is what ``--trials`` sets.
    quick : mapping
        The parameters that are different in the quick run.
    parts : callable, parameters → list of dict
        The parts that are measured independently of each other, as keyword arguments of `measure`.
    measure : callable, (parameters, seed, keywords of one part) → list of rows
        A function of a module, so that other processes can import it. It must be deterministic, except for
        times. The rows are dicts with the same keys throughout.
    draw : callable, table → figure
        Draws the figure from the columns of the table alone.
    claims : callable, table → list of `Claim`
        What the paper states, or we state, and whether the table supports it.
    alone : bool
        Whether times are measured, so that nothing else may run at the same time as a part.
    pictures : bool
        Whether `measure` returns ``rows, pictures``, the latter a dict of name → 8-bit array, and `draw`
        takes the pictures of all parts as a second argument.
    """

    name: str
    title: str
    full: Parameters
    quick: Parameters
    parts: Callable[[Parameters], list[Part]]
    measure: Callable[..., Any] = field(repr=False)
    draw: Callable[..., "Figure"] = field(repr=False)
    claims: Callable[[Table], list[Claim]] = field(repr=False)
    alone: bool = False
    pictures: bool = False

    def parameters(self, quick: bool = False, trials: int | None = None) -> dict[str, Any]:
        """Return the parameters of a run, in plain lists and numbers.

        Parameters
        ----------
        quick : bool
            Whether the quick run is meant.
        trials : int, optional
            The number of random draws, in place of the study's own.

        Returns
        -------
        dict
            As JSON would read it back: lists instead of tuples.
        """
        chosen = {**self.full, **(self.quick if quick else {})}
        if trials is not None:
            if "trials" not in chosen:
                raise ValueError(f"{self.name} has no trials to set.")
            chosen["trials"] = trials
        plain: dict[str, Any] = json.loads(json.dumps(chosen))
        return plain
