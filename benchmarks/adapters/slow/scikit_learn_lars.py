"""scikit-learn's default solver, `lars`, which takes eight to ten times the time of `cd`.

Not among the adapters that are always run: python benchmarks/peers.py --task recovery --adapter THIS FILE.
"""

from sklearn.decomposition import DictionaryLearning

DISTRIBUTION = "scikit-learn"


def lars(problem):
    settings = {"fit_algorithm": "lars", "tol": 0.0, "dict_init": problem.start.T, "max_iter": problem.passes}
    return DictionaryLearning(problem.n_atoms, alpha=0.2, **settings).fit(problem.signals.T).components_.T


RECOVERY = {"scikit-learn, lars": lars}
