"""scikit-learn: ℓ₁ dictionary learning by coordinate descent, whole and in mini-batches, and its coders."""

import warnings

import numpy as np
from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning, sparse_encode
from sklearn.linear_model import orthogonal_mp_gram

DISTRIBUTION, DTYPES = "scikit-learn", ("float64", "float32")
warnings.simplefilter("ignore")  # it warns of each signal that has not converged


def learn(problem, model=DictionaryLearning, alpha=0.2, **settings):
    settings = {"fit_algorithm": "cd", "tol": 0.0, "dict_init": problem.start.T, **settings}
    learner = model(problem.n_atoms, alpha=alpha, random_state=problem.seed, **settings)
    return learner.fit(problem.signals.T).components_.T


def in_batches(problem):
    settings = {"batch_size": 512, "max_iter": problem.passes, "max_no_improvement": None}
    alpha = float(np.sqrt(np.mean(problem.signals[:, :5_000] ** 2)))
    return learn(problem, MiniBatchDictionaryLearning, alpha, **settings)


def omp(problem):
    D, Y = problem.dictionary, problem.signals
    if problem.tol is None:
        return orthogonal_mp_gram(D.T @ D, D.T @ Y, n_nonzero_coefs=problem.sparsity)
    norms = np.einsum("mn,mn->n", Y, Y)
    return orthogonal_mp_gram(D.T @ D, D.T @ Y, tol=problem.tol, norms_squared=norms)


def lasso(problem):
    Y, D = problem.signals.T, problem.dictionary.T
    return sparse_encode(Y, D, algorithm="lasso_cd", alpha=problem.alpha).T


RECOVERY = {"scikit-learn, cd": lambda problem: learn(problem, max_iter=problem.passes)}
PATCHES = {"scikit-learn, mini-batches, cd": in_batches}
DENOISING = {"scikit-learn, mini-batches, cd": in_batches}
CODING = {
    "sparsity": {"scikit-learn, orthogonal_mp_gram": omp},
    "error": {"scikit-learn, orthogonal_mp_gram": omp},
    "lasso": {"scikit-learn, lasso_cd": lasso},
}
