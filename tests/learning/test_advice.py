"""One warning each, with counts, about a result that a user may not expect."""

import warnings

import numpy as np
import pytest

import manifold_dl as mdl

Y = mdl.datasets.synthetic(8, 12, 60, sparsity=2, snr_db=20, rng=0).signals


def learn(signals=Y, n_atoms=12, **options):
    return mdl.learn_dictionary(
        signals, n_atoms, **{"coder": mdl.OMP(sparsity=2), "max_iter": 4, "rng": 0, **options}
    )


def warnings_of(function):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = function()
    return result, [str(warning.message) for warning in given]


def test_ordinary_signals_give_no_warning():
    result, given = warnings_of(learn)
    assert given == [] and (result.history.rank_deficient == 0).all()


def test_fewer_signals_than_atoms():
    _, given = warnings_of(lambda: learn(Y[:, :9]))
    assert sum(text.startswith("there are 9 signals for 12 atoms: at least 3 atoms") for text in given) == 1


@pytest.mark.parametrize("restarts", [1, 3])
def test_atoms_that_no_signal_uses(restarts):
    signals = np.eye(8)[:, list(range(5)) * 8]  # five directions for twelve atoms
    _, given = warnings_of(lambda: learn(signals, coder=mdl.OMP(sparsity=1), restarts=restarts))
    assert len(given) == 1
    assert given[0].startswith("7 of 12 atoms are used by none of the 40 signals in the end.")


class PairOfEqualAtoms:
    """Codes on the atoms 0 and 1, which are equal from the start and stay so."""

    def encode(self, signals, dictionary):
        codes = mdl.OMP(sparsity=1).encode(signals, dictionary[:, 2:]).toarray()
        both = np.zeros((2, signals.shape[1]))
        both[:, :10] = 1.0
        return np.vstack([both, codes])


def test_atoms_that_depend_on_each_other():
    start = mdl.manifolds.Spheres(8, 12).random_point(rng=0)
    start[:, 1] = start[:, 0]
    update = mdl.SimCO(mu=0.0)
    result, given = warnings_of(
        lambda: learn(coder=PairOfEqualAtoms(), init=start, update=update, replace=None, tol=0)
    )
    assert result.history.rank_deficient.tolist() == [10, 10, 10, 10]
    (sentence,) = (text for text in given if "depend on each other" in text)
    assert sentence.startswith("in 4 of 4 iterations, up to 10 of 60 signals had atoms that depend")


def test_the_estimator_warns_once_too():
    model = mdl.ManifoldDictionaryLearning(12, coder=mdl.OMP(sparsity=2), max_iter=2, random_state=0)
    _, given = warnings_of(lambda: model.fit(Y[:, :9].T))
    assert sum("signals for 12 atoms" in text for text in given) == 1


def test_entries_that_no_signal_has_are_named_once():
    weights = np.ones(Y.shape)
    weights[:, :5] = 0  # some signals without any entry are no fault
    _, given = warnings_of(lambda: learn(weights=weights))
    assert given == []
    weights[[2, 6]] = 0
    result, given = warnings_of(lambda: learn(np.where(weights > 0, Y, np.nan), weights=weights, restarts=2))
    assert len(given) == 1 and given[0].startswith(
        "2 of 8 entries, the first of them entry 2, have no weight"
    )
    assert np.isfinite(result.dictionary).all()
