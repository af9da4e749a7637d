"""Components named on the command line: ours, Pymanopt's, and those that other packages register.

`plugins` finds them by name, so a plug-in is there for every command as soon as it is installed.
"""

import inspect
import math
from typing import Annotated

import typer

from manifold_dl import plugins


def _names(kind):
    """For shell completion."""

    def complete(incomplete: str):
        known = (name.lower() for name in plugins.available(kind))
        return [name for name in known if name.startswith(incomplete.lower())]

    return complete


UpdateOption = Annotated[
    str,
    typer.Option(
        help="The rule that improves the dictionary: simco, ksvd, mod, ...", autocompletion=_names("updates")
    ),
]
SolverOption = Annotated[
    str | None,
    typer.Option(
        help="SimCO's optimizer: cg (the default), trust-region, lbfgs, golden (the paper's one step with "
        "golden section), or any other by name.",
        autocompletion=_names("optimizers"),
    ),
]
ManifoldOption = Annotated[
    str | None,
    typer.Option(
        help="Where SimCO's atoms live: spheres, zero-mean, ...", autocompletion=_names("manifolds")
    ),
]
RegularizerOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A penalty on SimCO's dictionary, as NAME:WEIGHT; may be repeated.",
        autocompletion=_names("regularizers"),
    ),
]
CoderOption = Annotated[
    str, typer.Option(help="The sparse coder: omp, forward-selection, ...", autocompletion=_names("coders"))
]
MuOption = Annotated[
    float | None, typer.Option(min=0, help="SimCO's ridge on the codes; 0 is primitive SimCO.")
]


def coder_named(name, sparsity):
    """A sparse coder with so many atoms a signal, if it can be told how many."""
    coder = _get("coders", name)
    try:
        return coder(sparsity=sparsity) if "sparsity" in inspect.signature(coder).parameters else coder()
    except TypeError:
        raise ValueError(f"--coder {name} needs more than a sparsity; use it from Python.") from None


def update_named(name, solver=None, mu=None, manifold=None, regularizers=None, default_mu=None):
    """The update rule that the options name; all but the first belong to SimCO."""
    from manifold_dl.updates import SimCO

    rule = _get("updates", name)
    if rule is not SimCO:
        options = {"--solver": solver, "--mu": mu, "--manifold": manifold, "--regularizer": regularizers}
        for option, value in options.items():
            if value is not None and value != []:
                raise ValueError(f"{option} belongs to --update simco, not to --update {name}.")
        return rule()
    if mu is not None and not math.isfinite(mu):
        raise ValueError(f"--mu {mu}: give a finite number.")
    settings = {} if manifold is None else {"manifold": _get("manifolds", manifold)}
    mu = default_mu if mu is None else mu
    if mu is not None:
        settings["mu"] = mu
    return SimCO(
        None if solver is None else _solver(solver),
        regularizers=[_regularizer(text) for text in regularizers or ()],
        **settings,
    )


def _solver(name):
    from pymanopt.optimizers import SteepestDescent, TrustRegions

    from manifold_dl.line_search import GoldenSection
    from manifold_dl.optimizers import LBFGS
    from manifold_dl.updates import default_optimizer

    nicknames = {
        "cg": default_optimizer,
        "lbfgs": lambda: LBFGS(max_iterations=5),
        "trust-region": lambda: TrustRegions(kappa=0.3, max_iterations=3),
        "golden": lambda: SteepestDescent(line_searcher=GoldenSection(), max_iterations=1),
    }
    if name in nicknames:
        return nicknames[name]()
    optimizer = _get("optimizers", name)
    # Five steps a stage, where an optimizer can be told: its own limit is meant for one run, not for fifty.
    known = inspect.signature(optimizer).parameters
    told = "max_iterations" in known or any(p.kind is p.VAR_KEYWORD for p in known.values())
    return optimizer(max_iterations=5) if told else optimizer()


def _regularizer(text):
    name, _, weight = text.partition(":")
    try:
        weight = float(weight)
    except ValueError:
        raise ValueError(f"--regularizer {text}: give it as NAME:WEIGHT, such as coherence:0.01.") from None
    try:
        return _get("regularizers", name)(weight)
    except TypeError:
        raise ValueError(f"--regularizer {name} needs more than a weight; use it from Python.") from None


def _get(kind, name):
    try:
        return plugins.get(kind, name)
    except plugins.PluginError as error:
        raise ValueError(str(error)) from None
