"""The formulas of the reduced objective in plain NumPy: written to be read, not to be fast.

Signals with supports of the same size are handled together, so a leading axis counts signals and the
rest reads as on the board: A (s×m, an atom in every row), M = A Aᵀ + μI, x = M⁻¹ A y, r = y − Aᵀx.
This is the oracle of the tests, the fallback where Numba does not exist, and the one place that knows
what to do with a rank-deficient support.
"""

from typing import NamedTuple

import numpy as np

# A squared Cholesky pivot this much smaller than the largest sends a signal from the normal equations
# to the singular value decomposition: at 1e-8 the normal equations have lost half of all digits.
PIVOT_RATIO = 1e-8
# Of the mean. Atoms that are hardly used get at most a thousand times the average step.
LEAST_ENERGY = 1e-3


class Fit(NamedTuple):
    """What one pass over a block finds; later passes over the same dictionary share it."""

    value: float  # Σ ‖r‖² + μ‖x‖², from the residual
    gradient: np.ndarray  # k×m: −2 r xᵀ, scattered to the atoms
    codes: np.ndarray  # nnz: x
    factors: np.ndarray | None  # Cholesky factors of M, in an order that the kernel knows
    deficient: np.ndarray  # the signals whose pivots fell below PIVOT_RATIO
    inverses: np.ndarray  # their M⁺, padded with zeros to one size


def arrange(indptr, indices):
    """What the compiled kernels want to know of a support, once: `packs`. Here it is nothing."""
    return None


def fit(signals, indptr, indices, atoms, gram, mu, keep_factors=True, packs=None):
    """Solve for the codes; value and gradient of the reduced objective.

    These are the paper's (7) to (10) and, with a ridge, (14) to (17). The Gram matrix of the atoms serves
    the compiled kernel, which would otherwise compute it again for every block.
    """
    value, gradient = 0.0, np.zeros_like(atoms)
    codes = np.zeros(len(indices), dtype=signals.dtype)
    bad = np.zeros(len(signals), dtype=bool)
    for columns, places in groups(indptr):
        A, y = atoms[indices[places]], signals[columns]
        x, _, pivots = solve(A, y, mu)
        r = y - np.einsum("cs,csm->cm", x, A)
        value += np.sum(r**2, dtype=float) + mu * np.sum(x**2, dtype=float)
        np.add.at(gradient, indices[places], -2 * x[:, :, None] * r[:, None, :])
        codes[places] = x
        bad[columns] = pivots < PIVOT_RATIO
    deficient = np.flatnonzero(bad)
    sub_indptr, sub_indices, _ = take(indptr, indices, deficient)
    inverses = padded_inverses(atoms, sub_indptr, sub_indices, mu)
    return Fit(float(value), gradient, codes, None, deficient, inverses)


def fit_fixed(signals, indptr, indices, atoms, codes):
    """Value and gradient where the codes do not move: MOD's objective."""
    value, gradient = 0.0, np.zeros_like(atoms)
    for columns, places in groups(indptr):
        A, y, x = atoms[indices[places]], signals[columns], codes[places]
        r = y - np.einsum("cs,csm->cm", x, A)
        value += np.sum(r**2, dtype=float)
        np.add.at(gradient, indices[places], -2 * x[:, :, None] * r[:, None, :])
    return value, gradient


def accumulate(rows, indptr, indices, codes, atoms):
    """Add Σ x_i d_i over the support to every row, in place."""
    for columns, places in groups(indptr):
        rows[columns] += np.einsum("cs,csm->cm", codes[places], atoms[indices[places]])


def without(rows, signals, indptr, indices, codes, moves, atoms):
    """Take Σ x_i d_i over the atoms at rest away from every row, in place.

    Row k belongs to signal signals[k], and `moves` tells of each atom whether it is in the set I that moves.
    """
    for row, j in zip(rows, signals, strict=True):
        own = slice(indptr[j], indptr[j + 1])
        others = codes[own] * ~moves[indices[own]]
        row -= others @ atoms[indices[own]]


def balance(rows, energy):
    """Divide every row by its energy, at least a thousandth of the mean, in which energy is measured."""
    if len(rows) != len(energy):
        raise ValueError("there are not as many rows as energies")
    mean = np.mean(energy)
    if not mean > 0:
        return rows.copy()
    return rows * (mean / np.maximum(energy, LEAST_ENERGY * mean)).astype(rows.dtype)[:, None]


