"""How the codes of a dictionary are found: the inner problem of f(D) = Σ_j min_x ‖y_j − D_{Ω_j} x‖² + μ‖x‖².

`RidgeCodes` solve it on a fixed support (SimCO), the `FixedCodes` of `fixed.py` solve nothing (MOD's
objective), and the `PenalizedCodes` of `penalized.py` need no support (the lasso). The work is done by
functions of one block of signals, which an engine runs. The objective and its restriction to a geodesic call
these, and depend on nothing else of the codes.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.protocol import BlockFunction
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block, GeodesicPoint, Products, Solutions
from manifold_dl.problem.evaluation import Evaluation


class Sums(NamedTuple):
    """What a pass over a block adds to the objective and its derivative."""

    value: float
    gradient: np.ndarray  # k×m
    energies: np.ndarray  # k
    n_rank_deficient: int


class GeodesicSums(NamedTuple):
    """What a block adds to the restriction to a geodesic, besides its products."""

    energy: np.ndarray | None  # k×k: X Xᵀ of the codes at the start, where signals share products
    n_unsorted: int  # blocks with a support that is not sorted


class InnerProblem(Protocol):
    """How codes follow the dictionary."""

    @property
    def follows(self) -> bool:
        """Whether codes depend on the dictionary."""

    @property
    def has_closed_form(self) -> bool:
        """Whether it is an `InnerProblemOnGeodesic`."""

    def prepare(self, atoms: np.ndarray) -> Any:
        """What a pass needs of the atoms (k×m) alone, computed once per dictionary."""

    def fit(self, data: BlockMap, atoms: np.ndarray, prepared: Any, keep_factors: bool) -> BlockMap:
        """One pass over the signals: partial `Sums`, and a state for `codes` and `hessian_product`."""

    def codes(self, fit: BlockMap) -> BlockMap:
        """The codes, block by block."""

    def without_factors(self, fit: BlockMap) -> BlockMap:
        """The states of `fit` without the factorisations, which Hessian products alone need."""

    def hessian_product(
        self, engine: Engine, data: BlockMap, fit: BlockMap, atoms: np.ndarray, direction: np.ndarray
    ) -> np.ndarray | None:
        """The Hessian applied to a k×m direction; None where there are no signals."""


class InnerProblemOnGeodesic(InnerProblem, Protocol):
    """Codes that follow a geodesic in closed form: φ(t) then costs a fraction of an evaluation of f."""

    @property
    def shares_products(self) -> bool:
        """Whether signals read inner products of all pairs of atoms, or form those of their supports."""

    def products(self, data: BlockMap, start: Evaluation, U: np.ndarray) -> BlockMap | None:
        """The map that `start_geodesic` runs: partial `GeodesicSums`, products as state. None: no need."""

    def start_geodesic(
        self, engine: Engine, data: BlockMap, start: Evaluation, U: np.ndarray
    ) -> tuple[BlockMap | None, GeodesicSums]:
        """Once per line search, for the unit directions U (k×m): products for `refit`, and their sums."""

    def refit(
        self,
        data: BlockMap,
        products: BlockMap | None,
        point: GeodesicPoint,
        with_slope: bool,
        keep_codes: bool,
    ) -> BlockMap | None:
        """The codes at a point of the geodesic: partial `Refit`, codes as state. None: they stay."""


class BlockFunctions(NamedTuple):
    """The four functions of one block by which codes follow the dictionary."""

    fit: BlockFunction
    hessian: BlockFunction
    products: BlockFunction
    refit: BlockFunction


class FollowingCodes:
    """What `RidgeCodes` and `SeparateRidgeCodes` share: how the maps are made of functions of a block.

    Subclasses say which functions these are, which blocks they read, what they need of the atoms, and what a
    geodesic has where there are no sums.
    """

    mu: float
    follows = True

    @property
    def functions(self) -> BlockFunctions:
        raise NotImplementedError

    def parents(self, data: BlockMap) -> tuple[BlockMap, ...]:
        """The blocks that every function reads first."""
        raise NotImplementedError

    def gram(self, atoms: np.ndarray, others: np.ndarray) -> Any:
        """Inner products of atoms and others, if signals share them."""
        raise NotImplementedError

    def system(self, atoms: np.ndarray, products: Any) -> tuple[Any, ...]:
        """The arguments that define the small systems: the atoms, what `gram` returned, and the ridge."""
        raise NotImplementedError

    def no_sums(self, n_atoms: int) -> GeodesicSums:
        """What no signals, or signals that share nothing, add to the restriction to a geodesic."""
        raise NotImplementedError

    def prepare(self, atoms: np.ndarray) -> Any:
        """DᵀD, if signals share it."""
        return self.gram(atoms, atoms)

    def fit(self, data: BlockMap, atoms: np.ndarray, prepared: Any, keep_factors: bool) -> BlockMap:
        return BlockMap(self.functions.fit, self.parents(data), (*self.system(atoms, prepared), keep_factors))

    def codes(self, fit: BlockMap) -> BlockMap:
        return BlockMap(codes_block, (fit,))

    def without_factors(self, fit: BlockMap) -> BlockMap:
        return BlockMap(without_factors_block, (fit,))

    def hessian_product(
        self, engine: Engine, data: BlockMap, fit: BlockMap, atoms: np.ndarray, direction: np.ndarray
    ) -> np.ndarray | None:
        common = (*self.system(atoms, self.gram(atoms, direction)), direction)
        return engine.total(BlockMap(self.functions.hessian, (*self.parents(data), fit), common))[0]

    def products(self, data: BlockMap, start: Evaluation, U: np.ndarray) -> BlockMap:
        assert start.fit is not None  # a search begins where there is a gradient
        common = (*self.system(start.atoms, start.prepared), U)
        return BlockMap(self.functions.products, (*self.parents(data), start.fit), common)

    def start_geodesic(
        self, engine: Engine, data: BlockMap, start: Evaluation, U: np.ndarray
    ) -> tuple[BlockMap | None, GeodesicSums]:
        products = self.products(data, start, U)
        (sums,) = engine.total(products)
        return products, self.no_sums(len(start.atoms)) if sums is None else sums

    def refit(
        self,
        data: BlockMap,
        products: BlockMap | None,
        point: GeodesicPoint,
        with_slope: bool,
        keep_codes: bool,
    ) -> BlockMap | None:
        assert products is not None
        common = (self.mu, point, with_slope, keep_codes)
        return BlockMap(self.functions.refit, (*self.parents(data), products), common)


@dataclass(frozen=True)
class RidgeCodes(FollowingCodes):
    """Codes that follow the dictionary on a fixed support, by least squares with the ridge μ."""

    mu: float = 0.0
    has_closed_form = True
    shares_products = True

    @property
    def functions(self) -> BlockFunctions:
        return RIDGE_FUNCTIONS

    def parents(self, data: BlockMap) -> tuple[BlockMap, ...]:
        return (data,)

    def gram(self, atoms: np.ndarray, others: np.ndarray) -> np.ndarray:
        return reduced.gram(atoms, others)

    def system(self, atoms: np.ndarray, products: np.ndarray) -> tuple[Any, ...]:
        return atoms, products, self.mu

    def no_sums(self, n_atoms: int) -> GeodesicSums:
        return GeodesicSums(np.zeros((n_atoms, n_atoms)), 0)


def fit_block(
    block: Block, atoms: np.ndarray, gram: np.ndarray, mu: float, keep_factors: bool
) -> tuple[Sums, Solutions]:
    """Codes, value and gradient of one block."""
    fit = reduced.fit_codes(block, atoms, gram, mu, keep_factors)
    sums = Sums(fit.value, fit.gradient, fit.energies, len(fit.solutions.rank_deficient))
    return sums, fit.solutions


def codes_block(solutions: Solutions) -> tuple[None, np.ndarray]:
    """The codes of one block after `fit_block`."""
    return None, solutions.codes


def without_factors_block(solutions: Solutions) -> tuple[None, Solutions]:
    """The solutions of one block without the factorisations, which Hessian products alone need."""
    return None, solutions._replace(factors=None)


def hessian_block(
    block: Block,
    solutions: Solutions,
    atoms: np.ndarray,
    cross: np.ndarray,
    mu: float,
    direction: np.ndarray,
) -> tuple[np.ndarray, None]:
    """The Hessian product of one block."""
    return reduced.hessian_product(block, atoms, cross, mu, solutions, direction), None


def products_block(
    block: Block, solutions: Solutions, atoms: np.ndarray, gram: np.ndarray, mu: float, U: np.ndarray
) -> tuple[GeodesicSums, Products]:
    """What every φ(t) needs of one block."""
    products, energy = reduced.precompute_products(block, atoms, gram, mu, solutions.codes, U)
    is_sorted = block.batches is not None and block.batches.ascending
    return GeodesicSums(energy, int(not is_sorted)), products


def refit_block(
    block: Block, products: Products, mu: float, point: GeodesicPoint, with_slope: bool, keep_codes: bool
) -> tuple[reduced.Refit, np.ndarray | None]:
    """What the codes of one block gain at t, and the codes themselves if they are wanted."""
    codes = np.empty(len(block.indices), block.signals.dtype) if keep_codes else None
    return reduced.refit_codes(block, products, mu, point, with_slope, codes), codes


RIDGE_FUNCTIONS = BlockFunctions(fit_block, hessian_block, products_block, refit_block)
