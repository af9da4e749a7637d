"""`SimCO` with codes that follow by a penalty: any schedule descends, and no other coder is needed."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

import manifold_dl as mdl
from manifold_dl import Lasso, ManifoldDictionaryLearning, SimCO, learn_dictionary
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import Coherence
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime

ALPHA = 0.1


@pytest.fixture(scope="module")
def data():
    _, _, Y = synthetic(8, 12, 60, sparsity=2, snr_db=20, rng=0)
    return Y, Spheres(8, 12).random_point(rng=1)


def objective(Y, D, mu=0.0):
    X = mdl.lasso_problem(Y, 12, alpha=ALPHA, mu=mu).codes(D).toarray()
    return 0.5 * np.sum((Y - D @ X) ** 2) + ALPHA * np.sum(np.abs(X)) + 0.5 * mu * np.sum(X**2)


@pytest.mark.parametrize(
    "schedule", [AllAtoms(), OneAtATime(), Blocks(size=5)], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("mu", [0.0, 0.05])
def test_no_sweep_raises_the_objective(data, schedule, mu):
    Y, D = data
    update, codes = SimCO(schedule=schedule, codes=Lasso(ALPHA), mu=mu), np.zeros((12, 60))
    values = [objective(Y, D, mu)]
    for sweep in range(3):
        D, codes = update(Y, D, codes, rng=sweep)
        np.testing.assert_allclose(np.linalg.norm(D, axis=0), 1, atol=1e-12)
        values.append(objective(Y, D, mu))
    assert all(after < before for before, after in itertools.pairwise(values))


def test_update_is_the_descent_of_lasso_problem(data):
    Y, D = data
    optimizer = mdl.updates.default_optimizer(5)
    ours, _ = SimCO(optimizer, codes=Lasso(ALPHA))(Y, D, np.zeros((12, 60)))
    value = mdl.lasso_problem(Y, 12, alpha=ALPHA).cost(ours)
    direct = optimizer.run(mdl.lasso_problem(Y, 12, alpha=ALPHA), initial_point=D).cost
    assert value == pytest.approx(direct, rel=1e-6)  # the same steps, on a cost in other units


def test_learning_needs_no_coder_and_codes_are_those_of_the_lasso(data):
    Y = data[0]
    result = learn_dictionary(Y, 12, coder=None, update=SimCO(codes=Lasso(ALPHA)), max_iter=5, rng=0)
    expected = Lasso(ALPHA).encode(Y, result.dictionary).toarray()
    np.testing.assert_allclose(result.codes.toarray(), expected, atol=1e-3)  # gaps of 1e-6


def test_estimator_transforms_by_the_coder_of_the_update(data):
    rows = data[0].T
    model = ManifoldDictionaryLearning(12, update=SimCO(codes=Lasso(ALPHA)), max_iter=4, random_state=0)
    copy = clone(model).set_params(update__codes__alpha=0.3)
    assert model.get_params()["update__codes__alpha"] == ALPHA
    assert copy.update.codes == Lasso(0.3)
    codes = model.fit(rows).transform(rows)
    np.testing.assert_allclose(codes.T, Lasso(ALPHA).encode(rows.T, model.components_.T).toarray(), atol=1e-3)
    assert np.count_nonzero(copy.fit(rows).transform(rows)) < np.count_nonzero(codes)


def test_settings_are_stored_with_the_result(data, tmp_path):
    rule = SimCO(codes=Lasso(ALPHA))
    mdl.save(learn_dictionary(data[0], 12, update=rule, max_iter=2, rng=0), tmp_path / "result.npz")
    assert mdl.load(tmp_path / "result.npz").component("update") == rule


def test_number_of_threads_does_not_change_a_bit():
    _, _, Y = synthetic(8, 12, 5000, sparsity=2, snr_db=20, rng=0)
    D = Spheres(8, 12).random_point(rng=1)
    found = [SimCO(codes=Lasso(ALPHA), threads=k)(Y, D, np.zeros((12, 5000))) for k in (1, 2)]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1].toarray(), found[1][1].toarray())


@pytest.mark.parametrize("scale", [1.0, 2.0**130])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_history_holds_the_objective_that_is_minimised(weighted, scale):
    truth, _, Y = mdl.datasets.synthetic(8, 12, 80, sparsity=2, snr_db=20, rng=0)
    weights = np.random.default_rng(1).integers(0, 3, Y.shape) if weighted else None
    alpha, mu, regularizers = 0.1 * scale, 0.2, [Coherence(0.1 * scale**2)]
    dictionaries = []
    update = mdl.SimCO(codes=mdl.Lasso(alpha=alpha), mu=mu, regularizers=regularizers)
    options = {"max_iter": 4, "init": truth, "replace": None, "rng": 0, "weights": weights}
    options["callbacks"] = [lambda step: dictionaries.append(np.array(step.dictionary))]
    result = mdl.learn_dictionary(scale * Y, 12, update=update, **options)
    for found, D in zip(result.history.objective, dictionaries, strict=True):
        W = np.ones_like(Y) if weights is None else weights
        X = mdl.lasso_problem(scale * Y, 12, alpha=alpha, mu=mu, weights=weights).codes(D).toarray() / scale
        expected = np.sum(W * (Y - D @ X) ** 2) / 2 + 0.1 * np.abs(X).sum() + mu / 2 * np.sum(X**2)
        expected += regularizers[0].value(D) / scale**2
        assert found / scale**2 == pytest.approx(expected, rel=1e-10)
    assert np.all(np.diff(result.history.objective) <= 0)
