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
from manifold_dl.callbacks import Checkpoint, EarlyStopping, History, Progress, Step
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
from manifold_dl.errors import ComponentError
from manifold_dl.estimator import ManifoldDictionaryLearning
from manifold_dl.learn import learn_dictionary
from manifold_dl.line_search import GeodesicSearch, GoldenSection
from manifold_dl.optimizers import LBFGS, LeadingSingularVector
from manifold_dl.problem import update_problem
from manifold_dl.replacement import ReplaceAtoms
from manifold_dl.result import Reason, Result
from manifold_dl.storage import load, save
from manifold_dl.updates import KSVD, MOD, SimCO

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
    "GeodesicSearch",
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
