"""`learn_dictionary`: what users call to learn a dictionary.

It checks its arguments and keeps the best of several runs; a run, Algorithm 1 of the paper, is in `loop.py`.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace as replace_fields
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from manifold_dl._validation import as_rng, each_warning_once, require_count, require_memory
from manifold_dl.coders import SparseCoder
from manifold_dl.coders.protocol import is_coder, properties_of
from manifold_dl.components import by_name
from manifold_dl.components.errors import naming
from manifold_dl.components.settings import run_settings
from manifold_dl.engines import Engine
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.opening import open_observed
from manifold_dl.learning.advice import warn_of_result, warn_of_weights
from manifold_dl.learning.batching import MiniBatches, as_minibatches
from manifold_dl.learning.checkpoint import RunState, load_checkpoint
from manifold_dl.learning.loop import LearningRun
from manifold_dl.learning.protocols import Callback, ReplacementPolicy
from manifold_dl.learning.replacement import ReplaceAtoms
from manifold_dl.learning.result import Reason, Result
from manifold_dl.learning.run_settings import Restart, Settings
from manifold_dl.learning.signal_sums import unexplained_fraction
from manifold_dl.learning.validation import as_validation
from manifold_dl.updates import KSVD, SimCO
from manifold_dl.updates.protocol import DictionaryUpdate, coder_of


def learn_dictionary(
    signals: Any,
    n_atoms: int,
    *,
    coder: SparseCoder | str | None = None,
    update: DictionaryUpdate | str | None = None,
    max_iter: int = 50,
    init: Any = "data",
    tol: float = 1e-6,
    rng: np.random.Generator | int | None = None,
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
    engine: Engine | None = None,
    replace: ReplacementPolicy | None = ReplaceAtoms(),  # noqa: B008 - frozen: one for all calls
    restarts: int = 1,
    resume: str | os.PathLike[str] | None = None,
    weights: Any = None,
    minibatches: MiniBatches | bool | None = None,
    validation: Any = None,
) -> Result:
    """Learn a dictionary: sparse coding and dictionary update in turn.

    Parameters
    ----------
    signals : m×n array, Dask array, or path
        Y, a signal in every column. A Dask array is chunked along the signals. A path names a `.npy` file, a
        folder of them or a `.zarr` array, with a signal in every *row*.
    n_atoms : int
        d, the number of atoms.
    coder : SparseCoder, optional
        For example ``OMP(sparsity=5)``. Or its name, ``"focuss"``, if it can be made without arguments. It
        may be left out if the update brings one along: ``update=SimCO(codes=Lasso(alpha=0.1))`` finds codes
        and dictionary together.
    update : DictionaryUpdate, optional
        Or its name: ``"ksvd"``. By default `SimCO()`, with a ridge for the first three fifths of the
        iterations (`updates.ridge.TwoStep`).
    max_iter : int
        Outer iterations.
    init : "data", "random", "dct" or m×d array
        Random distinct signals, random directions, an overcomplete cosine dictionary, or your own.
    tol : float
        Stop when the loss has changed by less than this fraction in each of three iterations, once the
        update's ridge has reached its last value. 0 runs all iterations.
    rng : Generator or int, optional
        A seed makes the result reproducible.
    callbacks : sequence of Callback
        Called with every `Step`; returning True stops.
    threads : int, optional
        Short for ``engine=Threads(threads)``; all processors by default.
    engine : Engine, optional
        Where the signals are and what runs the computation: `engines.Threads()` or, for a Dask array with a
        client, `engines.Dask()`. The result has the same bits on all of them.
    replace : ReplacementPolicy or None
        What to do with useless atoms after every iteration but the last tenth of them.
    restarts : int
        Learn so many times from different starts and keep the result with the smallest error.
    resume : path, optional
        A file written by `Checkpoint`: continue from there, also if `restarts` were to follow. The components
        have to be the same as before, and so has `rng` if it is given. A larger `max_iter` continues the run.
    weights : array of length n, m×n array, Dask array or path, optional
        Numbers ≥ 0. One per signal counts that signal so many times. One per entry multiplies the squared
        error of that entry; 0 marks a missing entry, whose value (NaN, too) never matters. A file has them in
        rows, as it has the signals. Coder, update and replacement have to take weights: those of this package
        do, or refuse them and say why.
    minibatches : MiniBatches, False or None
        Passes over mini-batches, with which the learning begins; at least the last iteration is full. None,
        the default, means `MiniBatches()` with `SimCO` and 50,000 signals or more, and none otherwise. False
        makes all iterations full.
    validation : m×v array, optional
        Signals that are not learned from. They are coded after every iteration, and `history.validation` is
        their loss.

    Returns
    -------
    Result
        Dictionary, codes, history and the reason why the learning ended.

    Raises
    ------
    ComponentError
        If one of the components fails, or returns what cannot be right. It names the component, and its
        attribute `partial` is a `Result` with the best dictionary until then. A `ValueError` or `TypeError`
        that a component of this package raises in the course of a run has this attribute, too.

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> from manifold_dl.datasets import synthetic
    >>> D, X, Y = synthetic(16, 32, 500, sparsity=3, rng=0)
    >>> result = learn_dictionary(Y, 32, coder=OMP(sparsity=3), max_iter=40, rng=0)
    >>> result.dictionary.shape, result.codes.shape
    ((16, 32), (32, 500))
    >>> bool(result.history.loss[-1] < 0.1 * result.history.loss[0])
    True
    """
    Y, W = open_observed(signals, weights, threads, engine)
    warn_of_weights(W)
    _require_numbers(n_atoms, max_iter, tol)
    require_memory(n_atoms, len(Y), Y.dtype.itemsize)
    callbacks = _as_list(callbacks)
    update = SimCO() if update is None else by_name.component("updates", update, "update")
    coder = coder_of(update) if coder is None else by_name.component("coders", coder, "coder")
    _require_components(coder, update, replace, callbacks)
    batches = as_minibatches(minibatches, coder, update, Y.shape[1])
    V = None if validation is None else as_validation(validation, len(Y), Y.dtype)
    require_count("restarts", restarts)
    generator = as_rng(rng)
    settings = Settings(
        coder, update, max_iter, init, tol, callbacks, threads, engine, replace, batches, validation=V
    )
    with naming(init, "initial dictionary"):
        recorded = settings.recorded()
    record = run_settings(generator, rng, n_atoms=n_atoms, **recorded, restarts=restarts)
    if W is not None:
        record["weights"] = "one per signal" if W.ndim == 1 else "one per entry"
    state = None
    if resume is not None:
        now = record if rng is not None else {**record, "seed": None}
        state = load_checkpoint(resume, Y, n_atoms, now, W)
        record["seed"] = state.settings.get("seed")
    with each_warning_once():
        make_run = partial(LearningRun, Y, n_atoms, replace_fields(settings, record=record), weights=W)
        result = _best_of(make_run, generator, restarts, state)
        warn_of_result(result)
        return result


def _best_of(
    make_run: Callable[..., LearningRun],
    rng: np.random.Generator,
    restarts: int,
    state: RunState | None,
) -> Result:
    """The result with the smallest error of so many runs; those before a checkpoint are in its `state`."""
    first, best = (0, None) if state is None else (state.run, state.earlier)
    errors: dict[int, float] = {}  # of the results of this call, by their id
    for number in range(first, restarts):
        error_of = None
        try:
            run = make_run(rng, Restart(number, best, state))
            rng, state, error_of = run.rng, None, partial(_error_of, run.signals, run.weights, errors)
            result = run.learn()
            errors[id(result)] = run.unexplained
        except Exception as error:
            if best is not None:
                found = getattr(error, "partial", None)
                found = best if found is None else min(best, found, key=error_of)
                error.partial = replace_fields(found, reason=Reason.FAILED)  # type: ignore[attr-defined]
                error.add_note(f"It happened in run {number + 1} of {restarts}.")
            raise
        best = result if best is None else min(best, result, key=error_of)
        if result.reason is Reason.INTERRUPTED:
            return replace_fields(best, reason=Reason.INTERRUPTED)
    assert best is not None  # restarts ≥ 1
    return best


def _error_of(signals: Any, weights: Any, errors: dict[int, float], result: Result) -> float:
    """‖Y − DX‖²/‖Y‖² of a result; of one whose codes are not here with the digits that `explained` has."""
    error = errors.get(id(result), math.nan)
    if math.isnan(error) and not isinstance(signals, BlockedSignals):
        return unexplained_fraction(signals, result.dictionary, result.codes, weights=weights)
    error = 1 - result.explained if math.isnan(error) else error
    return math.inf if math.isnan(error) else error  # the last where it is not known


def _require_numbers(n_atoms: int, max_iter: int, tol: float) -> None:
    require_count("n_atoms", n_atoms)
    require_count("max_iter", max_iter)
    if not isinstance(tol, Real) or not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol={tol}: a fraction of the loss, finite and not negative.")


def _as_list(callbacks: Sequence[Callback]) -> list[Callback]:
    if callable(callbacks):
        raise TypeError(f"callbacks={callbacks!r}: pass a list of them, if only of one.")
    return list(callbacks)


def _require_components(coder: Any, update: Any, replace: Any, callbacks: list[Any]) -> None:
    """Refuse what cannot work before an hour of learning is lost: a class, say, in place of an object."""
    if not is_coder(coder):
        also = " An update such as SimCO(codes=Lasso(alpha=0.1)) needs none." if coder is None else ""
        raise TypeError(
            f"coder={coder!r}: pass an object with a method encode, such as OMP(sparsity=5).{also}"
        )
    for name, part in [("update", update), ("replace", replace), *(("callbacks", c) for c in callbacks)]:
        absent = part is None and name == "replace"
        if not absent and (isinstance(part, type) or not callable(part)):
            raise TypeError(f"{name}: {part!r} cannot be called as such; pass an object of the kind.")
    follow = isinstance(update, KSVD) or (isinstance(update, SimCO) and update.codes == "follow")
    if properties_of(coder).nonnegative and follow:
        raise ValueError(
            f"coder={coder!r}: codes that follow the dictionary solve least squares on their supports, and "
            'may become negative. Keep them with update=SimCO(codes="fixed") or MOD(), or let them follow '
            "by a penalty: update=SimCO(codes=Lasso(alpha=0.1, nonnegative=True))."
        )
