"""Signals in files: the bits of an array, with as little memory as is allowed, and nothing left over."""

import os
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from clusters import assert_same_bits, problem_data

import manifold_dl as mdl
from manifold_dl.engines import Threads
from manifold_dl.engines.opening import open_signals
from manifold_dl.learning.distant_codes import load_codes


@pytest.fixture(scope="module")
def data():
    return problem_data()


@pytest.fixture(scope="module")
def expected(data):
    return mdl.learn_dictionary(data[0], 32, threads=1, **data[1])


@pytest.fixture
def row_file(data, tmp_path):
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(data[0].T))
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("memory", [0, 10**6], ids=["all on disk", "some in memory"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_gives_the_bits_of_an_array(data, expected, row_file, memory, threads):
    engine = Threads(threads, memory=memory)
    found = mdl.learn_dictionary(row_file, 32, engine=engine, **data[1])
    assert not hasattr(found.codes, "indptr")  # computed when they are asked for
    assert_same_bits(found, expected)


def test_a_small_file_is_read_into_memory(data, expected, row_file):
    assert_same_bits(mdl.learn_dictionary(str(row_file), 32, threads=2, **data[1]), expected)


def columns(Y, folder):
    np.save(folder / "columns.npy", np.asfortranarray(Y.T))
    return folder / "columns.npy"


def folder_of_files(Y, folder):
    (folder / "parts").mkdir()
    for number, rows in enumerate(np.array_split(Y.T, 3)):  # blocks go across files
        np.save(folder / "parts" / f"{number}.npy", np.ascontiguousarray(rows))
    return folder / "parts"


def mapped(Y, folder):
    np.save(folder / "rows.npy", np.ascontiguousarray(Y.T))
    return np.load(folder / "rows.npy", mmap_mode="r").T


def part_of_a_mapped_file(Y, folder):
    np.save(folder / "more.npy", np.concatenate([np.ones((100, len(Y))), Y.T]))
    return np.load(folder / "more.npy", mmap_mode="r").T[:, 100:]


def zarr_array(Y, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(folder / "rows.zarr", shape=Y.T.shape, dtype=Y.dtype, chunks=(4000, 16))
    array[:] = Y.T
    return folder / "rows.zarr"


def dask_array(Y, folder):
    return pytest.importorskip("dask.array").from_array(Y, chunks=(16, 2500))


def big_endian(Y, folder):
    np.save(folder / "rows.npy", np.ascontiguousarray(Y.T).astype(">f8"))
    return folder / "rows.npy"


FORMS = [columns, big_endian, folder_of_files, mapped, part_of_a_mapped_file, zarr_array, dask_array]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_of_file_gives_the_same_bits(data, expected, tmp_path, form):
    signals = form(data[0], tmp_path)
    found = mdl.learn_dictionary(signals, 32, engine=Threads(2, memory=0), **data[1])
    assert_same_bits(found, expected)


def test_single_precision_and_replaced_atoms_give_the_bits_of_an_array(tmp_path):
    Y, options = problem_data(np.float32)
    init = mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0))
    init[:, 1] = init[:, 0]
    options |= {"init": init}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    assert expected.history.replaced.sum() > 0
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(Y.T))
    found = mdl.learn_dictionary(tmp_path / "rows.npy", 32, engine=Threads(2, memory=0), **options)
    assert_same_bits(found, expected)


def test_of_several_runs_that_leave_hardly_any_error_the_same_is_kept(tmp_path):
    # Both fit the signals to rounding: 1 − explained would be 0 for both, and the first would be kept.
    Y, coder = np.random.default_rng(1).standard_normal((2, 5)), mdl.OMP(sparsity=2)
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(Y.T))
    for seed in range(6):
        options = {"coder": coder, "update": mdl.SimCO(mu=0.1), "restarts": 3, "max_iter": 1, "rng": seed}
        expected = mdl.learn_dictionary(Y, 2, threads=1, **options)
        assert 0 < np.sum((Y - expected.dictionary @ expected.codes.toarray()) ** 2) < 1e-28
        found = mdl.learn_dictionary(tmp_path / "rows.npy", 2, engine=Threads(1, memory=0), **options)
        assert_same_bits(found, expected)


def test_atoms_that_no_signal_uses_are_not_moved_by_a_regularizer(tmp_path):
    Y = np.zeros((5, 2000))
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(Y.T))
    update = mdl.SimCO(mu=0.1, regularizers=[mdl.regularizers.Coherence(0.1)])
    start = mdl.manifolds.Spheres(5, 7).random_point(rng=0)
    options = {"coder": mdl.OMP(sparsity=2), "update": update, "max_iter": 2, "init": start}
    found = mdl.learn_dictionary(tmp_path / "rows.npy", 7, engine=Threads(1, memory=0), **options)
    # The start is normalised, which can change its last bit.
    np.testing.assert_allclose(found.dictionary, start, rtol=0, atol=1e-15)
    with pytest.warns(UserWarning, match="7 of 7 atoms are used by none"):
        np.testing.assert_array_equal(mdl.learn_dictionary(Y, 7, **options).dictionary, found.dictionary)


