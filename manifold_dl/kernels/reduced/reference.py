"""The formulas of the reduced objective in plain NumPy: written to be read, not to be fast.

Signals with supports of the same size are handled together, so a leading axis counts signals and the
rest reads as on the board: A (s×m, an atom in every row), M = A Aᵀ + μI, x = M⁻¹ A y, r = y − Aᵀx.
The tests compare the compiled kernels with these, which are also used where Numba does not exist. The small
systems are solved in `minimum_norm.py`, rank-deficient ones too.
"""

from typing import Any, NamedTuple

import numpy as np

from manifold_dl.kernels.reduced.minimum_norm import PIVOT_RATIO, groups, padded_inverses, solve, take
from manifold_dl.kernels.reduced.structures import (
    Block,
    Fit,
    Geodesic,
    GeodesicPoint,
    Products,
    Refit,
    Solutions,
)

# Of the mean. Atoms that are hardly used get at most a thousand times the average step.
LEAST_ENERGY = 1e-3


def make_batches(indptr: np.ndarray, indices: np.ndarray) -> Any:
    """What the compiled kernels need of a support, arranged once: nothing here."""
    return None


def fit_codes(block: Block, atoms: np.ndarray, gram: np.ndarray, mu: float, keep_factors: bool = True) -> Fit:
    """Solve for the codes; value and gradient of the reduced objective.

    These are the paper's (7) to (10) and, with a ridge, (14) to (17). The Gram matrix of the atoms is for the
    compiled kernel, which would otherwise compute it again for every block.
    """
    signals, indptr, indices, _ = block
    value, gradient = 0.0, np.zeros_like(atoms)
    codes = np.zeros(len(indices), dtype=signals.dtype)
    is_rank_deficient = np.zeros(len(signals), dtype=bool)
    for columns, places in groups(indptr):
        A, y = atoms[indices[places]], signals[columns]
        x, _, pivots, r = solve(A, y, mu)
        value += np.sum(r**2, dtype=float) + mu * np.sum(x**2, dtype=float)
        np.add.at(gradient, indices[places], -2 * x[:, :, None] * r[:, None, :])
        codes[places] = x
        is_rank_deficient[columns] = pivots < PIVOT_RATIO
    rank_deficient = np.flatnonzero(is_rank_deficient)
    sub_indptr, sub_indices, _ = take(indptr, indices, rank_deficient)
    inverses = padded_inverses(atoms, sub_indptr, sub_indices, mu)
    energies = code_energies(indices, codes, len(atoms))
    return Fit(float(value), gradient, energies, Solutions(codes, None, rank_deficient, inverses))


