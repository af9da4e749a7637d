"""Axioms of the derivatives: how a manifold turns Euclidean gradients and Hessians into Riemannian ones.

The third part of `check_manifold`. The test function must be a function on the manifold. A cubic in the
entries, neither convex nor symmetric, is one on every submanifold. On other manifolds of m×k matrices it is
a quartic that ignores the signs of the columns, because those may be the representatives of lines.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymanopt

from manifold_dl.diagnostics.derivatives import check_gradient, check_hessian
from manifold_dl.diagnostics.manifold_sample import ROUNDING, ManifoldSample
from manifold_dl.diagnostics.report import CheckFailed, Inspection
from manifold_dl.manifolds.factories import is_rotation_quotient


class _Function(NamedTuple):
    value: Callable[[np.ndarray], float]
    gradient: Callable[[np.ndarray], np.ndarray]
    hessian: Callable[[np.ndarray, np.ndarray], np.ndarray]


def check_derivatives(inspection: Inspection, sample: ManifoldSample, retraction_order: int) -> None:
    """Check Riemannian gradients and Hessians of a test function by their Taylor remainders."""
    fact = "Riemannian gradients and Hessians are right"
    manifold = sample.manifold
    if np.iscomplexobj(sample.x) or not (sample.is_submanifold or _is_real_matrix_manifold(sample)):
        inspection.skip(f"{fact} (no test function is known on this kind of manifold)")
        return
    f = _cubic(sample) if sample.is_submanifold else _quartic(sample)
    backend = pymanopt.function.numpy(manifold)
    problem = pymanopt.Problem(
        manifold,
        backend(f.value),
        euclidean_gradient=backend(f.gradient),
        euclidean_hessian=backend(f.hessian),
    )
    try:
        for direction in (sample.v, sample.u):
            check_gradient(problem, sample.x, direction)
        inspection.require(True, "Riemannian gradients are right", "")
        if sample.has_exp or retraction_order == 2:
            for direction in (sample.v, sample.u):
                check_hessian(problem, sample.x, direction)
            _check_hessian_form(inspection, sample, problem)
            inspection.require(True, "Riemannian Hessians are right", "")
        else:
            inspection.skip(
                "Riemannian Hessians are right (there is no path of second order to measure them along)"
            )
    except NotImplementedError:  # the manifold does not convert derivatives
        inspection.skip(fact)
    except CheckFailed as error:
        fault = str(error).rstrip(".").removeprefix(f"{inspection.subject} ")
        fault = f"does not turn Euclidean derivatives into Riemannian ones: {fault[0].lower()}{fault[1:]}"
        inspection.require(False, fact, fault)


def _check_hessian_form(inspection: Inspection, sample: ManifoldSample, problem: pymanopt.Problem) -> None:
    """The Hessian product is tangent and symmetric to rounding; `check_hessian` allows half of the digits."""
    x, u, v, inner = sample.x, sample.u, sample.v, sample.manifold.inner_product
    Hu, Hv = problem.riemannian_hessian(x, u), problem.riemannian_hessian(x, v)
    fault = "the Hessian product is not tangent"
    inspection.require(sample.is_tangent(Hu), "Hessian products are tangent", fault)
    left, right = inner(x, Hu, v), inner(x, u, Hv)
    size = max(1.0, float(np.linalg.norm(Hu)), float(np.linalg.norm(Hv)))
    fault = f"the Hessian is not symmetric: ⟨Hess[u], v⟩ = {left:.6g}, ⟨u, Hess[v]⟩ = {right:.6g}"
    inspection.require(abs(left - right) <= ROUNDING * size, "Hessians are symmetric", fault)


def _is_real_matrix_manifold(sample: ManifoldSample) -> bool:
    """Whether points are m×k matrices, and not classes of those that differ by a rotation."""
    return sample.x.ndim == 2 and not is_rotation_quotient(sample.manifold, sample.x)


def _cubic(sample: ManifoldSample) -> _Function:
    """⟨A, X⟩ + ⟨B, X³⟩, entry by entry."""
    A, B = sample.ambient(), sample.ambient()
    return _Function(
        lambda X: np.vdot(A, X) + np.vdot(B, X**3),
        lambda X: A + 3 * B * X**2,
        lambda X, E: 6 * B * X * E,
    )


def _quartic(sample: ManifoldSample) -> _Function:
    """Σ w_j (a_iᵀx_j)⁴ over rows a_i of a matrix and columns x_j of the point."""
    m, k = sample.x.shape
    A, w = sample.rng.standard_normal((m + 1, m)) / np.sqrt(m), sample.rng.uniform(0.5, 1.5, k)
    return _Function(
        lambda X: np.sum(w * (A @ X) ** 4),
        lambda X: 4 * A.T @ (w * (A @ X) ** 3),
        lambda X, E: 12 * A.T @ (w * (A @ X) ** 2 * (A @ E)),
    )
