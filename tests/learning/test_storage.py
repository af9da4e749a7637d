"""Files without pickle: what was saved comes back, what is wrong is refused, and nothing is executed."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from manifold_dl import (
    OMP,
    Checkpoint,
    History,
    Reason,
    Result,
    datasets,
    learn_dictionary,
    load,
    save,
)
from manifold_dl.learning import archive

Y = datasets.synthetic(6, 8, 40, sparsity=2, rng=0).signals


def learn(**options):
    return learn_dictionary(Y, 8, **{"coder": OMP(sparsity=2), "max_iter": 3, "rng": 0, **options})


@pytest.fixture(scope="module")
def result():
    return learn(callbacks=[History(condition=True)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.npz"


@pytest.fixture
def saved(result, path):
    save(result, path)
    return path


@pytest.fixture
def checkpoint(path):
    learn(callbacks=[Checkpoint(path)])
    return path


def contents(path):
    """Everything in a file of ours: the header as a dict, the rest as arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def rewrite(path, header=None, **arrays):
    """The same file with some things changed, behind the back of `storage`; None leaves an array out."""
    meta, known = contents(path)
    meta |= header or {}
    known |= {name.replace("__", "/"): array for name, array in arrays.items()}
    known = {name: array for name, array in known.items() if array is not None}
    np.savez(path, header=np.frombuffer(json.dumps(meta).encode(), np.uint8), **known)


def add_member(path, name, data, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr(name, data)


# What was saved comes back


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_result_comes_back_bit_for_bit(path, dtype):
    before = learn_dictionary(
        Y.astype(dtype), 8, coder=OMP(sparsity=2), max_iter=3, rng=0, callbacks=[History(True, True)]
    )
    save(before, path)
    after = load(path)
    np.testing.assert_array_equal(after.dictionary, before.dictionary)
    np.testing.assert_array_equal(after.codes.toarray(), before.codes.toarray())
    assert after.dictionary.dtype == after.codes.dtype == dtype
    assert after.codes.format == "csc" and after.reason is before.reason
    mine, theirs = after.history.to_dict(), before.history.to_dict()
    assert list(mine) == list(theirs)
    for name, column in theirs.items():
        np.testing.assert_array_equal(mine[name], column)
        assert mine[name].dtype == column.dtype
    assert str(after) == str(before)
    after.dictionary[0] = 0  # the arrays belong to the caller


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_comes_back(result, path, reason):
    save(Result(result.dictionary, result.codes, result.history, reason), path)
    assert load(path).reason is reason


def test_a_result_without_iterations(result, path):
    save(Result(result.dictionary, result.codes, History(), Reason.INTERRUPTED), path)
    assert load(path).n_iter == 0


def test_the_name_is_kept_as_given(result, tmp_path):
    save(result, tmp_path / "no ending")
    save(result, str(tmp_path / "as text.npz"))
    assert sorted(os.listdir(tmp_path)) == ["as text.npz", "no ending"]
    load(tmp_path / "no ending")


def test_others_may_read_the_file_as_the_umask_says(result, tmp_path):
    save(result, tmp_path / "saved")
    (tmp_path / "usual").touch()
    assert (tmp_path / "saved").stat().st_mode == (tmp_path / "usual").stat().st_mode


# Written at once or not at all


@pytest.mark.parametrize("broken", ["os.replace", "numpy.savez_compressed", "os.fsync"])
@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(result, saved, monkeypatch, broken, error):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        if broken == "numpy.savez_compressed":
            args[0].write(b"half a file")
        raise error

    monkeypatch.setattr(broken, fail)
    with pytest.raises(type(error)):
        save(learn(rng=1), saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_objects_are_never_written(result, path):
    broken = Result(np.array([[{}]], dtype=object), result.codes, result.history, result.reason)
    with pytest.raises(TypeError, match="dictionary has dtype object: only numbers are stored"):
        save(broken, path)
    assert not path.exists()


# What is wrong is refused, with a sentence


def test_a_file_cut_short_anywhere_is_refused(saved):
    data = saved.read_bytes()
    for length in [*range(0, len(data), 37), len(data) - 1]:
        saved.write_bytes(data[:length])
        with pytest.raises(ValueError, match="is truncated or not a file of ours"):
            load(saved)


def test_a_changed_byte_is_refused_or_changes_nothing(result, saved):
    """Some bytes of an archive, such as dates, do not matter; none may lead to anything else."""
    data, rng = saved.read_bytes(), np.random.default_rng(0)
    for place in rng.choice(len(data), 400, replace=False):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.integers(8)
        saved.write_bytes(changed)
        try:
            after = load(saved)
        except ValueError as error:
            assert saved.name in str(error)
        else:
            np.testing.assert_array_equal(after.dictionary, result.dictionary)
            np.testing.assert_array_equal(after.codes.toarray(), result.codes.toarray())


@pytest.mark.parametrize(
    "data",
    [b"", b"not an archive at all", b"PK\x05\x06" + bytes(18), b"\x93NUMPY\x01\x00", pickle.dumps([1, 2])],
    ids=["empty", "text", "empty archive", "npy", "pickle"],
)
def test_foreign_bytes_are_refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"not a file of ours|was not written by manifold_dl"):
        load(path)


def test_a_foreign_npz_is_refused(path):
    np.savez(path, dictionary=np.eye(3))
    with pytest.raises(ValueError, match="was not written by manifold_dl"):
        load(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[1, 2]",
        b"null",
        b"[" * 100_000,
        b'{"format": "other", "version": 1}',
        b"\xff\xfe",
        b"9" * 5000,
        b'{"format": "manifold_dl"}',
        b'{"format": "manifold_dl", "version": "1"}',
    ],
    ids=lambda header: header[:50].decode(errors="replace"),
)
def test_a_header_that_is_not_ours_is_refused(saved, header):
    _, arrays = contents(saved)
    np.savez(saved, header=np.frombuffer(header, np.uint8), **arrays)
    with pytest.raises(ValueError, match="was not written by manifold_dl"):
        load(saved)


