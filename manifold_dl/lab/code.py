"""Show the code: the few lines of Python that do what a run of the page does, with the same numbers.

`test_code.py` executes them for every kind of data, problem, schedule and regularizer and compares
dictionaries.
"""

import ast
import inspect
from typing import Any

from pymanopt.optimizers import NelderMead, ParticleSwarm

from manifold_dl import plugins
from manifold_dl.components.entry_points import metadata_read_once
from manifold_dl.lab import parts
from manifold_dl.lab.data import Upload, snr_db
from manifold_dl.lab.settings import NONE, OWN, Settings
from manifold_dl.manifolds import Spheres
from manifold_dl.schedules import AllAtoms

_FOLDERS = ("manifolds", "regularizers", "schedules", "optimizers", "line_search")


@metadata_read_once()
def code(settings: Settings, upload: Upload | None = None, own_text: str = "") -> str:
    """The Python of these settings.

    Parameters
    ----------
    settings : Settings
        Such that a run of them can be made.
    upload : Upload, optional
        The user's file; the code reads it by its name.
    own_text : str
        The text of the user's regularizer.

    Returns
    -------
    str

    Examples
    --------
    >>> print(code(Settings(optimizer="TrustRegions")))
    import numpy as np
    from pymanopt.optimizers import TrustRegions
    <BLANKLINE>
    import manifold_dl as mdl
    <BLANKLINE>
    truth, codes, Y = mdl.datasets.synthetic(16, 32, 300, sparsity=4, rng=0)
    support = codes != 0
    D = mdl.manifolds.Spheres(16, 32).random_point(rng=101)
    <BLANKLINE>
    optimizer = TrustRegions(max_iterations=50, verbosity=0)
    problem = mdl.update_problem(Y, support)
    D = optimizer.run(problem, initial_point=D).point
    X = problem.codes(D)
    print(f"objective {problem.cost(D):.8g}, coherence {mdl.metrics.coherence(D):.6g}")
    <BLANKLINE>
    """
    return _Writer(settings, upload, own_text).text()


