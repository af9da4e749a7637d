"""Parts that fail from some iteration on, in every way that is tested, and what an error has to bring along.

They are healthy until the `Switch` is on. Optimizers and searchers are copied, so that it cannot be theirs.
"""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl
from manifold_dl.manifolds import Spheres

Y = mdl.datasets.synthetic(8, 12, 100, sparsity=3, snr_db=20, rng=0).signals
CODER = mdl.OMP(sparsity=3)
LAST = 3  # the iteration in which parts fail; 0 is the first


class Switch:
    """Whether the parts fail: optimizers and searchers are copied, so that it cannot be theirs."""

    on = False


def run(**options):
    settings = {"coder": CODER, "update": mdl.SimCO(mu=0.1), "max_iter": 6, "rng": 0, **options}
    return mdl.learn_dictionary(Y, 12, **settings)


def run_with_fault(iteration=LAST, **options):
    """Run with parts that fail from `iteration` on, and return the error and the steps before it."""
    steps = []

    def watch(step):
        steps.append(step)
        Switch.on = step.iteration + 1 >= iteration

    Switch.on = iteration == 0
    callbacks = [watch, *options.pop("callbacks", [])]
    try:
        with pytest.raises(Exception) as caught:
            run(callbacks=callbacks, **options)
    finally:
        Switch.on = False
    return caught.value, steps


class Broken(Exception):
    """What a part raises: nobody else does."""


def fault(value=None):
    """Raise or return what is wrong, if the switch is on."""
    if value is None:
        raise Broken("it is broken.")
    return value


class Coder:
    def __init__(self, wrong=None):
        self.wrong = wrong

    def encode(self, signals, dictionary):
        return fault(self.wrong) if Switch.on else CODER.encode(signals, dictionary)


class Update:
    def __init__(self, wrong=None):
        self.wrong = wrong

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        return fault(self.wrong) if Switch.on else mdl.KSVD()(signals, dictionary, codes)


class Optimizer(SteepestDescent):
    def run(self, problem, *, initial_point=None, reuse_line_searcher=False):
        if Switch.on:
            raise Broken("it is broken.")
        return super().run(problem, initial_point=initial_point, reuse_line_searcher=reuse_line_searcher)


class NotFinite(SteepestDescent):
    def run(self, problem, *, initial_point=None, **options):
        result = super().run(problem, initial_point=initial_point, **options)
        if Switch.on:
            result.point = np.full_like(initial_point, np.nan)
        return result


class Searcher:
    def __init__(self, wrong=None):
        self.wrong = wrong

    def search(self, objective, manifold, x, d, f0, df0):
        if Switch.on and callable(self.wrong):
            return self.wrong(x)
        if Switch.on:
            return fault()
        return mdl.GoldenSection().search(objective, manifold, x, d, f0, df0)


class Gradient(Spheres):
    def euclidean_to_riemannian_gradient(self, point, euclidean_gradient):
        gradient = super().euclidean_to_riemannian_gradient(point, euclidean_gradient)
        return fault() if Switch.on else gradient


class Projection(Spheres):
    def projection(self, point, vector):
        return fault() if Switch.on else super().projection(point, vector)


class Closest(Spheres):
    def closest(self, array):
        return fault() if Switch.on else super().closest(array)


def factory(m, k):
    return fault() if Switch.on else Spheres(m, k)


class Value:
    def __init__(self, wrong=None):
        self.wrong = wrong

    def value(self, dictionary):
        return fault(self.wrong) if Switch.on else 0.01 * np.sum(dictionary**4)

    def gradient(self, dictionary):
        return 0.04 * dictionary**3

    def hessian(self, dictionary, direction):
        return 0.12 * dictionary**2 * direction


class Slope(Value):
    def value(self, dictionary):
        return 0.01 * np.sum(dictionary**4)

    def gradient(self, dictionary):
        return fault(self.wrong) if Switch.on else super().gradient(dictionary)


class Curvature(Value):
    def value(self, dictionary):
        return 0.01 * np.sum(dictionary**4)

    def hessian(self, dictionary, direction):
        return fault(self.wrong) if Switch.on else super().hessian(dictionary, direction)


class Schedule:
    def __init__(self, wrong=None, together=True):
        self.wrong, self.together = wrong, together

    def subsets(self, n_atoms, rng=None):
        if Switch.on:
            return fault(self.wrong)
        return [np.arange(n_atoms)] if self.together else np.arange(n_atoms)[:, None]


def ridge(iteration):
    return fault() if Switch.on else 0.1


def replacement(signals, dictionary, codes):
    return fault() if Switch.on else (dictionary, [])


def penalty(dictionary):
    return fault() if Switch.on else 0.0 * dictionary.sum()


def with_parts(**parts):
    return {"update": mdl.SimCO(**{"mu": 0.1, **parts})}


def descent(searcher=None, cls=SteepestDescent):
    return cls(line_searcher=searcher or mdl.GoldenSection(), max_iterations=2)


def require_complete(partial, steps, tmp_path):
    """A result with the best of the steps, that prints, can be saved and plots or says why not."""
    assert partial.reason is mdl.Reason.FAILED and "best dictionary until then" in str(partial)
    assert partial.n_iter == len(steps)
    np.testing.assert_array_equal(partial.history.loss, [step.loss for step in steps])
    if steps:
        best = min(steps, key=lambda step: step.loss)
        np.testing.assert_array_equal(partial.dictionary, best.dictionary)
        np.testing.assert_array_equal(partial.codes.toarray(), best.codes.toarray())
        plt.close(partial.plot().figure)
    rest = Y - partial.dictionary @ partial.codes.toarray()
    # Sums of 800 squares in another order; zero codes leave everything.
    assert partial.explained == pytest.approx(1 - np.sum(rest**2) / np.sum(Y**2), abs=1e-12)
    mdl.save(partial, tmp_path / "partial.npz")
    again = mdl.load(tmp_path / "partial.npz")
    assert again.reason is mdl.Reason.FAILED and again.explained == partial.explained
    np.testing.assert_array_equal(again.dictionary, partial.dictionary)
    np.testing.assert_array_equal(again.codes.toarray(), partial.codes.toarray())
