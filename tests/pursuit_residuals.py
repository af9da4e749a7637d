"""What must hold for the codes of a pursuit on picture patches: residuals that never rise, bounded codes.

`coders/test_accuracy.py` checks it on 20,000 patches, `benchmarks/coder_accuracy.py` on a million. What a
coder returns is measured in double precision, from its codes.
"""

import functools

import numpy as np

# Squared residuals, as fractions of ‖y‖², are right to this many units of rounding: the most seen is 3.
ROUNDINGS = 16


@functools.cache
def cosines():
    """The 64×256 dictionary of the denoising literature: 16 cosines for 8 pixels, in both directions."""
    waves = np.cos(np.outer(np.arange(8), np.arange(16)) * np.pi / 16)
    waves[:, 1:] -= waves[:, 1:].mean(axis=0)
    waves /= np.linalg.norm(waves, axis=0)
    return np.kron(waves, waves)


def windows(picture):
    """All 8×8 windows of a grey picture, one per row and column of their first pixels: a view."""
    return np.lib.stride_tricks.sliding_window_view(picture.astype(float), (8, 8))


def without_mean(chosen):
    """Mean-free patches, a signal in every column, from windows."""
    columns = chosen.reshape(-1, 64).T
    return columns - columns.mean(axis=0)


def relative_residuals(Y, D, X):
    """‖y − Dx‖²/‖y‖² in double precision, zero for signals of zeros."""
    Y, D, X = Y.astype(float), D.astype(float), X.astype(float)
    energies = np.sum(Y**2, axis=0)
    return np.sum((Y - (X.T @ D.T).T) ** 2, axis=0) / np.where(energies > 0, energies, 1)


def rounding(X, Y, dtype):
    """What the squared residual may be off by, as a fraction of ‖y‖², signal by signal.

    Rounding of the atoms alone changes it by eps·‖x‖/‖y‖. That shows where it is measured in the precision of
    the coder, so for float64; codes in float32 are measured with eight digits to spare.
    """
    eps = np.finfo(dtype).eps
    if dtype is np.float32:
        return ROUNDINGS * eps
    norms = np.linalg.norm(Y, axis=0)
    sizes = np.sqrt((X.astype(float).power(2)).sum(axis=0)) / np.where(norms > 0, norms, 1)
    return ROUNDINGS * eps * (1 + sizes)


def require_residual_never_rises(coders, Y, D):
    """Assert that each of `coders`, which may do more than the one before it, leaves no larger residual.

    Returns by how much a residual rose at most, as a fraction of the rounding allowed, and the last codes.
    """
    dtype = Y.dtype.type
    before, most = np.where(Y.any(axis=0), 1.0, 0.0), -np.inf  # no atom at all
    for coder in coders:
        X = coder.encode(Y, D)
        after = relative_residuals(Y, D, X)
        rise = (after - before) / rounding(X, Y, dtype)
        worst = int(rise.argmax())
        assert rise[worst] <= 1, (
            f"{coder} in {dtype.__name__}: the squared residual of {np.sum(rise > 1)} of {len(rise)} signals "
            f"rose, that of signal {worst} from {before[worst]:.9g} to {after[worst]:.9g} of its energy."
        )
        before, most = after, max(most, rise[worst])
    return most, X


def require_bounded_codes(X, Y):
    """Assert that no coefficient is larger than the check for dependent atoms allows; return the largest.

    An atom joins only if ‖L⁻¹‖² grows by no more than 1/(64·eps), and ‖x‖ ≤ ‖L⁻¹‖·‖y‖. The result is a
    multiple of the norm of the signal.
    """
    assert np.isfinite(X.data).all()
    most = max(1, np.diff(X.indptr).max(initial=0))
    norms = np.linalg.norm(Y.astype(float), axis=0)
    largest = abs(X).max(axis=0).toarray().ravel().astype(float)
    assert (largest <= np.sqrt(most / (64 * np.finfo(Y.dtype).eps)) * norms).all()
    return float((largest / np.where(norms > 0, norms, 1)).max(initial=0))
