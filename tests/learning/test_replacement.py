"""Which atoms go, and what takes their place."""

import numpy as np
import pytest

from manifold_dl import MOD, OMP, ReplaceAtoms, datasets, learn_dictionary

D_TRUE, X_TRUE, Y = datasets.synthetic(16, 24, 300, sparsity=3, rng=0)


def unit(columns):
    columns = np.asarray(columns, dtype=float)
    return columns / np.linalg.norm(columns, axis=0)


def coded(dictionary, signals=Y, sparsity=3):
    return OMP(sparsity=sparsity).encode(signals, dictionary)


def residual_fractions(dictionary, codes, signals=Y):
    """‖y − Dx‖²/‖y‖², written out."""
    return np.sum((signals - dictionary @ codes) ** 2, axis=0) / np.sum(signals**2, axis=0)


def without_users(codes, atom, keep=0):
    """The codes with all but the first `keep` users of an atom taken away."""
    codes = codes.toarray()
    codes[atom, np.flatnonzero(codes[atom])[keep:]] = 0
    return codes


@pytest.mark.parametrize("keep", [0, 3], ids=["unused", "rarely used"])
def test_an_atom_with_fewer_than_four_users_becomes_the_worst_represented_signal(keep):
    X = without_users(X_TRUE, 5, keep)
    D, replaced = ReplaceAtoms()(Y, D_TRUE, X)
    assert replaced.tolist() == [5]
    worst = np.argmax(residual_fractions(D_TRUE, X))
    # One division by the norm, done here in another order: a few units in the last place.
    np.testing.assert_allclose(D[:, 5], unit(Y)[:, worst], rtol=1e-14)
    others = np.arange(24) != 5
    np.testing.assert_array_equal(D[:, others], D_TRUE[:, others])


def test_atom_with_four_users_is_kept():
    D, replaced = ReplaceAtoms()(Y, D_TRUE, without_users(X_TRUE, 5, keep=4))
    assert len(replaced) == 0
    np.testing.assert_array_equal(D, D_TRUE)


def test_stored_zeros_do_not_count_as_users():
    X = X_TRUE.copy()
    X.data[X.indices == 5] = 0
    assert ReplaceAtoms()(Y, D_TRUE, X)[1].tolist() == [5]


@pytest.mark.parametrize("sign", [1, -1], ids=["duplicate", "antipodal"])
@pytest.mark.parametrize(("cosine", "goes"), [(0.992, True), (0.988, False)])
def test_of_two_coherent_atoms_the_less_used_is_replaced(sign, cosine, goes):
    aside = unit(D_TRUE[:, [7]] - D_TRUE[:, [3]] * (D_TRUE[:, 3] @ D_TRUE[:, 7]))[:, 0]
    D = D_TRUE.copy()
    D[:, 7] = sign * (cosine * D_TRUE[:, 3] + np.sqrt(1 - cosine**2) * aside)
    X = without_users(X_TRUE, 3, keep=5)  # fewer than atom 7 has
    _, replaced = ReplaceAtoms()(Y, D, X)
    assert replaced.tolist() == ([3] if goes else [])


def test_of_equally_used_duplicates_the_later_is_replaced():
    D = D_TRUE.copy()
    D[:, 7] = D[:, 3]
    _, replaced = ReplaceAtoms(min_users=0)(Y, D, np.zeros((24, 300)))
    assert replaced.tolist() == [7]


def test_of_three_duplicates_one_stays():
    D = D_TRUE.copy()
    D[:, [7, 9]] = D[:, [3]] * [1, -1]
    _, replaced = ReplaceAtoms(min_users=0)(Y, D, np.zeros((24, 300)))
    assert replaced.tolist() == [7, 9]


def test_every_signal_is_used_once_in_order_of_its_error():
    D, X = D_TRUE, X_TRUE.toarray()
    X[[2, 5, 11]] = 0
    new, replaced = ReplaceAtoms()(Y, D, X)
    assert replaced.tolist() == [2, 5, 11]
    order = np.argsort(-residual_fractions(D, X), kind="stable")[:3]
    # None of the three resembles another or a kept atom, or the expectation below would be another.
    candidates = unit(Y)[:, order]
    cosines = np.abs(candidates.T @ np.hstack([candidates, np.delete(D, replaced, axis=1)]))
    assert (np.sort(cosines, axis=1)[:, -2] < 0.99).all()
    np.testing.assert_allclose(new[:, replaced], candidates, rtol=1e-14)


