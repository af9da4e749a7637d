"""Fields of components as parameters of the estimator."""

import pickle

import pytest
from estimator_models import ROWS, model
from sklearn.base import clone

from manifold_dl import (
    OMP,
    History,
    ManifoldDictionaryLearning,
    SimCO,
    schedules,
)

# Parameters of the parts


def test_fields_of_components_are_parameters():
    estimator = model(update=SimCO(mu=0.1, schedule=schedules.Blocks(4)))
    params = estimator.get_params()
    assert params["coder__sparsity"] == 2 and params["update__mu"] == 0.1
    assert params["update__schedule__size"] == 4
    assert "coder__sparsity" not in estimator.get_params(deep=False)
    before = estimator.coder
    estimator.set_params(coder__sparsity=3, update__schedule__size=6, update__mu=0.2, max_iter=7)
    assert estimator.coder == OMP(sparsity=3) and before == OMP(sparsity=2)  # a new one: they are frozen
    assert estimator.update == SimCO(mu=0.2, schedule=schedules.Blocks(6)) and estimator.max_iter == 7
    assert estimator.set_params() is estimator


def test_component_and_its_field_are_set_in_one_call():
    estimator = ManifoldDictionaryLearning().set_params(coder__tol=0.5, coder=OMP(sparsity=3))
    assert estimator.coder == OMP(sparsity=3, tol=0.5)
    estimator.set_params(update=SimCO(), update__schedule=schedules.Blocks(2), update__schedule__size=5)
    assert estimator.update == SimCO(schedule=schedules.Blocks(5))


def test_component_with_set_params_is_changed_by_it():
    class Coder:
        sparsity = 1

        def get_params(self, deep=True):
            return {"sparsity": self.sparsity}

        def set_params(self, **params):
            self.sparsity = params["sparsity"]
            return self

    estimator = model(coder=Coder()).set_params(coder__sparsity=4)
    assert estimator.get_params()["coder__sparsity"] == estimator.coder.sparsity == 4


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"coder__speed": 1}, r"Invalid parameter coder__speed: coder=OMP\(.*\) has sparsity, tol"),
        ({"update__schedule__size": 3}, r"update__schedule=AllAtoms\(\) has no such field"),
        ({"max_iter__x": 3}, "max_iter=4 has no such field"),
        ({"speed": 3}, "Invalid parameter 'speed'"),
        ({"speed__x": 3}, "Invalid parameter 'speed'"),
        ({"coder__sparsity": 0}, "sparsity=0: a code needs at least one atom"),
    ],
)
def test_parameters_that_do_not_exist_are_refused(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        model().set_params(**params)


def test_field_of_a_missing_component_is_refused():
    with pytest.raises(ValueError, match="coder=None has no such field; set coder itself first"):
        ManifoldDictionaryLearning().set_params(coder__sparsity=3)


def test_clones_are_equal_and_share_nothing():
    original = model(update=SimCO(mu=[0.1, 0.0], schedule=schedules.Blocks(4)), callbacks=[History()])
    copied = clone(original)
    assert copied.get_params(deep=False).keys() == original.get_params(deep=False).keys()
    assert copied.coder == original.coder and copied.update == original.update
    assert copied.update is not original.update and copied.callbacks[0] is not original.callbacks[0]


def test_repr_shows_changed_parameters():
    assert repr(ManifoldDictionaryLearning()) == "ManifoldDictionaryLearning()"
    text = repr(ManifoldDictionaryLearning(5, coder=OMP(sparsity=2)))
    assert (
        "n_components=5" in text
        and "coder=OMP(sparsity=2, tol=None, nonnegative=False)" in text
        and "max_iter" not in text
    )
    assert "OMP" in model()._repr_html_()


def test_fitting_does_not_change_the_parameters():
    update = SimCO(mu=[0.1, 0.0])
    estimator = model(update=update)
    before = pickle.dumps(estimator.get_params(deep=False))
    estimator.fit(ROWS).partial_fit(ROWS)
    assert pickle.dumps(estimator.get_params(deep=False)) == before and estimator.update is update
