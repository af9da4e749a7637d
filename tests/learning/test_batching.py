"""Mini-batches: how many passes, when they are the default, and which settings are refused."""

import pytest

from manifold_dl import KSVD, MOD, OMP, MiniBatches, SimCO
from manifold_dl.learning.batching import MANY_SIGNALS, as_minibatches
from manifold_dl.schedules import Blocks

CODER, BATCHES = OMP(sparsity=2), MiniBatches(size=1024)


@pytest.mark.parametrize(("max_iter", "n_passes"), [(1, 0), (2, 1), (3, 2), (10, 8), (50, 40)])
def test_the_last_iterations_are_full(max_iter, n_passes):
    assert MiniBatches(full=0.2).n_passes(max_iter) == n_passes


def test_so_much_of_a_pass_counts_at_the_end_of_all_passes():
    passes = MiniBatches(memory=0.25)
    for max_iter in (2, 10):
        # Old signals weigh (N then/N now)^ρ: the sum over all passes is 1/(ρ + 1) of them.
        rho, n_passes = passes.forgetting(max_iter), passes.n_passes(max_iter)
        assert n_passes / (rho + 1) == pytest.approx(0.25)


@pytest.mark.parametrize("update", [SimCO(), SimCO(codes="fixed")])
def test_the_default_is_minibatches_for_many_signals(update):
    assert as_minibatches(None, CODER, update, MANY_SIGNALS) == MiniBatches()
    assert as_minibatches(None, CODER, update, MANY_SIGNALS - 1) is None
    assert as_minibatches(False, CODER, update, MANY_SIGNALS) is None


@pytest.mark.parametrize("update", [KSVD(), MOD(), SimCO(schedule=Blocks(3))])
def test_other_rules_learn_from_all_signals_unless_asked(update):
    assert as_minibatches(None, CODER, update, 10 * MANY_SIGNALS) is None
    assert as_minibatches(BATCHES, CODER, update, 10) == BATCHES


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": 1000}, "size=1000: give a whole number of at least 1024"),
        ({"size": 1500}, "size=1500: mini-batches consist of blocks of 1024 signals"),
        ({"full": 2}, "full=2: a fraction"),
        ({"steps": 0}, "steps=0"),
        ({"memory": 0.0}, "memory=0.0: a positive, finite fraction of a pass"),
    ],
)
def test_impossible_minibatches_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        MiniBatches(**settings)
