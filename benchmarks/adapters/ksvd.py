"""ksvd: approximate K-SVD with scikit-learn's OMP. It chooses its start itself (random, or the SVD)."""

import ksvd
import numpy as np

DISTRIBUTION = "ksvd"


class FromStart(ksvd.ApproximateKSVD):
    """The same from a given dictionary."""

    def _initialize(self, X):
        return self.start.copy()


def learn(problem):
    learner = FromStart(problem.n_atoms, problem.passes, transform_n_nonzero_coefs=problem.sparsity)
    learner.start = np.ascontiguousarray(problem.start.T)
    return learner.fit(np.ascontiguousarray(problem.signals.T)).components_.T


RECOVERY = PATCHES = {"ksvd": learn}
