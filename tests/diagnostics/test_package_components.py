"""Every component of the package passes the check of its kind."""

import autograd.numpy as anp
import numpy as np
import pytest
from pymanopt.manifolds import Sphere
from pymanopt.optimizers import (
    ConjugateGradient,
    NelderMead,
    ParticleSwarm,
    SteepestDescent,
    TrustRegions,
)
from pymanopt.optimizers.line_search import AdaptiveLineSearcher

import manifold_dl as mdl
from manifold_dl import manifolds, plugins, regularizers, schedules
from manifold_dl.diagnostics import (
    check_coder,
    check_line_searcher,
    check_manifold,
    check_optimizer,
    check_regularizer,
    check_schedule,
    check_update,
)

REFERENCE = manifolds.Spheres(16, 12).random_point(3)


COMPONENTS = {
    "coders": {
        "BestOf": mdl.BestOf([mdl.RmsLasso(0.1, sparsity=3), mdl.OMP(3)]),
        "RmsLasso": mdl.RmsLasso(0.1),
        "BasisPursuit": mdl.BasisPursuit(),
        "FOCUSS": mdl.FOCUSS(),
        "FixedSupport": mdl.FixedSupport(np.arange(40)[:, None] % 24),  # 40 signals and 24 atoms are coded
        "ForwardSelection": mdl.ForwardSelection(sparsity=3),
        "GradientPursuit": mdl.GradientPursuit(sparsity=3),
        "IHT": mdl.IHT(sparsity=3),
        "Lasso": mdl.Lasso(alpha=0.1),
        "MatchingPursuit": mdl.MatchingPursuit(sparsity=3),
        "OMP": mdl.OMP(sparsity=3),
        "SubspacePursuit": mdl.SubspacePursuit(sparsity=3),
    },
    "updates": {
        "AtomSearch": mdl.AtomSearch(alphas=[0.05], again=[0.05]),
        "KSVD": mdl.KSVD(),
        "MOD": mdl.MOD(),
        "SimCO": mdl.SimCO(),
        "SimCO, trust region": mdl.SimCO(TrustRegions(), mu=0.01),
        "SimCO, golden section": mdl.SimCO(SteepestDescent(line_searcher=mdl.GoldenSection())),
        "SimCO, blocks": mdl.SimCO(schedule=schedules.Blocks(4)),
        "SimCO, fixed codes": mdl.SimCO(codes="fixed"),
        "SimCO, codes of a lasso": mdl.SimCO(codes=mdl.Lasso(0.05)),
        "SimCO, coherence": mdl.SimCO(mu=0.1, regularizers=[regularizers.Coherence(0.1)]),
    },
    "manifolds": {
        "Columns": manifolds.Columns(Sphere)(6, 4),
        "Euclidean": manifolds.Euclidean(6, 4),
        "Lines": manifolds.Lines(6, 4),
        "NonNegative": manifolds.NonNegative(6, 4),
        "Orthonormal": manifolds.Orthonormal(6, 4),
        "Orthonormal, complete": manifolds.Orthonormal(5, 5),
        "Spheres": manifolds.Spheres(6, 4),
        "SpheresWithin": manifolds.Subspace(np.eye(6)[:, :4])(6, 4),
        "Subspace": manifolds.Subspace(np.eye(6)[:, 1:])(6, 4),
        "ZeroMean": manifolds.ZeroMean(6, 4),
    },
    "regularizers": {
        "Coherence": regularizers.Coherence(0.1),
        "Decorrelation": regularizers.Decorrelation(0.1, [0] * 6 + [1] * 6),
        "LogBarrierCoherence": regularizers.LogBarrierCoherence(0.1, bound=0.95),
        "Scaled": 0.5 * regularizers.Sparse(0.2),
        "Smoothness": regularizers.Smoothness(0.1, (4, 4)),
        "Sparse": regularizers.Sparse(0.1),
        "Sum": regularizers.Coherence(0.1) + regularizers.Sparse(0.1),
        "Tether": regularizers.Tether(0.1, REFERENCE),
        "a function": regularizers.regularizer(lambda D: anp.sum(D**4)),
    },
    "schedules": {
        "AllAtoms": schedules.AllAtoms(),
        "Blocks": schedules.Blocks(size=5),
        "OneAtATime": schedules.OneAtATime(),
        "OneAtATime, random": schedules.OneAtATime("random"),
        "OneAtATime, usage": schedules.OneAtATime("usage"),
        "Overlapping": schedules.Overlapping(size=4, step=3),
        "RandomSubsets": schedules.RandomSubsets(size=4, count=2),
    },
    "optimizers": {
        "ConjugateGradient": ConjugateGradient(),
        "ConjugateGradient, adaptive": ConjugateGradient(line_searcher=AdaptiveLineSearcher()),
        "ConjugateGradient, Wolfe": ConjugateGradient(line_searcher=mdl.WolfeSearch()),
        "LBFGS": mdl.LBFGS(),
        "LeadingSingularVector": mdl.LeadingSingularVector(),
        "NelderMead": NelderMead(max_iterations=8),
        "ParticleSwarm": ParticleSwarm(max_iterations=5),
        "SteepestDescent": SteepestDescent(),
        "SteepestDescent, adaptive": SteepestDescent(line_searcher=AdaptiveLineSearcher()),
        "SteepestDescent, golden section": SteepestDescent(line_searcher=mdl.GoldenSection()),
        "TrustRegions": TrustRegions(),
    },
    "line_searchers": {
        "WolfeSearch": mdl.WolfeSearch(),
        "GoldenSection": mdl.GoldenSection(),
    },
}


CHECKS = {
    "coders": check_coder,
    "updates": check_update,
    "manifolds": check_manifold,
    "regularizers": check_regularizer,
    "schedules": lambda s: check_schedule(s, covers=not isinstance(s, schedules.RandomSubsets)),
    "line_searchers": check_line_searcher,
    "optimizers": lambda o: check_optimizer(o, converges=not isinstance(o, NelderMead | ParticleSwarm)),
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, components in COMPONENTS.items() for name in components]
)
def test_every_component_of_the_package_passes_the_check_of_its_kind(kind, name):
    report = CHECKS[kind](COMPONENTS[kind][name])
    assert report
    assert len(report.passed) >= 3


@pytest.mark.parametrize("kind", COMPONENTS)
def test_every_registered_component_of_the_package_is_checked(kind):
    ours = {name for name, part in plugins.load(kind).items() if part.__module__.startswith("manifold_dl")}
    assert ours <= set(COMPONENTS[kind])


@pytest.mark.parametrize("update", [mdl.KSVD(), mdl.MOD(), mdl.SimCO()], ids=repr)
def test_updates_pass_in_single_precision(update):
    assert check_update(update, dtype=np.float32)


@pytest.mark.parametrize("name", COMPONENTS["manifolds"])
def test_check_manifold_has_no_remarks_on_the_manifolds_of_the_package(name):
    # Columns has Pymanopt's own Sphere in every column, and its log.
    assert name == "Columns" or not check_manifold(COMPONENTS["manifolds"][name]).remarks
