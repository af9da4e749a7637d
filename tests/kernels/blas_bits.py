"""Print the bits of what is computed with BLAS and reaches a dictionary: `test_blas.py` starts it."""

import hashlib

import numpy as np

from manifold_dl.manifolds import Spheres
from manifold_dl.problem.regularization import RegularizationTerm
from manifold_dl.regularizers import Coherence
from manifold_dl.updates.normal_equations import solve_symmetric

rng = np.random.default_rng(0)
for d in (64, 128, 300):
    X, right, D = (
        rng.standard_normal((d, 2 * d)),
        rng.standard_normal((d, 64)),
        Spheres(64, d).random_point(1),
    )
    term = RegularizationTerm([Coherence(0.1)], lambda point: point, np.arange(d), d)
    computed = {
        "normal equations": solve_symmetric(np.einsum("ij,kj->ik", X, X), right, 0.0),
        "value": np.array(term.value(D)),
        "gradient": term.gradient(D),
        "Hessian product": term.hessian(D, D[::-1].copy()),
    }
    for name, array in computed.items():
        print(d, name, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())
