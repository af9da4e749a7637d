"""Saving and loading without pickle: plain arrays and a little JSON in one `.npz` file.

A file is written under another name and then renamed, so there is never half a file under the right
name. Loading reads numbers and text; it never executes anything, and it refuses what it does not know.
"""

import contextlib
import json
import math
import os
import secrets
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl.learning.callbacks import History
from manifold_dl.learning.result import Reason, Result

FORMAT = "manifold_dl"
VERSION = 1
MAX_BYTES = 16 * 2**30  # what a file may unpack to, unless the caller allows more
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


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
    memory: dict  # what the update's line searcher remembers: numbers by name
    fingerprint: int
    best_loss: float  # what Ctrl-C would return
    best_dictionary: np.ndarray


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
    meta = {
        "reason": result.reason.name,
        "explained": None if math.isnan(result.explained) else result.explained,
        "settings": result.settings,
    }
    write(path, "result", meta, arrays)


def load(path, max_bytes=MAX_BYTES):
    """Read what `save` wrote, as a `Result`."""
    meta, arrays = read(path, "result", max_bytes)
    with _damage_named(path):
        D = as_dictionary(arrays["dictionary"])
        columns = _columns(arrays)
        history = History(condition="kappa" in columns, coherence="coherence" in columns)
        history.restore(columns)
        codes, explained = _arrays_to_codes(arrays, D.shape[1]), meta.get("explained")
        explained = math.nan if explained is None else float(explained)
        settings = meta.get("settings", {})  # neither is in the oldest files
        if not isinstance(settings, dict):
            raise ValueError(f"its settings are {settings!r}")
        return Result(D, codes, history, Reason[meta["reason"]], explained, settings)


def save_checkpoint(state, path):
    """Write a `RunState`; called by `Checkpoint`."""
    arrays = {"dictionary": state.dictionary, "best": state.best_dictionary, **_codes_to_arrays(state.codes)}
    arrays |= {f"history/{name}": column for name, column in state.columns.items()}
    meta = {
        "iteration": state.iteration,
        "calm": state.calm,
        "seconds": state.seconds,
        "memory": state.memory,
        "fingerprint": state.fingerprint,
        "best_loss": state.best_loss,
        "rng": _plain(state.rng.bit_generator.state),
    }
    if meta["rng"]["bit_generator"] not in GENERATORS:
        raise ValueError(f"a checkpoint knows {', '.join(GENERATORS)}, not {meta['rng']['bit_generator']}.")
    write(path, "checkpoint", meta, arrays)


def load_checkpoint(path, signals, n_atoms):
    """Read a `RunState` and make sure that it belongs to these signals."""
    meta, arrays = read(path, "checkpoint")
    with _damage_named(path):
        D, best = as_dictionary(arrays["dictionary"]), as_dictionary(arrays["best"])
        if best.shape != D.shape:
            raise ValueError(f"its dictionaries have shapes {D.shape} and {best.shape}")
        state = RunState(
            iteration=int(meta["iteration"]),
            dictionary=D,
            codes=_arrays_to_codes(arrays, D.shape[1]),
            calm=int(meta["calm"]),
            seconds=float(meta["seconds"]),
            rng=_generator(meta["rng"]),
            columns=_columns(arrays),
            memory={str(k): None if v is None else float(v) for k, v in meta["memory"].items()},
            fingerprint=meta["fingerprint"],
            best_loss=float(meta["best_loss"]),
            best_dictionary=best,
        )
        if state.iteration < 0:
            raise ValueError(f"it stands at iteration {state.iteration}")
    if D.shape != (len(signals), n_atoms) or state.fingerprint != fingerprint(signals):
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
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind not in "fiu":  # anything else might end up as a pickle
            raise TypeError(f"{name} has dtype {np.asarray(array).dtype}: only numbers are stored.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to.")
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            np.savez_compressed(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path, kind, max_bytes=MAX_BYTES):
    """Header and arrays of a file written by `write`."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
            items = archive.infolist() if size <= max_bytes else []
            arrays = {item.filename.removesuffix(".npy"): _array(archive, item) for item in items}
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except (PermissionError, IsADirectoryError):
        raise  # these say all there is to say
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
        *(ValueError, OverflowError, NotImplementedError),
    ) as error:
        raise ValueError(f"{path} is truncated or not a file of ours: {error}") from None
    if size > max_bytes:
        raise ValueError(
            f"{path} would unpack to {size} bytes; allow more than max_bytes={max_bytes} if you trust it."
        )
    meta = _header(arrays)
    if meta.get("format") != FORMAT or type(meta.get("version")) is not int:
        raise ValueError(f"{path} was not written by manifold_dl.")
    if meta["version"] > VERSION:
        raise ValueError(
            f"{path} has format version {meta['version']}; this manifold_dl reads up to {VERSION}: update it."
        )
    if meta.get("kind") != kind:
        raise ValueError(f"{path} holds a {meta.get('kind')}, not a {kind}.")
    return meta, arrays


def _array(archive, item):
    """One array of numbers. NumPy would believe its header and make room for whatever that claims."""
    if item.flag_bits & 1 or item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{item.filename} is packed in an unknown way.")
    with archive.open(item) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{item.filename} is no array of numbers.")
        shape, in_columns, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.kind not in "fiu":  # object arrays are pickles, which can run anything
            raise ValueError(f"{item.filename} has dtype {dtype}, and only numbers are read.")
        data = bytearray(file.read())
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{item.filename} claims the shape {shape}, which is not what it holds.")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if in_columns else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(arrays):
    try:
        meta = json.loads(arrays.pop("header").tobytes())
    except (KeyError, ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}


@contextlib.contextmanager
def _damage_named(path):
    """Whatever is wrong with a file of ours, say which file."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def _codes_to_arrays(codes):
    codes = scipy.sparse.csc_array(codes)
    return {
        "codes/data": codes.data,
        "codes/indices": codes.indices,
        "codes/indptr": codes.indptr,
        "codes/shape": np.array(codes.shape, dtype=np.int64),
    }


def _arrays_to_codes(arrays, n_atoms):
    data, indices, indptr, shape = (
        arrays[f"codes/{name}"] for name in ("data", "indices", "indptr", "shape")
    )
    if any(array.dtype.kind != "i" for array in (indices, indptr, shape)) or len(shape) != 2:
        raise ValueError("its codes have no proper indices")
    codes = scipy.sparse.csc_array((data, indices, indptr), shape=tuple(shape.tolist()))
    codes.check_format(full_check=True)
    if codes.shape[0] != n_atoms or not np.isfinite(data).all():
        raise ValueError(f"its codes, of shape {codes.shape}, do not belong to {n_atoms} atoms")
    return codes


def _columns(arrays):
    columns = {name[8:]: array for name, array in arrays.items() if name.startswith("history/")}
    if len({array.shape for array in columns.values()}) != 1 or columns["iteration"].ndim != 1:
        raise ValueError("the columns of its history do not match")
    return columns


def _generator(state):
    """A random generator in a given state, made sure that NumPy will not read outside of it."""
    name = state["bit_generator"]
    if name not in GENERATORS:
        raise ValueError(f"it names no random generator of NumPy, but {name!r}")
    if not (0 <= state.get("buffer_pos", 0) <= 4 and 0 <= state["state"].get("pos", 0) <= 624):
        raise ValueError("its random generator stands outside of its own state")
    generator = np.random.Generator(getattr(np.random, name)())
    generator.bit_generator.state = state
    return generator


def _plain(value):
    """A bit generator's state with nothing in it but what JSON knows."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return int(value) if isinstance(value, np.integer) else value
