"""A schedule of the ridge μ that returns what is no ridge is named."""

import numpy as np
import pytest
from faulty_parts import LAST, Switch, run, run_with_fault, with_parts

import manifold_dl as mdl
from manifold_dl.components.errors import ComponentError

nan = np.nan


@pytest.mark.parametrize("wrong", [nan, -1.0, np.inf, "0.1", None, [0.1]], ids=repr)
def test_invalid_ridge_names_the_schedule_function(wrong):
    def strange(iteration):
        return wrong if Switch.on else 0.1

    error, steps = run_with_fault(**with_parts(mu=strange))
    assert isinstance(error, ComponentError) and error.role == "schedule of mu"
    assert "strange" in str(error) and f"returned {wrong!r}, and the ridge is one finite number" in str(error)
    assert error.iteration == LAST and error.partial.n_iter == len(steps)


class Bound:
    """A schedule of mu whose method bind returns something that is no ridge."""

    def __init__(self, wrong):
        self.wrong = wrong

    def __call__(self, iteration):
        return 0.0

    def bind(self, max_iter):
        return self.wrong


@pytest.mark.parametrize("wrong", ["much", None, [], [0.1, nan], -1.0, np.array([0.1, -1.0])], ids=repr)
def test_bind_that_returns_no_ridge_names_the_schedule_of_mu(wrong):
    with pytest.raises(ComponentError, match=r"schedule of mu .*Bound.* from its method bind") as caught:
        run(update=mdl.SimCO(mu=Bound(wrong)))
    assert isinstance(caught.value.component, Bound)


def test_bind_may_return_an_array():
    history = run(update=mdl.SimCO(mu=Bound(np.array([0.2, 0.1])))).history
    np.testing.assert_array_equal(history.loss, run(update=mdl.SimCO(mu=[0.2, 0.1])).history.loss)
