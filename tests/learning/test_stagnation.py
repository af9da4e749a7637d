"""When a run has converged: three iterations in a row without a change of the loss."""

import pytest

from manifold_dl.learning.stagnation import Stagnation


def observed(losses, tol=0.1, **options):
    stagnation = Stagnation(tol, **options)
    for loss in losses:
        stagnation.observe(loss)
    return stagnation


@pytest.mark.parametrize(
    ("losses", "count"),
    [
        ([1.0], 0),
        ([1.0, 1.0, 1.0], 2),
        ([1.0, 0.95, 0.91, 0.90], 3),
        ([1.0, 0.95, 0.5, 0.5], 1),
        ([1.0, 1.2, 1.2], 1),
        ([0.0, 0.0, 0.0, 0.0], 3),
    ],
)
def test_iterations_without_change_are_counted_in_a_row(losses, count):
    stagnation = observed(losses)
    assert stagnation.count == count
    assert stagnation.has_converged == (count >= 3)


def test_zero_tolerance_never_converges():
    assert not observed([1.0] * 9, tol=0.0).has_converged


def test_iteration_that_is_not_settled_begins_the_count_again():
    stagnation = observed([1.0, 1.0, 1.0])
    stagnation.observe(1.0, is_settled=False)
    assert stagnation.count == 0
    stagnation.observe(1.0)
    assert stagnation.count == 1


def test_count_and_loss_of_a_checkpoint_are_continued():
    assert observed([1.0], count=2, last_loss=1.0).has_converged
