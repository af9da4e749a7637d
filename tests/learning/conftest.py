"""A result, and files with a result or a checkpoint."""

import pytest
from stored_files import learn

from manifold_dl import (
    Checkpoint,
    History,
    save,
)


@pytest.fixture(scope="module")
def result():
    return learn(callbacks=[History(condition=True)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.npz"


@pytest.fixture
def saved(result, path):
    save(result, path)
    return path


@pytest.fixture
def checkpoint(path):
    learn(callbacks=[Checkpoint(path)])
    return path
