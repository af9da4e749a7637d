"""Which signals and codes a set of atoms touches, against a search through the dense mask."""

import numpy as np
import pytest

from manifold_dl.problem.support import Incidence, as_support

D_, N = 12, 60


@pytest.fixture(params=[0.0, 0.2, 1.0], ids=["empty", "sparse", "full"])
def mask(request):
    return np.random.default_rng(0).random((D_, N)) < request.param


@pytest.mark.parametrize(
    "atoms",
    [[3], [3, 4, 5], [9, 0, 5], range(D_), range(D_)[::-1]],
    ids=["one", "three", "unordered", "all", "reversed"],
)
def test_a_part_is_what_the_mask_says(mask, atoms):
    atoms = np.array(atoms)
    support = as_support(mask, N)
    part = Incidence(support).part(atoms)
    signals = np.arange(N)[part.active]
    # All atoms in their own order are taken with all signals, so that nothing is copied.
    is_whole = atoms.tolist() == list(range(D_))
    assert signals.tolist() == np.flatnonzero(mask[atoms].any(axis=0) | is_whole).tolist()
    # The support's entries in its own order, signal by signal.
    entry = np.full(mask.shape, -1)
    entry.T[mask.T] = np.arange(mask.sum())
    for row, j in enumerate(signals):
        own = slice(part.indptr[row], part.indptr[row + 1])
        assert set(atoms[part.indices[own]]) == set(np.flatnonzero(mask[:, j])) & set(atoms)
        places = np.arange(len(support.indices))[part.entries][own]
        assert places.tolist() == entry[atoms[part.indices[own]], j].tolist()
    assert len(part.indices) == part.indptr[-1] == mask[atoms].sum()
    assert (
        part.indptr.dtype == np.int64 and part.indices.dtype == np.int32
    )  # what the kernels were compiled for


def test_all_atoms_are_taken_without_a_copy(mask):
    support = as_support(mask, N)  # empty supports included
    part = Incidence(support).part(np.arange(D_))
    assert part.indices is support.indices and part.indptr is support.indptr
    assert part.entries == part.active == slice(None)


def test_parts_of_a_partition_cover_every_entry_once(mask):
    incidence = Incidence(as_support(mask, N))
    sets = np.split(np.random.default_rng(1).permutation(D_), [1, 4, 9])
    entries = np.concatenate([incidence.part(I).entries for I in sets])
    np.testing.assert_array_equal(np.sort(entries), np.arange(mask.sum()))


def test_usage(mask):
    np.testing.assert_array_equal(Incidence(as_support(mask, N)).usage, mask.sum(axis=1))
