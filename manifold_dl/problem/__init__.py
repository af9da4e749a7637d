"""The dictionary update, and learning with ℓ₁ codes, as Pymanopt problems for any Pymanopt optimizer.

`update_problem` and `lasso_problem` are what users call. They check their input and build a
`DictionaryProblem` (the Pymanopt adapter) around an `Objective` (the mathematics), which computes an
`Evaluation` per dictionary. How codes follow the dictionary is `inner.py` on a fixed support, `penalized.py`
by a penalty.
"""

from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.lasso_problem import lasso_problem, penalized_problem
from manifold_dl.problem.penalized_problem import PenalizedProblem
from manifold_dl.problem.support_problem import SupportProblem
from manifold_dl.problem.update_problem import update_problem

__all__ = [
    "DictionaryProblem",
    "PenalizedProblem",
    "SupportProblem",
    "lasso_problem",
    "penalized_problem",
    "update_problem",
]
