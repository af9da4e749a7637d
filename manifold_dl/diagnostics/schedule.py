"""The contract of a schedule: valid index sets, the same for the same seed."""

from typing import Any

import numpy as np

from manifold_dl.diagnostics.report import Inspection, Report
from manifold_dl.schedules import sweep
from manifold_dl.schedules.protocol import covers_atoms


def check_schedule(schedule: Any, n_atoms: int = 12, *, covers: bool | None = None, rng: int = 0) -> Report:
    """Check that `schedule` yields sweeps that an update rule can use.

    Every subset names at least one atom, in range, none of them twice; there is at least one subset; the same
    seed gives the same sweep; NumPy's global generator is left alone.

    Parameters
    ----------
    schedule : Schedule
        An object with the method ``subsets(n_atoms, rng)``, or a list of subsets.
    n_atoms : int
        The number of atoms, for schedules that suit only some.
    covers : bool, optional
        Whether a sweep must move every atom. By default what the attribute `covers_atoms` of the schedule
        says, False if it has none.
    rng : seed
        A whole number, since the same sweep is drawn twice.

    Returns
    -------
    Report
        What holds and what was skipped.

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> from manifold_dl.schedules import Blocks
    >>> check_schedule(Blocks(size=5), covers=True)
    Blocks: 4 properties hold.
      holds: subsets of atoms in range, without repeats
      holds: a seed repeats the sweep
      holds: the global random state is left alone
      holds: every atom moves
    """
    inspection = Inspection(schedule)
    usage = np.arange(n_atoms)[::-1] // 2  # with ties

    def draw() -> list[np.ndarray]:
        try:
            return sweep(schedule, n_atoms, rng, usage)
        except (TypeError, ValueError) as error:
            inspection.fail(f"cannot be swept: {str(error).rstrip('.')}", cause=error)

    state = np.random.get_state()  # noqa: NPY002 - the global state is what is being checked
    with inspection.calling():
        first, second = draw(), draw()
    inspection.require(True, "subsets of atoms in range, without repeats", "")
    same = [I.tolist() for I in first] == [I.tolist() for I in second]
    inspection.require(
        same, "a seed repeats the sweep", "is not repeatable: the same seed gave two different sweeps"
    )
    after = np.random.get_state()  # noqa: NPY002 - the same, afterwards
    inspection.require(
        all(np.array_equal(a, b) for a, b in zip(state, after, strict=True)),
        "the global random state is left alone",
        "draws from NumPy's global generator, and not from the rng it is given",
    )
    if covers_atoms(schedule) if covers is None else covers:
        missed = sorted(set(range(n_atoms)) - {int(i) for I in first for i in I})
        inspection.require(
            not missed, "every atom moves", f"should cover every atom, but never moves {missed}"
        )
    else:
        inspection.skip("every atom moves (not promised)")
    return inspection.report()
