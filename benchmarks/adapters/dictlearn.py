"""dictlearn: approximate K-SVD with OMP, its default."""

import dictlearn

DISTRIBUTION = "dictlearn"


def learn(problem):
    settings = {"n_nonzero_coefs": problem.sparsity, "max_iter": problem.passes, "random_state": problem.seed}
    learner = dictlearn.DictionaryLearning(problem.n_atoms, dict_init=problem.start.T, **settings)
    return learner.fit(problem.signals.T).components_.T


def omp(problem):
    rows, atoms = problem.signals.T, problem.dictionary.T
    return dictlearn.sparse_encode(rows, atoms, algorithm="omp", n_nonzero_coefs=problem.sparsity).T


RECOVERY = PATCHES = SCALING = {"dictlearn, K-SVD": learn}
CODING = {"sparsity": {"dictlearn, omp": omp}}
