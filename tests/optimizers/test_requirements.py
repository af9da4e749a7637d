"""What an optimizer needs of a manifold is known before it runs."""

import pytest
from feasibility_cases import scene
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import NelderMead, ParticleSwarm

from manifold_dl import SimCO
from manifold_dl.manifolds import Orthonormal


@pytest.mark.parametrize("optimizer", [NelderMead, ParticleSwarm])
@pytest.mark.parametrize("manifold", [Stiefel, Orthonormal])
def test_missing_methods_are_named_before_the_run(optimizer, manifold):
    Y, D, X = scene()
    update = SimCO(optimizer(verbosity=0), manifold=manifold, mu=0.0)
    with pytest.raises(ValueError, match=rf"{optimizer.__name__} needs .*log.*use another optimizer"):
        update(Y, D, X)
