"""Faults in a user's part: the part is named, and what was learned until then is kept."""

import pickle
import re
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import BackTrackingLineSearcher
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl.cli import app
from manifold_dl.errors import ComponentError
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
    "manifold factory": (with_parts(manifold=factory), factory),
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
        error.partial.dictionary, mdl.starts.initial_dictionary(Y, 12, "dct", rng=0)
    )
    if kind == "coder":  # it is not called again
        assert error.partial.codes.nnz == 0 and error.partial.explained == 0
    else:
        expected = CODER.encode(Y, error.partial.dictionary).toarray()
        np.testing.assert_array_equal(error.partial.codes.toarray(), expected)


def test_a_result_without_iterations_plots_nothing():
    error, _ = run_with_fault(0, coder=Coder())
    axes = error.partial.plot()
    assert all(len(line.get_xdata()) == 0 for line in axes.lines)
    plt.close(axes.figure)


# What a part returns


nan = np.nan
CODES = CODER.encode(Y, mdl.starts.initial_dictionary(Y, 12, "dct", rng=0))
D0 = mdl.starts.initial_dictionary(Y, 12, "dct", rng=0)
WRONG = {
    "codes of NaN": ({"coder": Coder(nan * CODES)}, "coder", "codes that are not finite"),
    "codes transposed": (
        {"coder": Coder(CODES.T)},
        "coder",
        r"codes of shape \(100, 12\) where d×n = \(12, 100",
    ),
    "codes of text": ({"coder": Coder("codes")}, "coder", "returned a str"),
    "update of nothing": ({"update": Update("none")}, "update rule", "'none', where a pair .* is expected"),
    "update of three": (
        {"update": Update((D0, CODES, 1))},
        "update rule",
        "a tuple of 3 items, where a pair",
    ),
    "update with NaN": ({"update": Update((nan * D0, CODES))}, "update rule", "cannot be used: .* holds nan"),
    "update, few atoms": ({"update": Update((D0[:, 1:], CODES))}, "update rule", r"of shape \(8, 11\)"),
    "update, no atom": ({"update": Update((0 * D0, CODES))}, "update rule", "column 0 is zero"),
    "update, few codes": ({"update": Update((D0, CODES[1:]))}, "update rule", r"codes of shape \(11, 100\)"),
    "optimizer's point": (with_parts(optimizer=descent(cls=NotFinite)), "optimizer", "not finite"),
    "step of NaN": (
        with_parts(optimizer=descent(Searcher(lambda x: (nan, x)))),
        "line searcher",
        "nan as the length of its step",
    ),
    "searched point of NaN": (
        with_parts(optimizer=descent(Searcher(lambda x: (1.0, nan * x)))),
        "line searcher",
        "returned NaN, where a point",
    ),
    "searched point of CG": (
        with_parts(optimizer=descent(Searcher(lambda x: (1.0, nan * x)), ConjugateGradient)),
        "line searcher",
        "returned NaN, where a point",
    ),
    "no pair": (
        with_parts(optimizer=descent(Searcher(lambda x: x))),
        "line searcher",
        "where a pair .* is expected",
    ),
    "penalty of NaN": (with_parts(regularizers=[Value(nan)]), "regularizer", "returned NaN where an update"),
    "penalty of inf": (
        with_parts(regularizers=[Value(np.inf)]),
        "regularizer",
        "is inf where an update begins",
    ),
    "penalty of -inf": (with_parts(regularizers=[Value(-np.inf)]), "regularizer", "is -inf where an update"),
    "penalty, array": (
        with_parts(regularizers=[Value(np.ones(3))]),
        "regularizer",
        r"an array of shape \(3,\)",
    ),
    "penalty, text": (
        with_parts(regularizers=[Value("1")]),
        "regularizer",
        "'1'; a penalty is one real number",
    ),
    "slope of NaN": (
        with_parts(regularizers=[Slope(nan * D0)]),
        "regularizer",
        "a gradient that is not finite",
    ),
    "slope's shape": (
        with_parts(regularizers=[Slope(D0.T)]),
        "regularizer",
        r"a gradient of shape \(12, 8\)",
    ),
    "curvature of NaN": (
        with_parts(optimizer=TrustRegions(), regularizers=[Curvature(nan * D0)]),
        "regularizer",
        "a Hessian product that is not finite",
    ),
    "no subset": (with_parts(schedule=Schedule([])), "schedule", "has no subset"),
    "no sweep": (with_parts(schedule=Schedule(3)), "schedule", "cannot be used: .* not iterable"),
    "subset of floats": (with_parts(schedule=Schedule([[0.0, 1.0]])), "schedule", "has dtype float64"),
    "subset with doubles": (with_parts(schedule=Schedule([[1, 1]])), "schedule", "repeats the index 1"),
    "subset out of range": (with_parts(schedule=Schedule([[12]])), "schedule", "numbered 0 to 11"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_names_the_part_and_keeps_the_best_dictionary(kind, tmp_path):
    options, role, sentence = WRONG[kind]
    error, steps = run_with_fault(**options)
    assert isinstance(error, ComponentError), repr(error)
    assert error.role == role and error.iteration == LAST
    assert re.search(sentence, str(error)), str(error)
    require_complete(error.partial, steps, tmp_path)


# Our searchers follow geodesics on spheres, Pymanopt's the retraction. The norm has a method of its own.
UNUSED = {
    ("retraction", mdl.GoldenSection),
    ("exp", BackTrackingLineSearcher),
    ("inner_product", mdl.GoldenSection),
    ("inner_product", BackTrackingLineSearcher),
}
METHODS = [
    "closest",
    "retraction",
    "exp",
    "projection",
    "norm",
    "inner_product",
    "euclidean_to_riemannian_gradient",
]


def nan_manifold(method, base=Spheres):
    """Spheres with one method that gives NaN from some iteration on."""

    def wrong(self, *args, **kwargs):
        return (
            nan * getattr(base, method)(self, *args, **kwargs)
            if Switch.on
            else getattr(base, method)(self, *args)
        )

    return type("Faulty", (base,), {method: wrong})


@pytest.mark.parametrize(
    "searcher", [mdl.GoldenSection(), BackTrackingLineSearcher()], ids=["ours", "Pymanopt's"]
)
@pytest.mark.parametrize("method", METHODS)
def test_a_manifold_that_gives_nan_is_named_or_does_no_harm(method, searcher):
    if (method, type(searcher)) in UNUSED:
        options = with_parts(optimizer=descent(searcher))
        Switch.on, expected = True, run(**options)
        result = run(**with_parts(optimizer=descent(searcher), manifold=nan_manifold(method)))
        Switch.on = False
        np.testing.assert_array_equal(result.dictionary, expected.dictionary)
        return
    options = with_parts(manifold=nan_manifold(method), optimizer=descent(searcher))
    error, steps = run_with_fault(**options, replace=None)
    assert isinstance(error, ComponentError), repr(error)
    assert error.role == "manifold" and "Faulty" in str(error) and error.iteration == LAST
    assert error.partial.n_iter == len(steps) == LAST


@pytest.mark.parametrize("method", ["retraction", "transport", "euclidean_to_riemannian_hessian"])
def test_a_trust_region_or_conjugate_gradients_on_a_manifold_of_nan(method):
    optimizer = (
        ConjugateGradient(max_iterations=4) if method == "transport" else TrustRegions(max_iterations=3)
    )
    error, _ = run_with_fault(**with_parts(manifold=nan_manifold(method), optimizer=optimizer), replace=None)
    assert error.role == "manifold" and "Faulty" in str(error), repr(error)


# Values that are right


def test_dense_codes_are_accepted_and_give_the_same_run():
    class Dense:
        def encode(self, signals, dictionary):
            return CODER.encode(signals, dictionary).toarray()

    dense, sparse = run(coder=Dense()), run()
    np.testing.assert_array_equal(dense.dictionary, sparse.dictionary)
    assert dense.codes.format == "csc" and "atoms per signal" in str(dense)


@pytest.mark.parametrize("wrong", [nan, -1.0, np.inf, "0.1", None, [0.1]], ids=repr)
def test_a_ridge_that_is_none_names_the_function(wrong):
    def strange(iteration):
        return wrong if Switch.on else 0.1

    error, steps = run_with_fault(**with_parts(mu=strange))
    assert isinstance(error, ComponentError) and error.role == "schedule of mu"
    assert "strange" in str(error) and f"returned {wrong!r}, and the ridge is one finite number" in str(error)
    assert error.iteration == LAST and error.partial.n_iter == len(steps)


def test_atoms_of_any_norm_become_unit_atoms_and_the_codes_take_over_their_norms():
    def longer(signals, dictionary, codes, *, iteration=0, rng=None):
        D, X = mdl.KSVD()(signals, dictionary, codes)
        return 3 * D, X / 3

    result, expected = run(update=longer), run(update=mdl.KSVD())
    np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, rtol=1e-14)
    # 3·D/3 is D up to rounding, and six iterations of K-SVD multiply that by a few hundred.
    np.testing.assert_allclose(result.history.loss, expected.history.loss, rtol=1e-10)


def test_an_update_in_place_does_not_change_the_best_dictionary():
    class InPlace:
        def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
            D, X = mdl.KSVD()(signals, dictionary, codes)
            dictionary[:] = D if iteration < 2 else np.roll(D, 1, axis=0)
            return dictionary, X

    error, steps = run_with_fault(update=InPlace(), coder=Coder())
    expected = run(update=mdl.KSVD(), max_iter=2).history.loss
    assert min(step.loss for step in steps) == pytest.approx(expected[-1])
    assert error.partial.explained == pytest.approx(1 - expected[-1] * Y.shape[1] / np.sum(Y**2))


@pytest.mark.parametrize("undefined", [ZeroDivisionError, FloatingPointError, np.linalg.LinAlgError])
def test_a_search_keeps_away_from_where_a_regularizer_has_no_value(undefined):
    """A barrier that raises beyond the bound is as good as one that is infinite there."""
    bound = mdl.metrics.coherence(D0) * 1.01

    class Raising:
        def value(self, dictionary):
            value = mdl.regularizers.LogBarrierCoherence(0.1, bound).value(dictionary)
            if value == np.inf:
                raise undefined("outside")
            return value

        def gradient(self, dictionary):
            return mdl.regularizers.LogBarrierCoherence(0.1, bound).gradient(dictionary)

    runs = [
        run(init=D0, replace=None, **with_parts(regularizers=[part], optimizer=descent()))
        for part in (Raising(), mdl.regularizers.LogBarrierCoherence(0.1, bound))
    ]
    np.testing.assert_array_equal(runs[0].dictionary, runs[1].dictionary)
    assert runs[0].history.loss[-1] < runs[0].history.loss[0]


def test_a_regularizer_without_a_value_at_the_start_is_named():
    class Nowhere:
        def value(self, dictionary):
            return 1 / 0

    error, _ = run_with_fault(0, **with_parts(regularizers=[Nowhere()]))
    assert isinstance(error, ComponentError) and error.role == "regularizer"
    assert isinstance(error.__cause__, ZeroDivisionError) and "Nowhere" in str(error)


# Callbacks


class Watcher:
    """A callback that fails where it is told to."""

    def __init__(self, where, answer=None):
        self.where, self.answer, self.ended = where, answer, False

    def begin(self, total):
        if self.where == "begin":
            raise Broken("it is broken.")

    def __call__(self, step):
        if step.iteration == LAST and self.where == "call":
            raise Broken("it is broken.")
        return self.answer

    def resume(self, history):
        if self.where == "resume":
            raise Broken("it is broken.")

    def end(self):
        self.ended = True
        if self.where == "end":
            raise Broken("it is broken.")


@pytest.mark.parametrize("where", ["begin", "call", "end"])
def test_a_callback_that_fails_is_named(where, tmp_path):
    faulty, other = Watcher(where), Watcher("nowhere")
    error, steps = run_with_fault(99, callbacks=[other, faulty])
    assert isinstance(error, ComponentError) and isinstance(error.__cause__, Broken)
    assert error.component is faulty and error.role == "callback" and "Watcher" in str(error)
    require_complete(error.partial, steps, tmp_path)
    assert len(steps) == {"begin": 0, "call": LAST + 1, "end": 6}[where]
    assert error.iteration == {"begin": None, "call": LAST, "end": 5}[where]
    assert other.ended and faulty.ended == (where != "begin")


def test_a_callback_that_fails_when_a_run_is_resumed(tmp_path):
    path, faulty = tmp_path / "run.npz", Watcher("resume")
    run(callbacks=[mdl.Checkpoint(path), lambda step: step.iteration == 2])
    error, _ = run_with_fault(99, callbacks=[faulty], resume=path)
    assert error.component is faulty and error.partial.n_iter == 3
    expected = run(max_iter=6, callbacks=[lambda step: step.iteration == 2])
    np.testing.assert_array_equal(error.partial.history.loss, expected.history.loss)


def test_the_first_fault_is_told_and_later_ones_are_noted():
    ending = Watcher("end")
    error, _ = run_with_fault(callbacks=[ending], coder=Coder())
    assert error.role == "coder" and ending.ended
    assert any("Watcher" in note and "it is broken" in note for note in error.__notes__)


@pytest.mark.parametrize("answer", [0.35, 1, "stop", [], np.zeros(3)], ids=repr)
def test_a_callback_that_returns_neither_true_nor_false_is_named(answer):
    error, _ = run_with_fault(99, callbacks=[Watcher("nowhere", answer)])
    assert isinstance(error, ComponentError) and error.iteration == 0
    assert "a callback returns True to stop the learning" in str(error)


@pytest.mark.parametrize("answer", [True, np.True_, False, np.False_, None], ids=repr)
def test_callbacks_stop_by_true_alone(answer):
    result = run(callbacks=[Watcher("nowhere", answer)])
    assert result.n_iter == (1 if answer else 6)


class Diary(mdl.History):
    """A history with a column of its own, which it fails to write in the end."""

    def begin(self, total=None):
        super().begin(total)
        self._columns["size"] = []

    def __call__(self, step):
        super_columns = {name: column for name, column in self._columns.items() if name != "size"}
        own, self._columns = self._columns, super_columns
        super().__call__(step)
        self._columns = own
        if step.iteration == LAST:
            raise Broken("it is broken.")
        own["size"].append(np.abs(step.dictionary).max())


def test_a_history_of_the_users_that_fails_keeps_the_complete_rows(tmp_path):
    diary = Diary()
    error, steps = run_with_fault(99, callbacks=[diary])
    assert error.component is diary and error.iteration == LAST
    assert error.partial.n_iter == len(error.partial.history.size) == len(steps) == LAST
    mdl.save(error.partial, tmp_path / "partial.npz")


# Around the loop


def test_a_coder_that_fails_after_the_last_iteration():
    class Last:
        def encode(self, signals, dictionary, iteration=None):
            return CODER.encode(signals, dictionary) if iteration is not None else fault()

    error, steps = run_with_fault(99, coder=Last())
    assert isinstance(error, ComponentError) and error.iteration == 5
    assert "after the last iteration" in " ".join(error.__notes__)
    assert error.partial.n_iter == len(steps) == 6


def test_the_best_of_the_finished_restarts_counts():
    starts = []

    class Third:
        def encode(self, signals, dictionary, iteration=None):
            starts.append(iteration == 0)
            return fault() if sum(starts) == 3 and iteration == 1 else CODER.encode(signals, dictionary)

    with pytest.raises(ComponentError, match=r"Third.* in iteration 1\.") as caught:
        run(coder=Third(), restarts=4)
    best = run(restarts=2)
    partial = caught.value.partial
    np.testing.assert_array_equal(partial.dictionary, best.dictionary)
    assert partial.reason is mdl.Reason.FAILED and partial.n_iter == best.n_iter
    assert "run 3 of 4" in " ".join(caught.value.__notes__)


def test_a_refusal_of_ours_keeps_its_type_and_has_the_result():
    class Growing:
        """Supports of more atoms than entries, from the third iteration on."""

        def encode(self, signals, dictionary, iteration=None):
            return CODER.encode(signals, dictionary) if (iteration or 0) < 2 else dictionary.T @ signals

    with pytest.raises(ValueError, match="uses 12 atoms, more than its m=8 entries") as caught:
        run(coder=Growing(), update=mdl.SimCO(mu=0.0))
    assert type(caught.value) is ValueError and caught.value.partial.n_iter == 2
    assert "iteration 2 of learn_dictionary" in caught.value.__notes__[0]


def test_what_is_refused_before_the_run_has_no_result():
    with pytest.raises(ValueError, match="init has 3 atoms") as caught:
        run(init=np.eye(8)[:, :3])
    assert not hasattr(caught.value, "partial")


def test_an_interrupt_is_no_fault():
    def interrupt(step):
        if step.iteration == 2:
            raise KeyboardInterrupt

    assert run(callbacks=[interrupt]).reason is mdl.Reason.INTERRUPTED


def test_an_interrupt_ends_all_restarts():
    begun = []

    def interrupt(step):
        begun.append(step.iteration == 0)
        if sum(begun) == 2 and step.iteration == 1:
            raise KeyboardInterrupt

    result = run(callbacks=[interrupt], restarts=3)
    assert sum(begun) == 2 and result.reason is mdl.Reason.INTERRUPTED


def test_the_error_goes_from_process_to_process():
    error, _ = run_with_fault(coder=Coder())
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.iteration == LAST and again.role == "coder"
    np.testing.assert_array_equal(again.partial.dictionary, error.partial.dictionary)


def test_a_part_that_cannot_even_print_itself_is_named_by_its_class():
    class Mute(Coder):
        def __repr__(self):
            raise Broken("no words.")

    error, _ = run_with_fault(coder=Mute())
    assert "The coder test_faults." in str(error) and "Mute raised Broken" in str(error)


# Those who call the loop


def test_a_fit_that_fails_leaves_the_estimator_as_it_was():
    model = mdl.ManifoldDictionaryLearning(12, coder=Coder(), max_iter=4, random_state=0)
    Switch.on = True
    try:
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ComponentError, match="Coder"):
                method(Y.T)
            assert not [name for name in vars(model) if name.endswith("_")]
        Switch.on = False
        model.fit(Y.T)
        before = {name: value for name, value in vars(model).items() if name.endswith("_")}
        Switch.on = True
        with pytest.raises(ComponentError) as caught:
            model.fit(Y.T[:, :6])
        assert caught.value.partial.dictionary.shape == (6, 12)
        with pytest.raises(ComponentError):
            model.partial_fit(Y.T)
    finally:
        Switch.on = False
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys() and all(after[name] is before[name] for name in before)
    assert model.transform(Y.T).shape == (100, 12)