def hessian(signals, indptr, indices, atoms, cross, mu, fitted, direction, packs=None):
    """The exact Hessian product: how −2 r xᵀ changes when the atoms move along `direction` (k×m).

    `cross` holds the inner products of the atoms with the directions, for the compiled kernel.
    dx = M⁻¹(E r − A Eᵀx) and dr = −Eᵀx − Aᵀdx, so H[E] = −2 (dr xᵀ + r dxᵀ).
    """
    product = np.zeros_like(atoms)
    for columns, places in groups(indptr):
        A, E = atoms[indices[places]], direction[indices[places]]
        y, x = signals[columns], fitted.codes[places]
        _, inverse, _ = solve(A, y, mu)
        r = y - np.einsum("cs,csm->cm", x, A)
        Ex = np.einsum("cs,csm->cm", x, E)
        g = np.einsum("csm,cm->cs", E, r) - np.einsum("csm,cm->cs", A, Ex)
        dx = np.einsum("cst,ct->cs", inverse, g)
        dr = -Ex - np.einsum("cs,csm->cm", dx, A)
        H = -2 * (x[:, :, None] * dr[:, None, :] + dx[:, :, None] * r[:, None, :])
        np.add.at(product, indices[places], H)
    return product


def inner(atoms, others):
    """Inner products in double precision, whatever the data: there are k² of them, not n."""
    return atoms.astype(float) @ others.astype(float).T


def energies(indices, codes, n_atoms):
    """‖X_i‖² of every atom."""
    return np.bincount(indices, weights=codes.astype(float) ** 2, minlength=n_atoms)


def dot(a, b):
    """The inner product of two vectors, as a float."""
    return float(np.dot(a, b))


def tangent(atoms, rows, result):
    """Take from every row its component along the atom: v − x (xᵀv)."""
    result[:] = rows - atoms * np.vecdot(atoms, rows)[:, None]


def travel(atoms, rows, result):
    """Follow the great circles x cos θ + v sin θ / θ, and renormalise so that rounding never accumulates."""
    # sin θ / θ and cos θ round to 1 long before θ = 1e-30, so an atom at rest needs no case of its own.
    angles = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    moved = atoms * np.cos(angles) + rows * (np.sin(angles) / angles)
    result[:] = moved / np.linalg.norm(moved, axis=1, keepdims=True)


def depart(atoms, direction, gradient, gram):
    """Set out from `atoms`: their great circles in `direction`, in double precision, with all that a search
    needs to know of them. `gram` is DᵀD, or None.

    Returns D, U, θ, the products DᵀD, DᵀU, UᵀD and UᵀU, and the rates ⟨∇f, D⟩ and ⟨∇f, U⟩ of each atom.
    """
    D, direction = atoms.astype(float), direction.astype(float)
    angles = np.linalg.norm(direction, axis=1)
    U = direction / np.where(angles > 0, angles, 1)[:, None]
    return (
        D,
        U,
        angles,
        (D @ D.T, D @ U.T, U @ D.T, U @ U.T),
        (np.vecdot(gradient, D), np.vecdot(gradient, U)),
    )


class Products(NamedTuple):
    """What a search along a geodesic needs of the signals, computed once per search."""

    codes: np.ndarray  # nnz: x₀, the codes at the start
    at_atoms: np.ndarray  # nnz: A y
    at_directions: np.ndarray  # nnz: U y


def along(signals, indptr, indices, atoms, gram, mu, codes, directions, packs=None):
    """Inner products of every signal with its atoms and with the directions U they move in; and X Xᵀ."""
    at_atoms, at_directions = np.zeros_like(codes), np.zeros_like(codes)
    energy = np.zeros((len(atoms), len(atoms)))
    for columns, places in groups(indptr):
        I, x, y = indices[places], codes[places], signals[columns]
        at_atoms[places] = np.einsum("csm,cm->cs", atoms[I], y)
        at_directions[places] = np.einsum("csm,cm->cs", directions[I], y)
        np.add.at(energy, (I[:, :, None], I[:, None, :]), (x[:, :, None] * x[:, None, :]).astype(float))
    return Products(codes, at_atoms, at_directions), energy


class Way(NamedTuple):
    """A geodesic D(t) = D cos θt + U sin θt, and what f does along it as long as the codes stay.

    The compiled kernels form neither D(t) nor P(t) = D − D(t): they need only inner products, which follow
    from the `grams`. So their cost does not see m.
    """

    atoms: np.ndarray  # k×m: D
    directions: np.ndarray  # k×m: U, unit rows
    angles: np.ndarray  # k: θ
    grams: tuple  # DᵀD, DᵀU, UᵀD and UᵀU
    energy: np.ndarray  # k×k: X₀X₀ᵀ
    rates: tuple  # k each: ⟨∇f, D⟩ and ⟨∇f, U⟩, atom by atom
    ascending: bool = False  # whether compiled kernels may leave out the part of DᵀD above its diagonal


class Moved(NamedTuple):
    """The atoms at t."""

    value: float  # f(D(t)) − f(D) with the codes of the start
    slope: float  # its derivative in t
    atoms: np.ndarray  # D(t)
    velocity: np.ndarray
    room: tuple | None = None  # memory that the next move may use, once nobody needs this one


