"""Axioms of the tangent spaces: projection, dimension, inner product, norm and transport.

The first part of `check_manifold`.
"""

import numpy as np

from manifold_dl.diagnostics.manifold_sample import ManifoldSample, agree, slope_of
from manifold_dl.diagnostics.paths import has_map, random_tangent
from manifold_dl.diagnostics.report import Inspection

# Targets at these fractions of the reach approach x, where the transport is the identity.
_TARGETS = np.logspace(-4, -1, 7)


def check_projection(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check that the projection is linear, idempotent and orthogonal, and random vectors tangent."""
    V, W = sample.ambient(), sample.ambient()
    x, project = sample.x, sample.project
    fault = "has a projection that is not idempotent: projecting twice is not projecting once"
    inspection.require(sample.is_tangent(project(V)), "the projection is idempotent", fault)
    linear = agree(project(2 * V - 3 * W), 2 * project(V) - 3 * project(W))
    inspection.require(linear, "the projection is linear", "has a projection that is not linear")
    fault = "draws random tangent vectors that are not tangent: the projection changes them"
    inspection.require(sample.is_tangent(sample.u), "random tangent vectors are tangent", fault)
    length = sample.manifold.norm(x, random_tangent(sample.manifold, x, sample.rng))
    if not agree(length, 1):
        inspection.remark("random tangent vectors do not have length one")
    zero = sample.manifold.zero_vector(x)
    is_zero = np.shape(zero) == x.shape and not np.any(zero)
    inspection.require(is_zero, "the zero vector is zero", "has a zero_vector that is not zero")
    _check_orthogonality(inspection, sample)
    _check_dimension(inspection, sample)


def _check_orthogonality(inspection: Inspection, sample: ManifoldSample) -> None:
    """What the projection removes is orthogonal to tangent vectors, in the metric of the manifold."""
    fact = "the projection is orthogonal"
    V, W = sample.ambient(), sample.project(sample.ambient())
    normal = V - sample.project(V)
    if sample.is_submanifold:
        product, size = np.real(np.vdot(normal, W)), float(np.linalg.norm(V) * np.linalg.norm(W))
    elif agree(sample.manifold.projection(sample.x, V), sample.project(V)):
        product, size = sample.manifold.inner_product(sample.x, normal, W), 1.0
    else:
        inspection.skip(f"{fact} (the inner product is defined for tangent vectors only)")
        return
    fault = "has a projection that is not orthogonal: what it removes is not orthogonal to tangents"
    inspection.require(agree(product / max(1.0, size), 0.0), fact, fault)


def _check_dimension(inspection: Inspection, sample: ManifoldSample) -> None:
    x = sample.x
    if x.size > 400 or np.iscomplexobj(x):  # the rank of a larger matrix takes too long
        inspection.skip("the tangent space has dimension dim (points too large, or complex)")
        return
    basis = np.eye(x.size).reshape(-1, *x.shape)
    rank = int(np.linalg.matrix_rank(np.array([sample.project(e).ravel() for e in basis]), tol=1e-9))
    fault = f"has tangent spaces of dimension {rank}, but says dim = {sample.manifold.dim}"
    inspection.require(rank == sample.manifold.dim, "the tangent space has dimension dim", fault)


def check_metric(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check that the inner product is a symmetric, bilinear, positive number, and `norm` its root."""
    x, u, v = sample.x, sample.u, sample.v
    inner, norm = sample.manifold.inner_product, sample.manifold.norm
    numbers = np.ndim(inner(x, u, v)) == 0 and np.ndim(norm(x, u)) == 0
    fault = "has an inner product or a norm that is an array, and not one number for the whole m×k matrix"
    inspection.require(numbers, "the inner product and the norm are numbers", fault)
    inspection.require(
        agree(inner(x, u, v), inner(x, v, u)),
        "the inner product is symmetric",
        "has an inner product that is not symmetric",
    )
    bilinear = agree(inner(x, 2 * u - v, v), 2 * inner(x, u, v) - inner(x, v, v))
    inspection.require(bilinear, "the inner product is linear", "has an inner product that is not linear")
    w = 2 * u - 3 * v
    square = inner(x, w, w)
    fault = f"has an inner product that is not positive: ⟨w, w⟩ = {square:.4g} for a tangent vector w ≠ 0"
    inspection.require(square > 0, "the inner product is positive", fault)
    fault = "has a norm that is not the root of its inner product"
    inspection.require(agree(norm(x, w) ** 2 / square, 1.0), "the norm is the root of ⟨v, v⟩", fault)


def check_transport(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check that `transport` is linear, leads to tangent vectors, and tends to the identity near x."""
    x, y, u, v, manifold = sample.x, sample.y, sample.u, sample.v, sample.manifold
    if not has_map(manifold.transport, x, y, v):
        inspection.skip("transport")
        return
    carried = manifold.transport(x, y, v)
    fault = "has a transport whose result is not tangent at the new point"
    inspection.require(sample.is_tangent(carried, y), "transport is tangent", fault)
    fault = "has a transport from a point to itself that changes the vector"
    stays = agree(manifold.transport(x, x, v), v)
    inspection.require(stays, "transport from a point to itself does nothing", fault)
    both = manifold.transport(x, y, 2 * v - u)
    linear = agree(both, 2 * carried - manifold.transport(x, y, u))
    inspection.require(linear, "transport is linear", "has a transport that is not linear")
    step = sample.reach * u
    slope = slope_of(lambda t: manifold.transport(x, manifold.retraction(x, t * step), v) - v, _TARGETS)
    fault = f"has a transport that is not continuous: it tends to the identity with slope {slope:.2f}, not 1"
    inspection.require(slope > 0.95, "transport is continuous", fault)
