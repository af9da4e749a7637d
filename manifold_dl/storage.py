"""Saving and loading without pickle: plain arrays and a little JSON in one `.npz` file.

A file is written under another name and then renamed, so there is never half a file under the right
name. Loading reads numbers and text; it never executes anything, and it refuses what it does not know.
"""

import json
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.callbacks import History
from manifold_dl.result import Reason, Result

FORMAT = "manifold_dl"
VERSION = 1
MAX_BYTES = 16 * 2**30  # what a file may unpack to, unless the caller allows more


@dataclass
class RunState:
    """What it takes to go on with a run: everything that the next iteration reads."""

    iteration: int
    dictionary: np.ndarray
    codes: Any
    calm: int
    seconds: float
    rng: np.random.Generator
    columns: dict
    memory: float | None
    fingerprint: int


def save(result, path):
    """Write a learned `Result` to one `.npz` file.

    Examples
    --------
    >>> import tempfile
    >>> from manifold_dl import OMP, learn_dictionary
    >>> Y = np.random.default_rng(0).standard_normal((8, 100))
    >>> result = learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(result, folder + "/result.npz")
    ...     again = load(folder + "/result.npz")
    >>> bool(np.array_equal(again.dictionary, result.dictionary))
    True
    """
    arrays = {"dictionary": result.dictionary, **_codes_to_arrays(result.codes)}
    arrays |= {f"history/{name}": column for name, column in result.history.to_dict().items()}
    write(path, "result", {"reason": result.reason.name}, arrays)


def load(path, max_bytes=MAX_BYTES):
    """Read what `save` wrote, as a `Result`."""
    meta, arrays = read(path, "result", max_bytes)
    try:
        reason = Reason[meta["reason"]]
        return Result(arrays["dictionary"], _arrays_to_codes(arrays), _history(arrays), reason)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def save_checkpoint(state, path):
    """Write a `RunState`; called by `Checkpoint`."""
    arrays = {"dictionary": state.dictionary, **_codes_to_arrays(state.codes)}
    arrays |= {f"history/{name}": column for name, column in state.columns.items()}
    meta = {
        "iteration": state.iteration,
        "calm": state.calm,
        "seconds": state.seconds,
        "memory": state.memory,
        "fingerprint": state.fingerprint,
        "rng": _plain(state.rng.bit_generator.state),
    }
    write(path, "checkpoint", meta, arrays)


def load_checkpoint(path, signals, n_atoms):
    """Read a `RunState` and make sure that it belongs to these signals."""
    meta, arrays = read(path, "checkpoint")
    try:
        D, codes = arrays["dictionary"], _arrays_to_codes(arrays)
        kind = getattr(np.random, meta["rng"]["bit_generator"])
        if not issubclass(kind, np.random.BitGenerator):
            raise ValueError("it names no random generator")
        rng = np.random.Generator(kind())
        rng.bit_generator.state = meta["rng"]
        columns = {name[8:]: array for name, array in arrays.items() if name.startswith("history/")}
        state = RunState(
            int(meta["iteration"]), D, codes, int(meta["calm"]), float(meta["seconds"]), rng, columns,
            meta["memory"], meta["fingerprint"],
        )  # fmt: skip
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
    if D.shape != (len(signals), n_atoms) or meta["fingerprint"] != fingerprint(signals):
        raise ValueError(
            f"{path} belongs to another run: the signals or n_atoms are not those it was written for."
        )
    return state


def fingerprint(signals):
    """A checksum of the signals, to tell one data set from another."""
    shape = np.array(signals.shape, dtype=np.int64).tobytes()
    return zlib.crc32(np.ascontiguousarray(signals.T), zlib.crc32(shape + str(signals.dtype).encode()))


def write(path, kind, meta, arrays):
    """One `.npz` file with a header, in place at once or not at all."""
    path = Path(path)
    header = json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **meta})
    arrays = {"header": np.frombuffer(header.encode(), dtype=np.uint8), **arrays}
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read(path, kind, max_bytes=MAX_BYTES):
    """Header and arrays of a file written by `write`."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
        if size > max_bytes:
            raise ValueError(
                f"{path} would unpack to {size} bytes; allow more than max_bytes={max_bytes} if you trust it."
            )
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("header").tobytes())
        known = meta["format"] == FORMAT
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
        raise ValueError(f"{path} is truncated or not a file of ours: it cannot be read.") from None
    except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError, AttributeError):
        known = False
    if not known:
        raise ValueError(f"{path} was not written by manifold_dl.")
    if meta["version"] > VERSION:
        raise ValueError(
            f"{path} has format version {meta['version']}; this manifold_dl reads up to {VERSION}: update it."
        )
    if meta["kind"] != kind:
        raise ValueError(f"{path} holds a {meta['kind']}, not a {kind}.")
    return meta, arrays


def _codes_to_arrays(codes):
    codes = scipy.sparse.csc_array(codes)
    return {
        "codes/data": codes.data,
        "codes/indices": codes.indices,
        "codes/indptr": codes.indptr,
        "codes/shape": np.array(codes.shape, dtype=np.int64),
    }


def _arrays_to_codes(arrays):
    parts = tuple(arrays[f"codes/{name}"] for name in ("data", "indices", "indptr"))
    codes = scipy.sparse.csc_array(parts, shape=tuple(int(size) for size in arrays["codes/shape"]))
    codes.check_format()
    return codes


def _history(arrays):
    columns = {name[8:]: array for name, array in arrays.items() if name.startswith("history/")}
    history = History(condition="kappa" in columns, coherence="coherence" in columns)
    history.restore(columns)
    return history


def _plain(value):
    """A bit generator's state with nothing in it but what JSON knows."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return int(value) if isinstance(value, np.integer) else value