def evaluate_fixed(block: Block, atoms: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and gradient where the codes stay as they are: MOD's objective."""
    signals, indptr, indices, _ = block
    value, gradient = 0.0, np.zeros_like(atoms)
    for columns, places in groups(indptr):
        A, y, x = atoms[indices[places]], signals[columns], codes[places]
        r = y - np.einsum("cs,csm->cm", x, A)
        value += np.sum(r**2, dtype=float)
        np.add.at(gradient, indices[places], -2 * x[:, :, None] * r[:, None, :])
    return float(value), gradient


def add_products(
    rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, atoms: np.ndarray
) -> None:
    """Add Σ x_i d_i over the support to every row, in place."""
    for columns, places in groups(indptr):
        rows[columns] += np.einsum("cs,csm->cm", codes[places], atoms[indices[places]])


def residual(
    signals: np.ndarray, indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, atoms: np.ndarray
) -> np.ndarray:
    """y − Σ x_i d_i over the support of every signal y, in rows of their own: Y − DX."""
    rows = np.array(signals, order="C")
    add_products(rows, indptr, indices, -codes, atoms)
    return rows


def subtract_other_atoms(
    rows: np.ndarray,
    signals: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    codes: np.ndarray,
    moves: np.ndarray,
    atoms: np.ndarray,
) -> None:
    """Subtract Σ x_i d_i over the atoms that do not move from every row, in place.

    Row k belongs to signal signals[k], and `moves` says for each atom whether it is in the set I that moves.
    """
    for row, j in zip(rows, signals, strict=True):
        own = slice(indptr[j], indptr[j + 1])
        others = codes[own] * ~moves[indices[own]]
        row -= others @ atoms[indices[own]]


def precondition(rows: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Divide every row by its energy, at least a thousandth of the mean, in which energy is measured."""
    if len(rows) != len(energy):
        raise ValueError("there are not as many rows as energies")
    mean = energy.mean()
    if not mean > 0:
        return rows.copy()
    return rows * (mean / np.maximum(energy, LEAST_ENERGY * mean)).astype(rows.dtype)[:, None]


def hessian_product(
    block: Block,
    atoms: np.ndarray,
    cross: np.ndarray,
    mu: float,
    solutions: Solutions,
    direction: np.ndarray,
) -> np.ndarray:
    """The exact Hessian product: how −2 r xᵀ changes when the atoms move along `direction` (k×m).

    `cross` holds the inner products of the atoms with the directions, for the compiled kernel.
    dx = M⁻¹(E r − A Eᵀx) and dr = −Eᵀx − Aᵀdx, so H[E] = −2 (dr xᵀ + r dxᵀ).
    """
    signals, indptr, indices, _ = block
    product = np.zeros_like(atoms)
    for columns, places in groups(indptr):
        A, E = atoms[indices[places]], direction[indices[places]]
        y, x = signals[columns], solutions.codes[places]
        inverse = solve(A, y, mu).inverse
        r = y - np.einsum("cs,csm->cm", x, A)
        Ex = np.einsum("cs,csm->cm", x, E)
        g = np.einsum("csm,cm->cs", E, r) - np.einsum("csm,cm->cs", A, Ex)
        dx = np.einsum("cst,ct->cs", inverse, g)
        dr = -Ex - np.einsum("cs,csm->cm", dx, A)
        H = -2 * (x[:, :, None] * dr[:, None, :] + dx[:, :, None] * r[:, None, :])
        np.add.at(product, indices[places], H)
    return product


def gram(atoms: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Inner products in double precision, whatever the data: there are k² of them, not n."""
    return atoms.astype(float) @ others.astype(float).T


def code_energies(indices: np.ndarray, codes: np.ndarray, n_atoms: int) -> np.ndarray:
    """‖X_i‖² of every atom."""
    return np.bincount(indices, weights=codes.astype(float) ** 2, minlength=n_atoms)


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product of two vectors in double precision, as a float."""
    return float(np.dot(a.astype(float, copy=False), b))


def norm_error(rows: np.ndarray) -> float:
    """How far the norm of any row is from 1; infinite where a row is not finite."""
    error = float(np.abs(np.sqrt(np.vecdot(rows, rows)) - 1).max())
    return error if error < np.inf else np.inf


def project_to_tangent(atoms: np.ndarray, rows: np.ndarray, result: np.ndarray) -> None:
    """Subtract from every row its component along the atom: v − x (xᵀv)."""
    result[:] = rows - atoms * np.vecdot(atoms, rows)[:, None]


def sphere_exp(atoms: np.ndarray, rows: np.ndarray, result: np.ndarray) -> None:
    """Follow the great circles x cos θ + v sin θ / θ, and renormalise so that rounding never accumulates."""
    # sin θ / θ and cos θ round to 1 long before θ = 1e-30, so an atom that does not move needs no case of its
    # own.
    angles = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    moved = atoms * np.cos(angles) + rows * (np.sin(angles) / angles)
    result[:] = moved / np.linalg.norm(moved, axis=1, keepdims=True)


def init_geodesic(
    atoms: np.ndarray,
    direction: np.ndarray,
    gradient: np.ndarray,
    gram_matrix: np.ndarray | None,
    shares_products: bool = True,
) -> Geodesic:
    """The great circles that leave `atoms` in `direction`, with what a search needs of them.

    `gram_matrix` is DᵀD, or None if it is not known. Without `shares_products` no signal will read the inner
    products of D and U, and there are none.
    """
    D, direction = atoms.astype(float), direction.astype(float)
    angles = np.linalg.norm(direction, axis=1)
    U = direction / np.where(angles > 0, angles, 1)[:, None]
    rates = np.vecdot(gradient, D), np.vecdot(gradient, U)
    if not shares_products:
        none = np.zeros((0, 0))
        return Geodesic(D, U, angles, none, none, none, none, *rates)
    return Geodesic(D, U, angles, D @ D.T, D @ U.T, U @ D.T, U @ U.T, *rates)


def precompute_products(
    block: Block, atoms: np.ndarray, gram_matrix: np.ndarray, mu: float, codes: np.ndarray, U: np.ndarray
) -> tuple[Products, np.ndarray]:
    """Inner products of every signal with its atoms and with the directions U they move in; and X Xᵀ."""
    signals, indptr, indices, _ = block
    at_atoms, at_directions = np.zeros_like(codes), np.zeros_like(codes)
    energy = np.zeros((len(atoms), len(atoms)))
    for columns, places in groups(indptr):
        I, x, y = indices[places], codes[places], signals[columns]
        at_atoms[places] = np.einsum("csm,cm->cs", atoms[I], y)
        at_directions[places] = np.einsum("csm,cm->cs", U[I], y)
        np.add.at(energy, (I[:, :, None], I[:, None, :]), (x[:, :, None] * x[:, None, :]).astype(float))
    return Products(codes, at_atoms, at_directions), energy


class Positions(NamedTuple):
    """The atoms D(t) and their velocities."""

    atoms: np.ndarray
    velocity: np.ndarray


def geodesic_point(
    geodesic: Geodesic,
    energy: np.ndarray | None,
    t: float,
    with_slope: bool = True,
    is_sorted: bool = False,
    arrays: Any = None,
) -> GeodesicPoint:
    """Go to D(t). Keeping the codes x₀, f changes by ⟨P, P X₀X₀ᵀ⟩ − ⟨∇f, P⟩, a quadratic in P = D − D(t).

    P is computed without cancellation, from 1 − cos = 2 sin². `energy` is X₀X₀ᵀ, or None where signals share
    no products: then the quadratic term is left to the signals. For the compiled kernel: `is_sorted` says
    that all supports are, `arrays` is memory of an earlier point.
    """
    if energy is None:
        return point_without_products(geodesic, t)._replace(arrays=positions(geodesic, t))
    angles = geodesic.angles
    c, s, lag = np.cos(angles * t), np.sin(angles * t), 2 * np.sin(angles * t / 2) ** 2
    found = positions(geodesic, t)
    P = _combine(geodesic, lag, -s)
    along_atoms, along_directions = geodesic.rate_along_atoms, geodesic.rate_along_directions
    value = np.vdot(P, energy @ P) - lag @ along_atoms + s @ along_directions
    slope = -2 * np.vdot(found.velocity, energy @ P) + angles @ (c * along_directions - s * along_atoms)
    return GeodesicPoint(float(value), float(slope), geodesic, t, found)


def point_without_products(geodesic: Geodesic, t: float) -> GeodesicPoint:
    """D(t) where every signal adds its own ‖P x₀‖²: here f changes by −⟨∇f, P⟩ alone."""
    angles = geodesic.angles
    c, s, lag = np.cos(angles * t), np.sin(angles * t), 2 * np.sin(angles * t / 2) ** 2
    along_atoms, along_directions = geodesic.rate_along_atoms, geodesic.rate_along_directions
    value = s @ along_directions - lag @ along_atoms
    slope = angles @ (c * along_directions - s * along_atoms)
    return GeodesicPoint(float(value), float(slope), geodesic, t, None)


def positions(geodesic: Geodesic, t: float) -> Positions:
    """The atoms D(t) and their velocities."""
    angles = geodesic.angles
    c, s = np.cos(angles * t), np.sin(angles * t)
    return Positions(_combine(geodesic, c, s), _combine(geodesic, -angles * s, angles * c))


def atoms_at(geodesic: Geodesic, t: float) -> np.ndarray:
    """The atoms D(t) alone."""
    return _combine(geodesic, np.cos(geodesic.angles * t), np.sin(geodesic.angles * t))


def _combine(geodesic: Geodesic, by_atoms: np.ndarray, by_directions: np.ndarray) -> np.ndarray:
    return by_atoms[:, None] * geodesic.atoms + by_directions[:, None] * geodesic.directions


def refit_codes(
    block: Block,
    products: Products,
    mu: float,
    point: GeodesicPoint,
    with_slope: bool = True,
    codes: np.ndarray | None = None,
) -> Refit:
    """What re-solving for the codes gains, at the atoms of `point`, over keeping those of the start.

    The codes themselves are written to `codes`, if it is given.
    """
    signals, indptr, indices, _ = block
    gain, slope, n_rank_deficient = 0.0, 0.0, 0
    for columns, places in groups(indptr):
        A, dA = point.arrays.atoms[indices[places]], point.arrays.velocity[indices[places]]
        y, x0 = signals[columns], products.codes[places]
        x, _, pivots, r = solve(A, y, mu)
        r0 = y - np.einsum("cs,csm->cm", x0, A)
        gain += np.sum(r**2 - r0**2, dtype=float) + mu * np.sum(x**2 - x0**2, dtype=float)
        for z, residual, sign in ((x, r, -2), (x0, r0, 2)):
            slope += sign * np.einsum("cm,cs,csm->", residual, z, dA, dtype=float)
        n_rank_deficient += int(np.sum(pivots < PIVOT_RATIO))
        if codes is not None:
            codes[places] = x
    return Refit(float(gain), float(slope), n_rank_deficient)
