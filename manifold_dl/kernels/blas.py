"""One thread for BLAS where a large product decides bits of a dictionary.

How OpenBLAS adds up a product depends on its number of threads. Our own kernels do not use it for what
reaches a result; `MOD` solves its normal equations by LAPACK, and regularizers form products of atoms: they
do so in `one_blas_thread`, so that the bits do not depend on the number of threads.
"""

import os
import threading
from typing import Any

from threadpoolctl import ThreadpoolController

# OpenBLAS multiplies in one thread below about 2^18 operations: there is nothing to limit, and no time lost.
LARGE = 2**17


class one_blas_thread:
    """Limit BLAS to one thread inside a ``with`` block, if the work is large.

    The limit belongs to the process: it is set by the first of several Python threads that enter a block, and
    removed by the last one that leaves.

    Parameters
    ----------
    operations : int
        About how many multiplications a product in the block has.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread(operations=512**3):
    ...     product = np.ones((512, 512)) @ np.ones((512, 512))
    """

    _lock = threading.Lock()
    _controller: ThreadpoolController | None = None
    _inside = 0
    _limits: Any = None

    def __init__(self, operations: int) -> None:
        self.is_large = operations >= LARGE

    def __enter__(self) -> None:
        cls = type(self)
        if not self.is_large:
            return
        with cls._lock:
            if cls._inside == 0:
                if cls._controller is None:
                    cls._controller = ThreadpoolController()
                cls._limits = cls._controller.limit(limits=1, user_api="blas")
            cls._inside += 1

    def __exit__(self, *exception: object) -> None:
        cls = type(self)
        if not self.is_large:
            return
        with cls._lock:
            cls._inside -= 1
            if cls._inside == 0:
                cls._limits.restore_original_limits()


def _after_fork() -> None:
    """A forked process has none of the other threads that may be inside a block."""
    one_blas_thread._lock = threading.Lock()
    one_blas_thread._inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