def move(way, t, with_slope=True, room=None):
    """Go to D(t). Keeping the codes x₀, f changes there by ⟨P, P X₀X₀ᵀ⟩ − ⟨∇f, P⟩: it is a quadratic in P.

    P is computed without cancellation, from 1 − cos = 2 sin². `room` is that of an earlier move.
    """
    c, s, lag = np.cos(way.angles * t), np.sin(way.angles * t), 2 * np.sin(way.angles * t / 2) ** 2
    atoms, velocity = positions(way, t)
    P = _combine(way, lag, -s)
    at_atoms, at_directions = way.rates
    value = np.vdot(P, way.energy @ P) - lag @ at_atoms + s @ at_directions
    slope = -2 * np.vdot(velocity, way.energy @ P) + way.angles @ (c * at_directions - s * at_atoms)
    return Moved(float(value), float(slope), atoms, velocity)


def positions(way, t):
    """The atoms D(t) and their velocities."""
    c, s = np.cos(way.angles * t), np.sin(way.angles * t)
    return _combine(way, c, s), _combine(way, -way.angles * s, way.angles * c)


def _combine(way, by_atoms, by_directions):
    return by_atoms[:, None] * way.atoms + by_directions[:, None] * way.directions


def probe(signals, indptr, indices, products, mu, moved, with_slope=True, codes=None):
    """What re-solving for the codes gains, at the moved atoms, over keeping those of the start.

    Returns Σ f(x) − f(x₀) ≤ 0, its derivative in t, and the number of rank-deficient signals. The codes
    themselves are written to `codes`, if it is given.
    """
    gain, slope, n_deficient = 0.0, 0.0, 0
    for columns, places in groups(indptr):
        A, dA = moved.atoms[indices[places]], moved.velocity[indices[places]]
        y, x0 = signals[columns], products.codes[places]
        x, _, pivots = solve(A, y, mu)
        r, r0 = (y - np.einsum("cs,csm->cm", z, A) for z in (x, x0))
        gain += np.sum(r**2 - r0**2, dtype=float) + mu * np.sum(x**2 - x0**2, dtype=float)
        for z, residual, sign in ((x, r, -2), (x0, r0, 2)):
            slope += sign * np.einsum("cm,cs,csm->", residual, z, dA, dtype=float)
        n_deficient += int(np.sum(pivots < PIVOT_RATIO))
        if codes is not None:
            codes[places] = x
    return float(gain), float(slope), n_deficient


def solve(A, y, mu):
    """Minimum-norm x of min ‖y − Aᵀx‖² + μ‖x‖², for a stack of problems, by the SVD of [Aᵀ; √μ I].

    Returns x, (A Aᵀ + μI)⁺ and the smallest squared pivot of that matrix relative to the largest. Where
    an optimizer went astray and A is not finite, x is NaN: the decomposition would raise.
    """
    count, s, m = A.shape
    if s == 0:
        return np.zeros((count, 0), y.dtype), np.zeros((count, 0, 0)), np.ones(count)
    B = np.zeros((count, m + s, s))
    B[:, :m] = A.transpose(0, 2, 1)
    B[:, m:] = np.sqrt(mu) * np.eye(s)
    lost = ~np.isfinite(B).all(axis=(1, 2))
    B[lost] = 0
    U, sigma, Vt = np.linalg.svd(B, full_matrices=False)
    cutoff = (m + s) * np.finfo(A.dtype).eps * sigma[:, :1]  # the rank that NumPy's lstsq would see
    inverse_sigma = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=sigma > cutoff)
    half = Vt.transpose(0, 2, 1) * inverse_sigma[:, None, :]
    x = np.einsum("csk,cmk,cm->cs", half, U[:, :m], y, optimize=True)
    x[lost] = np.nan
    pivots = np.diagonal(np.linalg.qr(B, mode="r"), axis1=1, axis2=2) ** 2
    smallest, largest = pivots.min(1), pivots.max(1)
    ratio = np.divide(smallest, largest, out=np.zeros(count), where=largest > 0)
    return x.astype(y.dtype), half @ half.transpose(0, 2, 1), ratio


def groups(indptr):
    """(signals, places of their entries) for every support size that occurs, empty supports included."""
    sizes = np.diff(indptr)
    for size in np.unique(sizes):
        columns = np.flatnonzero(sizes == size)
        yield columns, indptr[columns][:, None] + np.arange(size)


def take(indptr, indices, columns):
    """The support of some of the signals, and where their entries were."""
    sizes = np.diff(indptr)[columns]
    new_indptr = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(indptr[columns] - new_indptr[:-1], sizes) + np.arange(new_indptr[-1])
    return new_indptr, indices[places], places


def padded_inverses(atoms, indptr, indices, mu):
    """(A Aᵀ + μI)⁺ of every support, padded with zeros to one size."""
    largest = int(np.diff(indptr).max(initial=0))
    padded = np.zeros((len(indptr) - 1, largest, largest))
    for columns, places in groups(indptr):
        A = atoms[indices[places]]
        _, inverse, _ = solve(A, np.zeros((len(columns), atoms.shape[1]), atoms.dtype), mu)
        padded[columns, : A.shape[1], : A.shape[1]] = inverse
    return padded
