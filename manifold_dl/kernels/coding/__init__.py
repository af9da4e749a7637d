"""The kernels that the coders call: compiled where Numba is installed, else in plain NumPy.

`interface.py` says what a kernel takes and returns, `reference.py` what it computes. The compiled kernels:
`pursuit.py` (OMP, forward selection), `matching.py` (matching and gradient pursuit), `thresholding.py`
(subspace pursuit, IHT), `lasso.py` and `focuss.py`.
"""

from manifold_dl.kernels.backend import NUMBA_INSTALLED
from manifold_dl.kernels.coding.interface import (
    NO_TOLERANCE,
    Codes,
    FocussSettings,
    LassoSettings,
    PreparedDictionary,
    PursuitSettings,
    StartingCodes,
)

if NUMBA_INSTALLED:
    from manifold_dl.kernels.coding.dictionary import prepare
    from manifold_dl.kernels.coding.focuss import focuss
    from manifold_dl.kernels.coding.lasso import lasso
    from manifold_dl.kernels.coding.matching import gradient_pursuit, matching_pursuit
    from manifold_dl.kernels.coding.pursuit import forward_selection, omp
    from manifold_dl.kernels.coding.thresholding import iht, subspace_pursuit
else:
    from manifold_dl.kernels.coding.reference import (
        focuss,
        forward_selection,
        gradient_pursuit,
        iht,
        lasso,
        matching_pursuit,
        omp,
        prepare,
        subspace_pursuit,
    )

KERNELS = [
    "focuss",
    "forward_selection",
    "gradient_pursuit",
    "iht",
    "lasso",
    "matching_pursuit",
    "omp",
    "prepare",
    "subspace_pursuit",
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
    "focuss",
    "forward_selection",
    "gradient_pursuit",
    "iht",
    "lasso",
    "matching_pursuit",
    "omp",
    "prepare",
    "subspace_pursuit",
]
