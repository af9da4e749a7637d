"""What must hold for every input, searched for a counterexample by Hypothesis: 200 examples here, 3,000 with
`make fuzz`.

Only sentences of ours as errors; finite; on the manifold; the given pattern; no rising objective; the same
bits for the same seed, any number of threads, any value of a missing entry, and for files; a cost that
depends on no order, signs, axes and units; ℓ₁ codes that satisfy the conditions of optimality.
"""

import warnings
from dataclasses import replace

import fuzz_cases
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
from catalogue import is_sentence
from hypothesis import HealthCheck, given, settings

import manifold_dl as mdl
from manifold_dl.engines import Threads
from manifold_dl.manifolds.factories import feasible_set

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@pytest.fixture(scope="module")
def examples(request):
    """A quarter of the examples for each of four tests; the same ones in every run of `make test`."""
    count = request.config.getoption("--fuzz")
    return settings(max_examples=count // 4, derandomize=count <= 200, **QUIET)


def attempt(call):
    """What a call returns, or None if it is refused with a sentence of ours."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            assert is_sentence(error), repr(error)
            hypothesis.event("refused")
            return None


def require_on_manifold(rule, before, D):
    tolerance = 1e-12 if D.dtype == np.float64 else 1e-5
    factory = getattr(rule, "manifold", mdl.manifolds.Spheres)
    assert D.shape == before.shape and np.isfinite(D).all()
    moved = (before != D).any(axis=0)
    np.testing.assert_allclose(np.linalg.norm(D[:, moved].astype(float), axis=0), 1, atol=tolerance)
    if moved.all() and isinstance(getattr(rule, "schedule", None), mdl.schedules.AllAtoms):
        if factory is mdl.manifolds.NonNegative:  # its `closest` lifts entries below 1e-6/√m, to start from
            assert D.min() >= 0
        else:
            np.testing.assert_allclose(feasible_set(factory, *D.shape).nearest_point(D), D, atol=tolerance)


def cost_of(rule, Y, X, D, W):
    """The objective of all atoms: what a rule with all atoms may not raise."""
    options = {"mu": rule.mu, "codes": rule.codes, "regularizers": rule.regularizers, "threads": 1}
    options["weights"] = W
    problem = mdl.update_problem(Y, X, **options)
    return float(problem.cost(D)), problem


def require_equivariance(problem_of, Y, X, D, seed):
    """Order and signs of signals and atoms, the axes, and the units are all the same to the cost."""
    rng = np.random.default_rng(seed)
    (m, n), d = Y.shape, D.shape[1]
    signals, atoms, signs = rng.permutation(n), rng.permutation(d), rng.choice([-1.0, 1.0], d)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    value = problem_of(Y, X).cost(D)
    turned = problem_of(4.0 * (Q @ Y)[:, signals], X[atoms][:, signals]).cost((Q @ D * signs)[:, atoms])
    energy = np.sum(Y.astype(float) ** 2)
    assert turned / 16 == pytest.approx(value, rel=1e-9, abs=1e-9 * energy)


def test_updates(examples):
    @examples
    @given(st.data(), fuzz_cases.problems(), st.integers(0, 99))
    def run(data, problem, seed):
        Y, D, X = problem
        rule = data.draw(fuzz_cases.rules(D.shape[1], threads=1))
        W = data.draw(fuzz_cases.weights(Y))
        update = lambda r=rule, Y=Y: r(Y, D, X, iteration=0, rng=seed, weights=W)
        found = attempt(update)
        if found is None:
            return
        after, codes = found
        require_on_manifold(rule, D, after)
        assert codes.shape == X.shape and np.isfinite(codes.data).all()
        given_pattern, pattern = X.toarray() != 0, codes.toarray() != 0
        stored = np.zeros(X.shape, bool)
        stored[X.indices, np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))] = True
        follows_on_supports = not isinstance(rule, mdl.SimCO) or rule.coder is None
        assert not follows_on_supports or not (pattern & ~(given_pattern | stored)).any()
        again = attempt(lambda: update(Y=fuzz_cases.with_unknown_entries(Y, W)))
        np.testing.assert_array_equal(again[0], after)
        if not isinstance(rule, mdl.MOD):
            np.testing.assert_array_equal(attempt(lambda: update(replace(rule, threads=2)))[0], after)
        unit = np.abs(Y).max()
        if isinstance(rule, mdl.SimCO) and 1e-30 < unit < 1e30 and rule.codes == "follow":
            _require_descent(rule, Y, D, X, after, seed, W)

    run()


def _require_descent(rule, Y, D, X, after, seed, W):
    if not isinstance(rule.schedule, mdl.schedules.AllAtoms) or X.nnz == 0:
        return
    start = feasible_set(rule.manifold, *D.shape).nearest_point(D)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, _ = cost_of(rule, Y, X, start, W)
        now, _ = cost_of(rule, Y, X, after, W)
        energy = np.sum(Y.astype(float) ** 2 * (1.0 if W is None else W))
        eps = np.finfo(Y.dtype).eps
        assert now <= before + 64 * eps * (abs(before) + energy)
        if not rule.regularizers and Y.dtype == np.float64 and W is None:
            mu = max(rule.mu, 1e-3)  # codes of dependent atoms are decided by rounding
            problem_of = lambda Y, X: mdl.update_problem(Y, X, mu=mu, threads=1)
            require_equivariance(problem_of, Y, X, start, seed)


def test_learning(examples):
    @examples
    @given(st.data(), fuzz_cases.problems(), st.integers(0, 99))
    def run(data, problem, seed):
        Y, d = problem[0], problem[1].shape[1]
        options = {
            "coder": data.draw(fuzz_cases.coders(len(Y), d)),
            "update": data.draw(fuzz_cases.rules(d, threads=1)),
            "max_iter": data.draw(st.integers(1, 3)),
            "init": data.draw(st.sampled_from(["data", "random", "dct"])),
            "restarts": data.draw(st.integers(1, 2)),
            "rng": seed,
            "weights": data.draw(fuzz_cases.weights(Y)),
        }
        learn = lambda Y, threads: attempt(lambda: mdl.learn_dictionary(Y, d, threads=threads, **options))
        result = learn(Y, 1)
        if result is None:
            return
        assert np.isfinite(result.dictionary).all() and np.isfinite(result.codes.data).all()
        assert np.isfinite(result.history.relative_loss).all() and result.n_iter <= options["max_iter"]
        tolerance = 1e-12 if Y.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, atol=tolerance)
        sparsity = getattr(options["coder"], "sparsity", None) or d
        assert np.diff(result.codes.indptr).max(initial=0) <= sparsity
        assert not Y.any() or result.explained >= -1e-6
        again = learn(fuzz_cases.with_unknown_entries(Y, options["weights"]), 2)
        np.testing.assert_array_equal(again.dictionary, result.dictionary)
        np.testing.assert_array_equal(again.codes.toarray(), result.codes.toarray())

    run()


def require_same_result(found, expected):
    codes = found.codes if scipy.sparse.issparse(found.codes) else found.codes.compute()
    np.testing.assert_array_equal(found.dictionary, expected.dictionary)
    np.testing.assert_array_equal(codes.toarray(), expected.codes.toarray())
    np.testing.assert_array_equal(found.explained, expected.explained)
    for name in ("loss", "relative_loss", "objective", "validation", "replaced"):
        np.testing.assert_array_equal(getattr(found.history, name), getattr(expected.history, name), name)


def require_explained(result, Y, W):
    """The explained fraction, and that of the mean losses, from the residual in long double precision."""
    weights = np.ones(Y.shape) if W is None else np.broadcast_to(W, Y.shape).astype(float)
    unit = np.abs(Y).max()
    signals = Y.astype(np.longdouble) / unit
    rest = signals - result.dictionary.astype(np.longdouble) @ (result.codes.toarray() / unit)
    energy = float(np.sum(weights * signals**2))
    explained = 1 - float(np.sum(weights * rest**2)) / energy
    # Codes in single precision are rounded, relative to ‖y‖.
    assert result.explained == pytest.approx(explained, abs=1e-10 if Y.dtype == np.float64 else 1e-4)
    assert result.explained >= -1e-6


def test_minibatches_and_files(examples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")

    @examples
    @given(st.data(), fuzz_cases.problems(), st.integers(0, 99))
    def run(data, problem, seed):
        Y, d = problem[0], problem[1].shape[1]
        W = data.draw(fuzz_cases.weights(Y))
        options = {
            "coder": data.draw(fuzz_cases.coders(len(Y), d)),
            "update": data.draw(fuzz_cases.rules(d, threads=1)),
            "max_iter": data.draw(st.integers(1, 4)),
            "init": data.draw(st.sampled_from(["data", "random", "dct"])),
            "restarts": data.draw(st.integers(1, 2)),
            "minibatches": data.draw(fuzz_cases.minibatches()),
            "validation": data.draw(st.sampled_from([None, Y[:, : 1 + Y.shape[1] // 2], 0 * Y[:, :1]])),
            "rng": seed,
            "weights": W,
        }
        learn = lambda Y, **where: attempt(lambda: mdl.learn_dictionary(Y, d, **where, **options))
        result = learn(Y, threads=1)
        if result is None:
            return
        tolerance = 1e-12 if Y.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, atol=tolerance)
        assert np.isfinite(result.codes.data).all() and np.isfinite(result.history.relative_loss).all()
        if Y.any() and (W is None or (np.abs(Y) * W).any()):
            require_explained(result, Y, W)
        require_same_result(learn(fuzz_cases.with_unknown_entries(Y, W), threads=2), result)
        np.save(folder / "rows.npy", np.ascontiguousarray(Y.T))
        in_file = learn(folder / "rows.npy", engine=Threads(2, memory=0, scratch=folder))
        if in_file is not None and not isinstance(options["coder"], mdl.Lasso):  # it starts from zero there
            require_same_result(in_file, result)

    run()


def test_lasso_problems(examples):
    @examples
    @given(st.data(), fuzz_cases.problems(), st.integers(0, 99))
    def run(data, problem, seed):
        Y, D, _ = problem
        W, mu = data.draw(fuzz_cases.weights(Y)), data.draw(st.sampled_from([0.0, 0.1, 2.0]))
        alpha = data.draw(st.sampled_from([1e-3, 0.1, 0.5, 2.0])) * max(float(np.abs(D.T @ Y).max()), 1e-30)
        options = {"alpha": alpha, "mu": mu, "weights": W, "threads": 1}
        made = attempt(lambda: mdl.lasso_problem(Y, D.shape[1], **options))
        if made is None:
            return
        cost, gradient, X = made.cost(D), made.euclidean_gradient(D), made.codes(D).toarray()
        if Y.dtype == np.float64 and 1e-30 < np.abs(Y).max() < 1e30:
            require_optimal_codes(Y, D, X, W, alpha, mu)
            require_value_and_gradient(cost, gradient, Y, D, X, W, alpha, mu)
        again = mdl.lasso_problem(
            fuzz_cases.with_unknown_entries(Y, W), D.shape[1], **options | {"threads": 2}
        )
        assert again.cost(D) == cost
        np.testing.assert_array_equal(again.euclidean_gradient(D), gradient)
        optimizer = mdl.LBFGS(max_iterations=3, verbosity=0)
        point = attempt(lambda: optimizer.run(made, initial_point=D).point)
        eps = np.finfo(Y.dtype).eps
        assert made.cost(point) <= cost + 64 * eps * abs(cost)
        np.testing.assert_allclose(np.linalg.norm(point, axis=0), 1, atol=1e-12 if eps < 1e-10 else 1e-5)

    run()


def weights_of_terms(Y, W):
    """The weight of every entry, and that of every signal's penalty."""
    if W is None:
        return np.ones(Y.shape), np.ones(Y.shape[1])
    W = np.asarray(W, float)
    return (np.broadcast_to(W, Y.shape), W) if W.ndim == 1 else (W, np.ones(Y.shape[1]))


def require_optimal_codes(Y, D, X, W, alpha, mu):
    """Dᵀ(w∘r) − μx is α·sign(x) where x is not zero, and at most α in size elsewhere."""
    entries, signals = weights_of_terms(Y, W)
    slope = D.T @ (entries * (Y - D @ X)) - signals * mu * X
    tolerance = 2e-6 * (signals * alpha + np.abs(D.T @ (entries * Y)).max(axis=0))  # that of `Lasso`, doubled
    assert (np.abs(slope) <= signals * alpha + tolerance).all()
    assert (np.abs(slope - signals * alpha * np.sign(X)) <= tolerance)[X != 0].all()


def require_value_and_gradient(cost, gradient, Y, D, X, W, alpha, mu):
    """By the formulas, for the codes found."""
    entries, signals = weights_of_terms(Y, W)
    rest = Y - D @ X
    value = np.sum(entries * rest**2) / 2 + np.sum(signals * (alpha * np.abs(X) + mu / 2 * X**2))
    energy = np.sum(entries * Y**2)
    assert cost == pytest.approx(value, rel=1e-9, abs=1e-12 * energy)
    expected = -(entries * rest) @ X.T
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-9 * max(energy, np.abs(expected).max()))
