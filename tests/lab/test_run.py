import itertools
import subprocess
import sys

import numpy as np
import pymanopt
import pytest

from manifold_dl import WolfeSearch, metrics
from manifold_dl.lab.job import initial_point, make_job, make_problem, solve
from manifold_dl.lab.numbers import measure
from manifold_dl.lab.parts import names
from manifold_dl.lab.run import Run, State
from manifold_dl.lab.settings import Settings
from manifold_dl.lab.watching import watched_searcher

SMALL = {"m": 8, "d": 12, "n": 100, "sparsity": 2, "iterations": 8}


def finished(**settings):
    run = Run(make_job(Settings(**{**SMALL, **settings})))
    run.resume()
    run.wait(300)
    return run


def test_steps_lead_to_the_same_numbers_as_a_run():
    whole, stepped = finished(optimizer="LBFGS"), Run(make_job(Settings(**SMALL, optimizer="LBFGS")))
    for count in itertools.count(2):
        stepped.step()
        if stepped.wait(300, for_pause=True).is_over:
            break
        assert len(stepped.iterates) == count
    assert [i.value for i in stepped.iterates] == [i.value for i in whole.iterates]
    np.testing.assert_array_equal(stepped.dictionary, whole.dictionary)


def test_stop_keeps_what_there_is():
    run = Run(make_job(Settings(**SMALL)))
    run.step()
    run.wait(300, for_pause=True)
    run.stop()
    assert run.wait(300) is State.STOPPED and len(run.iterates) == 2
    run.resume()  # nothing happens: it is over
    assert run.state is State.STOPPED


def test_a_run_that_never_began_can_be_stopped():
    run = Run(make_job(Settings(**SMALL)))
    run.stop()
    assert run.state is State.STOPPED and run.dictionary is run.job.start


def test_waiting_is_no_computing():
    ticks = itertools.count()
    run = Run(make_job(Settings(**SMALL)), clock=lambda: float(next(ticks)))
    run.step()
    run.wait(300, for_pause=True)
    before = run.iterates[-1].seconds
    for _ in range(1000):
        next(ticks)  # the user reads the page
    run.step()
    run.wait(300, for_pause=True)
    assert run.iterates[-1].seconds - before < 50
    run.stop()


def test_watching_changes_no_number():
    job = make_job(Settings(**SMALL, optimizer="LBFGS", line_searcher="WolfeSearch"))
    _, problem = next(solve(job))
    expected = job.optimizer().run(problem, initial_point=job.start).point
    np.testing.assert_array_equal(
        finished(optimizer="LBFGS", line_searcher="WolfeSearch").dictionary, expected
    )


@pytest.mark.parametrize("name", names("line_searchers"))
def test_probes_of_every_line_searcher_lie_on_the_curve(name):
    run = finished(line_searcher=name)
    problem = make_problem(run.job, run.stages[0])
    search = run.iterates[2].search
    assert search.record.probes and search.record.method == name
    point, direction = search.point, search.direction
    # Ours follow the geodesic, Pymanopt's the retraction.
    retract = problem.manifold.retraction
    curves = [problem.restrict(point, direction), lambda t: problem.cost(retract(point, t * direction))]
    on_curve = any(
        all(value == pytest.approx(curve(t), rel=1e-6) for t, value in search.record.probes)
        for curve in curves
    )
    assert on_curve
    assert search.record.t in [t for t, _ in search.record.probes]


def test_a_watched_searcher_keeps_name_fields_and_original():
    original, seen = WolfeSearch(curvature=0.3), []
    watched = watched_searcher(original, seen.append)
    manifold = pymanopt.manifolds.Euclidean(1)
    watched.search(lambda x: (x[0] - 3) ** 2, manifold, np.zeros(1), np.ones(1), 9, -6)
    assert type(watched).__name__ == "WolfeSearch" and watched.curvature == 0.3
    assert len(seen) == 1 and original == WolfeSearch(curvature=0.3)


def test_the_objective_of_sets_of_atoms_is_that_of_all():
    run = finished(schedule="Blocks", size=4, mu="0.1", optimizer="ConjugateGradient")
    D, Y = run.dictionary, run.job.data.signals
    last = run.stages[max(run.stages)]
    X = make_problem(run.job, last).codes(run.iterates[-1].point)
    expected = np.sum((Y - D @ X) ** 2) + 0.1 * np.sum(X.data**2)
    assert run.iterates[-1].value == pytest.approx(expected, rel=1e-9)  # sums in another order
    values = [iterate.value for iterate in run.iterates]
    assert np.all(np.diff(values) <= 1e-9 * values[0])


def test_a_component_that_fails_is_named_and_leaves_the_iterates():
    run = Run(make_job(Settings(**SMALL, optimizer="LeadingSingularVector")))
    run.resume()
    assert run.wait(300) is State.FAILED
    assert (
        run.message == "LeadingSingularVector updates one atom at a time: use a schedule like OneAtATime()."
    )


def test_numbers_are_those_of_the_metrics():
    run = finished(noise=10.0)
    found, D = measure(run), run.dictionary
    assert found.kappa == pytest.approx(metrics.condition_number(D, run.job.support))
    assert found.coherence == metrics.coherence(D)
    X = make_problem(run.job, run.stages[0]).codes(D)
    residual = np.linalg.norm(run.job.data.signals - D @ X)
    assert found.error == pytest.approx(residual / np.linalg.norm(run.job.data.signals))
    smallest = min(np.linalg.svd(D[:, column.indices])[1][-1] for column in _columns(run.job.support))
    assert found.smallest[0] == pytest.approx(smallest)


def _columns(support):
    return [support[:, [j]].tocsc() for j in range(support.shape[1])]


def test_progress_grows_and_ends_at_one():
    run = Run(make_job(Settings(**SMALL, ridge="in turn", mu="0.1, 0")))
    fractions = []
    while not run.state.is_over:
        fractions.append(run.progress()[0])
        run.step()
        run.wait(300, for_pause=True)
    assert fractions == sorted(fractions) and 0 < fractions[-1] < 1
    assert run.progress() == (1.0, 0.0)


def test_a_run_without_numba_gives_the_numbers_of_the_compiled_kernels():
    script = (
        "import sys; sys.modules['numba'] = None\n"
        "from manifold_dl.lab.job import make_job\n"
        "from manifold_dl.lab.run import Run\n"
        "from manifold_dl.lab.settings import Settings\n"
        f"run = Run(make_job(Settings(**{SMALL})))\n"
        "run.resume(); run.wait(300)\n"
        "print(repr(run.iterates[-1].value))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The same steps, with sums in another order.
    assert float(done.stdout) == pytest.approx(finished().iterates[-1].value, rel=1e-6)


def test_every_stage_begins_on_its_manifold():
    job = make_job(Settings(**SMALL, manifold="NonNegative"))
    stage, problem = next(solve(job))
    assert initial_point(job, stage, problem).min() > 0
