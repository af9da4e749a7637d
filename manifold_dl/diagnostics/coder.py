"""The contract of a sparse coder: `check_coder`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from manifold_dl.coders.calling import run_coder
from manifold_dl.coders.protocol import properties_of
from manifold_dl.components.calling import takes
from manifold_dl.diagnostics.report import Inspection, Report, require_object

# Rounding in single precision is about 1e-7; these allow for the condition of a few random atoms.
_ROUNDING = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-3}


def check_coder(
    coder: Any,
    *,
    m: int = 16,
    n_atoms: int = 24,
    n_signals: int = 40,
    dtype: npt.DTypeLike = np.float64,
    rng: np.random.Generator | int | None = 0,
) -> Report:
    """Check that `coder.encode(signals, dictionary)` keeps the contract of a sparse coder.

    On random signals over a random dictionary: the codes are d×n, finite, and of the dtype of the signals
    (a `csc_array` with sorted indices is fastest; others are accepted with a remark); the arguments are left
    as they were; a second call gives the same codes; an atom or a signal with its sign flipped gets codes
    with their signs flipped; atoms and signals in another order get the same codes in that order; no code is
    worse than none, ‖y − Dx‖ ≤ ‖y‖; a signal of zeros gets no atoms, copies of a signal get copies of its
    code, and tiny and huge signals do no harm.

    A coder may promise more, by attributes of its protocol, and is then checked for it:

    - ``optimal_on_support``: the codes are a least-squares fit on their own support;
    - ``scale_equivariant``: signals multiplied by c get codes multiplied by c;
    - ``numbers_atoms``: its codes depend on the numbers of the atoms, so they are not reordered;
    - ``nonnegative``: no code is negative, and signs are not flipped.

    If its `encode` has the keyword `weights`, weights of one change nothing, missing entries, of weight zero,
    never matter, and no code is worse than none with weights either.

    Parameters
    ----------
    coder : SparseCoder
        An object with the method ``encode(signals, dictionary)``.
    m, n_atoms, n_signals : int
        The size of the problem, for coders that suit only some.
    dtype : float64 or float32
        The dtype of signals and dictionary.
    rng : Generator or seed
        For the random problem.

    Returns
    -------
    Report
        What holds, what was remarked upon and what was skipped.

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> from manifold_dl.coders import OMP
    >>> check_coder(OMP(sparsity=3))
    OMP: 7 properties hold.
      holds: the codes are finite and d×n, and the same at every call
      holds: signs and order of atoms and signals carry over to the codes
      holds: no code is worse than none
      holds: the codes are optimal on their support
      holds: the codes scale with the signals
      holds: zeros, copies, tiny and huge signals do no harm
      holds: missing entries never matter
    """
    require_object(coder, "encode", "OMP(sparsity=5)")
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(rng)
    D = rng.standard_normal((m, n_atoms))
    D = np.asfortranarray(D / np.linalg.norm(D, axis=0)).astype(dtype)
    X = rng.standard_normal((n_atoms, n_signals)) * (rng.random((n_atoms, n_signals)) < 3 / n_atoms)
    Y = (D @ X + 0.05 * rng.standard_normal((m, n_signals))).astype(dtype)

    inspection = Inspection(coder)
    run = _Runner(inspection, coder)
    _check_form(inspection, run, Y, D)
    _check_symmetries(inspection, run, Y, D, rng)
    _check_quality(inspection, run, Y, D)
    _check_extreme_signals(inspection, run, Y, D)
    _check_weights(inspection, run, Y, D, rng)
    return inspection.report()


@dataclass(frozen=True)
class _Runner:
    """Calls the coder as `learn_dictionary` does; what that refuses is a fault."""

    inspection: Inspection
    coder: Any

    def __call__(
        self, signals: np.ndarray, dictionary: np.ndarray, weights: np.ndarray | None = None
    ) -> scipy.sparse.csc_array:
        with self.inspection.calling():
            return run_coder(self.coder, signals, dictionary, weights=weights)

    def promises(self, name: str) -> bool:
        """Return an optional attribute of the protocol of a coder, False by default."""
        return bool(getattr(properties_of(self.coder), name))


def _check_form(inspection: Inspection, run: _Runner, Y: np.ndarray, D: np.ndarray) -> None:
    before = Y.copy(), D.copy()
    X = run(Y, D)
    unchanged = np.array_equal(before[0], Y) and np.array_equal(before[1], D)
    if not unchanged:
        inspection.fail("changed the signals or the dictionary it was given")
    raw = run.coder.encode(Y, D)
    if not (scipy.sparse.issparse(raw) and raw.format == "csc"):
        kind = f"a dense {type(raw).__name__}" if not scipy.sparse.issparse(raw) else type(raw).__name__
        inspection.remark(f"returns {kind}, which is converted at every call: a sparse csc_array is faster")
    elif not raw.has_canonical_format:
        inspection.remark("returns indices that are not increasing within a signal, and are sorted each time")
    if raw.dtype != Y.dtype:
        inspection.fail(f"returned {raw.dtype} codes for {Y.dtype} signals")
    again = run(Y, D)
    same = np.array_equal(X.indptr, again.indptr) and np.array_equal(X.indices, again.indices)
    inspection.require(
        same and np.array_equal(X.data, again.data),
        "the codes are finite and d×n, and the same at every call",
        "is not deterministic: a second call returned other codes",
    )


def _check_symmetries(
    inspection: Inspection, run: _Runner, Y: np.ndarray, D: np.ndarray, rng: np.random.Generator
) -> None:
    X = run(Y, D).toarray()

    def require_codes(signals: np.ndarray, dictionary: np.ndarray, expected: np.ndarray, fault: str) -> None:
        if not _close(run(signals, dictionary).toarray(), expected):
            inspection.fail(fault)

    flips = rng.choice([-1.0, 1.0], D.shape[1]).astype(D.dtype)
    if run.promises("nonnegative"):
        fault = "promises nonnegative, but a code is negative"
        inspection.require(X.min() >= 0, "no code is negative", fault)
    else:
        fault = "is not sign-equivariant: an atom flipped did not flip its codes"
        require_codes(Y, D * flips, X * flips[:, None], fault)
        require_codes(-Y, D, -X, "is not sign-equivariant: a signal flipped did not flip its code")
    if run.promises("numbers_atoms"):
        inspection.require(True, "signs of atoms and signals carry over to the codes", "")
        return
    atoms, signals = rng.permutation(D.shape[1]), rng.permutation(Y.shape[1])
    fault = "is not permutation-equivariant: the codes depend on the order of the {}"
    require_codes(Y, D[:, atoms], X[atoms], fault.format("atoms"))
    require_codes(Y[:, signals], D, X[:, signals], fault.format("signals"))
    inspection.require(True, "signs and order of atoms and signals carry over to the codes", "")


def _check_quality(inspection: Inspection, run: _Runner, Y: np.ndarray, D: np.ndarray) -> None:
    X = run(Y, D)
    if not X.nnz:
        inspection.fail(
            f"gave no atoms to any of {Y.shape[1]} signals, which are sums of a few atoms and noise"
        )
    _require_no_worse_than_zero(inspection, Y, D, X)
    inspection.require(True, "no code is worse than none", "")
    fact = "the codes are optimal on their support"
    if run.promises("optimal_on_support"):
        correlations = D.T @ (Y - D @ X)
        on_support = np.abs(correlations[X.toarray() != 0])
        largest = _ROUNDING[Y.dtype] * np.linalg.norm(Y, axis=0).max()
        fault = "promises optimal_on_support, but least squares on its support gives other codes"
        inspection.require(on_support.max(initial=0) <= largest, fact, fault)
    else:
        inspection.skip(f"{fact} (not promised)")
    fact = "the codes scale with the signals"
    if run.promises("scale_equivariant"):
        for c in (1e-6, 3.0, 1e6):
            scaled = run((c * Y).astype(Y.dtype), D).toarray() / c
            fault = f"promises scale_equivariant, but signals times {c:g} do not get codes times {c:g}"
            inspection.require(_close(scaled, X.toarray()), fact, fault)
    else:
        inspection.skip(f"{fact} (not promised)")


def _check_extreme_signals(inspection: Inspection, run: _Runner, Y: np.ndarray, D: np.ndarray) -> None:
    zeros = Y.copy()
    zeros[:, ::2] = 0
    X = run(zeros, D)
    if np.any(X.toarray()[:, ::2]):
        inspection.fail("gave atoms to a signal of zeros")
    _require_no_worse_than_zero(inspection, zeros, D, X)

    copies = np.repeat(Y[:, :1], Y.shape[1], axis=1)
    codes = run(copies, D).toarray()
    if not run.promises("numbers_atoms") and not _close(codes, codes[:, :1]):
        inspection.fail("gave copies of one signal different codes")

    # Squares of these are outside the range of the dtype, so that sums of squares need scaling.
    tiny, huge = (1e-170, 1e170) if Y.dtype == np.float64 else (1e-25, 1e25)
    for name, size in (("tiny", tiny), ("huge", huge)):
        signals = (Y.astype(np.float64) * size).astype(Y.dtype)
        with np.errstate(all="raise", under="ignore"), inspection.calling(f" on {name} signals"):
            X = run_coder(run.coder, signals, D)
        scaled = scipy.sparse.csc_array(
            (X.data.astype(np.float64) / size, X.indices, X.indptr), shape=X.shape
        )
        _require_no_worse_than_zero(inspection, Y, D, scaled, f" for {name} signals")
    inspection.require(True, "zeros, copies, tiny and huge signals do no harm", "")


def _check_weights(
    inspection: Inspection, run: _Runner, Y: np.ndarray, D: np.ndarray, rng: np.random.Generator
) -> None:
    fact = "missing entries never matter"
    if not takes(run.coder.encode, "weights"):
        inspection.skip(f"{fact} (there is no keyword weights)")
        return
    observed = rng.random(Y.shape) < 0.7
    observed[:, 0], observed[1:, 1] = False, False
    weights, roots = observed.astype(Y.dtype), np.sqrt(observed.astype(Y.dtype))
    if not _same(run.coder.encode(Y, D, weights=np.ones(Y.shape)), run.coder.encode(Y, D)):
        inspection.fail("gave other codes for weights of one than without weights")
    codes = [run.coder.encode(np.where(observed, Y, hidden), D, weights=weights) for hidden in (np.nan, 1e3)]
    inspection.require(_same(*codes), fact, "gave other codes for other values of missing entries")
    for j in range(Y.shape[1]):  # with weights the problem is that of √w∘y and √w∘D
        root, X = roots[:, [j]], scipy.sparse.csc_array(codes[0])[:, [j]]
        _require_no_worse_than_zero(inspection, root * Y[:, [j]], root * D, X, " with weights")


def _same(codes: Any, others: Any) -> bool:
    """Whether both are the same, bit by bit."""
    codes, others = scipy.sparse.csc_array(codes), scipy.sparse.csc_array(others)
    same = np.array_equal(codes.indptr, others.indptr) and np.array_equal(codes.indices, others.indices)
    return same and np.array_equal(codes.data, others.data)


def _require_no_worse_than_zero(
    inspection: Inspection, Y: np.ndarray, D: np.ndarray, X: Any, where: str = ""
) -> None:
    Y, D = Y.astype(np.float64), D.astype(np.float64)
    norms = np.linalg.norm(Y, axis=0)
    left = np.linalg.norm(Y - D @ X.astype(np.float64), axis=0)
    excess = left - norms * (1 + _ROUNDING[np.dtype(np.float32)] ** 2)
    j = np.argmax(excess)
    if excess[j] > 0:
        fault = f"is worse than zero{where}: ‖y − Dx‖ = {left[j]:.4g} where ‖y‖ = {norms[j]:.4g}"
        inspection.fail(fault)


def _close(actual: np.ndarray, expected: np.ndarray) -> bool:
    scale = np.abs(expected).max(initial=0)
    return bool(np.abs(actual - expected).max(initial=0) <= _ROUNDING[expected.dtype] * scale)
