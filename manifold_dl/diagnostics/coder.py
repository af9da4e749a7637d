"""The contract of a sparse coder."""

import numpy as np
import scipy.sparse

from manifold_dl.diagnostics.report import CheckFailed, Report

# Rounding in single precision is about 1e-7; these leave room for the condition of a few random atoms.
_ROUNDING = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-3}


def check_coder(coder, *, m=16, n_atoms=24, n_signals=40, dtype=np.float64, rng=0):
    """Check that `coder.encode(signals, dictionary)` keeps the contract of a sparse coder.

    On random signals over a random dictionary: the codes are a `csc_array` (d×n) with sorted indices,
    finite, and of the dtype of the signals; the arguments are left as they were; a second call gives the
    same codes; an atom or a signal with its sign flipped gets codes with their signs flipped; atoms and
    signals in another order get the same codes in that order; no code is worse than none, ‖y − Dx‖ ≤ ‖y‖; a
    signal of zeros gets no atoms, copies of a signal get copies of its code, and tiny and huge signals do
    no harm.

    A coder may promise more, by attributes (of the class, or properties), and is then held to it:

    - ``optimal_on_support``: the codes are a least-squares fit on their own support;
    - ``scale_equivariant``: signals multiplied by c get codes multiplied by c;
    - ``numbers_atoms``: it names atoms by number, so they are not reordered.

    Parameters
    ----------
    coder : SparseCoder
    m, n_atoms, n_signals : int
        The size of the problem, for coders that suit only some.
    dtype : float64 or float32
    rng : Generator or seed

    Returns
    -------
    Report

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> from manifold_dl.coders import OMP
    >>> check_coder(OMP(sparsity=3))
    OMP: 6 properties hold.
      holds: the codes are a finite csc_array (d×n), and the same at every call
      holds: signs and order of atoms and signals carry over to the codes
      holds: no code is worse than none
      holds: the codes are optimal on their support
      holds: the codes scale with the signals
      holds: zeros, copies, tiny and huge signals do no harm
    """
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(rng)
    D = rng.standard_normal((m, n_atoms))
    D = np.asfortranarray(D / np.linalg.norm(D, axis=0), dtype=dtype)
    X = rng.standard_normal((n_atoms, n_signals)) * (rng.random((n_atoms, n_signals)) < 3 / n_atoms)
    Y = (D @ X + 0.05 * rng.standard_normal((m, n_signals))).astype(dtype)

    _check_form(coder, Y, D)
    _check_symmetries(coder, Y, D, rng)
    _check_quality(coder, Y, D)
    _check_extreme_signals(coder, Y, D)
    return _report(coder)


def _report(coder):
    promises = {
        "optimal_on_support": "the codes are optimal on their support",
        "scale_equivariant": "the codes scale with the signals",
    }
    kept = [fact for name, fact in promises.items() if getattr(coder, name, False)]
    skipped = [f"{fact} (not promised)" for fact in promises.values() if fact not in kept]
    symmetry = "signs" if getattr(coder, "numbers_atoms", False) else "signs and order"
    passed = (
        "the codes are a finite csc_array (d×n), and the same at every call",
        f"{symmetry} of atoms and signals carry over to the codes",
        "no code is worse than none",
        *kept,
        "zeros, copies, tiny and huge signals do no harm",
    )
    return Report(type(coder).__name__, passed, tuple(skipped))


def _check_form(coder, Y, D):
    before = Y.copy(), D.copy()
    X = coder.encode(Y, D)
    _require(
        scipy.sparse.issparse(X) and X.format == "csc", coder, f"returned {type(X).__name__}, not a csc_array"
    )
    shape = (D.shape[1], Y.shape[1])
    _require(X.shape == shape, coder, f"returned codes of shape {X.shape} where d×n = {shape}")
    _require(X.dtype == Y.dtype, coder, f"returned {X.dtype} codes for {Y.dtype} signals")
    _require(np.isfinite(X.data).all(), coder, "returned codes that are not finite")
    sorted_once = all(
        (np.diff(X.indices[start:stop]) > 0).all()
        for start, stop in zip(X.indptr, X.indptr[1:], strict=False)
    )
    _require(sorted_once, coder, "returned indices that are not increasing within a signal")
    unchanged = np.array_equal(before[0], Y) and np.array_equal(before[1], D)
    _require(unchanged, coder, "changed the signals or the dictionary it was given")
    again = coder.encode(Y, D)
    same = np.array_equal(X.indptr, again.indptr) and np.array_equal(X.indices, again.indices)
    same = same and np.array_equal(X.data, again.data)
    _require(same, coder, "is not deterministic: a second call returned other codes")


