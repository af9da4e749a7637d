"""Signals in files that are damaged, hostile or too large for the disk: refused with a sentence."""

import io
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl.engines import Threads
from manifold_dl.engines.opening import open_signals
from manifold_dl.learning.distant_codes import load_codes

Y = mdl.datasets.synthetic(8, 12, 3000, sparsity=3, snr_db=20, rng=0).signals
ROWS = np.ascontiguousarray(Y.T)


def with_header(path, shape, data):
    file = io.BytesIO()
    header = {"shape": shape, "fortran_order": False, "descr": "<f8"}
    np.lib.format.write_array_header_1_0(file, header)
    path.write_bytes(file.getvalue() + data)


@pytest.mark.parametrize(
    "shape", [(2**50, 8), (2**62, 2**62), (2**61 + 1, 8), (10**30, 8), (-3, 8), (3, -8), (4000, 8)], ids=str
)
@pytest.mark.parametrize("memory", [0, 10**9])
def test_a_header_that_claims_what_the_file_does_not_hold_is_refused(tmp_path, shape, memory):
    with_header(tmp_path / "rows.npy", shape, ROWS.tobytes())
    with pytest.raises(ValueError, match=r"rows\.npy is no \.npy file of numbers, or a damaged one"):
        open_signals(tmp_path, engine=Threads(1, memory=memory))


class Payload:
    """Unpickling it makes a folder."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


def test_pickles_are_refused_and_not_executed(tmp_path):
    rows = np.full((30, 8), Payload(tmp_path / "executed"), dtype=object)
    np.save(tmp_path / "rows.npy", rows, allow_pickle=True)
    (tmp_path / "plain.npy").write_bytes(pickle.dumps(Payload(tmp_path / "executed")))
    for path in (tmp_path, tmp_path / "plain.npy"):
        with pytest.raises(ValueError, match=r"no \.npy file of numbers"):
            open_signals(path, threads=1)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("codec", ["filters", "compressor"])
def test_pickles_in_zarr_arrays_are_refused_and_not_executed(tmp_path, codec):
    pytest.importorskip("zarr")
    pickled = {"id": "pickle"}
    description = {"zarr_format": 2, "shape": [30, 8], "chunks": [30, 8], "dtype": "<f8", "fill_value": 0}
    description |= {"order": "C", "compressor": None, "filters": None}
    description |= {codec: [pickled] if codec == "filters" else pickled}
    path = tmp_path / "rows.zarr"
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(description))
    (path / "0.0").write_bytes(pickle.dumps(Payload(tmp_path / "executed")))
    with pytest.raises(ValueError, match=r"rows\.zarr is no zarr array of numbers"):
        open_signals(path, threads=1)
    assert not (tmp_path / "executed").exists()


def truncated_chunk(path):
    import zarr

    array = zarr.create_array(path, shape=ROWS.shape, dtype=float, chunks=(1000, 8), compressors=None)
    array[:] = ROWS
    (chunk,) = path.glob("c/1/0")
    chunk.write_bytes(chunk.read_bytes()[:-100])


def not_json(path):
    path.mkdir()
    (path / "zarr.json").write_text("{")


def vector(path):
    import zarr

    zarr.create_array(path, shape=(50,), dtype=float)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (truncated_chunk, "is damaged"),
        (not_json, "no zarr array of numbers, or a damaged one"),
        (vector, "holds no matrix with a signal in every row"),
        (lambda path: path.mkdir(), "no zarr array of numbers"),
        (lambda path: path.write_text("text"), "no zarr array of numbers"),
    ],
    ids=["truncated chunk", "not JSON", "vector", "empty folder", "text"],
)
@pytest.mark.parametrize("memory", [0, 10**9])
def test_damaged_zarr_arrays_are_refused(tmp_path, make, words, memory):
    pytest.importorskip("zarr")
    (tmp_path / "scratch").mkdir()
    make(tmp_path / "rows.zarr")
    with pytest.raises(ValueError, match=rf"rows\.zarr.*{words}"):
        open_signals(tmp_path / "rows.zarr", engine=Threads(1, memory=memory, scratch=tmp_path / "scratch"))
    assert os.listdir(tmp_path / "scratch") == []  # what was copied until then is gone


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rows.npy")
    for path in (tmp_path, tmp_path / "rows.npy"):
        with pytest.raises(
            ValueError, match=r"rows\.npy is no \.npy file .* but a folder, a pipe or a device"
        ):
            open_signals(path, threads=1)


def test_links_to_nothing_and_folders_with_the_name_of_a_file_are_refused(tmp_path):
    (tmp_path / "a.npy").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*a\.npy"):
        open_signals(tmp_path, threads=1)
    (tmp_path / "a.npy").unlink()
    (tmp_path / "b.npy").mkdir()
    with pytest.raises(ValueError, match=r"b\.npy is no \.npy file"):
        open_signals(tmp_path, threads=1)


@pytest.mark.parametrize("memory", [0, 10**9])
def test_entries_that_are_not_finite_are_counted_and_the_first_is_located_in_its_file(tmp_path, memory):
    rows = ROWS.copy()
    rows[2500, 3] = rows[2600, 1] = np.nan
    rows[2900, 0] = np.inf
    np.save(tmp_path / "a.npy", rows[:1000])
    np.save(tmp_path / "b.npy", rows[1000:])
    place = r"in signal 2500, entry 3" if memory == 0 else r"b\.npy holds nan at row 1500, column 3"
    with pytest.raises(ValueError, match=f"{place}, the first of 3 entries that are NaN"):
        open_signals(tmp_path, engine=Threads(1, memory=memory))
    rows[2600, 1] = rows[2900, 0] = 0
    np.save(tmp_path / "b.npy", rows[1000:])
    with pytest.raises(ValueError, match="the only entry that is NaN or infinite"):
        open_signals(tmp_path, engine=Threads(1, memory=memory))


# --- Files that change during a run -------------------------------------------------------------------------

CUT = """
import os, sys
import manifold_dl as mdl
from manifold_dl.engines import Threads
path, size = sys.argv[1], int(sys.argv[2])
options = dict(coder=mdl.OMP(sparsity=3), max_iter=3, tol=0, rng=0, minibatches=eval(sys.argv[3]))
cut = lambda step: os.truncate(path, size)
try:
    mdl.learn_dictionary(path, 12, engine=Threads(2, memory=int(sys.argv[4])), callbacks=[cut], **options)
