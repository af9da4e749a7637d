"""The engine of one machine: the same bits for any number of threads, totals and states of maps."""

import numpy as np
import pytest

from manifold_dl import update_problem
from manifold_dl.engines import BlockMap, Threads
from manifold_dl.engines.ordered_map import available_threads, ordered_map
from manifold_dl.engines.threads import as_engine, as_threads
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import Coherence

N = 5000  # three blocks, the last one shorter


@pytest.fixture(scope="module", params=[np.float64, np.float32], ids=["float64", "float32"])
def data(request):
    rng = np.random.default_rng(0)
    spheres = Spheres(12, 30)
    D = spheres.random_point(rng)
    D[:, 1] = D[:, 0]  # some supports without full rank, so that they take part too
    U = spheres.random_tangent_vector(D, rng)
    Y = rng.standard_normal((12, N))
    mask = rng.random((30, N)) < 0.12
    dtype = request.param
    return Y.astype(dtype), mask, D.astype(dtype), U.astype(dtype)


def everything(Y, mask, D, U, threads, **options):
    """All that one problem can be asked for, as a flat list of arrays."""
    problem = update_problem(Y, mask, threads=threads, **options)
    phi = problem.restrict(D, U)
    return [
        problem.cost(D),
        problem.euclidean_gradient(D),
        problem.riemannian_gradient(D),
        problem.riemannian_hessian(D, U),
        problem.preconditioner(D, U),
        problem.codes(D).data,
        *(f(t) for t in (0.0, 0.1, 1.5) for f in (phi, phi.derivative)),
        problem.counts.rank_deficient,
    ]


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("threads", [2, 8])
def test_same_bits_for_any_number_of_threads(data, mu, threads):
    one, many = everything(*data, 1, mu=mu), everything(*data, threads, mu=mu)
    assert (one[-1] > 0) == (mu == 0)
    for expected, found in zip(one, many, strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def test_same_bits_with_fixed_codes_and_some_of_the_atoms(data):
    Y, mask, D, U = data
    codes = mask * np.random.default_rng(1).standard_normal(mask.shape)
    I = np.array([4, 0, 17])
    for options in ({"codes": "fixed"}, {"mu": 0.01, "regularizers": [Coherence(1.0)]}):
        runs = [
            everything(Y, codes, D[:, I], U[:, I], threads, atoms=I, dictionary=D, **options)
            for threads in (1, 2, 8)
        ]
        for many in runs[1:]:
            for expected, found in zip(runs[0], many, strict=True):
                np.testing.assert_array_equal(found, expected, strict=True)


def test_number_of_threads():
    assert as_threads(None) == available_threads() >= 1
    assert as_threads(3) == as_threads(np.int64(3)) == 3


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", "two", [2], float("nan"), float("inf")])
def test_a_wrong_number_of_threads_is_refused(threads):
    with pytest.raises(ValueError, match=r"threads=.*whole number"):
        as_threads(threads)


# The engine


def block_sum(rows, factor):
    return factor * rows.sum(), rows * factor


def sum_of_state(state):
    return float(state.sum()), None


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_totals_and_states_of_maps(threads):
    engine, rows = Threads(threads), np.random.default_rng(0).standard_normal((11, 5))
    blocks = engine.open(list(rows))
    scaled = BlockMap(block_sum, (blocks,), (2.0,))
    total = BlockMap(sum_of_state, (scaled,))
    # In one round, although `total` needs the states of `scaled`.
    first, second = engine.total(scaled, total)
    assert first == pytest.approx(2 * rows.sum()) and second == pytest.approx(2 * rows.sum())
    np.testing.assert_array_equal(engine.states(scaled), 2 * rows)


def test_states_of_parents_are_computed_when_they_are_needed():
    engine = Threads(2)
    scaled = BlockMap(block_sum, (engine.open([np.ones(3), np.ones(4)]),), (3.0,))
    assert engine.total(BlockMap(sum_of_state, (scaled,))) == [21.0]
    assert [len(state) for state in engine.states(scaled)] == [3, 4]


def fails_on_the_second(rows):
    if len(rows) == 4:
        raise KeyError("four")
    return 1.0, rows


@pytest.mark.parametrize("threads", [1, 2])
def test_a_map_that_failed_has_no_states(threads):
    engine = Threads(threads)
    blocks = engine.open([np.ones(3), np.ones(4), np.ones(5)])
    broken = BlockMap(fails_on_the_second, (blocks,))
    with pytest.raises(KeyError, match="four"):
        engine.total(broken)
    assert broken.states is None


def test_no_blocks_have_no_total():
    engine = Threads(1)
    assert engine.total(BlockMap(sum_of_state, (engine.open([]),))) == [None]


def test_the_engine_is_given_once():
    assert as_engine(threads=3) == Threads(3)
    assert as_engine(engine=Threads(2)) == Threads(2)
    with pytest.raises(ValueError, match="give one of them"):
        as_engine(threads=2, engine=Threads(2))
    with pytest.raises(ValueError, match=r"threads=0.*whole number"):
        Threads(0)


def test_a_map_is_run_once():
    engine = Threads(2)
    blocks = engine.open([np.ones(3), np.ones(4)])
    scaled = BlockMap(block_sum, (blocks,), (3.0,))
    engine.total(scaled)
    for done in (scaled, blocks):
        with pytest.raises(ValueError, match="make a new BlockMap"):
            engine.total(done)
    np.testing.assert_array_equal(np.concatenate(engine.states(blocks)), np.ones(7))


def overflows(x):
    return float(np.exp(x).sum()), None


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_numpy_errors_are_handled_alike_in_all_threads(threads):
    engine = Threads(threads)
    with np.errstate(over="ignore"):  # a warning would be an error
        total = engine.total(BlockMap(overflows, (engine.open([np.full(3, 1e3)] * 20),)))
    assert total == [np.inf]


def test_one_problem_in_many_threads():
    rng = np.random.default_rng(0)
    Y, mask = rng.standard_normal((6, N)), rng.random((9, N)) < 0.2
    points = [Spheres(6, 9).random_point(seed) for seed in range(8)]
    expected = [update_problem(Y, mask, mu=0.1).cost(point) for point in points]
    for _ in range(5):
        problem = update_problem(Y, mask, mu=0.1, threads=2)
        # The first evaluations all need the supports arranged for the kernels.
        assert ordered_map(problem.cost, points, threads=8) == expected
