"""The outer loop, Algorithm 1 of the paper: sparse coding and dictionary update in turn.

`learn_dictionary` holds the loop and nothing else: the coder, the update rule, the replacement of atoms
and what happens after every iteration are objects that the caller chooses.
"""

import inspect
import time
from contextlib import ExitStack
from functools import partial

import numpy as np

from manifold_dl import kernels
from manifold_dl.blocks import using_threads
from manifold_dl.callbacks import History, Step
from manifold_dl.inputs import as_matrix, as_support
from manifold_dl.objective import tally
from manifold_dl.replacement import ReplaceAtoms
from manifold_dl.result import Reason, Result
from manifold_dl.starts import initial_dictionary
from manifold_dl.storage import RunState, fingerprint, load_checkpoint
from manifold_dl.updates import SimCO


def learn_dictionary(
    signals,
    n_atoms,
    *,
    coder,
    update=None,
    max_iter=50,
    init="data",
    tol=1e-6,
    rng=None,
    callbacks=(),
    threads=None,
    replace=ReplaceAtoms(),  # noqa: B008 - frozen, so one for all is as good as one each
    resume=None,
):
    """Learn a dictionary: sparse coding and dictionary update in turn.

    Parameters
    ----------
    signals : m×n array
        Y, a signal in every column.
    n_atoms : int
        d.
    coder : SparseCoder
        For example ``OMP(sparsity=5)``.
    update : DictionaryUpdate, optional
        `SimCO()` by default.
    max_iter : int
        Outer iterations.
    init : "data", "random", "dct" or m×d array
        Random distinct signals, random directions, an overcomplete cosine dictionary, or your own.
    tol : float
        Stop when the loss has changed by less than this share in each of three iterations, once the
        update's ridge has reached its last value. 0 runs all iterations.
    rng : Generator or int, optional
    callbacks : sequence of Callback
        Called with every `Step`; returning True stops.
    threads : int, optional
        For the coder; all processors by default.
    replace : ReplacementPolicy or None
        What to do with useless atoms after every iteration but the last.
    resume : path, optional
        A file written by `Checkpoint`: go on from there, with the same arguments as before.

    Returns
    -------
    Result

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> from manifold_dl.datasets import synthetic
    >>> D, X, Y = synthetic(16, 32, 500, sparsity=3, rng=0)
    >>> result = learn_dictionary(Y, 32, coder=OMP(sparsity=3), max_iter=20, rng=0)
    >>> result.dictionary.shape, result.codes.shape
    ((16, 32), (32, 500))
    >>> bool(result.history.loss[-1] < 0.1 * result.history.loss[0])
    True
    """
    Y = as_matrix(signals, "signals")
    if n_atoms != int(n_atoms) or n_atoms < 1:
        raise ValueError(f"n_atoms={n_atoms}: give a whole number of at least 1.")
    if max_iter != int(max_iter) or max_iter < 1:
        raise ValueError(f"max_iter={max_iter}: give a whole number of at least 1.")
    if not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol={tol}: a share of the loss, finite and not negative.")
    update = SimCO() if update is None else update
    history = next((c for c in callbacks if isinstance(c, History)), None) or History()
    others = [callback for callback in callbacks if callback is not history]
    rng = np.random.default_rng(rng)
    encode = _encoder(coder, threads)

    if resume is None:
        D, codes, begun, calm, seconds = initial_dictionary(Y, int(n_atoms), init, rng), None, 0, 0, 0.0
    else:
        state = load_checkpoint(resume, Y, int(n_atoms))
        D, codes, begun, calm, seconds = (
            state.dictionary,
            state.codes,
            state.iteration + 1,
            state.calm,
            state.seconds,
        )
        rng = state.rng
        history.restore(state.columns)
        if hasattr(update, "recall"):
            update.recall(state.memory)
    start = time.perf_counter() - seconds
    best, reason = None, Reason.ITERATION_LIMIT
    last_mu = update.mu_at(max_iter - 1) if hasattr(update, "mu_at") else None

    with ExitStack() as stack:
        stack.enter_context(using_threads(threads))
        for callback in others:
            if hasattr(callback, "begin"):
                callback.begin(max_iter)
            if hasattr(callback, "end"):
                stack.callback(callback.end)
        try:
            for iteration in range(begun, max_iter):
                with tally() as counts:
                    codes = encode(Y, D, codes)
                    D, codes = update(Y, D, codes, iteration=iteration, rng=rng)
                fitted, replaced = D, np.zeros(0, np.intp)
                loss = squared_error(Y, D, codes) / Y.shape[1]
                if best is None or loss < best[0]:
                    best = loss, D, codes
                if replace is not None and iteration + 1 < max_iter:
                    D, replaced = replace(Y, D, codes)
                calm = calm + 1 if _is_calm(history, loss, tol, replaced) else 0
                if last_mu is not None and update.mu_at(iteration) != last_mu:
                    calm = 0
                seconds = time.perf_counter() - start
                objective = _objective(update, Y, fitted, codes, loss, iteration)
                now = (iteration, D, codes, calm, seconds)
                snapshot = partial(_snapshot, now, rng, history, update, Y)
                step = Step(iteration, fitted, codes, loss, objective, seconds, counts, replaced, snapshot)
                history(step)
                answers = [callback(step) for callback in others]
                if any(answers):
                    reason = Reason.STOPPED
                elif calm >= 3:
                    reason = Reason.CONVERGED
                if reason is not Reason.ITERATION_LIMIT:
                    D = fitted
                    break
        except KeyboardInterrupt:
            reason = Reason.INTERRUPTED
            if best is not None:
                _, D, codes = best
        return Result(D, _last_codes(encode, Y, D, codes), history, reason)


def squared_error(signals, dictionary, codes):
    """‖Y − DX‖², from the residual."""
    support = as_support(codes, signals.shape[1], dictionary.shape[1])
    rest = np.array(signals.T, order="C")
    kernels.accumulate(
        rest,
        support.indptr,
        support.indices,
        -support.values.astype(rest.dtype),
        np.ascontiguousarray(dictionary.T),
    )
    return float(np.einsum("nm,nm->", rest, rest, dtype=float))


def _encoder(coder, threads):
    """encode(Y, D, last codes), with the last codes as a warm start for coders that take one."""
    known = inspect.signature(coder.encode).parameters

    def encode(Y, D, codes):
        options = {"threads": threads} if "threads" in known else {}
        if "codes" in known and codes is not None:
            options["codes"] = codes
        return coder.encode(Y, D, **options)

    return encode


def _objective(update, Y, D, codes, loss, iteration):
    total = loss * Y.shape[1]
    if hasattr(update, "mu_at"):
        total += update.mu_at(iteration) * float(np.sum(codes.data.astype(float) ** 2))
    return total + sum(float(regularizer.value(D)) for regularizer in getattr(update, "regularizers", ()))


def _is_calm(history, loss, tol, replaced):
    if len(history) == 0 or len(replaced) or tol == 0:
        return False
    before = float(history.loss[-1])
    return abs(before - loss) <= tol * before


def _snapshot(now, rng, history, update, signals):
    """Everything that the next iteration reads, for a checkpoint."""
    return RunState(*now, rng, history.to_dict(), getattr(update, "memory", None), fingerprint(signals))


def _last_codes(encode, Y, D, codes):
    try:
        return encode(Y, D, codes)
    except KeyboardInterrupt:  # a second time: whoever is in such a hurry gets the codes of the update
        if codes is None:
            raise
        return codes