except OSError as error:
    print(error)
    print(len(error.partial.history))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody cut a file that is mapped")
@pytest.mark.parametrize(
    ("size", "batches", "memory"),
    [(0, "False", 0), (100_000, "False", 0), (100_000, "False", 100_000), (0, "mdl.MiniBatches(1024)", 0)],
    ids=["emptied", "states on disk", "states in memory", "mini-batches"],
)
def test_a_file_that_is_cut_during_a_run_is_an_error_with_the_result_until_then(
    tmp_path, size, batches, memory
):
    # In a process of its own: to read a page that is not in the file any more would kill it.
    np.save(tmp_path / "rows.npy", ROWS)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        CUT,
        tmp_path / "rows.npy",
        str(size),
        batches,
        str(memory),
    ]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    sentence, iterations = process.stdout.splitlines()
    assert "rows.npy has become shorter while it was read" in sentence and iterations == "1"


@pytest.mark.parametrize("form", ["columns", "rows"])
def test_a_scratch_folder_that_cannot_be_written_to_is_named(tmp_path, form):
    np.save(tmp_path / "rows.npy", np.asfortranarray(ROWS) if form == "columns" else ROWS)
    (tmp_path / "scratch").mkdir()
    engine = Threads(1, memory=0, scratch=tmp_path / "scratch")
    (tmp_path / "scratch").rmdir()  # as for one that is read-only, which is no obstacle for root
    with pytest.raises(OSError, match=r"cannot be written to .*scratch: .*Threads\(scratch=...\)"):
        mdl.learn_dictionary(tmp_path / "rows.npy", 12, engine=engine, coder=mdl.OMP(sparsity=3), rng=0)


