"""The kernels the coders call: compiled where Numba is installed, else in plain NumPy."""

from manifold_dl.kernels.installed import NUMBA_INSTALLED

if NUMBA_INSTALLED:
    from manifold_dl.kernels.coding import forward_selection, omp, prepare
    from manifold_dl.kernels.coding_focuss import focuss
    from manifold_dl.kernels.coding_iterative import gradient_pursuit, iht, matching_pursuit, subspace_pursuit
    from manifold_dl.kernels.coding_lasso import lasso
else:
    from manifold_dl.kernels.coding_reference import (
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
