"""A user's part that raises an exception is named, and what was learned until then is kept."""

import functools
import math
import operator

import faulty_parts
import matplotlib.pyplot as plt
import numpy as np
import pytest
from faulty_parts import (
    CODER,
    LAST,
    Broken,
    Closest,
    Coder,
    Curvature,
    Gradient,
    Optimizer,
    Projection,
    Schedule,
    Searcher,
    Slope,
    Update,
    Value,
    Y,
    descent,
    factory,
    penalty,
    replacement,
    require_complete,
    ridge,
    run,
    run_with_fault,
    with_parts,
)
from pymanopt.optimizers import ConjugateGradient, TrustRegions

import manifold_dl as mdl
from manifold_dl.components.errors import ComponentError
from manifold_dl.engines import Threads

RAISING = {
    "coder": ({"coder": Coder()}, Coder),
    "update rule": ({"update": Update()}, Update),
    "optimizer": (with_parts(optimizer=descent(cls=Optimizer)), Optimizer),
    "line searcher": (with_parts(optimizer=descent(Searcher())), Searcher),
    "line searcher of CG": (with_parts(optimizer=descent(Searcher(), ConjugateGradient)), Searcher),
    "line searcher of L-BFGS": (with_parts(optimizer=mdl.LBFGS(line_searcher=Searcher())), Searcher),
    "manifold's gradient": (with_parts(manifold=Gradient), Gradient),
    "manifold's projection": (with_parts(manifold=Projection), Projection),
    "manifold's closest": (with_parts(manifold=Closest), Closest),
    "regularizer's value": (with_parts(regularizers=[Value()]), Value),
    "regularizer's gradient": (with_parts(regularizers=[Slope()]), Slope),
    "regularizer's hessian": (with_parts(optimizer=TrustRegions(), regularizers=[Curvature()]), Curvature),
    "function as regularizer": (with_parts(regularizers=[penalty]), penalty),
    "term of a sum": (
        with_parts(regularizers=[mdl.regularizers.scaled(0.5, Value()) + mdl.regularizers.Coherence(0.01)]),
        Value,
    ),
    "schedule": (with_parts(schedule=Schedule()), Schedule),
    "schedule of K-SVD": ({"update": mdl.KSVD(schedule=Schedule(together=False))}, Schedule),
    "schedule of mu": (with_parts(mu=ridge), ridge),
    "replacement policy": ({"replace": replacement, "max_iter": 20}, replacement),
}


@pytest.mark.parametrize("kind", RAISING)
def test_an_exception_names_the_part_and_keeps_the_best_dictionary(kind, tmp_path):
    options, part = RAISING[kind]
    error, steps = run_with_fault(**options)
    assert isinstance(error, ComponentError) and isinstance(error.__cause__, Broken), repr(error)
    assert part.__name__ in str(error) and error.iteration == LAST
    assert "raised Broken: it is broken, in iteration 3." in str(error)
    if kind == "replacement policy":  # it fails after the update, which may have been the best so far
        assert error.partial.n_iter == LAST
        assert error.partial.explained >= 1 - min(step.loss for step in steps) * Y.shape[1] / np.sum(Y**2)
    else:
        require_complete(error.partial, steps, tmp_path)
    # The iterations before are those of a run without a fault.
    healthy = run(**options)
    np.testing.assert_array_equal(healthy.history.loss[: len(steps)], [step.loss for step in steps])


@pytest.mark.parametrize("kind", RAISING)
def test_an_exception_in_the_first_iteration_leaves_the_start(kind, tmp_path):
    options, part = RAISING[kind]
    error, steps = run_with_fault(0, init="dct", **options)
    assert isinstance(error, ComponentError), repr(error)
    if kind == "replacement policy":  # its first iteration has been made by then
        assert error.iteration == 0 and error.partial.n_iter == 0
        return
    assert part.__name__ in str(error) and error.iteration in (0, None) and not steps
    require_complete(error.partial, [], tmp_path)
    np.testing.assert_array_equal(
        error.partial.dictionary, mdl.learning.initialization.initial_dictionary(Y, 12, "dct", rng=0)
    )
    if kind == "coder":  # it is not called again
        assert error.partial.codes.nnz == 0 and error.partial.explained == 0
    else:
        expected = CODER.encode(Y, error.partial.dictionary).toarray()
        np.testing.assert_array_equal(error.partial.codes.toarray(), expected)


