"""The formulas of the reduced objective with a weight w ≥ 0 for every entry, in plain NumPy.

    f(D) = Σ_j min_x Σ_p w_jp (y_jp − (D_{Ω_j} x)_p)² + μ‖x‖²

A weight of zero is a missing entry. Everything reads as in `reference.py` with √w∘A and √w∘y in place of A
and y, so every signal has a Gram matrix of its own; a derivative with respect to the atoms is multiplied by
√w once more. The weights of a block are an n×m array, like its signals, or None if all are 1: then these are
the functions of `reference.py`, without anything that signals would share. The tests compare the compiled
kernels with these, which are also used where Numba does not exist.
"""

import numpy as np

from manifold_dl.kernels.reduced.minimum_norm import PIVOT_RATIO, groups, padded_inverses, solve, take
from manifold_dl.kernels.reduced.structures import (
    Block,
    Fit,
    GeodesicPoint,
    Refit,
    Solutions,
    WeightedProducts,
)


def fit_weighted_codes(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, mu: float, keep_factors: bool = True
) -> Fit:
    """Solve for the codes; value Σ ‖√w∘r‖² + μ‖x‖² and gradient −2 (w∘r) xᵀ of the reduced objective."""
    signals, indptr, indices, _ = block
    weights = weights_or_ones(block, weights)
    value, gradient = 0.0, np.zeros_like(atoms)
    codes = np.zeros(len(indices), dtype=signals.dtype)
    is_rank_deficient = np.zeros(len(signals), dtype=bool)
    for columns, places in groups(indptr):
        A, y, w = atoms[indices[places]], signals[columns], weights[columns]
        x, _, pivots = _solve(A, y, w, mu)
        r = y - np.einsum("cs,csm->cm", x, A)
        value += np.sum(w * r**2, dtype=float) + mu * np.sum(x**2, dtype=float)
        np.add.at(gradient, indices[places], -2 * x[:, :, None] * (w * r)[:, None, :])
        codes[places] = x
        is_rank_deficient[columns] = (pivots < PIVOT_RATIO) & w.any(axis=1)
    rank_deficient = np.flatnonzero(is_rank_deficient)
    sub_indptr, sub_indices, _ = take(indptr, indices, rank_deficient)
    inverses = padded_inverses(atoms, sub_indptr, sub_indices, mu, np.sqrt(weights[rank_deficient]))
    energies = weighted_energies(block, weights, codes, len(atoms))
    return Fit(float(value), gradient, energies, Solutions(codes, None, rank_deficient, inverses))


def evaluate_weighted_fixed(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, codes: np.ndarray
) -> tuple[float, np.ndarray]:
    """Value and gradient where the codes stay as they are: MOD's objective."""
    signals, indptr, indices, _ = block
    weights = weights_or_ones(block, weights)
    value, gradient = 0.0, np.zeros_like(atoms)
    for columns, places in groups(indptr):
        A, y, w, x = atoms[indices[places]], signals[columns], weights[columns], codes[places]
        r = y - np.einsum("cs,csm->cm", x, A)
        value += np.sum(w * r**2, dtype=float)
        np.add.at(gradient, indices[places], -2 * x[:, :, None] * (w * r)[:, None, :])
    return float(value), gradient


def weighted_energies(
    block: Block, weights: np.ndarray | None, codes: np.ndarray, n_atoms: int
) -> np.ndarray:
    """Σ_j w̄_j x_ij² of every atom, with the mean weight w̄_j of signal j.

    Twice this is the mean, over the entries of an atom, of the diagonal of the Gauss-Newton Hessian.
    """
    weights = weights_or_ones(block, weights)
    mean = np.repeat(weights.mean(axis=1, dtype=float), np.diff(block.indptr))
    return np.bincount(block.indices, weights=mean * codes.astype(float) ** 2, minlength=n_atoms)


