"""Files without pickle: what was saved comes back, and a file is complete or absent."""

import os
import pickle

import numpy as np
import pytest
from stored_files import Y, learn

from manifold_dl import (
    OMP,
    History,
    Reason,
    Result,
    learn_dictionary,
    load,
    save,
)

# What was saved comes back


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loaded_result_has_the_same_bits(path, dtype):
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
def test_loaded_result_has_the_same_reason(result, path, reason):
    save(Result(result.dictionary, result.codes, result.history, reason), path)
    assert load(path).reason is reason


def test_result_without_iterations_is_stored(result, path):
    save(Result(result.dictionary, result.codes, History(), Reason.INTERRUPTED), path)
    assert load(path).n_iter == 0


def test_file_name_is_used_as_given(result, tmp_path):
    save(result, tmp_path / "no ending")
    save(result, str(tmp_path / "as text.npz"))
    assert sorted(os.listdir(tmp_path)) == ["as text.npz", "no ending"]
    load(tmp_path / "no ending")


def test_file_permissions_follow_the_umask(result, tmp_path):
    save(result, tmp_path / "saved")
    (tmp_path / "usual").touch()
    assert (tmp_path / "saved").stat().st_mode == (tmp_path / "usual").stat().st_mode


# Written at once or not at all


@pytest.mark.parametrize("broken", ["os.replace", "numpy.savez_compressed", "os.fsync"])
@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_failed_write_leaves_the_old_file_and_no_other(result, saved, monkeypatch, broken, error):
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