def test_a_file_of_a_later_version_is_refused(saved):
    rewrite(saved, {"version": archive.VERSION + 1})
    with pytest.raises(ValueError, match="format version 2; this manifold_dl reads up to 1: update it"):
        load(saved)


def test_the_other_kind_of_file_is_refused(saved, tmp_path):
    with pytest.raises(ValueError, match="holds a result, not a checkpoint"):
        learn(resume=saved)
    learn(callbacks=[Checkpoint(tmp_path / "run.npz")])
    with pytest.raises(ValueError, match="holds a checkpoint, not a result"):
        load(tmp_path / "run.npz")


def test_no_such_file(path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(path)
    with pytest.raises(IsADirectoryError):
        load(path.parent)


@pytest.mark.parametrize(
    "changes",
    [
        {"dictionary": None},
        {"dictionary": np.eye(6)[:, :3]},
        {"dictionary": np.zeros((6, 8))},
        {"dictionary": np.full((6, 8), np.nan)},
        {"dictionary": np.ones(8)},
        {"codes__indices": None},
        {"codes__indices": np.full(80, 99, np.int32)},
        {"codes__indices": np.full(80, -1, np.int32)},
        {"codes__indices": np.zeros(80)},
        {"codes__indptr": np.arange(41)[::-1].astype(np.int32)},
        {"codes__indptr": np.full(41, 10**9, np.int64)},
        {"codes__data": np.full(80, np.inf)},
        {"codes__shape": np.array([8, 10**15])},
        {"codes__shape": np.array([-8, 40])},
        {"codes__shape": np.array(8)},
        {"history__loss": np.zeros(7)},
        {"history__loss": np.zeros((3, 1))},
        {"history__iteration": None},
        {"header": {"reason": "BECAUSE"}},
        {"header": {"reason": ["CONVERGED"]}},
    ],
    ids=str,
)
def test_a_damaged_result_is_refused(saved, changes):
    rewrite(saved, **changes)
    with pytest.raises(ValueError, match="is damaged: "):
        load(saved)


PCG = np.random.PCG64(0).state
TWISTER = {**np.random.MT19937(0).state, "state": {"key": [1] * 624, "pos": 10**9}}
PHILOX = {
    "bit_generator": "Philox",
    "state": {"counter": [0] * 4, "key": [0] * 2},
    "buffer": [0] * 4,
    "buffer_pos": -(10**6),
    "has_uint32": 0,
    "uinteger": 0,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"header": {"iteration": -1}},
        {"header": {"iteration": "three"}},
        {"header": {"iteration": float("inf")}},
        {"header": {"stagnation": None}},
        {"header": {"memory": "long"}},
        {"header": {"memory": [1.0]}},
        {"header": {"rng": None}},
        {"header": {"rng": {}}},
        {"header": {"rng": {**PCG, "bit_generator": "RandomState"}}},
        {"header": {"rng": {**PCG, "bit_generator": "BitGenerator"}}},
        {"header": {"rng": {**PCG, "bit_generator": "__builtins__"}}},
        {"header": {"rng": {**PCG, "state": {"state": -1, "inc": 3}}}},
        {"header": {"rng": TWISTER}},
        {"header": {"rng": PHILOX}},
        {"best": None},
        {"best": np.eye(6)},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_a_damaged_checkpoint_is_refused(checkpoint, changes):
    """Two of the random states would make NumPy read outside of them: the interpreter would crash."""
    rewrite(checkpoint, **changes)
    with pytest.raises(ValueError, match="is damaged: "):
        learn(resume=checkpoint)


# More than it seems


def test_a_file_that_unpacks_to_too_much_is_refused(saved):
    needed = sum(item.file_size for item in zipfile.ZipFile(saved).infolist())
    load(saved, max_bytes=needed)
    with pytest.raises(ValueError, match=f"would unpack to {needed} bytes; allow more than max_bytes"):
        load(saved, max_bytes=needed - 1)


def test_a_bomb_is_refused_before_it_is_unpacked(saved):
    zeros = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (2**24,)}
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, zeros)
    add_member(saved, "history/more.npy", data.getvalue() + bytes(2**27), zipfile.ZIP_DEFLATED)
    assert saved.stat().st_size < 2**19  # packed to less than a two-hundredth
    with pytest.raises(ValueError, match="would unpack to"):
        load(saved, max_bytes=2**26)


