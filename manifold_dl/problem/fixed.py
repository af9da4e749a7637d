"""Codes that stay as they are while the dictionary moves: MOD's objective, ‖Y − DX‖² for a given X.

`inner.py` has the protocol that `FixedCodes` follow, `separate.py` the same with weights of entries.
"""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block, GeodesicPoint
from manifold_dl.problem.evaluation import Evaluation
from manifold_dl.problem.inner import GeodesicSums, Sums


class FixedCodes:
    """Codes that stay as they are while the dictionary moves.

    Parameters
    ----------
    values : BlockMap
        Its states are the codes, block by block.
    data : BlockMap
        The blocks of signals.
    n_atoms : int
        k.
    engine : Engine
        What forms X Xᵀ, once.
    """

    follows = False
    has_closed_form = True
    shares_products = True

    def __init__(self, values: BlockMap, data: BlockMap, n_atoms: int, engine: Engine) -> None:
        self.values, self._data, self._n_atoms, self._engine = values, data, n_atoms, engine

    @cached_property
    def energy(self) -> np.ndarray:
        """X Xᵀ, k×k: half the Hessian."""
        products = BlockMap(code_products_block, (self._data, self.values), (self._n_atoms,))
        (energy,) = self._engine.total(products)
        return np.zeros((self._n_atoms, self._n_atoms)) if energy is None else energy

    def prepare(self, atoms: np.ndarray) -> None:
        """Nothing: codes that stay need no system."""

    def fit(self, data: BlockMap, atoms: np.ndarray, prepared: Any, keep_factors: bool) -> BlockMap:
        return BlockMap(fixed_block, (data, self.values), (atoms,))

    def codes(self, fit: BlockMap) -> BlockMap:
        return self.values

    def without_factors(self, fit: BlockMap) -> BlockMap:
        return fit

    def hessian_product(
        self, engine: Engine, data: BlockMap, fit: BlockMap, atoms: np.ndarray, direction: np.ndarray
    ) -> np.ndarray | None:
        return 2 * (self.energy.astype(direction.dtype) @ direction)

    def products(self, data: BlockMap, start: Evaluation, U: np.ndarray) -> None:
        return None

    def start_geodesic(
        self, engine: Engine, data: BlockMap, start: Evaluation, U: np.ndarray
    ) -> tuple[BlockMap | None, GeodesicSums]:
        return None, GeodesicSums(self.energy, 0)

    def refit(
        self,
        data: BlockMap,
        products: BlockMap | None,
        point: GeodesicPoint,
        with_slope: bool,
        keep_codes: bool,
    ) -> BlockMap | None:
        return None


def fixed_block(block: Block, codes: np.ndarray, atoms: np.ndarray) -> tuple[Sums, None]:
    """Value and gradient of one block with given codes."""
    value, gradient = reduced.evaluate_fixed(block, atoms, codes)
    return Sums(value, gradient, reduced.code_energies(block.indices, codes, len(atoms)), 0), None


def code_products_block(block: Block, codes: np.ndarray, n_atoms: int) -> tuple[np.ndarray, None]:
    """X Xᵀ of the codes of one block."""
    n_signals = len(block.signals)
    X = scipy.sparse.csc_array((codes.astype(float), block.indices, block.indptr), shape=(n_atoms, n_signals))
    return (X @ X.T).toarray(), None
