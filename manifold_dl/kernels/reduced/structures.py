"""What the kernels of the reduced objective read and return: named groups of arrays.

A named tuple is handed to compiled code as a plain tuple, which takes a microsecond less, and named again
there, which takes nothing. A block holds some signals with their supports. In all of them signals, atoms and
directions stand in contiguous rows, k is the number of atoms, m the length of a signal, nnz the number of
entries of the block's support.
"""

from typing import Any, NamedTuple

import numpy as np

from manifold_dl.kernels.coding.interface import StartingCodes


class Block(NamedTuple):
    """Some signals with their supports: signal j uses the atoms indices[indptr[j]:indptr[j + 1]]."""

    signals: np.ndarray  # n×m, a signal y in every row
    indptr: np.ndarray  # n+1, int64
    indices: np.ndarray  # nnz, int32
    batches: (
        Any  # the same support as `make_batches` arranges it for compiled kernels; None for the reference
    )


class Solutions(NamedTuple):
    """The small systems M x = A y of a block, solved."""

    codes: np.ndarray  # nnz: x
    factors: np.ndarray | None  # Cholesky factors of M, in the order of the batches
    rank_deficient: np.ndarray  # the signals whose pivots fell below PIVOT_RATIO
    inverses: np.ndarray  # their M⁺, padded with zeros to one size


class Fit(NamedTuple):
    """What one pass over a block computes."""

    value: float  # Σ ‖r‖² + μ‖x‖², from the residual
    gradient: np.ndarray  # k×m: −2 r xᵀ, scattered to the atoms
    energies: np.ndarray  # k: ‖X_i‖² of every atom
    solutions: Solutions


class InnerFit(NamedTuple):
    """What one pass over a block computes where codes minimise ½‖y − Dx‖² + p(x) with some penalty p."""

    value: float  # the sum of these minima, from the residual
    gradient: np.ndarray  # k×m: −r xᵀ, scattered to the atoms
    energies: np.ndarray  # k: ‖X_i‖² of every atom; with weights of entries see `weighted_energies`
    codes: StartingCodes  # with increasing indices


class Geodesic(NamedTuple):
    """A geodesic D(t) = D cos θt + U sin θt, in double precision, and the rates of f along D and U.

    The compiled kernels form neither D(t) nor P(t) = D − D(t): they need inner products only, which follow
    from those of D and U. So their cost does not depend on m.
    """

    atoms: np.ndarray  # k×m: D
    directions: np.ndarray  # k×m: U, unit rows
    angles: np.ndarray  # k: θ
    DD: np.ndarray  # k×k: DᵀD; empty, like the next three, where signals share no products
    DU: np.ndarray
    UD: np.ndarray
    UU: np.ndarray
    rate_along_atoms: np.ndarray  # k: ⟨∇f, D⟩, atom by atom
    rate_along_directions: np.ndarray  # k: ⟨∇f, U⟩

    def for_blocks(self) -> "Geodesic":
        """What functions of a block read: of the products none (a cluster sends this once per search)."""
        nothing = np.zeros((0, 0))
        return self._replace(DD=nothing, DU=nothing, UD=nothing, UU=nothing)


class Products(NamedTuple):
    """What a search along a geodesic needs of a block of signals, computed once per search."""

    codes: np.ndarray  # x₀, the codes at the start
    at_atoms: np.ndarray  # A y
    at_directions: np.ndarray  # U y


class WeightedProducts(NamedTuple):
    """The same where every signal has Gram matrices of its own, with weights w of its entries or without."""

    codes: np.ndarray  # x₀, the codes at the start
    at_atoms: np.ndarray  # A (w∘y)
    at_directions: np.ndarray  # U (w∘y)
    DD: np.ndarray  # A diag(w) Aᵀ, lower triangles
    DU: np.ndarray  # A diag(w) Uᵀ
    UU: np.ndarray  # U diag(w) Uᵀ, lower triangles


class GeodesicPoint(NamedTuple):
    """The atoms at t, for all blocks."""

    value: float  # f(D(t)) − f(D) with the codes of the start
    slope: float  # its derivative in t
    geodesic: Geodesic
    t: float
    arrays: Any  # what `refit_codes` reads: the kernels' own; the next point may use the same memory


class Refit(NamedTuple):
    """What re-solving for the codes at a point of a geodesic gains over keeping those of the start."""

    gain: float  # Σ f(x) − f(x₀) ≤ 0
    slope: float  # its derivative in t
    n_rank_deficient: int
