"""The kernels the coders call: compiled where Numba exists, in plain NumPy where it does not."""

try:
    from manifold_dl.kernels.coding import forward_selection, omp, prepare
    from manifold_dl.kernels.coding_lasso import lasso
except ImportError:  # no Numba on this platform
    from manifold_dl.kernels.coding_reference import forward_selection, lasso, omp, prepare

__all__ = ["forward_selection", "lasso", "omp", "prepare"]