def _check_symmetries(coder, Y, D, rng):
    X = coder.encode(Y, D).toarray()

    def require_codes(signals, dictionary, expected, fault):
        _require(_close(coder.encode(signals, dictionary).toarray(), expected), coder, fault)

    flips = rng.choice([-1.0, 1.0], D.shape[1]).astype(D.dtype)
    fault = "is not sign-equivariant: an atom flipped did not flip its codes"
    require_codes(Y, D * flips, X * flips[:, None], fault)
    require_codes(-Y, D, -X, "is not sign-equivariant: a signal flipped did not flip its code")
    if getattr(coder, "numbers_atoms", False):
        return
    atoms, signals = rng.permutation(D.shape[1]), rng.permutation(Y.shape[1])
    fault = "is not permutation-equivariant: the codes depend on the order of the {}"
    require_codes(Y, D[:, atoms], X[atoms], fault.format("atoms"))
    require_codes(Y[:, signals], D, X[:, signals], fault.format("signals"))


def _check_quality(coder, Y, D):
    X = coder.encode(Y, D)
    _require_no_worse_than_zero(coder, Y, D, X)
    tolerance = _ROUNDING[Y.dtype]
    if getattr(coder, "optimal_on_support", False):
        correlations = D.T @ (Y - D @ X)
        on_support = np.abs(correlations[X.toarray() != 0])
        largest = tolerance * np.linalg.norm(Y, axis=0).max()
        _require(
            on_support.max(initial=0) <= largest,
            coder,
            "promises optimal_on_support, but least squares on its support gives other codes",
        )
    if getattr(coder, "scale_equivariant", False):
        for c in (1e-6, 3.0, 1e6):
            scaled = coder.encode((c * Y).astype(Y.dtype), D).toarray() / c
            fault = f"promises scale_equivariant, but signals times {c:g} do not get codes times {c:g}"
            _require(_close(scaled, X.toarray()), coder, fault)


def _check_extreme_signals(coder, Y, D):
    zeros = Y.copy()
    zeros[:, ::2] = 0
    X = coder.encode(zeros, D)
    _require(not np.any(X.toarray()[:, ::2]), coder, "gave atoms to a signal of zeros")
    _require_no_worse_than_zero(coder, zeros, D, X)

    copies = np.repeat(Y[:, :1], Y.shape[1], axis=1)
    codes = coder.encode(copies, D).toarray()
    if not getattr(coder, "numbers_atoms", False):
        _require(_close(codes, codes[:, :1]), coder, "gave copies of one signal different codes")

    # Squares of these leave the range of the dtype, so sums of squares must be formed with care.
    tiny, huge = (1e-170, 1e170) if Y.dtype == np.float64 else (1e-25, 1e25)
    for name, size in (("tiny", tiny), ("huge", huge)):
        signals = (Y.astype(np.float64) * size).astype(Y.dtype)
        try:
            with np.errstate(all="raise", under="ignore"):
                X = coder.encode(signals, D)
        except FloatingPointError as error:
            raise CheckFailed(f"{type(coder).__name__} met '{error}' on {name} signals.") from error
        _require(np.isfinite(X.data).all(), coder, f"returned codes that are not finite for {name} signals")
        scaled = scipy.sparse.csc_array(
            (X.data.astype(np.float64) / size, X.indices, X.indptr), shape=X.shape
        )
        _require_no_worse_than_zero(coder, Y, D, scaled, f" for {name} signals")


def _require_no_worse_than_zero(coder, Y, D, X, where=""):
    Y, D = Y.astype(np.float64), D.astype(np.float64)
    norms = np.linalg.norm(Y, axis=0)
    left = np.linalg.norm(Y - D @ X.astype(np.float64), axis=0)
    excess = left - norms * (1 + _ROUNDING[np.dtype(np.float32)] ** 2)
    j = np.argmax(excess)
    fault = f"is worse than zero{where}: ‖y − Dx‖ = {left[j]:.4g} where ‖y‖ = {norms[j]:.4g}"
    _require(excess[j] <= 0, coder, fault)


def _close(actual, expected):
    scale = np.abs(expected).max(initial=0)
    return np.abs(actual - expected).max(initial=0) <= _ROUNDING[expected.dtype] * scale


def _require(holds, coder, fault):
    if not holds:
        raise CheckFailed(f"{type(coder).__name__} {fault}.")
