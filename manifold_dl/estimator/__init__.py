"""Dictionary learning as a scikit-learn estimator: samples and atoms in rows.

`dictionary_learning.py` has the methods that users call, `fitting.py` how they learn, `parameters.py` the
fields of components as parameters, `checks.py` the input, and `storage.py` what a file holds.
"""

from manifold_dl.estimator.dictionary_learning import ManifoldDictionaryLearning

__all__ = ["ManifoldDictionaryLearning"]