@pytest.mark.parametrize("shape", [(2**50,), (2**31, 2**31), (-1,), (0, -5), (10**30,)], ids=str)
def test_an_array_that_claims_more_than_it_holds_is_refused(saved, shape):
    """NumPy alone would make room for 8 petabytes first."""
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"shape": shape, "fortran_order": False, "descr": "<f8"})
    add_member(saved, "history/more.npy", data.getvalue() + bytes(64))
    with pytest.raises(ValueError, match=r"is truncated or not a file of ours: history/more\.npy"):
        load(saved)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(saved, compression):
    add_member(saved, "history/more.npy", b"anything", compression)
    with pytest.raises(ValueError, match="packed in an unknown way"):
        load(saved)


# Nothing is executed


class Payload:
    """Unpickling it makes a folder."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.parametrize("name", ["dictionary", "header", "codes__data", "history__loss", "something else"])
def test_pickles_are_refused_and_not_executed(saved, tmp_path, name):
    target = str(tmp_path / "executed")
    payload = np.array([Payload(target)], dtype=object)
    _, arrays = contents(saved)
    header = np.frombuffer(json.dumps(contents(saved)[0]).encode(), np.uint8)
    np.savez(saved, **{"header": header, **arrays, name.replace("__", "/"): payload})
    with pytest.raises(ValueError, match=r"has dtype object, and only numbers are read"):
        load(saved)
    assert not os.path.exists(target)
    with np.load(saved, allow_pickle=True) as file:
        _ = file[name.replace("__", "/")]
    assert os.path.exists(target)  # the payload does work where pickles are allowed


def test_a_plain_pickle_as_a_member_is_refused_and_not_executed(saved, tmp_path):
    target = str(tmp_path / "executed")
    add_member(saved, "history/more.npy", pickle.dumps(Payload(target)))
    with pytest.raises(ValueError, match="not a file of ours"):
        load(saved)
    assert not os.path.exists(target)
