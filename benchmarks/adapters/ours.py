"""manifold_dl: default settings, and the presets where a task has one."""

from functools import partial

from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl
from manifold_dl.engines import Threads
from manifold_dl.presets import images, recover
from manifold_dl.schedules import Blocks

DISTRIBUTION, DTYPES = "manifold-dl", ("float64", "float32")
PICTURES_LEARN = True


def learn(problem, **settings):
    settings = {
        "coder": mdl.OMP(sparsity=problem.sparsity),
        "tol": 0.0,
        "max_iter": problem.passes,
        **settings,
    }
    settings |= {"init": problem.start, "rng": problem.seed, "threads": 1}
    return mdl.learn_dictionary(problem.signals, problem.n_atoms, **settings).dictionary


def by_forward_selection(problem):
    """With the coder that SPAMS learns with."""
    return learn(problem, coder=mdl.ForwardSelection(sparsity=problem.sparsity))


def denoise(problem, **settings):
    settings = {**images("best"), "n_patches": problem.n_patches, **settings}
    return mdl.images.denoise(problem.noisy, problem.sigma, rng=problem.seed, threads=1, **settings).image


def begin(update):
    run = update.begin(1000) if hasattr(update, "begin") else update
    return lambda Y, D, X, k: run(Y, D, X, iteration=k)


def code(coder):
    return lambda problem: coder(problem).encode(problem.signals, problem.dictionary, threads=1)


def paper():
    """One golden-section step along the gradient, μ = 0.05."""
    optimizer = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1, verbosity=0)
    return mdl.SimCO(optimizer=optimizer, mu=0.05, threads=1)


RECOVERY = {
    "ours, presets.recover": lambda problem: learn(problem, **recover(problem.sparsity)),
    "ours, SimCO (default)": learn,
    "ours, K-SVD": partial(learn, update=mdl.KSVD()),
    "ours, MOD": partial(learn, update=mdl.MOD()),
}
PATCHES = {
    "ours, SimCO (default)": learn,
    "ours, SimCO, forward selection": by_forward_selection,
    "ours, K-SVD": partial(learn, update=mdl.KSVD()),
    "ours, MOD": partial(learn, update=mdl.MOD()),
}
SCALING = {name: PATCHES[name] for name in ("ours, SimCO (default)", "ours, K-SVD")}
PICTURES = {
    "ours, presets.images('best')": denoise,
    "ours, K-SVD": partial(denoise, update=mdl.KSVD(), stride=1, refine=None),
}
CODING = {
    "sparsity": {
        "ours, OMP": code(lambda p: mdl.OMP(sparsity=p.sparsity)),
        "ours, ForwardSelection": code(lambda p: mdl.ForwardSelection(sparsity=p.sparsity)),
    },
    "error": {
        "ours, OMP": code(lambda p: mdl.OMP(sparsity=p.sparsity, tol=p.tol)),
        "ours, ForwardSelection": code(lambda p: mdl.ForwardSelection(sparsity=p.sparsity, tol=p.tol)),
    },
    "lasso": {"ours, Lasso": code(lambda p: mdl.Lasso(alpha=p.alpha))},
}
UPDATES = {
    "ours, SimCO, golden section": lambda: begin(paper()),
    "ours, SimCO (default)": lambda: begin(mdl.SimCO(threads=1)),
    "ours, SimCO, blocks of 512": lambda: begin(mdl.SimCO(schedule=Blocks(512), threads=1)),
    "ours, K-SVD": lambda: begin(mdl.KSVD(threads=1)),
    "ours, MOD": lambda: begin(mdl.MOD(engine=Threads(1))),
}
