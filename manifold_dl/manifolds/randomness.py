"""Random points of Pymanopt's manifolds, which draw from NumPy's global generator only."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# Two threads that save and restore the state in turns would leave it changed. Reentrant: a point of a product
# is drawn atom by atom.
_lock = threading.RLock()


@contextmanager
def global_generator(rng: np.random.Generator | int | None) -> Iterator[None]:
    """Make NumPy's global generator draw from `rng` inside the block, and leave it as it was.

    With None nothing is done, and draws change its state as usual.

    Examples
    --------
    >>> from pymanopt.manifolds import Sphere
    >>> before = np.random.get_state()[1].copy()
    >>> with global_generator(0):
    ...     point = Sphere(3).random_point()
    >>> bool(np.array_equal(np.random.get_state()[1], before))
    True
    """
    if rng is None:
        yield
        return
    with _lock:
        before = np.random.get_state()  # noqa: NPY002 - put back below
        np.random.seed(np.random.default_rng(rng).integers(2**32))  # noqa: NPY002 - Pymanopt takes no other
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002
