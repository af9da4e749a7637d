"""Short runs of `learn_dictionary`, and components that record or interrupt them."""

import numpy as np

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    SimCO,
    datasets,
    learn_dictionary,
)

D_TRUE, X_TRUE, Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0)


CODER = OMP(sparsity=2)


UPDATES = [SimCO(mu=0.1), KSVD(), MOD()]


NAMES = ["simco", "ksvd", "mod"]


def learn(signals=Y, n_atoms=12, **options):
    return learn_dictionary(signals, n_atoms, **{"coder": CODER, "max_iter": 5, "rng": 0, **options})


def error(signals, dictionary, codes):
    """‖Y − DX‖²/n, written out with dense arrays."""
    return np.sum((signals - dictionary @ codes.toarray()) ** 2) / signals.shape[1]


class Recorder:
    """A callback that keeps every step, and raises or stops in a given iteration."""

    def __init__(self, stop_at=None, raise_at=None):
        self.steps, self.calls, self.stop_at, self.raise_at = [], [], stop_at, raise_at

    def begin(self, total):
        self.calls.append(f"begin {total}")

    def end(self):
        self.calls.append("end")

    def __call__(self, step):
        self.steps.append(step)
        if step.iteration == self.raise_at:
            raise KeyboardInterrupt
        return step.iteration == self.stop_at


class Interrupted:
    """A coder that is interrupted the k-th time it is called."""

    def __init__(self, *calls):
        self.calls, self.count = calls, 0

    def encode(self, signals, dictionary):
        self.count += 1
        if self.count in self.calls:
            raise KeyboardInterrupt
        return CODER.encode(signals, dictionary)
