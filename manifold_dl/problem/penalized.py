"""Codes that follow the dictionary by a penalty, block by block: learning without supports.

    f(D) = Σ_j min_x ½‖y_j − Dx‖² + p(x)

`PenalizedCodes` runs an `InnerSolver` (`solvers.py`) on the blocks of an engine. Supports change from one
dictionary to the next, so the codes of an earlier one are a start for the next solution (`starts.py`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import CodesBlock
from manifold_dl.engines.units import multiply
from manifold_dl.kernels import reduced
from manifold_dl.kernels.coding import StartingCodes
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.inner import Sums
from manifold_dl.problem.solvers import BlockWeights, InnerSolver
from manifold_dl.problem.starts import PenalizedBlock, Starts


class OtherAtoms(NamedTuple):
    """The atoms that do not move while those of a set I do."""

    dictionary: np.ndarray  # d×m, an atom in every row; those of I are replaced
    moving: np.ndarray  # I

    def with_moved(self, atoms: np.ndarray) -> np.ndarray:
        """The whole dictionary (d×m) with the atoms of I taken from `atoms` (k×m)."""
        whole = self.dictionary.copy()
        whole[self.moving] = atoms
        return whole


@dataclass(frozen=True, eq=False)
class PenalizedCodes:
    """All codes follow by `solver`, while all atoms move or those of a set I.

    Parameters
    ----------
    solver : InnerSolver
        How they follow.
    starts : Starts
        Where the solutions begin.
    weights : BlockMap
        Its states are `BlockWeights`.
    others : OtherAtoms, optional
        The atoms that stay; None if all of them move.
    """

    solver: InnerSolver
    starts: Starts
    weights: BlockMap
    others: OtherAtoms | None = None

    follows = True
    has_closed_form = False

    def prepare(self, atoms: np.ndarray) -> Any:
        """What a pass needs of the dictionary alone."""
        return self.solver.prepare(self._whole(atoms))

    def fit(self, data: BlockMap, atoms: np.ndarray, prepared: Any, keep_factors: bool) -> BlockMap:
        """One pass over the signals: partial `Sums`, and a `PenalizedBlock` for every block."""
        keep = keep_factors and self.solver.curvature is not None
        moving = None if self.others is None else self.others.moving
        common = (prepared, self.solver, moving, self._whole(atoms) if keep else None)
        fit = BlockMap(fit_block, (data, self.starts.next(), self.weights), common)
        self.starts.solved(self.without_factors(fit) if keep else fit)
        return fit

    def codes(self, fit: BlockMap) -> BlockMap:
        """The codes, block by block."""
        return BlockMap(codes_block, (fit,))

    def without_factors(self, fit: BlockMap) -> BlockMap:
        """The states of `fit` without factorisations."""
        return BlockMap(without_factors_block, (fit,))

    def hessian_product(
        self, engine: Engine, data: BlockMap, fit: BlockMap, atoms: np.ndarray, direction: np.ndarray
    ) -> np.ndarray | None:
        """The Hessian on the current piece, applied to a k×m direction: half of that with a ridge."""
        curvature = self.solver.curvature
        if curvature is None:
            raise ValueError(
                f"{self.solver} does not say how its penalty curves, so there is no Hessian product: choose "
                "an optimizer without one, such as ConjugateGradient() or LBFGS()."
            )
        whole = self._whole(atoms)
        if self.others is not None:
            scattered = np.zeros_like(whole)
            scattered[self.others.moving] = direction
            direction = scattered
        cross = reduced.gram(whole, direction)
        parents, common = (data, self.weights, fit), (whole, cross, curvature, direction)
        (product,) = engine.total(BlockMap(hessian_block, parents, common))
        return product if product is None or self.others is None else product[self.others.moving]

    def _whole(self, atoms: np.ndarray) -> np.ndarray:
        return atoms if self.others is None else self.others.with_moved(atoms)


def fit_block(
    signals: np.ndarray,
    start: PenalizedBlock,
    weights: BlockWeights,
    prepared: Any,
    solver: InnerSolver,
    moving: np.ndarray | None,
    atoms: np.ndarray | None,
) -> tuple[Sums, PenalizedBlock]:
    """Codes, value and gradient of one block; with `atoms` the factorisations for Hessian products, too."""
    has_weights = not (weights.entries is None and weights.roots is None)
    options = {"weights": weights} if has_weights else {}
    fit = solver.fit(signals, prepared, start.codes, **options)
    gradient, energies = fit.gradient, fit.energies
    if moving is not None:
        gradient, energies = gradient[moving], energies[moving]
    sums = Sums(fit.value, gradient, energies, 0)
    if atoms is None:
        return sums, PenalizedBlock(fit.codes, None, None)
    indptr, indices, values = fit.codes
    batches = reduced.make_batches(indptr, indices)
    mu = solver.curvature or 0.0
    block = Block(signals, indptr, indices, batches)
    if weights.entries is None:
        ridge = reduced.fit_codes(block, atoms, reduced.gram(atoms, atoms), mu)
    else:
        ridge = reduced.fit_weighted_codes(block, weights.entries, atoms, mu)
    # The systems are those of the ridge μ on the same support; the codes are not.
    return sums, PenalizedBlock(fit.codes, ridge.solutions._replace(codes=values), batches)


def codes_block(found: PenalizedBlock) -> tuple[None, StartingCodes]:
    """The codes of one block."""
    assert found.codes is not None  # it has been solved
    return None, found.codes


def without_factors_block(found: PenalizedBlock) -> tuple[None, PenalizedBlock]:
    """One block without factorisations."""
    return None, PenalizedBlock(found.codes, None, None)


def hessian_block(
    signals: np.ndarray,
    weights: BlockWeights,
    found: PenalizedBlock,
    atoms: np.ndarray,
    cross: np.ndarray,
    mu: float,
    direction: np.ndarray,
) -> tuple[np.ndarray, None]:
    """The Hessian product of one block on its piece: the value here is half of ‖r‖² + ..."""
    assert found.solutions is not None  # they were asked for
    indptr, indices, _ = codes_block(found)[1]
    block = Block(signals, indptr, indices, found.batches)
    if weights.entries is None:
        product = reduced.hessian_product(block, atoms, cross, mu, found.solutions, direction)
    else:
        common = (atoms, mu, found.solutions, direction)
        product = reduced.weighted_hessian_product(block, weights.entries, *common)
    return 0.5 * product, None


def result_block(codes: StartingCodes, roots: np.ndarray | None, exponent: int) -> tuple[None, CodesBlock]:
    """The codes of one block for the signals that were given; zero where a signal has no weight."""
    values = codes.values
    if roots is not None:
        factors = np.repeat(roots, np.diff(codes.indptr))
        values = np.divide(values, factors, out=np.zeros_like(values), where=factors > 0)
    return None, CodesBlock(codes.indptr, codes.indices, multiply(values, exponent))


def joined(blocks: list[StartingCodes], n_atoms: int, dtype: np.dtype) -> scipy.sparse.csc_array:
    """The codes of all blocks as one d×n array."""
    counts = [np.diff(block.indptr) for block in blocks]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)])
    indices = np.concatenate([block.indices for block in blocks])
    values = np.concatenate([block.values for block in blocks]).astype(dtype, copy=False)
    return scipy.sparse.csc_array((values, indices, indptr), shape=(n_atoms, len(indptr) - 1))
