"""The reduced objective of one block of signals: value, gradient, Hessian product, and φ along a geodesic.

`reference` holds the formulas in plain NumPy, as one would write them on a board; the other modules hold the
same functions, with the same signatures, compiled with Numba. The compiled ones are used where Numba is
installed (it is not in a browser). `problem/` is the main caller; `structures` names what goes in and comes
out.
"""

from manifold_dl.kernels.backend import NUMBA_INSTALLED
from manifold_dl.kernels.reduced.reference import atoms_at, positions, precondition
from manifold_dl.kernels.reduced.reference_ksvd import SweepData, SweepState
from manifold_dl.kernels.reduced.reference_weighted import weighted_energies
from manifold_dl.kernels.reduced.structures import (
    Block,
    Fit,
    Geodesic,
    GeodesicPoint,
    InnerFit,
    Products,
    Refit,
    Solutions,
    WeightedProducts,
)

if NUMBA_INSTALLED:
    from manifold_dl.kernels.reduced.batches import make_batches
    from manifold_dl.kernels.reduced.codes import evaluate_fixed, fit_codes, hessian_product
    from manifold_dl.kernels.reduced.geodesic import geodesic_point, init_geodesic, precompute_products
    from manifold_dl.kernels.reduced.ksvd import ksvd_sweep, large_codes
    from manifold_dl.kernels.reduced.lasso import fit_lasso, fit_weighted_lasso, prepare_lasso
    from manifold_dl.kernels.reduced.refit import refit_codes
    from manifold_dl.kernels.reduced.rows import (
        add_products,
        code_energies,
        gram,
        residual,
        subtract_other_atoms,
        times_code_products,
    )
    from manifold_dl.kernels.reduced.spheres import dot, norm_error, project_to_tangent, sphere_exp
    from manifold_dl.kernels.reduced.weighted import (
        evaluate_weighted_fixed,
        fit_weighted_codes,
        weighted_hessian_product,
    )
    from manifold_dl.kernels.reduced.weighted_geodesic import (
        precompute_weighted_products,
        refit_weighted_codes,
    )
else:
    from manifold_dl.kernels.reduced.reference import (
        add_products,
        code_energies,
        dot,
        evaluate_fixed,
        fit_codes,
        geodesic_point,
        gram,
        hessian_product,
        init_geodesic,
        make_batches,
        norm_error,
        precompute_products,
        project_to_tangent,
        refit_codes,
        residual,
        sphere_exp,
        subtract_other_atoms,
    )
    from manifold_dl.kernels.reduced.reference_ksvd import ksvd_sweep, large_codes
    from manifold_dl.kernels.reduced.reference_lasso import fit_lasso, fit_weighted_lasso, prepare_lasso
    from manifold_dl.kernels.reduced.reference_products import times_code_products
    from manifold_dl.kernels.reduced.reference_weighted import (
        evaluate_weighted_fixed,
        fit_weighted_codes,
        precompute_weighted_products,
        refit_weighted_codes,
        weighted_hessian_product,
    )

__all__ = [
    "Block",
    "Fit",
    "Geodesic",
    "GeodesicPoint",
    "InnerFit",
    "Products",
    "Refit",
    "Solutions",
    "SweepData",
    "SweepState",
    "WeightedProducts",
    "add_products",
    "atoms_at",
    "code_energies",
    "dot",
    "evaluate_fixed",
    "evaluate_weighted_fixed",
    "fit_codes",
    "fit_lasso",
    "fit_weighted_codes",
    "fit_weighted_lasso",
    "geodesic_point",
    "gram",
    "hessian_product",
    "init_geodesic",
    "ksvd_sweep",
    "large_codes",
    "make_batches",
    "norm_error",
    "positions",
    "precompute_products",
    "precompute_weighted_products",
    "precondition",
    "prepare_lasso",
    "project_to_tangent",
    "refit_codes",
    "refit_weighted_codes",
    "residual",
    "sphere_exp",
    "subtract_other_atoms",
    "times_code_products",
    "weighted_energies",
    "weighted_hessian_product",
]
