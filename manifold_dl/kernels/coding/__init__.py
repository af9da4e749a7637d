"""The kernels the coders call: compiled where Numba is installed, else in plain NumPy."""

from manifold_dl.kernels.backend import NUMBA_INSTALLED

if NUMBA_INSTALLED:
    from manifold_dl.kernels.coding.focuss import focuss
    from manifold_dl.kernels.coding.iterative import gradient_pursuit, iht, matching_pursuit, subspace_pursuit
    from manifold_dl.kernels.coding.lasso import lasso
    from manifold_dl.kernels.coding.pursuit import forward_selection, omp, prepare
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

__all__ = [
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
