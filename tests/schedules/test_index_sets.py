"""The schedules of the package: what one sweep covers, and which parameters are refused."""

import dataclasses
import pickle
from itertools import chain

import numpy as np
import pytest

from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime, Overlapping, RandomSubsets, sweep

N_ATOMS = 11


USAGE = np.array([3, 0, 8, 8, 1, 2, 9, 0, 4, 5, 3])


COVERING = [
    AllAtoms(),
    OneAtATime(),
    OneAtATime(order="random"),
    OneAtATime(order="usage"),
    Blocks(size=1),
    Blocks(size=4),
    Blocks(size=N_ATOMS),
    Blocks(size=100),
    Overlapping(size=4, step=3),
    Overlapping(size=5, step=5),
    Overlapping(size=N_ATOMS, step=2),
]


DISJOINT = [s for s in COVERING if not isinstance(s, Overlapping)]


EVERY = [*COVERING, RandomSubsets(size=4, count=7)]


@pytest.mark.parametrize("schedule", EVERY, ids=repr)
class TestContract:
    def test_subsets_are_index_arrays_without_repeats(self, schedule):
        for subset in sweep(schedule, N_ATOMS, rng=0, usage=USAGE):
            assert subset.dtype == np.intp
            assert subset.ndim == 1
            assert len(np.unique(subset)) == len(subset) > 0
            assert set(subset) <= set(range(N_ATOMS))

    def test_a_seed_repeats_the_sweep(self, schedule):
        first, second = (sweep(schedule, N_ATOMS, rng=3, usage=USAGE) for _ in range(2))
        assert [I.tolist() for I in first] == [I.tolist() for I in second]

    def test_schedules_compare_hash_and_pickle_by_value(self, schedule):
        assert dataclasses.replace(schedule) == schedule == pickle.loads(pickle.dumps(schedule))
        assert hash(schedule) == hash(dataclasses.replace(schedule))

    def test_leaves_the_global_generator_alone(self, schedule):
        before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is being watched
        sweep(schedule, N_ATOMS, usage=USAGE)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("schedule", COVERING, ids=repr)
def test_every_atom_is_covered(schedule):
    assert set(chain(*sweep(schedule, N_ATOMS, rng=0, usage=USAGE))) == set(range(N_ATOMS))


@pytest.mark.parametrize("schedule", DISJOINT, ids=repr)
def test_a_partition_moves_every_atom_once(schedule):
    assert sorted(chain(*sweep(schedule, N_ATOMS, rng=0, usage=USAGE))) == list(range(N_ATOMS))


@pytest.mark.parametrize("schedule", [OneAtATime("random"), Blocks(4), RandomSubsets(4, 7)], ids=repr)
def test_a_generator_gives_a_fresh_sweep_each_time(schedule):
    rng = np.random.default_rng(0)
    first, second = (sweep(schedule, N_ATOMS, rng) for _ in range(2))
    assert [I.tolist() for I in first] != [I.tolist() for I in second]


def test_order_by_usage_starts_with_the_most_used_and_breaks_ties_by_index():
    order = np.concatenate(sweep(OneAtATime("usage"), N_ATOMS, usage=USAGE))
    np.testing.assert_array_equal(order, [6, 2, 3, 9, 8, 0, 10, 5, 4, 1, 7])


def test_order_by_usage_of_unsigned_integers_is_decreasing():
    # −usage wraps around for unsigned integers, a frequent type of counts.
    order = np.concatenate(sweep(OneAtATime("usage"), 3, usage=np.array([0, 2, 1], dtype=np.uint8)))
    np.testing.assert_array_equal(order, [1, 2, 0])


def test_overlapping_windows_use_every_atom_equally_when_step_divides():
    counts = np.bincount(np.concatenate(sweep(Overlapping(size=6, step=3), 12)))
    np.testing.assert_array_equal(counts, 2)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Blocks(size=0), ValueError, "size=0: a block needs at least one atom"),
        (lambda: Blocks(size=2.5), TypeError, "size=2.5: .*; size is a whole number"),
        (lambda: RandomSubsets(size=3, count=0), ValueError, "count=0"),
        (lambda: Overlapping(size=2, step=3), ValueError, "atoms between two windows"),
        (lambda: OneAtATime(order="best"), ValueError, "order='best' is unknown"),
        (lambda: sweep(AllAtoms(), 0), ValueError, "n_atoms=0"),
        (lambda: sweep(RandomSubsets(size=4, count=1), 3), ValueError, "size=4 exceeds"),
        (lambda: sweep(Overlapping(size=4, step=2), 3), ValueError, "size=4 exceeds"),
        (lambda: sweep(OneAtATime("usage"), 3), ValueError, "needs the usage of each atom"),
        (lambda: sweep(OneAtATime("usage"), 3, usage=[1, 2]), ValueError, r"usage has shape \(2,\)"),
        (lambda: sweep(OneAtATime("usage"), 2, usage=[1, np.nan]), ValueError, "usage of atom 1 is NaN"),
    ],
)
def test_impossible_parameters_are_refused_with_a_sentence(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()
