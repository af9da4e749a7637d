"""`check_schedule`: wrong schedules are named with their fault."""

import numpy as np
import pytest

from manifold_dl import schedules
from manifold_dl.diagnostics import (
    CheckFailed,
    check_schedule,
)


class Plan:
    def __init__(self, subsets, covers_atoms=False):
        self._subsets, self.covers_atoms = subsets, covers_atoms

    def subsets(self, n_atoms, rng=None):
        return self._subsets(n_atoms, rng)


WRONG_SCHEDULES = {
    "subset 1 of the schedule repeats the index 3": Plan(lambda d, rng: [[0], [3, 3]]),
    "contains the index 12": Plan(lambda d, rng: [[d]]),
    "has no subset": Plan(lambda d, rng: []),
    "dtype float64": Plan(lambda d, rng: [[0.5]]),
    "not repeatable": Plan(lambda d, rng: [np.random.default_rng().permutation(d)]),
    "global generator": Plan(lambda d, rng: [np.arange(0 * np.random.randint(9), d)]),  # noqa: NPY002
    r"never moves \[10, 11\]": Plan(lambda d, rng: [np.arange(d - 2)], covers_atoms=True),
}


@pytest.mark.parametrize("fault", WRONG_SCHEDULES)
def test_check_schedule_names_the_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Plan .*{fault}"):
        check_schedule(WRONG_SCHEDULES[fault])


def test_coverage_is_checked_if_required_or_promised_and_else_skipped():
    few = schedules.RandomSubsets(size=2, count=2)
    assert check_schedule(few).skipped == ("every atom moves (not promised)",)
    with pytest.raises(AssertionError, match="should cover every atom"):
        check_schedule(few, covers=True)
