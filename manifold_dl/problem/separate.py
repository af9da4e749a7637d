"""Inner problems in which every signal forms the inner products of its own atoms, and shares none.

    f(D) = Σ_j min_x Σ_p w_jp (y_jp − (D_{Ω_j} x)_p)² + μ‖x‖²

With weights w of entries (zero is a missing one) the Gram matrix of a support is each signal's own. Without
them it is that of all atoms, restricted; but where the dictionary is so large that the supports touch few of
its pairs, to form it for every signal is cheaper, and nothing grows with the square of the number of atoms
(`pairs.py`). `SeparateRidgeCodes` follow the dictionary, `SeparateFixedCodes` stay. Both are an
`InnerProblem`, so objective, searches and optimizers are the same. One weight per signal needs no inner
problem of its own: y times √w has the term of y times w (`engines/weights.py`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block, GeodesicPoint, Refit, Solutions, WeightedProducts
from manifold_dl.kernels.reduced.reference import Positions
from manifold_dl.problem.evaluation import Evaluation
from manifold_dl.problem.inner import BlockFunctions, FollowingCodes, GeodesicSums, Sums


def no_weights(data: BlockMap) -> BlockMap:
    """The weights of blocks whose entries have none."""
    return BlockMap(no_weights_block, (data,))


def no_weights_block(block: Block) -> tuple[None, None]:
    """None for every block."""
    return None, None


@dataclass(frozen=True, eq=False)
class SeparateRidgeCodes(FollowingCodes):
    """Codes that follow the dictionary on a fixed support, by (weighted) least squares with the ridge μ.

    Parameters
    ----------
    weights : BlockMap
        Its states are the weights of the entries, n×m like the signals of a block, or None (`no_weights`).
    mu : float
        The ridge, which the weights do not multiply.
    has_closed_form : bool
        Whether a line search computes products of every signal with the geodesic once, 2s² + s numbers for a
        support of s atoms, or evaluates f at every probe; see `products_are_small`.
    """

    weights: BlockMap
    mu: float = 0.0
    has_closed_form: bool = True
    shares_products = False

    @property
    def functions(self) -> BlockFunctions:
        return BlockFunctions(
            weighted_fit_block, weighted_hessian_block, weighted_products_block, weighted_refit_block
        )

    def parents(self, data: BlockMap) -> tuple[BlockMap, ...]:
        return data, self.weights

    def gram(self, atoms: np.ndarray, others: np.ndarray) -> None:
        """None: every signal has a Gram matrix of its own."""

    def system(self, atoms: np.ndarray, products: None) -> tuple[Any, ...]:
        return atoms, self.mu

    def no_sums(self, n_atoms: int) -> GeodesicSums:
        return NO_COMMON_ENERGY


def products_are_small(largest: int, m: int, has_weights: bool) -> bool:
    """Whether the products of a line search are few enough numbers, compared with those of the signals.

    With supports of 5 atoms and m = 64 they are 0.9 times as many, and φ(t) costs a fifth of an evaluation.
    Forming them costs as much as two evaluations, so where they are many, a search with slopes, which makes
    one or two, is faster without them. Signals with weights, which take memory too, may have four times as
    many numbers. `largest` is the size of the largest support.
    """
    return 2 * largest**2 + largest <= (4 * m if has_weights else m)


# No X₀X₀ᵀ that would serve all rows of the atoms: what the signals add is part of their `refit`.
NO_COMMON_ENERGY = GeodesicSums(None, 0)


def weighted_fit_block(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, mu: float, keep_factors: bool
) -> tuple[Sums, Solutions]:
    """Codes, value and gradient of one block."""
    fit = reduced.fit_weighted_codes(block, weights, atoms, mu, keep_factors)
    sums = Sums(fit.value, fit.gradient, fit.energies, len(fit.solutions.rank_deficient))
    return sums, fit.solutions


def weighted_hessian_block(
    block: Block,
    weights: np.ndarray | None,
    solutions: Solutions,
    atoms: np.ndarray,
    mu: float,
    direction: np.ndarray,
) -> tuple[np.ndarray, None]:
    """The Hessian product of one block."""
    return reduced.weighted_hessian_product(block, weights, atoms, mu, solutions, direction), None


def weighted_products_block(
    block: Block,
    weights: np.ndarray | None,
    solutions: Solutions,
    atoms: np.ndarray,
    mu: float,
    U: np.ndarray,
) -> tuple[None, WeightedProducts]:
    """What every φ(t) needs of one block."""
    return None, reduced.precompute_weighted_products(block, weights, atoms, mu, solutions.codes, U)


def weighted_refit_block(
    block: Block,
    weights: np.ndarray | None,
    products: WeightedProducts,
    mu: float,
    point: GeodesicPoint,
    with_slope: bool,
    keep_codes: bool,
) -> tuple[Refit, np.ndarray | None]:
    """What one block adds to φ(t), and its codes there if they are wanted."""
    codes = np.empty(len(block.indices), block.signals.dtype) if keep_codes else None
    return reduced.refit_weighted_codes(block, weights, products, mu, point, with_slope, codes), codes


@dataclass(frozen=True, eq=False)
class SeparateFixedCodes:
    """Codes that stay as they are while the dictionary moves: f is a quadratic in D.

    With q(E) = Σ_j ‖√w_j∘(E x_j)‖², f(D) − f(D − P) = ⟨∇f, P⟩ − q(P) and the Hessian product is ∇q(E). So one
    function of a block serves value and gradient, the Hessian product and φ.

    Parameters
    ----------
    weights : BlockMap
        Its states are the weights of the entries, n×m like the signals of a block, or None.
    values : BlockMap
        Its states are the codes.
    """

    weights: BlockMap
    values: BlockMap
    follows = False
    has_closed_form = True
    shares_products = False

    def prepare(self, atoms: np.ndarray) -> None:
        """Nothing: every signal has a Gram matrix of its own."""

    def fit(self, data: BlockMap, atoms: np.ndarray, prepared: Any, keep_factors: bool) -> BlockMap:
        return BlockMap(weighted_fixed_block, (data, self.weights, self.values), (atoms,))

    def codes(self, fit: BlockMap) -> BlockMap:
        return self.values

    def without_factors(self, fit: BlockMap) -> BlockMap:
        return fit

    def hessian_product(
        self, engine: Engine, data: BlockMap, fit: BlockMap, atoms: np.ndarray, direction: np.ndarray
    ) -> np.ndarray | None:
        parents = (data, self.weights, self.values)
        return engine.total(BlockMap(quadratic_gradient_block, parents, (direction,)))[0]

    def products(self, data: BlockMap, start: Evaluation, U: np.ndarray) -> None:
        """None: φ needs nothing but the codes."""

    def start_geodesic(
        self, engine: Engine, data: BlockMap, start: Evaluation, U: np.ndarray
    ) -> tuple[BlockMap | None, GeodesicSums]:
        return None, NO_COMMON_ENERGY

    def refit(
        self,
        data: BlockMap,
        products: BlockMap | None,
        point: GeodesicPoint,
        with_slope: bool,
        keep_codes: bool,
    ) -> BlockMap | None:
        found = reduced.positions(point.geodesic, point.t)
        angles = point.geodesic.angles * point.t
        lag, sine = 2 * np.sin(angles / 2) ** 2, np.sin(angles)  # P = D − D(t), without cancellation
        P = lag[:, None] * point.geodesic.atoms - sine[:, None] * point.geodesic.directions
        return BlockMap(quadratic_block, (data, self.weights, self.values), (Positions(P, -found.velocity),))


def weighted_fixed_block(
    block: Block, weights: np.ndarray | None, codes: np.ndarray, atoms: np.ndarray
) -> tuple[Sums, None]:
    """Value and gradient of one block with given codes."""
    value, gradient = reduced.evaluate_weighted_fixed(block, weights, atoms, codes)
    energies = reduced.weighted_energies(block, weights, codes, len(atoms))
    return Sums(value, gradient, energies, 0), None


def quadratic_gradient_block(
    block: Block, weights: np.ndarray | None, codes: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, None]:
    """∇q of one block: 2 Σ_j (w_j∘(E x_j)) x_jᵀ for the rows E."""
    without = block._replace(signals=np.zeros_like(block.signals))
    return reduced.evaluate_weighted_fixed(without, weights, rows, codes)[1], None


def quadratic_block(
    block: Block, weights: np.ndarray | None, codes: np.ndarray, moved: Positions
) -> tuple[Refit, np.ndarray]:
    """q(P) of one block and its derivative ⟨∇q(P), Ṗ⟩, in double precision; the codes stay."""
    without = block._replace(signals=np.zeros(block.signals.shape))
    value, gradient = reduced.evaluate_weighted_fixed(without, weights, moved.atoms, codes)
    return Refit(value, float(np.vdot(gradient, moved.velocity)), 0), codes
