"""The outer loop, Algorithm 1 of the paper: sparse coding and dictionary update in turn.

`learn_dictionary` holds the loop and nothing else: the coder, the update rule, the replacement of atoms
and what happens after every iteration are objects that the caller chooses.
"""

import copy
import time
from contextlib import ExitStack
from functools import partial
from numbers import Integral, Real

import numpy as np

from manifold_dl import by_name, kernels
from manifold_dl.blocks import using_threads
from manifold_dl.callbacks import History, Step
from manifold_dl.coders.calling import run_coder
from manifold_dl.inputs import as_matrix, as_support
from manifold_dl.objective import tally
from manifold_dl.refusals import each_warning_once
from manifold_dl.replacement import ReplaceAtoms
from manifold_dl.result import Reason, Result, explained_fraction
from manifold_dl.starts import initial_dictionary
from manifold_dl.storage import RunState, fingerprint, load_checkpoint
from manifold_dl.updates import SimCO, begin

CALM = 3  # so many iterations without change in a row mean convergence


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
    restarts=1,
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
        For example ``OMP(sparsity=5)``. Or its name, ``"focuss"``, if it can be made without arguments.
    update : DictionaryUpdate, optional
        Or its name: ``"ksvd"``.
        By default `SimCO()`, with a ridge for the first three fifths of the iterations
        (`annealing.TwoStep`).
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
        What to do with useless atoms after every iteration but the last tenth of them.
    restarts : int
        Learn so many times from different starts and keep the result with the smallest error.
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
    >>> result = learn_dictionary(Y, 32, coder=OMP(sparsity=3), max_iter=40, rng=0)
    >>> result.dictionary.shape, result.codes.shape
    ((16, 32), (32, 500))
    >>> bool(result.history.loss[-1] < 0.1 * result.history.loss[0])
    True
    """
    Y = np.asfortranarray(as_matrix(signals, "signals"))  # once: kernels read every signal in one piece
    _require_count("n_atoms", n_atoms)
    _require_count("max_iter", max_iter)
    if not isinstance(tol, Real) or not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol={tol}: a share of the loss, finite and not negative.")
    callbacks = _as_list(callbacks)
    coder = by_name.component("coders", coder, "coder")
    update = SimCO() if update is None else by_name.component("updates", update, "update")
    _require_parts(coder, update, replace, callbacks)
    _require_count("restarts", restarts)
    if restarts > 1 and resume is not None:
        raise ValueError(f"restarts={restarts}: a checkpoint holds one run; resume it with restarts=1.")
    parts = (coder, update, max_iter, init, tol, np.random.default_rng(rng), callbacks, threads, replace)
    best = _run(Y, n_atoms, *parts, resume)
    for _ in range(restarts - 1):
        if best.reason is Reason.INTERRUPTED:
            break
        best = min(best, _run(Y, n_atoms, *parts, None), key=partial(_error_of, Y))
    return best


def _run(Y, n_atoms, coder, update, max_iter, init, tol, rng, callbacks, threads, replace, resume):
    """One run of the loop, from one start."""
    history = next((c for c in callbacks if isinstance(c, History)), History())
    others = [callback for callback in callbacks if callback is not history]
    encode = _encoder(coder, threads)

    history.begin(max_iter)
    if resume is None:
        D, codes, begun, calm, seconds = initial_dictionary(Y, n_atoms, init, rng), None, 0, 0, 0.0
        best = (np.inf, D, None)
    else:
        state = load_checkpoint(resume, Y, n_atoms)
        D, codes, rng, calm = state.dictionary, state.codes, state.rng, state.calm
        begun, seconds = state.iteration + 1, state.seconds
        best = (state.best_loss, state.best_dictionary, None)
        history.restore(state.columns)
    # What changes in the course of a run is the run's own: the rule may be at work in another one, too.
    run = begin(update, max_iter, None if resume is None else state.memory)
    start = time.perf_counter() - seconds
    last_mu = _ridge(run, max_iter - 1)
    last_replacement = max_iter - max(1, max_iter // 10)  # new atoms need time to settle
    # A run that had converged when its checkpoint was written has nothing more to do.
    reason = Reason.CONVERGED if calm >= CALM else Reason.ITERATION_LIMIT

    with ExitStack() as stack:
        stack.enter_context(using_threads(threads))
        stack.enter_context(each_warning_once())
        for callback in others:
            if hasattr(callback, "begin"):
                callback.begin(max_iter)
            if hasattr(callback, "end"):
                stack.callback(callback.end)
            if resume is not None and hasattr(callback, "resume"):
                callback.resume(history)
        try:
            for iteration in range(begun, max_iter if calm < CALM else begun):
                with tally() as counts:
                    codes = encode(Y, D, codes, iteration)
                    D, codes = run(Y, D, codes, iteration=iteration, rng=rng)
                fitted, replaced = D, np.zeros(0, np.intp)
                loss = squared_error(Y, D, codes) / Y.shape[1]
                if loss < best[0]:
                    best = loss, D, codes
                if replace is not None and iteration < last_replacement:
                    D, replaced = replace(Y, D, codes)
                mu = _ridge(run, iteration)
                calm = calm + 1 if mu == last_mu and _is_calm(history, loss, tol, replaced) else 0
                seconds = time.perf_counter() - start
                objective = loss * Y.shape[1] + _penalties(update, mu, fitted, codes)
                now = (iteration, D, codes, calm, seconds)
                snapshot = partial(_snapshot, now, best[:2], rng, history, run, Y)
                step = Step(iteration, fitted, codes, loss, objective, seconds, counts, replaced, snapshot)
                history(step)
                answers = [callback(step) for callback in others]
                if any(answers):
                    reason = Reason.STOPPED
                elif calm >= CALM:
                    reason = Reason.CONVERGED
                if reason is not Reason.ITERATION_LIMIT:
                    D = fitted
                    break
        except KeyboardInterrupt:
            reason = Reason.INTERRUPTED
            _, D, codes = best
        # A copy, so that the next run with the same History does not take this one's columns away.
        codes = _last_codes(encode, Y, D, codes)
        return Result(D, codes, copy.copy(history), reason, explained_fraction(Y, D, codes))


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


def _error_of(signals, result):
    return squared_error(signals, result.dictionary, result.codes)


def _require_count(name, value):
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r}: give a whole number of at least 1.")


def _as_list(callbacks):
    if callable(callbacks):
        raise TypeError(f"callbacks={callbacks!r}: pass a list of them, if only of one.")
    return list(callbacks)


def _require_parts(coder, update, replace, callbacks):
    """Refuse what cannot work before an hour of learning is lost: a class, say, in place of an object."""
    if isinstance(coder, type) or not hasattr(coder, "encode"):
        raise TypeError(f"coder={coder!r}: pass an object with a method encode, such as OMP(sparsity=5).")
    for name, part in [("update", update), ("replace", replace), *(("callbacks", c) for c in callbacks)]:
        if part is not None and (isinstance(part, type) or not callable(part)):
            raise TypeError(f"{name}: {part!r} cannot be called as such; pass an object of the kind.")


def _encoder(coder, threads):
    """encode(Y, D, last codes, iteration) → csc_array (d×n): each coder is told what its `encode` names."""

    def encode(Y, D, codes, iteration=None):
        return run_coder(coder, Y, D, threads=threads, codes=codes, iteration=iteration)

    return encode


def _ridge(run, iteration):
    """μ of one iteration, as far as the update rule has one."""
    if hasattr(run, "mu_at"):
        return run.mu_at(iteration)
    mu = getattr(run, "mu", 0.0)
    return float(mu) if isinstance(mu, Real) else 0.0


def _penalties(update, mu, D, codes):
    """μ‖X‖² and the regularizers: what the update minimised besides the error."""
    ridge = mu * float(np.sum(codes.data.astype(float) ** 2))
    return ridge + sum(float(regularizer.value(D)) for regularizer in getattr(update, "regularizers", ()))


def _is_calm(history, loss, tol, replaced):
    if len(history) == 0 or len(replaced) or tol == 0:
        return False
    before = float(history.loss[-1])
    return abs(before - loss) <= tol * before


def _snapshot(now, best, rng, history, run, signals):
    """Everything that the next iteration reads, for a checkpoint."""
    memory = getattr(run, "memory", {})
    return RunState(*now, rng, history.to_dict(), memory, fingerprint(signals), *best)


def _last_codes(encode, Y, D, codes):
    try:
        return encode(Y, D, codes)
    except KeyboardInterrupt:  # a second time: whoever is in such a hurry gets the codes of the update
        if codes is None:
            raise
        return codes
