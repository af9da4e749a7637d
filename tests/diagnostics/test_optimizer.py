"""`check_optimizer`: wrong optimizers are named with their fault."""

from types import SimpleNamespace

import numpy as np
import pytest
from pymanopt.optimizers import (
    SteepestDescent,
    TrustRegions,
)

import manifold_dl as mdl
from manifold_dl.coders import OMP
from manifold_dl.diagnostics import (
    CheckFailed,
    check_optimizer,
)
from manifold_dl.diagnostics.optimizer_problems import known_problems
from manifold_dl.diagnostics.paths import random_point


class Descent:
    """Gradient steps with backtracking, which one override makes wrong in one way."""

    def __init__(self):
        self.steps = 0

    def run(self, problem, *, initial_point=None):
        point = self.minimum(problem, initial_point)
        return SimpleNamespace(point=self.spoil(problem, initial_point, point))

    def spoil(self, problem, start, point):
        return point

    def minimum(self, problem, x, max_steps=500):
        t = 1.0
        for _ in range(max_steps):
            gradient = problem.riemannian_gradient(x)
            if problem.manifold.norm(x, gradient) < 1e-6:
                break
            while problem.cost(problem.manifold.retraction(x, -t * gradient)) > problem.cost(x) and t > 1e-9:
                t /= 2
            x, t = problem.manifold.retraction(x, -t * gradient), 2 * t
        return x


def spoiled(**methods):
    return type("Spoiled", (Descent,), methods)()


def overwriting(self, problem, *, initial_point=None):
    initial_point[:] = self.minimum(problem, initial_point)
    return SimpleNamespace(point=initial_point)


def counting(self, problem, x):  # a budget that is used up and never renewed
    self.steps += 40
    return Descent.minimum(self, problem, x, max_steps=max(0, 60 - self.steps))


def only_one_atom(self, problem, start, point):
    if start.shape[1] > 1:
        raise NotImplementedError("one atom at a time")
    return point


def nothing(self, problem, start, point):
    raise NotImplementedError


WRONG_OPTIMIZERS = {
    r"cannot be called as run\(problem, initial_point=...\): run\(problem, x0\)": spoiled(
        run=lambda self, problem, x0: None
    ),
    "returned an array of shape .* instead of an object with the attribute point": spoiled(
        run=lambda self, problem, *, initial_point: initial_point
    ),
    r"returned an array of shape \(1, 6\) .* as its point": spoiled(
        spoil=lambda self, problem, start, point: point.T
    ),
    "not on .*its norms being 3 to 3": spoiled(spoil=lambda self, problem, start, point: 3 * point),
    "a point that is not finite": spoiled(spoil=lambda self, problem, start, point: np.nan * point),
    r"raised ZeroDivisionError: .*\(for one atom": spoiled(spoil=lambda self, problem, start, point: 1 / 0),
    "raised ValueError: .*four atoms": spoiled(
        spoil=lambda self, problem, start, point: point + (np.ones(3) if start.shape[1] > 1 else 0)
    ),
    "changed the array that it was given": spoiled(run=overwriting),
    "raised the cost from": spoiled(
        minimum=lambda self, problem, x: problem.manifold.exp(x, problem.riemannian_gradient(x) / 50)
    ),
    "did not move at all": spoiled(spoil=lambda self, problem, start, point: start),
    r"leaves 0\.\d+ of the descent to the minimum": spoiled(
        minimum=lambda self, problem, x: Descent.minimum(self, problem, x, max_steps=1)
    ),
    "not deterministic": spoiled(
        spoil=lambda self, problem, start, point: problem.manifold.retraction(
            point, 1e-6 * problem.manifold.random_tangent_vector(point, np.random.default_rng())
        )
    ),
    "carries something over": spoiled(minimum=counting),
    "solved none of the problems": spoiled(spoil=nothing),
}


@pytest.mark.parametrize("fault", WRONG_OPTIMIZERS)
def test_check_optimizer_names_the_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Spoiled .*{fault}"):
        check_optimizer(WRONG_OPTIMIZERS[fault])


def test_optimizer_with_nothing_but_run_passes():
    report = check_optimizer(Descent())
    assert not report.remarks and not report.skipped
    assert sum(fact.startswith("reaches the minimum") for fact in report.passed) == 5


def test_unsupported_problems_of_an_optimizer_are_skipped():
    report = check_optimizer(spoiled(spoil=only_one_atom))
    assert len(report.skipped) == 3 and all("one atom at a time" in fact for fact in report.skipped)


def test_optimizer_with_a_few_steps_passes_with_converges_false():
    few = SteepestDescent(max_iterations=1)
    with pytest.raises(CheckFailed, match="converges=False is for optimizers that make a few steps"):
        check_optimizer(few)
    assert len(check_optimizer(few, converges=False).remarks) == 5
    power = mdl.LeadingSingularVector(power_steps=1)
    assert all("of the descent" in remark for remark in check_optimizer(power, converges=False).remarks)


def test_global_random_numbers_and_printing_of_optimizers_are_remarks():
    def noisily(self, problem, start, point):
        print("done")
        return problem.manifold.retraction(point, 1e-9 * np.random.standard_normal(point.shape))  # noqa: NPY002

    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is being watched
    report = check_optimizer(spoiled(spoil=noisily))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert any("prints" in remark for remark in report.remarks)
    assert any("global generator" in remark for remark in report.remarks)


def test_check_optimizer_refuses_a_coder():
    with pytest.raises(TypeError, match=r"has no method run; .* such as TrustRegions\(\)"):
        check_optimizer(OMP(sparsity=3))


def test_known_minima_agree_with_a_trust_region_run():
    """No point that a trust region finds from any of ten starts is lower, and the best is as low."""
    for known in known_problems(np.random.default_rng(0)):
        problem = known.make()
        starts = [random_point(problem.manifold, np.random.default_rng(i)) for i in range(10)]
        values = [TrustRegions(verbosity=0).run(problem, initial_point=x).cost for x in starts]
        # Sums of some dozens of squares of size one.
        assert min(values) == pytest.approx(known.minimum, rel=1e-9)
