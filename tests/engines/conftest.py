"""One cluster of two workers for all modules that a test process runs, and a limit for every test."""

import signal

import pytest
from clusters import LIMIT, local_processes
from distributed import Client


@pytest.fixture(autouse=True)
def limited():
    """A test that hangs fails, with a report; fixtures have the limit of all tests, in pyproject.toml."""

    def stop(*arguments):
        pytest.fail(f"the test took more than {LIMIT} seconds")  # no error that the engine would catch

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def shared_cluster():
    """Two workers, which no test kills."""
    with local_processes(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(shared_cluster):
    """A client of them: of one module, because it is what Dask uses by default while it is open."""
    with Client(shared_cluster) as client:
        yield client
