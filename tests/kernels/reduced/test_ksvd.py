"""The K-SVD sweep: compiled against reference, and where it stops; `tests/updates` tests the rule."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_cases import Case, K, assert_close, both_dtypes, both_ridges

from manifold_dl.kernels.reduced import SweepData, SweepState, ksvd, reference_ksvd
from manifold_dl.kernels.status import NOT_UNIQUE, OK
from manifold_dl.problem.support import SupportIndex

both_sweeps = pytest.mark.parametrize("kernels", [reference_ksvd, ksvd], ids=["reference", "compiled"])


class Sweep:
    """A copy of a case in the form that the sweeps read and change."""

    def __init__(self, kernels, case):
        self.kernels, index = kernels, SupportIndex(case.indptr, case.indices, K)
        self.case, self.codes, self.atoms = case, case.codes.copy(), case.atoms.copy()
        large = kernels.large_codes(case.signals, case.indptr, case.codes)
        self.data = SweepData(
            case.signals, case.indptr, case.indices, index.first, index.entries, index.signal_of, large
        )
        self.residual = self.recomputed_residual()

    def run(self, order, mu=0.0, power=False):
        state = SweepState(self.atoms, self.codes, self.residual)
        return self.kernels.ksvd_sweep(np.array(order), self.data, state, mu, power)

    def recomputed_residual(self):
        """Y − D X, from the atoms and codes as they are now."""
        X = np.zeros((len(self.case.signals), K), self.codes.dtype)
        X[self.data.signal_of, self.case.indices] = self.codes
        return self.case.signals - X @ self.atoms


@both_dtypes
@both_ridges
@pytest.mark.parametrize("power", [False, True], ids=["svd", "power"])
def test_compiled_and_reference_sweeps_agree(dtype, mu, power):
    found, expected = (Sweep(kernels, Case(dtype)) for kernels in (ksvd, reference_ksvd))
    for sweep in (found, expected):
        assert sweep.run(np.arange(K), mu, power) == (OK, K)
    # A vector is known to some ε over the relative gap of the two largest eigenvalues, and every atom passes
    # its error on to the next.
    for name in ("atoms", "codes", "residual"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == dtype
        assert_close(ours, theirs, dtype)


@both_sweeps
@both_dtypes
def test_a_sweep_keeps_the_residual_up_to_date(kernels, dtype):
    sweep = Sweep(kernels, Case(dtype))
    assert sweep.run([4, 1, 9, 4]) == (OK, 4)
    assert_close(sweep.residual, sweep.recomputed_residual(), dtype)


@both_sweeps
def test_large_codes_are_those_that_cost_the_residual_digits(kernels):
    case = Case()
    case.codes[:] = 1.0
    used = np.flatnonzero(np.diff(case.indptr))[[3, 20]]
    case.codes[case.indptr[used]] = [9.0, -9.0]
    case.codes *= np.abs(case.signals).max()
    largest = np.array([np.abs(case.codes[a:b]).max(initial=0) for a, b in pairwise(case.indptr)])
    ratio = largest / np.abs(case.signals).max(axis=1)
    found = kernels.large_codes(case.signals, case.indptr, case.codes)
    np.testing.assert_array_equal(found, ratio > reference_ksvd.LARGE_CODES)
    assert found[used].all() and not found.all()


@both_sweeps
def test_a_sweep_stops_before_a_tie_and_changes_nothing_of_that_atom(kernels):
    case = tied_case()
    sweep = Sweep(kernels, case)
    assert sweep.run([2, 1, 3]) == (NOT_UNIQUE, 1)
    np.testing.assert_array_equal(sweep.atoms[[1, 3]], case.atoms[[1, 3]])
    own = np.isin(case.indices, [1, 3])
    np.testing.assert_array_equal(sweep.codes[own], case.codes[own])
    assert not np.array_equal(sweep.atoms[2], case.atoms[2])
    assert_close(sweep.residual, sweep.recomputed_residual(), np.float64)


def tied_case():
    """Atom 1 alone represents two orthogonal signals of the same length: every combination is as good."""
    case = Case()
    for begin, end in pairwise(case.indptr):  # no other signal uses it
        support = case.indices[begin:end]
        support[support == 1] = np.setdiff1d(np.arange(K), [1, *support])[0]
    alone = np.flatnonzero(np.diff(case.indptr) == 1)[:2]
    case.indices[case.indptr[alone]] = 1
    case.signals[alone] = np.eye(case.signals.shape[1])[:2]
    return case
