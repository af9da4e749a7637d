"""The format of our files: plain arrays and a header of JSON in one `.npz` file, without pickle.

Reading a file never executes anything: it returns numbers and text, and refuses anything else.
`storage.py` (results) and `checkpoint.py` (runs to be resumed) say which arrays their files hold; codes and
histories, which both have, are turned into arrays here.
"""

import contextlib
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._files import write_atomically

FORMAT = "manifold_dl"
VERSION = 1
MAX_BYTES = 16 * 2**30  # what a file may unpack to, unless the caller allows more
# Random numbers hardly shrink, indices to a third, an array of zeros to a thousandth: a file as a whole to no
# less than a fiftieth, unless it is small or a bomb.
MAX_RATIO = 50
ALWAYS_UNPACKED = 16 * 2**20
MAX_HEADER = 2**22  # of JSON: empty lists take 24 times the memory of their text when it is read

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")

# Everything that a file may hold; "earlier" is the best of the runs before, in a checkpoint with restarts.
MEMBERS = re.compile(
    r"header|energy|(earlier/)?(dictionary|best|(best )?codes/(data|indices|indptr|shape)|history/\w+)"
)


def write(
    path: str | os.PathLike[str], kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write one file, which is complete or absent.

    Parameters
    ----------
    path : path
    kind : str
        What the file holds, "result", "checkpoint" or "estimator": `read` compares it.
    meta : mapping
        JSON.
    arrays : mapping of str to array of numbers
    """
    header = json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **meta})
    everything: dict[str, Any] = {"header": np.frombuffer(header.encode(), dtype=np.uint8), **arrays}
    for name, array in everything.items():
        if np.asarray(array).dtype.kind not in "fiu":  # anything else might end up as a pickle
            raise TypeError(f"{name} has dtype {np.asarray(array).dtype}: only numbers are stored.")

    def save(file: IO[bytes]) -> None:
        np.savez_compressed(file, **everything)

    write_atomically(path, save)


def read(
    path: str | os.PathLike[str], kind: str | tuple[str, ...], max_bytes: int | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write` wrote.

    Nothing is unpacked before the sizes of all members are known: those that the file declares, and those of
    the shapes in the arrays' own headers.

    Parameters
    ----------
    path : path
    kind : str or tuple of str
        What the file has to hold, or may hold.
    max_bytes : int, optional
        What it may unpack to. By default 16 GiB, and fifty times the size of the file.

    Returns
    -------
    meta, arrays
        The header, and the arrays by name.

    Raises
    ------
    ValueError
        If it is not such a file, or larger than allowed.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise ValueError(f"{path} is a pipe or a device, not a file of ours.")  # opening a pipe would wait
    try:
        with zipfile.ZipFile(path) as archive:
            items = archive.infolist()
            _require_size(path, sum(item.file_size for item in items), max_bytes)
            forms = [_form(archive, item) for item in items]
            if len({form.name for form in forms}) < len(forms):
                raise ValueError("it holds two arrays of one name.")
            arrays = {form.name: _array(archive, form) for form in forms}
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except (PermissionError, IsADirectoryError, TooLarge):
        raise  # Python's own sentence is clear
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
        *(ValueError, OverflowError, NotImplementedError),
    ) as error:
        raise ValueError(f"{path} is truncated or not a file of ours: {error}") from None
    meta = _header(arrays)
    if meta.get("format") != FORMAT or type(meta.get("version")) is not int:
        raise ValueError(f"{path} was not written by manifold_dl.")
    if meta["version"] > VERSION:
        raise ValueError(
            f"{path} has format version {meta['version']}; this manifold_dl reads up to {VERSION}: update it."
        )
    kinds = (kind,) if isinstance(kind, str) else kind
    if meta.get("kind") not in kinds:
        raise ValueError(f"{path} holds a {meta.get('kind')}, not a {' or '.join(kinds)}.")
    return meta, arrays


class TooLarge(ValueError):
    """A file that would unpack to more than is allowed."""


def _require_size(path: str | os.PathLike[str], size: int, max_bytes: int | None) -> None:
    """Refuse a file that would unpack to more than the caller allows, or than a file of ours does."""
    if size > (MAX_BYTES if max_bytes is None else max_bytes):
        raise TooLarge(
            f"{path} would unpack to {size} bytes; allow more than "
            f"max_bytes={MAX_BYTES if max_bytes is None else max_bytes} if you trust it."
        )
    packed = os.path.getsize(path)
    if max_bytes is None and size > max(ALWAYS_UNPACKED, MAX_RATIO * packed):
        raise TooLarge(
            f"{path} would unpack from {packed} to {size} bytes, which a file of ours does not; "
            f"pass max_bytes={size} if you trust it."
        )


@contextlib.contextmanager
def damage_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside the block an error about the contents of a file becomes one that names the file."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def codes_to_arrays(codes: Any, name: str = "codes") -> dict[str, np.ndarray]:
    """Sparse codes as four arrays."""
    codes = scipy.sparse.csc_array(codes)
    return {
        f"{name}/data": codes.data,
        f"{name}/indices": codes.indices,
        f"{name}/indptr": codes.indptr,
        f"{name}/shape": np.array(codes.shape, dtype=np.int64),
    }


def arrays_to_codes(
    arrays: Mapping[str, np.ndarray], n_atoms: int, name: str = "codes"
) -> scipy.sparse.csc_array:
    """The codes that `codes_to_arrays` took apart; indices that lead nowhere are refused."""
    data, indices, indptr, shape = (
        arrays[f"{name}/{part}"] for part in ("data", "indices", "indptr", "shape")
    )
    if any(array.dtype.kind != "i" for array in (indices, indptr, shape)) or len(shape) != 2:
        raise ValueError("its codes have no proper indices")
    codes = scipy.sparse.csc_array((data, indices, indptr), shape=tuple(shape.tolist()))
    codes.check_format(full_check=True)
    if codes.shape[0] != n_atoms or not np.isfinite(data).all():
        raise ValueError(f"its codes, of shape {codes.shape}, do not belong to {n_atoms} atoms")
    return codes


def columns_to_arrays(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of a history, under names of their own."""
    return {f"history/{name}": column for name, column in columns.items()}


def arrays_to_columns(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that `columns_to_arrays` named."""
    columns = {name[8:]: array for name, array in arrays.items() if name.startswith("history/")}
    if len({array.shape for array in columns.values()}) != 1 or columns["iteration"].ndim != 1:
        raise ValueError("the columns of its history do not match")
    return columns


def generator_to_json(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a random generator of NumPy's."""
    state = _plain(rng.bit_generator.state)
    if state["bit_generator"] not in GENERATORS:
        raise ValueError(f"a file stores {', '.join(GENERATORS)}, not {state['bit_generator']}.")
    return state


def json_to_generator(state: dict[str, Any]) -> np.random.Generator:
    """A random generator in a given state; one that would let NumPy read outside of it is refused."""
    name = state["bit_generator"]
    if name not in GENERATORS:
        raise ValueError(f"it names no random generator of NumPy, but {name!r}")
    if not (0 <= state.get("buffer_pos", 0) <= 4 and 0 <= state["state"].get("pos", 0) <= 624):
        raise ValueError("its random generator stands outside of its own state")
    generator = np.random.Generator(getattr(np.random, name)())
    generator.bit_generator.state = state
    return generator


def _plain(value: Any) -> Any:
    """A bit generator's state as JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return int(value) if isinstance(value, np.integer) else value


class _Form(NamedTuple):
    """What a member of a file claims to be."""

    item: zipfile.ZipInfo
    name: str
    shape: tuple[int, ...]
    in_columns: bool
    dtype: np.dtype
    begin: int  # where the numbers begin


def _form(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> _Form:
    """What the header of an array says, if it is one of ours and as large as that says."""
    name = item.filename.removesuffix(".npy")
    if item.flag_bits & 1 or item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{item.filename} is packed in an unknown way.")
    with archive.open(item) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{item.filename} is no array of numbers.")
        shape, in_columns, dtype = np.lib.format.read_array_header_1_0(file)
        begin = file.tell()
    if dtype.kind not in "fiu":  # object arrays are pickles, which can run anything
        raise ValueError(f"{item.filename} has dtype {dtype}, and only numbers are read.")
    if MEMBERS.fullmatch(name) is None:
        raise ValueError(f"{item.filename} is nothing that is stored.")
    size = item.file_size - begin
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{item.filename} claims the shape {shape}, which is not what it holds.")
    if name == "header" and size > MAX_HEADER:
        raise ValueError(f"its header has {size} bytes, more than {MAX_HEADER}.")
    return _Form(item, name, shape, in_columns, dtype, begin)


def _array(archive: zipfile.ZipFile, form: _Form) -> np.ndarray:
    """One array of numbers."""
    with archive.open(form.item) as file:
        file.read(form.begin)
        data = bytearray(file.read())
    array = np.frombuffer(data, form.dtype).reshape(form.shape, order="F" if form.in_columns else "C")
    return array.astype(form.dtype.newbyteorder("="), copy=False)


def _header(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        meta = json.loads(arrays.pop("header").tobytes())
    except (KeyError, ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}
