from manifold_dl import (
    datasets,
    diagnostics,
    manifolds,
    metrics,
    optimizers,
    plotting,
    plugins,
    presets,
    regularizers,
    schedules,
)
from manifold_dl.coders import (
    FOCUSS,
    IHT,
    OMP,
    AnnealedLasso,
    BasisPursuit,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    SubspacePursuit,
)
from manifold_dl.components.errors import ComponentError
from manifold_dl.estimator import ManifoldDictionaryLearning
from manifold_dl.learning.callbacks import Checkpoint, EarlyStopping, History, Progress, Step
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.replacement import ReplaceAtoms
from manifold_dl.learning.result import Reason, Result
from manifold_dl.learning.storage import load, save
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.optimizers import LBFGS, LeadingSingularVector
from manifold_dl.problem.update_problem import update_problem
from manifold_dl.updates.simco import KSVD, MOD, SimCO

__version__: str

__all__ = [
    "FOCUSS",
    "IHT",
    "KSVD",
    "LBFGS",
    "MOD",
    "OMP",
    "AnnealedLasso",
    "BasisPursuit",
    "Checkpoint",
    "ComponentError",
    "EarlyStopping",
    "FixedSupport",
    "ForwardSelection",
    "GoldenSection",
    "GradientPursuit",
    "History",
    "Lasso",
    "LeadingSingularVector",
    "ManifoldDictionaryLearning",
    "MatchingPursuit",
    "Progress",
    "Reason",
    "ReplaceAtoms",
    "Result",
    "SimCO",
    "Step",
    "SubspacePursuit",
    "WolfeSearch",
    "datasets",
    "diagnostics",
    "learn_dictionary",
    "load",
    "manifolds",
    "metrics",
    "optimizers",
    "plotting",
    "plugins",
    "presets",
    "regularizers",
    "save",
    "schedules",
    "update_problem",
]
