"""The dictionary update as a Pymanopt problem, for any Pymanopt optimizer.

`update_problem` is what users call. It checks its input and builds a `DictionaryProblem` (the Pymanopt
adapter) around an `Objective` (the mathematics), which computes an `Evaluation` per dictionary.
"""

from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.update_problem import update_problem

__all__ = ["DictionaryProblem", "update_problem"]