def test_codes_are_written_to_disk_on_request(data, expected, row_file, tmp_path):
    found = mdl.learn_dictionary(row_file, 32, engine=Threads(2, memory=0), **data[1])
    found.codes.save(tmp_path / "codes")
    stored = load_codes(tmp_path / "codes", 32)
    assert (stored != expected.codes).nnz == 0
    assert sorted(os.listdir(tmp_path / "codes")) == ["indices.npy", "indptr.npy", "values.npy"]


def test_a_result_is_stored_without_codes_that_are_not_in_memory(data, row_file, tmp_path):
    found = mdl.learn_dictionary(row_file, 32, engine=Threads(2, memory=0), **data[1])
    mdl.save(found, tmp_path / "result.npz")
    again = mdl.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(again.dictionary, found.dictionary)
    assert again.codes is None and "32 atoms" in str(again) and "asked for" in str(found)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda folder: folder / "none.npy", "there is no file"),
        (lambda folder: folder, "no .npy file in"),
        (lambda folder: (folder / "text.npy").write_text("text") and folder / "text.npy", "damaged"),
        (lambda folder: np.save(folder / "line.npy", np.ones(3)) or folder / "line.npy", "no matrix"),
    ],
    ids=["absent", "empty folder", "no array", "no matrix"],
)
def test_files_without_signals_are_refused_with_a_sentence(tmp_path, make, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        open_signals(make(tmp_path), threads=1)


def test_a_folder_of_different_matrices_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4)))
    np.save(tmp_path / "b.npy", np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"lengths \[4, 5\]"):
        open_signals(tmp_path, threads=1)


def test_a_signal_that_is_not_finite_is_named_with_its_file(data, tmp_path):
    rows = np.array(data[0].T, order="F")  # copied into a scratch file first
    rows[7777, 3] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(ValueError, match=r"rows\.npy holds nan in signal 7777") as caught:
        mdl.learn_dictionary(tmp_path / "rows.npy", 32, engine=Threads(2, memory=0), **data[1])
    assert str(tmp_path) in str(caught.value)


def test_a_truncated_file_is_refused(data, row_file):
    os.truncate(row_file, row_file.stat().st_size // 2)
    with pytest.raises(ValueError, match="damaged"):
        mdl.learn_dictionary(row_file, 32, engine=Threads(2, memory=0), **data[1])


def test_a_file_may_be_removed_while_it_is_read(data, expected, row_file):
    options = data[1] | {"callbacks": [lambda step: row_file.unlink(missing_ok=True)]}
    found = mdl.learn_dictionary(row_file, 32, engine=Threads(2, memory=0), **options)
    assert_same_bits(found, expected)  # it is still mapped


@pytest.mark.parametrize("memory", [-1, "1 GB", True])
def test_a_budget_is_a_number_of_bytes(memory):
    with pytest.raises(ValueError, match="a number of bytes"):
        Threads(1, memory=memory)


def test_a_scratch_folder_exists(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        Threads(1, scratch=tmp_path / "none")


@pytest.mark.parametrize("form", [mapped, folder_of_files, part_of_a_mapped_file])
def test_what_is_read_ahead_are_the_bytes_of_the_blocks(data, tmp_path, form):
    blocks = open_signals(form(data[0], tmp_path), engine=Threads(1, memory=0)).given.states
    assert len(blocks) == len(blocks.read_ahead.pieces) == 5
    for rows, pieces in zip(blocks, blocks.read_ahead.pieces, strict=True):
        read = [np.fromfile(path, np.uint8, size, offset=start) for path, start, size, _ in pieces]
        assert np.concatenate(read).tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "update", [mdl.SimCO(mu=0.1), mdl.MOD(), mdl.SimCO(codes=mdl.Lasso(0.3))], ids=["SimCO", "MOD", "lasso"]
)
def test_codes_of_other_atoms_are_refused_as_for_an_array(data, row_file, update):
    Y = data[0]
    D = mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0))
    X = mdl.OMP(sparsity=3).encode(Y, D)[:16]
    on_disk = replace(update, engine=Threads(1, memory=0))
    for signals in (Y, row_file, da.from_array(Y, chunks=(16, 2500))):
        with pytest.raises(ValueError, match="names 16 atoms, but the dictionary has 32"):
            on_disk(signals, D, X)


def test_k_svd_by_itself_takes_arrays_only(data, row_file):
    Y, D = data[0], np.eye(16)
    for signals in (str(row_file), row_file, da.from_array(Y, chunks=(16, 2500))):
        with pytest.raises(ValueError, match="needs them in memory, as an array"):
            mdl.KSVD()(signals, D, mdl.OMP(sparsity=3).encode(Y, D))
