"""What `sweep` accepts as a schedule, and what it refuses."""

import numpy as np
import pytest

from manifold_dl.schedules import AllAtoms, sweep


def test_sweep_accepts_any_object_with_subsets():
    class EvenThenOdd:
        def subsets(self, n_atoms, rng):
            yield range(0, n_atoms, 2)
            yield np.arange(n_atoms) % 2 == 1

    assert [I.tolist() for I in sweep(EvenThenOdd(), 5, usage=np.ones(5))] == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize(
    "subsets",
    [
        [[0, 1], [2]],
        [np.array([0, 1], dtype=np.uint8), (2,)],
        [[True, True, False], np.array([False, False, True])],
    ],
    ids=["lists", "arrays", "masks"],
)
def test_sweep_accepts_the_subsets_themselves(subsets):
    assert [I.tolist() for I in sweep(subsets, 3)] == [[0, 1], [2]]


def test_sweep_accepts_the_rows_of_a_matrix():
    assert [I.tolist() for I in sweep(np.arange(6).reshape(3, 2), 6)] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("subsets", "sentence"),
    [
        ([[0], [1, 3]], "subset 1 of the schedule contains the index 3; the atoms are numbered 0 to 2"),
        ([[-1]], "contains the index -1"),
        ([[2, 0, 2]], "repeats the index 2"),
        ([[True, False]], "mask of length 2; there are 3 atoms"),
        ([[0.0, 1.0]], "has dtype float64"),
        ([["0"]], "atom indices are integers"),
        ([0, 1, 2], "has 0 dimensions"),
        ([], "has no subset"),
    ],
)
def test_sweep_refuses_what_is_not_a_subset(subsets, sentence):
    with pytest.raises(ValueError, match=sentence):
        sweep(subsets, 3)


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ((I for I in [[0]]), "generator, which can be read only once"),
        (3, "schedule is a int"),
        (AllAtoms, r"pass an object, such as AllAtoms\(\.\.\.\)"),
    ],
)
def test_sweep_refuses_what_is_not_a_schedule(schedule, sentence):
    with pytest.raises(TypeError, match=sentence):
        sweep(schedule, 3)
