from . import (
    coders,
    datasets,
    diagnostics,
    engines,
    experiments,
    images,
    learning,
    line_search,
    manifolds,
    metrics,
    optimizers,
    plotting,
    plugins,
    presets,
    problem,
    regularizers,
    schedules,
    updates,
)
from .coders import (
    FOCUSS,
    IHT,
    OMP,
    BasisPursuit,
    BestOf,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    RmsLasso,
    SubspacePursuit,
)
from .components.errors import ComponentError
from .estimator import ManifoldDictionaryLearning
from .learning.batching import MiniBatches
from .learning.callbacks import Checkpoint, EarlyStopping, Progress
from .learning.dictionary_files import load_dictionary, save_dictionary
from .learning.history import History, Step
from .learning.learn import learn_dictionary
from .learning.replacement import ReplaceAtoms
from .learning.result import Reason, Result
from .line_search import GoldenSection, WolfeSearch
from .optimizers import LBFGS, LeadingSingularVector
from .problem import lasso_problem, update_problem
from .storage import load, save
from .updates import KSVD, MOD, AtomSearch, SimCO

__version__: str

__all__ = [
    "FOCUSS",
    "IHT",
    "KSVD",
    "LBFGS",
    "MOD",
    "OMP",
    "AtomSearch",
    "BasisPursuit",
    "BestOf",
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
    "MiniBatches",
    "Progress",
    "Reason",
    "ReplaceAtoms",
    "Result",
    "RmsLasso",
    "SimCO",
    "Step",
    "SubspacePursuit",
    "WolfeSearch",
    "coders",
    "datasets",
    "diagnostics",
    "engines",
    "experiments",
    "images",
    "lasso_problem",
    "learn_dictionary",
    "learning",
    "line_search",
    "load",
    "load_dictionary",
    "manifolds",
    "metrics",
    "optimizers",
    "plotting",
    "plugins",
    "presets",
    "problem",
    "regularizers",
    "save",
    "save_dictionary",
    "schedules",
    "update_problem",
    "updates",
]
