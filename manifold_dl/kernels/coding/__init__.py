"""The kernels that the coders call: compiled where Numba is installed, else in plain NumPy.

`interface.py` says what a kernel takes and returns, `reference.py` what it computes. The compiled kernels:
`pursuit.py` (OMP, forward selection), `matching.py` (matching and gradient pursuit), `thresholding.py`
(subspace pursuit, IHT), `lasso.py`, `nonnegative.py` and `focuss.py`. `weighted.py` has OMP and forward
selection for signals with weights, `patterns.py` the methods without a kernel of their own for them.
"""

from manifold_dl.kernels.backend import NUMBA_INSTALLED
from manifold_dl.kernels.coding.entries import entries
from manifold_dl.kernels.coding.interface import (
    NO_TOLERANCE,
    Codes,
    FocussSettings,
    LassoSettings,
    PreparedDictionary,
    PursuitSettings,
    StartingCodes,
)
from manifold_dl.kernels.coding.patterns import encode_by_pattern

if NUMBA_INSTALLED:
    from manifold_dl.kernels.coding.dictionary import prepare
    from manifold_dl.kernels.coding.focuss import focuss
    from manifold_dl.kernels.coding.lasso import lasso, weighted_lasso
    from manifold_dl.kernels.coding.matching import gradient_pursuit, matching_pursuit
    from manifold_dl.kernels.coding.nonnegative import nonnegative_omp, weighted_nonnegative_omp
    from manifold_dl.kernels.coding.pursuit import forward_selection, omp
    from manifold_dl.kernels.coding.thresholding import iht, subspace_pursuit
    from manifold_dl.kernels.coding.weighted import weighted_forward_selection, weighted_omp
else:
    from manifold_dl.kernels.coding.reference import (
        focuss,
        forward_selection,
        gradient_pursuit,
        iht,
        lasso,
        matching_pursuit,
        nonnegative_omp,
        omp,
        prepare,
        subspace_pursuit,
        weighted_forward_selection,
        weighted_lasso,
        weighted_nonnegative_omp,
        weighted_omp,
    )

KERNELS = [
    "focuss",
    "forward_selection",
    "gradient_pursuit",
    "iht",
    "lasso",
    "matching_pursuit",
    "nonnegative_omp",
    "omp",
    "prepare",
    "subspace_pursuit",
    "weighted_forward_selection",
    "weighted_lasso",
    "weighted_nonnegative_omp",
    "weighted_omp",
]

__all__ = [
    "KERNELS",
    "NO_TOLERANCE",
    "Codes",
    "FocussSettings",
    "LassoSettings",
    "PreparedDictionary",
    "PursuitSettings",
    "StartingCodes",
    "encode_by_pattern",
    "entries",
    "focuss",
    "forward_selection",
    "gradient_pursuit",
    "iht",
    "lasso",
    "matching_pursuit",
    "nonnegative_omp",
    "omp",
    "prepare",
    "subspace_pursuit",
    "weighted_forward_selection",
    "weighted_lasso",
    "weighted_nonnegative_omp",
    "weighted_omp",
]
