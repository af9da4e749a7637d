"""Checkpoints: everything that the next iteration of a run reads, in a file.

`callbacks.Checkpoint` writes them, and `learn_dictionary(..., resume=path)` continues from there with the
same bits as a run that was never interrupted.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.components.settings import shown
from manifold_dl.learning.archive import (
    arrays_to_codes,
    arrays_to_columns,
    codes_to_arrays,
    columns_to_arrays,
    damage_named,
    generator_to_json,
    json_to_generator,
    read,
    write,
)
from manifold_dl.learning.fingerprint import fingerprint
from manifold_dl.learning.minibatch import OnlineState
from manifold_dl.learning.result import Result
from manifold_dl.learning.storage import contents, from_contents

# The arguments that a run has to be resumed with. With another max_iter or tol it may take longer, and the
# number of threads changes nothing.
SAME = ("seed", "coder", "update", "replace", "restarts", "init", "minibatches")
OF_NO_EFFECT = ("threads", "engine")


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
        Its codes; None before the first full iteration.
    columns : dict of str to array
        The history.
    memory : dict of str to float or None
        What the update keeps for the next iteration (`UpdateRun.memory`).
    fingerprint : int
        A checksum of the signals.
    settings : dict
        The arguments of `learn_dictionary`, as JSON.
    run : int
        Which of the restarts it is, counted from 0.
    earlier : Result or None
        The best of the runs before it.
    online : OnlineState or None
        What passes over mini-batches leave for the next one; None where there are none.
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
    settings: dict[str, Any] = field(default_factory=dict)
    run: int = 0
    earlier: Result | None = None
    online: OnlineState | None = None

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
    has_best_codes = state.best_codes is not None
    if has_best_codes and not is_last_best:
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
        "has_best_codes": has_best_codes,
        "rng": generator_to_json(state.rng),
        "settings": state.settings,
        "run": state.run,
        "earlier": None,
        "online": None,
    }
    if state.online is not None:
        arrays["energy"] = state.online.energy
        meta["online"] = {name: getattr(state.online, name) for name in ("seen", "memory", "exponent")}
    if state.earlier is not None:
        meta["earlier"], result = contents(state.earlier)
        arrays |= {f"earlier/{name}": array for name, array in result.items()}
    write(path, "checkpoint", meta, arrays)


def load_checkpoint(
    path: str | os.PathLike[str],
    signals: Any,
    n_atoms: int,
    settings: dict[str, Any],
    weights: Any = None,
) -> RunState:
    """Read a `RunState` and make sure that it belongs to these signals and arguments.

    Parameters
    ----------
    path : path
    signals : m×n array or BlockedSignals
    n_atoms : int
    settings : dict
        The arguments of `learn_dictionary` now, as JSON. A seed of None takes that of the file.
    weights : array, optional
        Of the signals, or of their entries.

    Returns
    -------
    RunState

    Raises
    ------
    ValueError
        If the file is damaged, or was written by a run with other signals, components or seed.
    """
    meta, arrays = read(path, "checkpoint")
    with damage_named(path):
        state = _state(meta, arrays)
    shape = (len(signals), n_atoms)
    if state.dictionary.shape != shape or state.fingerprint != fingerprint(signals, weights):
        raise ValueError(
            f"{path} belongs to another run: signals, weights or n_atoms are not those it was written for."
        )
    different = [
        f"{name} was {shown(before)}, now {shown(now)}"
        for name, before, now in _differences(state.settings, settings)
    ]
    if different:
        raise ValueError(
            f"{path} belongs to another run: {'; '.join(different)}. Resume it with what it began with."
        )
    return state


def _state(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> RunState:
    """The contents of a file; errors are those of a damaged one."""
    D, best = as_dictionary(arrays["dictionary"]), as_dictionary(arrays["best"])
    if best.shape != D.shape:
        raise ValueError(f"its dictionaries have shapes {D.shape} and {best.shape}")
    codes = best_codes = arrays_to_codes(arrays, D.shape[1]) if meta.get("has_codes", True) else None
    if not meta["is_last_best"]:
        is_stored = meta.get("has_best_codes", codes is not None)
        best_codes = arrays_to_codes(arrays, D.shape[1], "best codes") if is_stored else None
    earlier = None
    if meta["earlier"] is not None:
        earlier = from_contents(
            meta["earlier"],
            {name[8:]: array for name, array in arrays.items() if name.startswith("earlier/")},
        )
    state = RunState(
        iteration=int(meta["iteration"]),
        dictionary=D,
        codes=codes,
        stagnation=int(meta["stagnation"]),
        seconds=float(meta["seconds"]),
        rng=json_to_generator(meta["rng"]),
        best_loss=float(meta["best_loss"]),
        best_dictionary=best,
        best_codes=best_codes,
        columns=arrays_to_columns(arrays),
        memory=_memory(meta["memory"]),
        fingerprint=meta["fingerprint"],
        settings=dict(meta["settings"]),
        run=int(meta["run"]),
        earlier=earlier,
        online=None if meta.get("online") is None else online_state(meta["online"], arrays, D.shape[1]),
    )
    if state.iteration < 0 or state.run < 0:
        raise ValueError(f"it stands at iteration {state.iteration} of run {state.run}")
    return state


def _memory(stored: dict[str, Any]) -> dict[str, float | None]:
    """Step lengths by name."""
    return {str(name): None if value is None else float(value) for name, value in stored.items()}


def online_state(stored: Mapping[str, Any], arrays: Mapping[str, np.ndarray], n_atoms: int) -> OnlineState:
    """What batches have left, from a file of a run or an estimator.

    Parameters
    ----------
    stored : mapping
        "seen", "memory" and "exponent" of the state.
    arrays : mapping
        With the "energy" of every atom.
    n_atoms : int

    Returns
    -------
    OnlineState
    """
    energy, seen, exponent = arrays["energy"], stored["seen"], int(stored["exponent"])
    if energy.shape != (n_atoms,) or not np.isfinite(energy).all() or (energy < 0).any():
        raise ValueError("the energies of its codes do not belong to its dictionary")
    # `seen` is a whole number, or with weights the sum of them; no number of signals exceeds 1e300.
    if not (isinstance(seen, int | float) and 0 <= seen < 1e300 and abs(exponent) < 2000):
        raise ValueError(f"it has seen {seen!r} signals, in units of 2^{exponent}")
    return OnlineState(energy, seen, _memory(stored["memory"]), exponent)


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The arguments that are not what they were."""
    for name in SAME:
        if name == "init" and now["restarts"] == 1:
            continue  # the start is in the file
        if name == "seed" and now[name] is None:
            continue  # so is the state of the generator
        if _comparable(before.get(name)) != _comparable(now.get(name)):
            yield name, before.get(name), now.get(name)


def _comparable(description: Any) -> Any:
    """A description without what differs from one process to another, or has no effect on the result."""
    if isinstance(description, dict):
        kept = {key: item for key, item in description.items() if key not in OF_NO_EFFECT}
        return {key: _comparable(item) for key, item in kept.items()}
    if isinstance(description, list):
        return [_comparable(item) for item in description]
    return re.sub(r" at 0x[0-9a-fA-F]+", "", description) if isinstance(description, str) else description
