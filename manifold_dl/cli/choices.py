"""Components named on the command line: ours, Pymanopt's, and those that other packages register.

`plugins` finds them by name, so an installed plug-in can be used in every command. `learn`, `encode` and
`denoise` have these options.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer


def names_of(kind: str, *more: str) -> Callable[[str], list[str]]:
    """Return the function with which the shell completes the names of components.

    Parameters
    ----------
    kind : str
        One of `plugins.KINDS`.
    *more : str
        Names besides those of the registered components.

    Returns
    -------
    callable
        Beginning of a name → list of names.
    """

    def complete(incomplete: str) -> list[str]:
        from manifold_dl import plugins  # imports every package that defines components

        known = sorted([*more, *map(spelled, plugins.available(kind))])
        return [name for name in known if name.startswith(incomplete.lower())]

    return complete


def spelled(name: str) -> str:
    """Return a class name as the command line spells it.

    Parameters
    ----------
    name : str
        The name of a class.

    Returns
    -------
    str
        In lower case, with hyphens between words.

    Examples
    --------
    >>> spelled("GoldenSection"), spelled("SimCO"), spelled("OMP")
    ('golden-section', 'simco', 'omp')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()


UpdateOption = Annotated[
    str,
    typer.Option(
        help="The rule for the dictionary update: simco, ksvd, mod, ...",
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
        help="The line search of SimCO's optimizer: golden-section, wolfe-search, ...",
        autocompletion=names_of("line_searchers"),
    ),
]
ManifoldOption = Annotated[
    str | None,
    typer.Option(
        help="The manifold of SimCO's dictionaries: spheres, zero-mean, stiefel, ...",
        autocompletion=names_of("manifolds"),
    ),
]
RegularizerOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A regularizer of SimCO's dictionary, as NAME:WEIGHT; may be repeated.",
        autocompletion=names_of("regularizers"),
    ),
]
CoderOption = Annotated[
    str, typer.Option(help="The sparse coder: omp, forward-selection, ...", autocompletion=names_of("coders"))
]
CodesOption = Annotated[
    str | None,
    typer.Option(
        help="SimCO's codes by a penalty, as NAME:ALPHA, in place of a coder and a sparsity: lasso:0.1, or "
        "rms-lasso:0.05, in units of the root mean square norm of the signals."
    ),
]
MuOption = Annotated[
    float | None, typer.Option(min=0, help="SimCO's ridge on the codes; 0 is primitive SimCO.")
]


def coder_named(name: str, sparsity: int) -> Any:
    """Return the sparse coder of that name.

    Parameters
    ----------
    name : str
        As the command line spells it.
    sparsity : int
        Atoms per signal, for coders that have this parameter.

    Returns
    -------
    SparseCoder
    """
    from manifold_dl.components import by_name

    return by_name.component("coders", name, "--coder", sparsity=sparsity)


def following_coder(text: str) -> Any:
    """Return the coder by which SimCO's codes follow the dictionary.

    Parameters
    ----------
    text : str
        Its name and its penalty, as NAME:ALPHA.

    Returns
    -------
    PenalizedCoder
    """
    from manifold_dl.coders.protocol import parameter_of
    from manifold_dl.components import by_name

    name, _, number = text.partition(":")
    try:
        alpha = float(number)
    except ValueError:
        raise ValueError(f"--codes {text}: give a name and a penalty, such as lasso:0.1.") from None
    coder = by_name.component("coders", name, "--codes", alpha=alpha)
    if parameter_of(coder, "alpha") != alpha:
        raise ValueError(f"--codes {text}: {name} has no penalty alpha; choose lasso or rms-lasso.")
    return coder


@dataclass(frozen=True)
class UpdateChoice:
    """The options of an update rule; all but the first belong to SimCO.

    Parameters
    ----------
    update, solver, line_searcher, manifold : str
        Names of components.
    mu : float
        The ridge on the codes.
    regularizers : list of str
        Regularizers as NAME:WEIGHT.
    codes : str
        A penalty by which the codes follow, as NAME:ALPHA.
    """

    update: str = "simco"
    solver: str | None = None
    line_searcher: str | None = None
    mu: float | None = None
    manifold: str | None = None
    regularizers: list[str] | None = None
    codes: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether no option was given."""
        return self == UpdateChoice() or self == UpdateChoice(regularizers=[])

    def make(self, **settings: Any) -> Any:
        """Return the update rule.

        Parameters
        ----------
        **settings
            Parameters of SimCO; those given as options take precedence.

        Returns
        -------
        DictionaryUpdate
        """
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
        if self.codes is not None:
            settings["codes"] = following_coder(self.codes)
        if self.manifold is not None:
            settings["manifold"] = by_name.component("manifolds", self.manifold, "--manifold")
        return SimCO(
            optimizer(self.solver, "--solver", self.line_searcher),
            regularizers=regularizers(self.regularizers or (), "--regularizer"),
            **settings,
        )

    def _options(self) -> dict[str, Any]:
        return {
            "--solver": self.solver,
            "--line-searcher": self.line_searcher,
            "--mu": self.mu,
            "--manifold": self.manifold,
            "--regularizer": self.regularizers,
            "--codes": self.codes,
        }