@pytest.mark.parametrize(
    "rows",
    [np.zeros((50, 8), [("a", float)]), ROWS + 1j, np.zeros((50, 8), "M8[s]"), np.full((50, 8), "a")],
    ids=["structured", "complex", "dates", "text"],
)
@pytest.mark.parametrize("memory", [0, 10**9])
def test_what_is_no_real_number_is_refused(tmp_path, rows, memory):
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(TypeError, match=r"rows\.npy has dtype .*; only real numbers are accepted"):
        open_signals(tmp_path / "rows.npy", engine=Threads(1, memory=memory))


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "rows.npy").write_bytes(b"")
    with pytest.raises(ValueError, match="damaged"):
        open_signals(tmp_path / "rows.npy", threads=1)


# --- No space for scratch files -----------------------------------------------------------------------------


def test_a_copy_larger_than_the_disk_is_refused_before_it_is_begun(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "rows.zarr", shape=(2**50, 8), dtype=float, chunks=(1000, 8))
    (tmp_path / "scratch").mkdir()
    with pytest.raises(
        OSError, match=r"scratch files cannot be written to .*scratch: 68,719,476,736 MiB are needed"
    ):
        open_signals(tmp_path / "rows.zarr", engine=Threads(1, scratch=tmp_path / "scratch"))
    assert os.listdir(tmp_path / "scratch") == []


FULL = """
import os, resource, sys
import numpy as np
import manifold_dl as mdl
from manifold_dl.engines import Threads
rows, folder, columns = sys.argv[1], sys.argv[2], sys.argv[3] == "columns"
options = dict(coder=mdl.OMP(sparsity=3), max_iter=3, tol=0, rng=0)
engine = Threads(1, memory=0, scratch=folder)
signals = np.load(rows, mmap_mode="r") if columns else rows
# Writing ends as on a full disk: no file may be larger than this.
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    mdl.learn_dictionary(signals, 12, engine=engine, **options)
except OSError as error:
    print(type(error).__name__, error)
    print(hasattr(error, "partial"), os.listdir(folder))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of files")
@pytest.mark.parametrize("form", ["columns", "rows"])
def test_a_full_disk_is_an_error_that_names_the_folder_and_nothing_is_left(tmp_path, form):
    (tmp_path / "scratch").mkdir()
    np.save(tmp_path / "signals.npy", np.ascontiguousarray(Y) if form == "columns" else ROWS)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        FULL,
        tmp_path / "signals.npy",
        tmp_path / "scratch",
        form,
    ]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    sentence, rest = process.stdout.splitlines()
    assert sentence.startswith(
        f"OSError scratch files cannot be written to {tmp_path / 'scratch'}: File too large."
    )
    assert "Threads(scratch=...)" in sentence
    assert rest == f"{form == 'rows'} []"  # while learning, there is a result until then


# --- Codes in a folder --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"indices": np.full(9, 99, np.int32)}, "damaged"),
        ({"indices": np.full(9, -1, np.int32)}, "damaged"),
        ({"indices": np.zeros(9)}, "damaged"),
        ({"indptr": np.array([0, 10**9, 9])}, "damaged"),
        ({"indptr": np.array([0, 5, 3])}, "damaged"),
        ({"values": np.zeros(4)}, "damaged"),
        ({"indptr": None}, "there is no file"),
    ],
    ids=str,
)
def test_damaged_codes_in_a_folder_are_refused(tmp_path, changes, words):
    arrays = {
        "indptr": np.array([0, 4, 9]),
        "indices": np.r_[0:4, 0:5].astype(np.int32),
        "values": np.ones(9),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    assert load_codes(tmp_path, 6).nnz == 9
    for name, array in changes.items():
        (tmp_path / f"{name}.npy").unlink()
        if array is not None:
            np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load_codes(tmp_path, 6)