class _Writer:
    """Writes the parts of the code, and collects what they import."""

    def __init__(self, settings: Settings, upload: Upload | None, own_text: str) -> None:
        self.settings, self.upload = settings, upload
        self.own_text = own_text.strip() if settings.regularizer == OWN else ""
        # The user's text calls autograd's NumPy `np`.
        self.np = "numpy" if self.own_text else "np"
        self.imports: set[str] = set()
        if self.own_text:
            self.imports |= {"import autograd.numpy as np", "import numpy"}
        else:
            self.imports.add("import numpy as np")

    def text(self) -> str:
        body = "\n".join(["", *self.data(), *self.start(), "", *self.solve()])
        own = f"\n\n{self.own_text}\n\n" if self.own_text else ""
        imports = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        return "\n".join(imports) + "\n\nimport manifold_dl as mdl\n" + own + body + "\n"

    def data(self) -> list[str]:
        s = self.settings
        if s.data == "synthetic":
            ratio = snr_db(s.noise)
            noise = "" if ratio is None else f", snr_db={ratio:g}"
            line = f"mdl.datasets.synthetic({s.m}, {s.d}, {s.n}, sparsity={s.sparsity}{noise}, rng={s.seed})"
            return [f"truth, codes, Y = {line}", *(["support = codes != 0"] if self.has_support else [])]
        if s.data == "file" and self.upload is not None and not self.upload.is_picture:
            name, read = self.upload.name, f"{self.np}.load({self.upload.name!r})"
            if name.lower().endswith(".csv"):
                read = f'{self.np}.loadtxt({name!r}, delimiter=",", ndmin=2, encoding="utf-8-sig")'
            return [f"Y = {self.np}.ascontiguousarray({read}.astype(float).T)  # a signal in every row"]
        self.imports.add("from sklearn.feature_extraction.image import extract_patches_2d")
        if s.data == "file" and self.upload is not None:
            self.imports.add("from PIL import Image")
            opened = f'Image.open({self.upload.name!r}).convert("F")'
            picture = f"{self.np}.asarray({opened}, dtype=float) / 255"
        else:
            self.imports.add("from skimage import data")
            picture = "data.camera() / 255"
        size = f"({s.patch}, {s.patch}), max_patches={s.n}, random_state={s.seed}"
        return [
            f"picture = {picture}",
            f"patches = extract_patches_2d(picture, {size})",
            f"Y = patches.reshape({s.n}, -1).T",
            "Y = Y - Y.mean(axis=0)",
        ]

    def start(self) -> list[str]:
        s = self.settings
        if s.start == "typed":
            atoms = [
                [float(x) for x in atom.replace(",", " ").split()] for atom in s.typed.strip(" ;").split(";")
            ]
            lines = [f"D = {self.np}.array({atoms}).T", f"D = D / {self.np}.linalg.norm(D, axis=0)"]
        elif s.data == "synthetic":
            lines = [f"D = mdl.manifolds.Spheres({s.m}, {s.d}).random_point(rng={s.start_rng})"]
        else:
            lines = [f"D = mdl.manifolds.Spheres(len(Y), {s.d}).random_point(rng={s.start_rng})"]
        if self.has_support and s.data != "synthetic":
            lines.append(f"support = mdl.OMP(sparsity={s.sparsity}).encode(Y, D) != 0")
        return lines

    def solve(self) -> list[str]:
        s, penalties = self.settings, parts.penalties(self.settings)
        lines = [*self.regularizers(), f"optimizer = {self.optimizer()}"]
        is_population = plugins.get("optimizers", s.optimizer) in (NelderMead, ParticleSwarm)
        moves_all = plugins.get("schedules", s.schedule) is AllAtoms
        if moves_all and len(penalties) == 1 and s.sweeps == 1 and not is_population:
            lines += [f"problem = {self.problem(*penalties[0])}"]
            lines += [f"D = optimizer.run(problem, initial_point={self.initial('D')}).point"]
            return [*lines, "X = problem.codes(D)", self.result("problem.cost(D)")]
        loop, given = self.loop(penalties)
        indent = "    " * len(loop)
        lines.append(f"draws = {self.np}.random.default_rng({s.start_rng})")
        run = "mdl.optimizers.OptimizerRun(optimizer).minimize"
        if moves_all:
            lines += [*loop, f"{indent}problem = {self.problem(*given)}"]
            lines += [f"{indent}D = {run}(problem, {self.initial('D')}, draws)"]
            return [*lines, "X = problem.codes(D)", self.result("problem.cost(D)")]
        lines += [f"schedule = {self.schedule()}", f"order = {self.np}.random.default_rng({s.start_rng})"]
        if self.has_support:
            first = _ridge(penalties[0][1])
            lines += [f"X = mdl.update_problem(Y, support{first}).codes(D)  # of the initial dictionary"]
        lines += [*loop, f"{indent}for I in mdl.schedules.sweep(schedule, {s.d}, order):"]
        lines += [f"{indent}    problem = {self.problem(*given, subset=True)}"]
        lines += [f"{indent}    start = {self.initial('D[:, I]')}"]
        lines += [f"{indent}    point = {run}(problem, start, draws)"]
        lines += [f"{indent}    D, X = problem.dictionary(point), problem.codes(point)"]
        return [*lines, self.result(self.objective(penalties[-1][1]))]

    def loop(self, penalties: list[tuple[float, float]]) -> tuple[list[str], tuple[Any, Any]]:
        """The loops around a sweep, and how α and μ are called in them."""
        lines: list[str] = []
        given: tuple[Any, Any] = penalties[0]
        if len(penalties) > 1 and self.has_support:
            lines, given = [f"for mu in {[mu for _, mu in penalties]}:"], (0.0, "mu")
        elif len(penalties) > 1:
            lines, given = [f"for alpha, mu in {penalties}:"], ("alpha", "mu")
        if self.settings.sweeps > 1:
            lines.append("    " * len(lines) + f"for sweep in range({self.settings.sweeps}):")
        return lines, given

    def objective(self, mu: float) -> str:
        """That of all atoms, after the last set has moved."""
        if not self.has_support:
            return "problem.cost(point)"
        ridge = f" + {mu!r} * {self.np}.sum(X.data**2)" if mu else ""
        penalty = " + sum(R.value(D) for R in regularizers)" if self.settings.regularizer != NONE else ""
        return f"{self.np}.sum((Y - D @ X) ** 2){ridge}{penalty}"

    @property
    def has_support(self) -> bool:
        return self.settings.problem == "update_problem"

    def problem(self, alpha: Any, mu: Any, subset: bool = False) -> str:
        s, options = self.settings, ", atoms=I, dictionary=D" if subset else ""
        if s.manifold != "Spheres":
            options += f", manifold={self.name('manifolds', s.manifold)}"
        options += _ridge(mu)
        if s.regularizer != NONE:
            options += ", regularizers=regularizers"
        if not self.has_support:
            return f"mdl.lasso_problem(Y, {s.d}, alpha={alpha}{options})"
        return f"mdl.update_problem(Y, {'X' if subset else 'support'}{options})"

    def initial(self, atoms: str) -> str:
        spheres = plugins.get("manifolds", self.settings.manifold) is Spheres
        return atoms if spheres else f"problem.feasible.nearest_point({atoms})"

    def result(self, objective: str) -> str:
        return f'print(f"objective {{{objective}:.8g}}, coherence {{mdl.metrics.coherence(D):.6g}}")'

    def optimizer(self) -> str:
        s, made = self.settings, plugins.get("optimizers", self.settings.optimizer)
        searcher = None
        if parts.takes_line_searcher(s.optimizer):
            searcher = _Verbatim(f"{self.name('line_searchers', s.line_searcher)}()")
        return self.call("optimizers", s.optimizer, parts.optimizer_arguments(s, made, searcher))

    def schedule(self) -> str:
        wanted = parts.schedule_arguments(self.settings)
        return self.call(
            "schedules", self.settings.schedule, _taken("schedules", self.settings.schedule, wanted)
        )

    def regularizers(self) -> list[str]:
        s = self.settings
        if s.regularizer == NONE:
            return []
        weight = f"{s.weight!r} * {self.np}.sum(Y**2)"
        if s.regularizer == OWN:
            return self.own_regularizer(weight)
        made = plugins.get("regularizers", s.regularizer)
        if not isinstance(made, type):
            made_text = f"mdl.regularizers.scaled({weight}, {self.name('regularizers', s.regularizer)})"
            return [f"regularizers = [{made_text}]"]
        shape = f"({s.patch}, {s.patch})" if self.is_picture else "(len(Y),)"
        others = {"weight": weight, "shape": shape, "bound": "0.95", "reference": "D"}
        arguments = {name: _Verbatim(text) for name, text in others.items()}
        call = self.call("regularizers", s.regularizer, _taken("regularizers", s.regularizer, arguments))
        return [f"regularizers = [{call}]"]

    def own_regularizer(self, weight: str) -> list[str]:
        defined = _defined(self.own_text)
        given = [name for name in ("gradient", "hessian") if name in defined]
        if not given:
            return [f"regularizers = [mdl.regularizers.scaled({weight}, R)]"]
        members = [("value", "R"), *((name, name) for name in given)]
        lines = ["class Own:", *(f"    {name} = staticmethod({text})" for name, text in members), ""]
        return [*lines, f"regularizers = [mdl.regularizers.scaled({weight}, Own())]"]

    @property
    def is_picture(self) -> bool:
        s, upload = self.settings, self.upload
        return s.data == "picture" or (s.data == "file" and upload is not None and upload.is_picture)

    def call(self, kind: str, name: str, arguments: dict[str, Any]) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return f"{self.name(kind, name)}({inside})"

    def name(self, kind: str, name: str) -> str:
        """How the code calls a component; what is not in our package is imported."""
        made = plugins.get(kind, name)
        module, called = made.__module__, made.__name__
        package, _, rest = module.partition(".")
        if package == "manifold_dl":
            return f"mdl.{rest.partition('.')[0]}.{called}"
        if package == "pymanopt":
            places = {"line_searchers": "optimizers.line_search"}
            module = f"pymanopt.{places.get(kind, kind)}"
        self.imports.add(f"from {module} import {called}")
        return called


def _defined(text: str) -> set[str]:
    """The names that a text defines where it is executed."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _ridge(mu: Any) -> str:
    return f", mu={mu}" if mu else ""


class _Verbatim(str):
    """A text that is written as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _taken(kind: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a component takes."""
    parameters = inspect.signature(plugins.get(kind, name)).parameters
    return {key: value for key, value in arguments.items() if key in parameters}
