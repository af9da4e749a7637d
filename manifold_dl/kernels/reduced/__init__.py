"""The arithmetic of the reduced objective: arrays in, arrays out.

`reference` holds the formulas in plain NumPy, as one would write them on a board; `compiled` holds the
same functions, with the same signatures, compiled with Numba. The compiled ones are used where Numba is
installed (it is not in a browser); `objective.py`, `restriction.py` and `stage.py` are their main
callers. The K-SVD sweep, with arguments of its own, stands in `reference_ksvd` and `compiled_ksvd`.

The functions speak of one block of signals:

- `signals` (n×m): a signal y in every row, `atoms` (k×m): an atom in every row, both contiguous;
- `indptr` (n+1), `indices` (nnz): the support, signal j using the atoms indices[indptr[j]:indptr[j+1]];
- `codes` (nnz): the coefficients x at those places;
- `packs`: the same support as `arrange` deals it, for those who call more than once.
"""

from manifold_dl.kernels.backend import NUMBA_INSTALLED

if NUMBA_INSTALLED:
    from manifold_dl.kernels.reduced.fit import (
        accumulate,
        along,
        arrange,
        balance,
        depart,
        dot,
        energies,
        fit,
        fit_fixed,
        hessian,
        inner,
        move,
        probe,
        tangent,
        travel,
        without,
    )
    from manifold_dl.kernels.reduced.ksvd import ksvd, large_codes
else:
    from manifold_dl.kernels.reduced.reference import (
        accumulate,
        along,
        arrange,
        balance,
        depart,
        dot,
        energies,
        fit,
        fit_fixed,
        hessian,
        inner,
        move,
        probe,
        tangent,
        travel,
        without,
    )
    from manifold_dl.kernels.reduced.reference_ksvd import ksvd, large_codes
from manifold_dl.kernels.reduced.reference import Way

__all__ = [
    "Way",
    "accumulate",
    "along",
    "arrange",
    "balance",
    "depart",
    "dot",
    "energies",
    "fit",
    "fit_fixed",
    "hessian",
    "inner",
    "ksvd",
    "large_codes",
    "move",
    "probe",
    "tangent",
    "travel",
    "without",
]