def test_denoising_with_a_coder_that_fails():
    pytest.importorskip("skimage")
    picture = np.random.default_rng(0).random((20, 20))
    Switch.on = True
    try:
        with pytest.raises(ComponentError, match="Coder") as caught:
            mdl.images.denoise(picture, sigma=0.1, patch_size=4, n_atoms=20, coder=Coder(), rng=0)
    finally:
        Switch.on = False
    assert caught.value.partial is not None


@pytest.mark.parametrize("iteration", [0, LAST])
def test_the_command_line_says_which_part_failed_and_keeps_the_result(iteration, tmp_path, monkeypatch):
    class Plugin:
        def encode(self, signals, dictionary, iteration=None):
            return fault() if iteration == failing else CODER.encode(signals, dictionary)

    failing = iteration
    monkeypatch.setattr(sys.modules["manifold_dl.cli.learn"], "coder_named", lambda *_: Plugin())
    np.save(tmp_path / "rows.npy", Y.T)
    data, out, kept = (tmp_path / name for name in ("rows.npy", "model.npz", "model.partial.npz"))
    options = ["--atoms", "12", "--sparsity", "3", "--out", str(out), "--quiet"]
    done = CliRunner().invoke(app, ["learn", str(data), *options])
    assert done.exit_code == 1 and not out.exists()
    sentence = " ".join(done.stderr.split())
    assert sentence.startswith("manifold-dl: The coder") and "Traceback" not in sentence
    assert f"Plugin raised Broken: it is broken, in iteration {iteration}." in sentence.replace(
        "(", ""
    ).replace(")", "")
    assert kept.exists() == (str(kept) in sentence) == (iteration > 0)
    if iteration:
        assert mdl.load(kept).n_iter == iteration
