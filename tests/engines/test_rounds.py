"""What a round does where Dask, or the cluster, does not do what it usually does."""

import dask.array as da
import numpy as np
import pytest
from clusters import assert_same_bits, local_processes, problem_data
from distributed import Client, LocalCluster, wait

import manifold_dl as mdl
from manifold_dl.engines import BlockMap, ClusterError, Dask, rounds
from manifold_dl.engines.sources import squared_norm_block


def test_waits_that_time_out_while_sums_are_fetched_do_not_break_the_client(client, monkeypatch):
    monkeypatch.setattr(rounds, "POLL", 1e-4)  # the time is over at every step of fetching
    engine = Dask(client)
    blocks = engine.open([np.full((10, 2), float(b)) for b in range(6)])
    for _ in range(30):
        assert engine.total(BlockMap(squared_norm_block, (blocks,))) == [1100.0]
    assert client.submit(abs, -3).result(timeout=100) == 3


def learned_in_a_task(Y, options, address):
    return mdl.learn_dictionary(Y, 32, engine=Dask(address), **options)


@pytest.mark.parametrize("is_named", [False, True], ids=["client of the worker", "address"])
def test_a_run_inside_a_task_gives_its_thread_free_for_its_own_rounds(client, is_named):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    address = client.scheduler.address if is_named else None
    assert_same_bits(client.submit(learned_in_a_task, Y, options, address).result(), expected)


def test_an_adaptive_cluster_without_workers_starts_some():
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    local = LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0")
    with local as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=2, interval="100ms")
        assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), **options), expected)


def test_workers_that_come_and_go_between_iterations_change_no_bit():
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    with local_processes(1) as cluster, Client(cluster) as client:
        sizes = [2, 1]

        def scale(step):
            if step.iteration < len(sizes):
                cluster.scale(sizes[step.iteration])
                cluster.wait_for_workers(sizes[step.iteration])  # until the cluster itself has seen them

        columns = da.from_array(Y, chunks=(16, 2500))
        found = mdl.learn_dictionary(columns, 32, engine=Dask(client), **options | {"callbacks": [scale]})
        assert_same_bits(found, expected)


def test_a_worker_with_several_threads_gives_the_same_bits():
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    # Workers in this process: two of two threads, which have their states in one place.
    local = LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0")
    with local as cluster, Client(cluster) as client:
        assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), **options), expected)


def test_arrays_persisted_on_another_cluster_are_refused(client):
    Y, options = problem_data()
    persisted = client.persist(da.from_array(Y, chunks=(16, 2500)))
    wait(persisted)
    other = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
    refused = pytest.raises(ValueError, match=f"persisted on the cluster {client.scheduler.address}")
    with other as cluster, Client(cluster, set_as_default=False) as elsewhere, refused:
        mdl.learn_dictionary(persisted, 32, engine=Dask(elsewhere), **options)


def test_an_asynchronous_client_is_refused(client):
    async def learn():
        async with Client(client.scheduler.address, asynchronous=True) as waiting:
            with pytest.raises(TypeError, match="is asynchronous"):
                Dask(waiting).open([1])

    client.sync(learn)


def test_a_block_whose_workers_are_lost_each_time_is_an_error(client, monkeypatch):
    monkeypatch.setattr(rounds.Round, "_result", lambda self, bundle: None)
    engine = Dask(client)
    blocks = engine.open([np.ones((2, 2))])
    with pytest.raises(ClusterError, match="lost 25 times"):
        engine.total(BlockMap(squared_norm_block, (blocks,)))