def test_a_factory_that_raises_is_named_and_leaves_the_start():
    """A manifold is made once per run, so its factory can fail at the beginning alone."""

    def broken(m, k):
        return factory(m, k)

    error, steps = run_with_fault(0, init="dct", **with_parts(manifold=broken))
    assert "broken raised Broken when called with (m, k) = (8, 12)" in str(error) and not steps
    start = mdl.learning.initialization.initial_dictionary(Y, 12, "dct", rng=0)
    np.testing.assert_array_equal(error.partial.dictionary, start)


@pytest.mark.parametrize("kind", RAISING)
def test_stop_iteration_names_the_component(kind, monkeypatch):
    monkeypatch.setattr(faulty_parts, "Broken", StopIteration)
    options, part = RAISING[kind]
    error, _ = run_with_fault(**options)
    assert isinstance(error, ComponentError) and isinstance(error.__cause__, StopIteration), repr(error)
    assert part.__name__ in str(error) and error.iteration == LAST


class Engine(Threads):
    """One that fails from a given call of its methods on."""

    calls, last = 0, math.inf

    def _count(self):
        Engine.calls += 1
        if Engine.calls >= Engine.last:
            raise Broken("it is broken.")

    def open(self, source):
        self._count()
        return super().open(source)

    def total(self, *maps):
        self._count()
        return super().total(*maps)

    def states(self, block_map):
        self._count()
        return super().states(block_map)


@pytest.mark.parametrize(
    "options",
    [{"update": mdl.KSVD()}, {"minibatches": mdl.MiniBatches(size=1024)}, {"validation": Y[:, :9]}],
    ids=["K-SVD", "mini-batches", "validation"],
)
def test_an_engine_that_fails_in_any_of_its_calls_is_named(options, monkeypatch):
    monkeypatch.setattr(Engine, "calls", 0)
    monkeypatch.setattr(Engine, "last", math.inf)
    engine, steps = Engine(2), []
    settings = {"engine": engine, "max_iter": 3, "callbacks": [steps.append], **options}
    run(**settings)
    losses, calls = [step.loss for step in steps], Engine.calls
    assert calls >= 5 * len(losses)  # coding, update and sums of every iteration
    for last in range(1, calls + 1):
        Engine.calls, Engine.last = 0, last
        steps.clear()
        with pytest.raises(ComponentError, match=r"Engine.* raised Broken: it is broken") as caught:
            run(**settings)
        assert caught.value.role == "engine" and caught.value.component is engine
        if steps:
            partial = caught.value.partial
            assert partial.history.loss.tolist() == losses[: len(steps)]
            if "minibatches" not in options:  # whose losses are of dictionaries on the way
                # Sums of 800 squares in another order.
                assert partial.explained >= 1 - min(step.relative_loss for step in steps) - 1e-12


class Compiled:
    """A coder whose method is a function written in C, which has no frame in a traceback."""

    encode = staticmethod(int)


@pytest.mark.parametrize(
    ("options", "role"),
    [
        (with_parts(mu=math.log), "schedule of mu"),  # of 0, in the first iteration
        (with_parts(mu=functools.partial(math.log, 0)), "schedule of mu"),
        ({"coder": Compiled()}, "coder"),
        ({"callbacks": [operator.index]}, "callback"),
        ({"replace": operator.lt, "max_iter": 20}, "replacement policy"),
    ],
)
def test_error_raised_by_a_function_in_c_names_the_component(options, role):
    with pytest.raises(ComponentError) as caught:
        run(**options)
    assert caught.value.role == role and isinstance(caught.value.__cause__, ValueError | TypeError)


def test_a_result_without_iterations_plots_nothing():
    error, _ = run_with_fault(0, coder=Coder())
    axes = error.partial.plot()
    assert all(len(line.get_xdata()) == 0 for line in axes.lines)
    plt.close(axes.figure)