def test_equally_represented_signals_are_taken_in_order():
    signals = np.eye(4)[:, [0, 1, 2, 3] * 2]  # with codes of zero, all are represented equally badly
    D, replaced = ReplaceAtoms()(signals, unit(np.ones((4, 2)) + np.eye(4)[:, :2]), np.zeros((2, 8)))
    assert replaced.tolist() == [0, 1]
    np.testing.assert_array_equal(D, np.eye(4)[:, :2])


def test_new_atoms_are_incoherent_with_all_others():
    signals = np.repeat(np.eye(4)[:, :2], 10, axis=1) * np.tile(
        [1, -1], 10
    )  # two directions, with both signs
    D, replaced = ReplaceAtoms()(signals, unit(np.eye(4)[:, :3] + 0.5), np.zeros((3, 20)))
    assert replaced.tolist() == [0, 1]  # there is no third direction, so the last atom stays
    np.testing.assert_array_equal(np.abs(D[:, :2]), np.eye(4)[:, :2])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparsity", [1, 2])
def test_nothing_is_replaced_where_every_signal_is_represented_exactly(dtype, sparsity):
    D, X, signals = datasets.synthetic(8, 12, 50, sparsity, rng=1)
    spare = unit(np.ones((8, 1)))  # one more atom that nobody uses
    D, signals = np.hstack([D, spare]).astype(dtype), signals.astype(dtype)
    codes = np.vstack([X.toarray(), np.zeros((1, 50))]).astype(dtype)
    assert len(ReplaceAtoms()(signals, D, codes)[1]) == 0
    refitted = OMP(sparsity=8).encode(signals, D)  # with all the rounding of normal equations
    assert len(ReplaceAtoms(min_users=99)(signals, D, refitted)[1]) == 0


def test_signals_of_zero_replace_nothing():
    D, replaced = ReplaceAtoms()(np.zeros((16, 9)), D_TRUE, np.zeros((24, 9)))
    assert len(replaced) == 0
    np.testing.assert_array_equal(D, D_TRUE)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("c", [2.0**-90, 2.0**40, 2.0**90])
def test_the_scale_of_the_signals_does_not_matter(dtype, c):
    """Squares of 2⁹⁰ are beyond single precision; relative errors are not."""
    D, signals = D_TRUE.astype(dtype), Y.astype(dtype)
    X = coded(D, signals).toarray()
    X[[2, 5, 11]] = 0
    here, there = ReplaceAtoms()(signals, D, X), ReplaceAtoms()(dtype(c) * signals, D, dtype(c) * X)
    assert here[1].tolist() == there[1].tolist() == [2, 5, 11]
    np.testing.assert_array_equal(here[0], there[0])  # a power of two rounds nothing
    assert there[0].dtype == dtype


def test_replacement_does_not_change_its_arguments():
    X = without_users(X_TRUE, 5)
    before = D_TRUE.copy(), X.copy()
    ReplaceAtoms()(Y, D_TRUE, X)
    np.testing.assert_array_equal(D_TRUE, before[0])
    np.testing.assert_array_equal(X, before[1])


def test_learning_records_what_was_replaced():
    steps = []
    start = np.hstack([D_TRUE[:, :20], -D_TRUE[:, :4]])  # four antipodal duplicates
    result = learn_dictionary(
        Y, 24, coder=OMP(sparsity=3), update=MOD(), init=start, max_iter=3, rng=0, callbacks=[steps.append]
    )
    assert result.history.replaced[0] == len(steps[0].replaced) == 4
    assert sorted(steps[0].replaced % 20) == [0, 1, 2, 3]  # one of each pair
    assert result.history.replaced[-1] == 0


@pytest.mark.parametrize("options", [{"coherence": 0}, {"coherence": 1.1}, {"min_users": -1}])
def test_refused_with_a_sentence(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        ReplaceAtoms(**options)
