"""Many runs in one process: neither memory nor threads grow. Long: `make soak`.

And the same bits in threads, in forked processes and in joblib's workers, which is quick.
"""

import multiprocessing
import tempfile
import threading
import warnings

import joblib
import numpy as np
import psutil
import pytest

import manifold_dl as mdl

SETS = [mdl.datasets.synthetic(12, 20, 2500, sparsity=3, snr_db=20, rng=seed).signals for seed in (0, 1)]
WEIGHTS = np.random.default_rng(0).random(SETS[0].shape) * (SETS[0] > -1)  # some are zero
OPTIONS = {
    "full iterations": {},
    "mini-batches": {"minibatches": mdl.MiniBatches(size=1024), "restarts": 2},
    "weights": {"weights": WEIGHTS, "validation": SETS[1][:, :100]},
    "l1": {"coder": mdl.Lasso(alpha=0.1), "update": mdl.SimCO(codes=mdl.Lasso(alpha=0.1))},
}
each_kind = pytest.mark.parametrize("kind", OPTIONS)


def learn(signals, **options):
    settings = {"coder": mdl.OMP(sparsity=3), "max_iter": 3, "tol": 0, "rng": 0, **options}
    return mdl.learn_dictionary(signals, 20, **settings)


def bits(signals, kind):
    """The dictionary as text, computed with two threads of its own; from a file for half of the signals."""
    if signals is not SETS[0] and kind != "l1":
        with tempfile.TemporaryDirectory() as folder:
            np.save(folder + "/rows.npy", np.ascontiguousarray(signals.T))
            engine = mdl.engines.Threads(2, memory=0, scratch=folder)
            return learn(folder + "/rows.npy", engine=engine, **OPTIONS[kind]).dictionary.tobytes().hex()
    return learn(signals, threads=2, **OPTIONS[kind]).dictionary.tobytes().hex()


# --- The same bits everywhere -------------------------------------------------------------------------------


@each_kind
def test_two_fits_in_two_threads_have_the_bits_of_one_after_the_other(kind):
    expected, found = [bits(Y, kind) for Y in SETS], {}
    run = lambda k: found.update({k: bits(SETS[k % 2], kind)})
    workers = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [found[k] for k in range(6)] == expected * 3


def put_bits(queue, kind):
    queue.put([bits(Y, kind) for Y in SETS])


@each_kind
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_a_forked_process_has_the_same_bits(kind):
    expected = [bits(Y, kind) for Y in SETS]  # and threads exist by now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=put_bits, args=(queue, kind))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: of any fork with threads
        child.start()
    try:
        assert queue.get(timeout=60) == expected
        child.join(timeout=60)
        assert child.exitcode == 0
    finally:
        child.kill()


def bits_of(number, kind):
    return bits(SETS[number], kind)


@each_kind
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_have_the_same_bits(backend, kind):
    expected = [bits(Y, kind) for Y in SETS]
    with joblib.parallel_config(backend, n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(bits_of)(number, kind) for number in range(2)) == expected


# --- Many runs ----------------------------------------------------------------------------------------------


def growth(run, times, warm_up):
    """Megabytes and threads that `times` runs add, after some that fill all caches."""
    process = psutil.Process()
    for _ in range(warm_up):
        run()
    memory, threads = process.memory_info().rss, process.num_threads()
    for _ in range(times):
        run()
    return (process.memory_info().rss - memory) / 2**20, process.num_threads() - threads


@pytest.mark.slow
def test_500_fits_leave_nothing_behind():
    rows, seeds = SETS[0].T.copy(), iter(range(10_000))

    def fit():
        model = mdl.ManifoldDictionaryLearning(20, coder=mdl.OMP(sparsity=3), max_iter=3, n_jobs=2)
        model.set_params(random_state=next(seeds)).fit(rows).partial_fit(rows[:200])

    megabytes, threads = growth(fit, times=500, warm_up=60)
    # A history of 500 iterations that was kept would be a megabyte, the codes of each run 20.
    assert megabytes < 10 and threads <= 0


@pytest.mark.slow
def test_3000_outer_iterations_leave_nothing_behind():
    process, seen = psutil.Process(), {}

    def watch(step):
        if step.iteration in (300, 2999):
            seen[step.iteration] = process.memory_info().rss / 2**20, process.num_threads()

    learn(SETS[0], max_iter=3000, callbacks=[watch])
    # The history grows by 3,000 rows of 15 numbers: about two megabytes of Python objects.
    assert seen[2999][0] - seen[300][0] < 10 and seen[2999][1] <= seen[300][1]
