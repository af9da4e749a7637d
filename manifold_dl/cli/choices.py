"""Components named on the command line: ours, Pymanopt's, and those that other packages register.

`plugins` finds them by name, so a plug-in is there for every command as soon as it is installed.
"""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

import typer


def names_of(kind, *more):
    """For shell completion."""

    def complete(incomplete: str):
        from manifold_dl import plugins  # imports every package that defines components

        known = sorted([*more, *map(spelled, plugins.available(kind))])
        return [name for name in known if name.startswith(incomplete.lower())]

    return complete


def spelled(name: str) -> str:
    """A name as one types it: ``golden-section`` for `GoldenSection`; ``omp`` and ``simco`` stay one word."""
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()


UpdateOption = Annotated[
    str,
    typer.Option(
        help="The rule that improves the dictionary: simco, ksvd, mod, ...",
        autocompletion=names_of("updates"),
    ),
]
SolverOption = Annotated[
    str | None,
    typer.Option(
        help="SimCO's optimizer: cg (the default), trust-region, lbfgs, golden (the paper's one step with "
        "golden section), or any other by name.",
        autocompletion=names_of("optimizers", "cg", "golden", "trust-region"),
    ),
]
LineSearcherOption = Annotated[
    str | None,
    typer.Option(
        help="How far SimCO's optimizer goes along a line: golden-section, wolfe-search, ...",
        autocompletion=names_of("line_searchers"),
    ),
]
ManifoldOption = Annotated[
    str | None,
    typer.Option(
        help="Where SimCO's atoms live: spheres, zero-mean, stiefel, ...",
        autocompletion=names_of("manifolds"),
    ),
]
RegularizerOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A penalty on SimCO's dictionary, as NAME:WEIGHT; may be repeated.",
        autocompletion=names_of("regularizers"),
    ),
]
CoderOption = Annotated[
    str, typer.Option(help="The sparse coder: omp, forward-selection, ...", autocompletion=names_of("coders"))
]
MuOption = Annotated[
    float | None, typer.Option(min=0, help="SimCO's ridge on the codes; 0 is primitive SimCO.")
]


def coder_named(name, sparsity):
    """A sparse coder with so many atoms a signal, if it can be told how many."""
    from manifold_dl.components import by_name

    return by_name.component("coders", name, "--coder", sparsity=sparsity)


@dataclass(frozen=True)
class UpdateChoice:
    """The options that make an update rule; all but the first belong to SimCO."""

    update: str = "simco"
    solver: str | None = None
    line_searcher: str | None = None
    mu: float | None = None
    manifold: str | None = None
    regularizers: list[str] | None = None

    @property
    def is_default(self) -> bool:
        return self == UpdateChoice() or self == UpdateChoice(regularizers=[])

    def make(self, **settings: Any) -> Any:
        """The rule; `settings` are those of SimCO that no option names."""
        from manifold_dl.components import by_name
        from manifold_dl.optimizers.by_name import optimizer
        from manifold_dl.regularizers.by_name import regularizers
        from manifold_dl.updates.simco import SimCO

        rule = by_name.find("updates", self.update, "--update")
        if rule is not SimCO:
            for option, value in self._options().items():
                if value is not None and value != []:
                    raise ValueError(f"{option} belongs to --update simco, not to --update {self.update}.")
            return by_name.component("updates", self.update, "--update")
        if self.mu is not None and not math.isfinite(self.mu):
            raise ValueError(f"--mu {self.mu}: give a finite number.")
        if self.mu is not None:
            settings["mu"] = self.mu
        if self.manifold is not None:
            settings["manifold"] = by_name.component("manifolds", self.manifold, "--manifold")
        return SimCO(
            optimizer(self.solver, "--solver", self.line_searcher),
            regularizers=regularizers(self.regularizers or (), "--regularizer"),
            **settings,
        )

    def _options(self):
        return {
            "--solver": self.solver,
            "--line-searcher": self.line_searcher,
            "--mu": self.mu,
            "--manifold": self.manifold,
            "--regularizer": self.regularizers,
        }