def weighted_hessian_product(
    block: Block,
    weights: np.ndarray | None,
    atoms: np.ndarray,
    mu: float,
    solutions: Solutions,
    direction: np.ndarray,
) -> np.ndarray:
    """How −2 (w∘r) xᵀ changes when the atoms move along `direction` (k×m).

    dx = M⁻¹(E (w∘r) − A (w∘Eᵀx)) and dr = −Eᵀx − Aᵀdx, so H[E] = −2 ((w∘dr) xᵀ + (w∘r) dxᵀ).
    """
    signals, indptr, indices, _ = block
    weights = weights_or_ones(block, weights)
    product = np.zeros_like(atoms)
    for columns, places in groups(indptr):
        A, E = atoms[indices[places]], direction[indices[places]]
        y, w, x = signals[columns], weights[columns], solutions.codes[places]
        _, inverse, _ = _solve(A, y, w, mu)
        r = y - np.einsum("cs,csm->cm", x, A)
        Ex = np.einsum("cs,csm->cm", x, E)
        g = np.einsum("csm,cm->cs", E, w * r) - np.einsum("csm,cm->cs", A, w * Ex)
        dx = np.einsum("cst,ct->cs", inverse, g)
        dr = -Ex - np.einsum("cs,csm->cm", dx, A)
        H = -2 * (x[:, :, None] * (w * dr)[:, None, :] + dx[:, :, None] * (w * r)[:, None, :])
        np.add.at(product, indices[places], H)
    return product


def precompute_weighted_products(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, mu: float, codes: np.ndarray, U: np.ndarray
) -> WeightedProducts:
    """What a search along a geodesic needs of a block; here the codes at the start alone."""
    return WeightedProducts(codes, codes, codes, codes, codes, codes)


def refit_weighted_codes(
    block: Block,
    weights: np.ndarray | None,
    products: WeightedProducts,
    mu: float,
    point: GeodesicPoint,
    with_slope: bool = True,
    codes: np.ndarray | None = None,
) -> Refit:
    """The objective at the atoms D(t) of `point`, with codes that follow, but for f(D) − ⟨∇f, P⟩.

    Keeping the codes x₀ of the start, the objective is f(D) − ⟨∇f, P⟩ + ‖√w∘Px₀‖² with P = D − D(t).
    Without weights the last term follows from X₀X₀ᵀ alone and is part of `geodesic_point`; here every signal
    adds its own, and what re-solving for its codes gains. The codes are written to `codes`, if it is given.
    """
    signals, indptr, indices, _ = block
    weights = weights_or_ones(block, weights)
    gain, slope, n_rank_deficient = 0.0, 0.0, 0
    for columns, places in groups(indptr):
        A, dA = point.arrays.atoms[indices[places]], point.arrays.velocity[indices[places]]
        P = point.geodesic.atoms[indices[places]] - A
        y, w, x0 = signals[columns], weights[columns], products.codes[places]
        x, _, pivots = _solve(A, y, w, mu)
        r, r0 = (y - np.einsum("cs,csm->cm", z, A) for z in (x, x0))
        Px = np.einsum("cs,csm->cm", x0, P)
        gain += np.sum(w * (Px**2 + r**2 - r0**2), dtype=float) + mu * np.sum(x**2 - x0**2, dtype=float)
        for z, residual, sign in ((x, r, -2), (x0, r0, 2), (x0, Px, -2)):
            slope += sign * np.einsum("cm,cs,csm->", w * residual, z, dA, dtype=float)
        n_rank_deficient += int(np.sum((pivots < PIVOT_RATIO) & w.any(axis=1)))
        if codes is not None:
            codes[places] = x
    return Refit(float(gain), float(slope), n_rank_deficient)


def weights_or_ones(block: Block, weights: np.ndarray | None) -> np.ndarray:
    """The weights of a block; ones, without their memory, if there are none."""
    return np.broadcast_to(block.signals.dtype.type(1), block.signals.shape) if weights is None else weights


def _solve(
    A: np.ndarray, y: np.ndarray, w: np.ndarray, mu: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimum-norm x of min ‖√w∘(y − Aᵀx)‖² + μ‖x‖², for a stack of problems (`minimum_norm.solve`)."""
    root = np.sqrt(w)
    found = solve(root[:, None, :] * A, root * y, mu)
    return found.x, found.inverse, found.pivot_ratio
