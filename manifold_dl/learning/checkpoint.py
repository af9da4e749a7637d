"""Checkpoints: everything that the next iteration of a run reads, in a file.

`callbacks.Checkpoint` writes them, and `learn_dictionary(..., resume=path)` continues from there with the
same bits as a run that was never interrupted.
"""

import os
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.engines import BlockMap
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.protocol import partition
from manifold_dl.learning.archive import (
    arrays_to_codes,
    arrays_to_columns,
    codes_to_arrays,
    columns_to_arrays,
    damage_named,
    read,
    write,
)

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


@dataclass
class RunState:
    """What it takes to continue a run: everything that the next iteration reads.

    Attributes
    ----------
    iteration : int
        The last one that is complete; −1 for a run that has not begun.
    dictionary, codes : m×d array, sparse d×n array or None
        What the next iteration begins with.
    stagnation : int
        How many iterations in a row have not changed the loss.
    seconds : float
        Since learning began.
    rng : Generator
    best_loss : float
        The smallest relative loss so far.
    best_dictionary : m×d array
        The dictionary of that loss, which an interrupted run returns.
    best_codes : sparse d×n array or None
        Its codes; None before the first iteration.
    columns : dict of str to array
        The history.
    memory : dict of str to float or None
        What the update remembers (`UpdateRun.memory`).
    fingerprint : int
        A checksum of the signals.
    """

    iteration: int
    dictionary: np.ndarray
    codes: Any
    stagnation: int
    seconds: float
    rng: np.random.Generator
    best_loss: float
    best_dictionary: np.ndarray
    best_codes: Any = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    memory: dict[str, float | None] = field(default_factory=dict)
    fingerprint: int = 0

    @classmethod
    def initial(cls, dictionary: np.ndarray, rng: np.random.Generator) -> "RunState":
        """The state before the first iteration."""
        return cls(-1, dictionary, None, 0, 0.0, rng, np.inf, dictionary)

    @property
    def has_begun(self) -> bool:
        """Whether it comes from a checkpoint."""
        return self.iteration >= 0


def save_checkpoint(state: RunState, path: str | os.PathLike[str]) -> None:
    """Write a `RunState`.

    Parameters
    ----------
    state : RunState
    path : path
    """
    arrays = {"dictionary": state.dictionary, "best": state.best_dictionary}
    has_codes = state.codes is not None
    is_last_best = state.best_codes is state.codes  # then they are stored once
    if has_codes:
        arrays |= codes_to_arrays(state.codes)
    if has_codes and not is_last_best:
        arrays |= codes_to_arrays(state.best_codes, "best codes")
    arrays |= columns_to_arrays(state.columns)
    meta = {
        "iteration": state.iteration,
        "stagnation": state.stagnation,
        "seconds": state.seconds,
        "memory": state.memory,
        "fingerprint": state.fingerprint,
        "best_loss": state.best_loss,
        "is_last_best": is_last_best,
        "has_codes": has_codes,
        "rng": _plain(state.rng.bit_generator.state),
    }
    if meta["rng"]["bit_generator"] not in GENERATORS:
        raise ValueError(f"a checkpoint stores {', '.join(GENERATORS)}, not {meta['rng']['bit_generator']}.")
    write(path, "checkpoint", meta, arrays)


def load_checkpoint(path: str | os.PathLike[str], signals: Any, n_atoms: int) -> RunState:
    """Read a `RunState` and make sure that it belongs to these signals.

    Parameters
    ----------
    path : path
    signals : m×n array or BlockedSignals
    n_atoms : int

    Returns
    -------
    RunState

    Raises
    ------
    ValueError
        If the file is damaged, or was written for other signals or another number of atoms.
    """
    meta, arrays = read(path, "checkpoint")
    with damage_named(path):
        D, best = as_dictionary(arrays["dictionary"]), as_dictionary(arrays["best"])
        if best.shape != D.shape:
            raise ValueError(f"its dictionaries have shapes {D.shape} and {best.shape}")
        codes = best_codes = arrays_to_codes(arrays, D.shape[1]) if meta.get("has_codes", True) else None
        if codes is not None and not meta["is_last_best"]:
            best_codes = arrays_to_codes(arrays, D.shape[1], "best codes")
        state = RunState(
            iteration=int(meta["iteration"]),
            dictionary=D,
            codes=codes,
            stagnation=int(meta["stagnation"]),
            seconds=float(meta["seconds"]),
            rng=_generator(meta["rng"]),
            best_loss=float(meta["best_loss"]),
            best_dictionary=best,
            best_codes=best_codes,
            columns=arrays_to_columns(arrays),
            memory={str(k): None if v is None else float(v) for k, v in meta["memory"].items()},
            fingerprint=meta["fingerprint"],
        )
        if state.iteration < 0:
            raise ValueError(f"it stands at iteration {state.iteration}")
    if D.shape != (len(signals), n_atoms) or state.fingerprint != fingerprint(signals):
        raise ValueError(
            f"{path} belongs to another run: the signals or n_atoms are not those it was written for."
        )
    return state


def fingerprint(signals: Any) -> int:
    """A checksum of the signals, which differs from one data set to another."""
    shape = np.array(signals.shape, dtype=np.int64).tobytes()
    kind = zlib.crc32(shape + str(signals.dtype).encode())
    if isinstance(signals, BlockedSignals):
        (checksums,) = signals.engine.total(BlockMap(checksum_block, (signals.given,)))
    else:
        checksums = [checksum_block(signals.T[part])[0][0] for part in partition(signals.shape[1])]
    return zlib.crc32(np.array(checksums, dtype=np.int64).tobytes(), kind)


def checksum_block(rows: np.ndarray) -> tuple[list[int], None]:
    """The checksum of one block of signals."""
    return [zlib.crc32(np.ascontiguousarray(rows).data)], None


def _generator(state: dict[str, Any]) -> np.random.Generator:
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
