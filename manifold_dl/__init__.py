"""manifold_dl: dictionary learning by optimisation on manifolds, built on Pymanopt.

The public names are loaded when they are asked for, so that ``manifold-dl --help`` and the completion of its
commands need not wait for a compiler. `__init__.pyi` says the same to editors and type checkers.
"""

from importlib import import_module
from importlib.util import find_spec

__version__ = "0.1.0"

_HOMES = {
    "callbacks": ["Checkpoint", "EarlyStopping", "History", "Progress", "Step"],
    "coders": [
        *["FOCUSS", "IHT", "OMP", "AnnealedLasso", "BasisPursuit", "FixedSupport", "ForwardSelection"],
        *["GradientPursuit", "Lasso", "MatchingPursuit", "SubspacePursuit"],
    ],
    "errors": ["ComponentError"],
    "estimator": ["ManifoldDictionaryLearning"],
    "learn": ["learn_dictionary"],
    "line_search": ["WolfeSearch", "GoldenSection"],
    "optimizers": ["LBFGS", "LeadingSingularVector"],
    "problem": ["update_problem"],
    "replacement": ["ReplaceAtoms"],
    "result": ["Reason", "Result"],
    "storage": ["load", "save"],
    "updates": ["KSVD", "MOD", "SimCO"],
}
_MODULES = [
    *["datasets", "diagnostics", "manifolds", "metrics", "optimizers", "plotting", "plugins", "presets"],
    *["regularizers", "schedules"],
]
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, *_MODULES])


def __getattr__(name):
    if name in _HOME_OF:
        value = getattr(import_module(f"manifold_dl.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"manifold_dl.{name}"):
        return import_module(f"manifold_dl.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
