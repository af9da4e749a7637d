"""Blocks beyond the budget of memory: on disk, read back as they were, and removed in the end."""

import gc
import os

import numpy as np
import pytest
from clusters import problem_data

import manifold_dl as mdl
from manifold_dl.engines import Threads
from manifold_dl.engines.scratch import Budget, MappedBlocks


@pytest.fixture(scope="module")
def data():
    return problem_data()


def test_nothing_is_left_in_the_scratch_folder(data, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    engine = Threads(1, memory=0, scratch=scratch)
    np.save(tmp_path / "columns.npy", np.asfortranarray(data[0].T))
    found = mdl.learn_dictionary(tmp_path / "columns.npy", 32, engine=engine, **data[1])
    del found
    gc.collect()
    assert os.listdir(scratch) == []


def test_states_beyond_the_budget_are_read_back_as_they_were():
    views = [np.arange(12.0).reshape(6, 2) + b for b in range(4)]
    blocks = MappedBlocks(views, Budget(2000))
    states = blocks.new_states()
    rng = np.random.default_rng(0)
    given = [(views[b], rng.standard_normal(100), ("name", None, rng.integers(9, size=7))) for b in range(4)]
    for b, state in enumerate(given):
        states[b] = state
    assert states[3] is not given[3] and states[0] is given[0]
    for found, state in zip(states, given, strict=True):
        assert found[0] is state[0]  # signals are not copied
        np.testing.assert_array_equal(found[1], state[1])
        np.testing.assert_array_equal(found[2][2], state[2][2])
        assert found[1].flags.writeable and found[2][:2] == ("name", None)
