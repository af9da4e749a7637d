"""Which signals and codes a set of atoms touches, against a search through the dense mask."""

import numpy as np
import pytest

from manifold_dl.engines import Threads
from manifold_dl.problem.signals import SupportedSignals, values_of
from manifold_dl.problem.support import SupportIndex, as_support

D_, N = 12, 60

each_set = pytest.mark.parametrize(
    "atoms",
    [[3], [3, 4, 5], [9, 0, 5], range(D_), range(D_)[::-1]],
    ids=["one", "three", "unordered", "all", "reversed"],
)


@pytest.fixture(params=[0.0, 0.2, 1.0], ids=["empty", "sparse", "full"])
def mask(request):
    return np.random.default_rng(0).random((D_, N)) < request.param


def index_of(mask):
    support = as_support(mask, mask.shape[1])
    return SupportIndex(support.indptr, support.indices, support.n_atoms)


def entries_of(mask):
    """Where the entries of the mask stand in the order of its support, signal by signal; −1 for none."""
    entry = np.full(mask.shape, -1)
    entry.T[mask.T] = np.arange(mask.sum())
    return entry


@each_set
def test_the_support_of_a_set_of_atoms_is_that_of_the_mask(mask, atoms):
    atoms = np.array(atoms)
    part = index_of(mask).restrict(atoms)
    assert part.active.tolist() == np.flatnonzero(mask[atoms].any(axis=0)).tolist()
    entry = entries_of(mask)
    for row, j in enumerate(part.active):
        own = slice(part.indptr[row], part.indptr[row + 1])
        assert set(atoms[part.indices[own]]) == set(np.flatnonzero(mask[:, j])) & set(atoms)
        assert part.entries[own].tolist() == entry[atoms[part.indices[own]], j].tolist()
    assert len(part.indices) == part.indptr[-1] == mask[atoms].sum()
    # What the kernels were compiled for.
    assert part.indptr.dtype == np.int64 and part.indices.dtype == np.int32


@each_set
def test_the_support_of_a_set_is_gathered_from_all_blocks(atoms):
    n, atoms = 5000, np.array(atoms)  # three blocks of signals
    rng = np.random.default_rng(1)
    mask, rows, values = rng.random((D_, n)) < 0.2, rng.standard_normal((n, 4)), rng.standard_normal
    support = as_support(mask, n)
    codes, dictionary = values(len(support.indices)), values((4, D_))
    opened = Threads(2).open(values_of(codes, support))
    subset = SupportedSignals.of(rows, support, Threads(2)).subset(atoms, dictionary, opened)
    is_whole = atoms.tolist() == list(range(D_))
    used = mask[atoms].any(axis=0) | is_whole
    np.testing.assert_array_equal(np.arange(n)[subset.active], np.flatnonzero(used))
    np.testing.assert_array_equal(
        np.arange(len(codes))[subset.entries], np.sort(entries_of(mask)[atoms][mask[atoms]])
    )
    assert subset.n_entries == (None if is_whole else mask[atoms].sum())  # all atoms are not counted
    # The blocks hold Y_r = Y − D_{I^c} X_{I^c} over the signals that use I, and the codes of I.
    X = np.zeros((D_, n))
    X.T[mask.T] = codes
    others = np.setdiff1d(np.arange(D_), atoms)
    expected = rows - (dictionary[:, others] @ X[others]).T
    engine = subset.whole.engine
    blocks, own = engine.states(subset.data), engine.states(subset.codes)
    assert len(blocks) == len(own) == 3
    np.testing.assert_allclose(
        np.concatenate([block.signals for block in blocks]), expected[used], atol=1e-13
    )
    np.testing.assert_array_equal(np.concatenate(own), codes[subset.entries])


def test_all_atoms_are_taken_without_a_copy(mask):
    support = as_support(mask, N)  # empty supports included
    rows = np.zeros((N, 4))
    subset = SupportedSignals.of(rows, support, Threads(1)).subset(np.arange(D_), None, None)
    assert subset.entries == subset.active == slice(None)
    (block,) = subset.whole.engine.states(subset.data)
    assert np.shares_memory(block.signals, rows) and len(block.signals) == N
    np.testing.assert_array_equal(block.indptr, support.indptr)
    np.testing.assert_array_equal(block.indices, support.indices)
    assert np.shares_memory(block.indices, support.indices) or not mask.any()


def test_the_sets_of_a_partition_cover_every_entry_once(mask):
    index = index_of(mask)
    sets = np.split(np.random.default_rng(1).permutation(D_), [1, 4, 9])
    entries = np.concatenate([index.restrict(I).entries for I in sets])
    np.testing.assert_array_equal(np.sort(entries), np.arange(mask.sum()))


def test_entries_are_listed_by_atom(mask):
    index = index_of(mask)
    np.testing.assert_array_equal(np.diff(index.first), mask.sum(axis=1))
    for i in range(D_):
        own = index.entries[index.first[i] : index.first[i + 1]]
        np.testing.assert_array_equal(index.signal_of[own], np.flatnonzero(mask[i]))
        assert (index.indices[own] == i).all()
