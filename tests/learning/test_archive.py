"""Damaged and hostile files: refused with a sentence, and nothing is executed."""

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from stored_files import add_member, contents, learn, rewrite

from manifold_dl import Checkpoint, MiniBatches, load
from manifold_dl.learning import archive


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
def test_foreign_header_is_refused(saved, header):
    _, arrays = contents(saved)
    np.savez(saved, header=np.frombuffer(header, np.uint8), **arrays)
    with pytest.raises(ValueError, match="was not written by manifold_dl"):
        load(saved)


def test_a_file_of_a_later_version_is_refused(saved):
    rewrite(saved, {"version": archive.VERSION + 1})
    with pytest.raises(ValueError, match="format version 2; this manifold_dl reads up to 1: update it"):
        load(saved)


def test_checkpoint_is_not_loaded_as_a_result_nor_result_resumed(saved, tmp_path):
    with pytest.raises(ValueError, match="holds a result, not a checkpoint"):
        learn(resume=saved)
    learn(callbacks=[Checkpoint(tmp_path / "run.npz")])
    with pytest.raises(ValueError, match="holds a checkpoint, not a result"):
        load(tmp_path / "run.npz")


def test_missing_file_or_folder_raises_the_usual_error(path):
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


@pytest.mark.parametrize(
    "changes",
    [
        {"exponent": 10**30},
        {"exponent": "one"},
        {"seen": -1},
        {"seen": float("nan")},
        {"seen": "all"},
        {"memory": 3},
    ],
    ids=str,
)
def test_a_damaged_checkpoint_of_mini_batches_is_refused(tmp_path, changes):
    path, passes = tmp_path / "run.npz", MiniBatches(size=1024)
    learn(callbacks=[Checkpoint(path)], minibatches=passes)
    header, _ = contents(path)
    rewrite(path, header={"online": header["online"] | changes})
    with pytest.raises(ValueError, match="is damaged: "):
        learn(resume=path, minibatches=passes)


# More than it seems


def test_a_file_that_unpacks_to_too_much_is_refused(saved):
    needed = sum(item.file_size for item in zipfile.ZipFile(saved).infolist())
    load(saved, max_bytes=needed)
    with pytest.raises(ValueError, match=f"would unpack to {needed} bytes; allow more than max_bytes"):
        load(saved, max_bytes=needed - 1)


def test_small_file_with_huge_contents_is_refused_before_unpacking(saved):
    zeros = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (2**24,)}
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, zeros)
    add_member(saved, "history/more.npy", data.getvalue() + bytes(2**27), zipfile.ZIP_DEFLATED)
    assert saved.stat().st_size < 2**19  # packed to less than a two-hundredth
    with pytest.raises(ValueError, match="would unpack to"):
        load(saved, max_bytes=2**26)


BOMB = """
import resource, sys
import manifold_dl as mdl
mdl.load  # imports
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    mdl.load(sys.argv[1])
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kilobytes on Linux alone")
def test_a_bomb_is_refused_in_little_memory(saved):
    # A quarter of a gigabyte in a quarter of a megabyte: the header of the array and all sizes are right.
    data, n = io.BytesIO(), 2**25
    np.lib.format.write_array_header_1_0(data, {"shape": (n,), "fortran_order": False, "descr": "<f8"})
    data.write(bytes(8 * n))
    add_member(saved, "history/more.npy", data.getvalue(), zipfile.ZIP_DEFLATED)
    assert saved.stat().st_size < 300_000
    process = subprocess.run([sys.executable, "-c", BOMB, saved], capture_output=True, text=True)
    sentence, kilobytes = process.stdout.splitlines()
    assert "which a file of ours does not; pass max_bytes=" in sentence
    assert int(kilobytes) < 20_000  # nothing was unpacked


def test_members_that_are_nothing_of_ours_are_refused(saved):
    data = io.BytesIO()
    np.save(data, np.zeros(3))
    add_member(saved, "more.npy", data.getvalue())
    with pytest.raises(ValueError, match=r"more\.npy is nothing that is stored"):
        load(saved)


def test_a_header_of_many_megabytes_is_refused(saved):
    _, arrays = contents(saved)
    header = np.frombuffer(b"[" + b"0," * (archive.MAX_HEADER // 2) + b"0]", np.uint8)
    np.savez(saved, header=header, **arrays)
    with pytest.raises(ValueError, match="its header has 4194307 bytes"):
        load(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")  # zipfile's, while the file is made
def test_two_arrays_of_one_name_are_refused(saved):
    data = io.BytesIO()
    np.save(data, np.eye(6, 8))
    add_member(saved, "dictionary.npy", data.getvalue())
    with pytest.raises(ValueError, match="it holds two arrays of one name"):
        load(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_a_named_pipe_is_refused_instead_of_waited_for(path):
    os.mkfifo(path)
    with pytest.raises(ValueError, match="is a pipe or a device, not a file of ours"):
        load(path)
    with pytest.raises(ValueError, match="is a pipe or a device, not a file of ours"):
        learn(resume=path)


@pytest.mark.parametrize("shape", [(2**50,), (2**31, 2**31), (-1,), (0, -5), (10**30,)], ids=str)
def test_an_array_that_claims_more_than_it_holds_is_refused(saved, shape):
    """NumPy alone would make room for 8 petabytes first."""
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"shape": shape, "fortran_order": False, "descr": "<f8"})
    add_member(saved, "history/more.npy", data.getvalue() + bytes(64))
    with pytest.raises(ValueError, match=r"is truncated or not a file of ours: history/more\.npy"):
        load(saved)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unknown_compression_is_refused(saved, compression):
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
