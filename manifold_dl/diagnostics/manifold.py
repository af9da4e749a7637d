"""The contract of a manifold: the axioms of Riemannian geometry, measured at random points and directions.

`check_manifold` runs the axioms of the neighbouring files: `manifold_tangents.py` (tangent spaces and their
metric), `manifold_maps.py` (maps between points), `manifold_derivatives.py` (gradients and Hessians) and
`manifold_conventions.py` (what this package adds to Pymanopt).
"""

from collections.abc import Callable

import numpy as np
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.diagnostics.manifold_conventions import (
    check_closest,
    check_generators,
    remark_on_single_precision,
)
from manifold_dl.diagnostics.manifold_derivatives import check_derivatives
from manifold_dl.diagnostics.manifold_maps import check_log_and_dist, check_moves, check_retraction_order
from manifold_dl.diagnostics.manifold_sample import ManifoldSample
from manifold_dl.diagnostics.manifold_tangents import check_metric, check_projection, check_transport
from manifold_dl.diagnostics.report import Inspection, Report


def check_manifold(
    manifold: Manifold,
    rng: np.random.Generator | int | None = 0,
    retraction_order: int | None = None,
    reach: float | Callable[[np.ndarray], float] | None = None,
) -> Report:
    """Check the axioms that optimizers rely on.

    - The projection is linear, orthogonal, changes nothing when repeated, and has rank `manifold.dim`.
    - The inner product is symmetric, bilinear and positive, and `norm` is its root.
    - `exp` and `retraction` stay on the manifold, for many steps too, begin at the point, and leave it in the
      direction given; `exp` goes as far as the tangent vector is long; the retraction follows it to second
      order, or the report has a remark.
    - `log` and `exp` invert each other; `dist` is a metric and the length of `log`; `pair_mean` is half way.
    - `transport` is linear, continuous, and leads to tangent vectors.
    - Riemannian gradients and Hessians of a test function are right, and on submanifolds with the metric of
      the space around them geodesics do not accelerate along the manifold.
    - What this package adds: draws with ``rng=`` depend on it alone; `closest` leads to the manifold. The
      report remarks on results in float64 at float32 points.

    Maps that the manifold does not have are skipped, and the report lists them.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        An instance, whose points are arrays, with a dimension of at least 1.
    rng : Generator or seed
        For the random points and directions.
    retraction_order : 1 or 2, optional
        What the retraction claims, if it does. Order 2 agrees with geodesics to t³, so that the Riemannian
        Hessian is the second derivative along the retraction, at every point. With 2, a retraction of first
        order is a fault; by default it is remarked upon, because optimizers work with it.
    reach : float or callable, optional
        The length of tangent vectors up to which `log` inverts `exp`, below the injectivity radius; or a
        function that computes it from the point. By default 1e-4, which suits any manifold; `log`, `dist`
        and `pair_mean` are checked more accurately with a larger one.

    Returns
    -------
    Report
        What holds, what was remarked upon and what was skipped.

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> from manifold_dl.manifolds import Spheres
    >>> bool(check_manifold(Spheres(5, 3), reach=0.5))
    True
    >>> from pymanopt.manifolds import Stiefel
    >>> check_manifold(Stiefel(5, 3)).remarks[0].partition(":")[0]
    'the retraction is of first order'
    """
    if isinstance(manifold, type):
        raise TypeError(f"{manifold.__name__} is a class; pass a manifold, {manifold.__name__}(m, k).")
    if not isinstance(manifold, Manifold):
        raise TypeError(f"{manifold!r}: a subclass of pymanopt.manifolds.manifold.Manifold is needed.")
    if retraction_order not in (None, 1, 2):
        raise ValueError(f"retraction_order={retraction_order!r}: a retraction is of order 1 or 2.")
    inspection = Inspection(manifold)
    with inspection.calling():
        sample = ManifoldSample(manifold, np.random.default_rng(rng), reach)
    if not isinstance(sample.x, np.ndarray):
        raise TypeError(
            f"{inspection.subject} has points of type {type(sample.x).__name__}; "
            "the axioms are measured on arrays."
        )
    with inspection.calling():
        check_generators(inspection, sample)
        check_metric(inspection, sample)
        check_projection(inspection, sample)
        check_moves(inspection, sample)
        order = check_retraction_order(inspection, sample, retraction_order)
        check_log_and_dist(inspection, sample)
        check_transport(inspection, sample)
        check_derivatives(inspection, sample, order)
        remark_on_single_precision(inspection, sample)
        check_closest(inspection, sample)
    return inspection.report()
